"""Models of one's own: models.local.yaml beside models.yaml."""

import json
from pathlib import Path

import pytest
from own_cases import registry_with, whole
from support import ROOT

from pieline.core.errors import UserError
from pieline.models.registry import load_registry
from pieline.results.whole import Whole

EMBEDDER = (
    "kind: embedder, label: Mine, licence: MIT, checkpoint: mine, source: folder, path: weights/m,"
    " trained_with_instructions: false, instruction_format: instruct_query, max_length: 256"
)


def test_models_of_ones_own_come_after_the_papers(tmp_path: Path) -> None:
    models = registry_with(tmp_path, f"mine: {{{EMBEDDER}}}\n")
    assert list(load_registry(models)) == [*load_registry(ROOT / "models.yaml"), "mine"]
    mine = whole(models, idiolink={"models": ["mine"]}).studies[-1]
    assert mine.models()[0] == "mine"
    told = whole(models, idiolink={"models": ["mine"]}).described_models()
    assert "mine" in {model["name"] for model in json.loads(told)}


@pytest.mark.parametrize("text", ["", "# none yet\n"])
def test_an_empty_file_adds_no_model(text: str, tmp_path: Path) -> None:
    assert "sbert" in load_registry(registry_with(tmp_path, text))


def test_a_name_that_is_taken_is_an_error_with_both_files(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        load_registry(registry_with(tmp_path, f"sbert: {{{EMBEDDER}}}\n"))
    assert "models.local.yaml: " in str(error.value)
    assert "models.yaml has a model 'sbert'" in str(error.value)


def test_an_entry_that_is_wrong_is_named_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"models\.local\.yaml: mine: .*pooling"):
        load_registry(registry_with(tmp_path, f"mine: {{{EMBEDDER}, pooling: best}}\n"))


def test_another_model_makes_nothing_stale(tmp_path: Path) -> None:
    def handed(run: Whole) -> list[str]:
        """All that rules hand to jobs whose results stand above the predictions."""
        shown = [each for study in run.studies for each in (*study.tables(), *study.figures())]
        tasks = [task.canonical() for study in run.studies for task in study.tasks()]
        return [*map(run.given, shown), *tasks, run.described_models(), run.description()]

    more = whole(registry_with(tmp_path, f"mine: {{{EMBEDDER}}}\n"))
    assert handed(more) == handed(whole(ROOT / "models.yaml"))
