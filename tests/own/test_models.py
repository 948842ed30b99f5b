"""The user's own models in models.local.yaml."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from own_cases import registry_with, run_report
from support import ROOT

from pieline.core.errors import UserError
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.results.run_models import described_models
from pieline.results.run_report import RunReport

EMBEDDER = (
    "kind: embedder, label: Mine, licence: MIT, checkpoint: mine, source: folder, path: weights/m,"
    " trained_with_instructions: false, instruction_format: instruct_query, max_length: 256"
)


HUB = EMBEDDER.replace("source: folder, path: weights/m", "source: hub")
CHAT = (
    "kind: llm, label: Mine, licence: MIT, source: folder, path: weights/m.gguf,"
    f" weights_sha256: {'a' * 64}, litellm_id: openai/m, provider: local, accepts: [seed]"
)


@pytest.fixture(autouse=True)
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create the working directory of a run, with a checkpoint of the user's own."""
    run = tmp_path / "run"
    (run / "weights" / "m").mkdir(parents=True)
    (run / "weights" / "m" / "config.json").write_text("{}")
    monkeypatch.chdir(run)
    return run / "weights" / "m"


def test_own_models_come_after_the_papers(tmp_path: Path) -> None:
    models = registry_with(tmp_path, f"mine: {{{EMBEDDER}}}\n")
    assert list(load_registry(models)) == [*load_registry(ROOT / "models.yaml"), "mine"]
    mine = run_report(models, idiolink={"models": ["mine"]}).studies[-1]
    assert mine.models()[0] == "mine"
    descriptions = described_models([mine], mine.project)
    assert "mine" in {model["name"] for model in json.loads(descriptions)}


@pytest.mark.parametrize("text", ["", "# none yet\n"])
def test_an_empty_file_adds_no_model(text: str, tmp_path: Path) -> None:
    assert "sbert" in load_registry(registry_with(tmp_path, text))


@pytest.mark.parametrize("text", ["", "# none yet\n"])
def test_an_empty_file_has_no_entry(text: str, tmp_path: Path) -> None:
    models = registry_with(tmp_path, text)
    project = Project(load_registry(models), LLMSettings(), root=models.parent)
    assert project.entry_file("sbert") == project.here("models.yaml")


def test_files_of_a_linked_folder_are_files_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "pooling").mkdir()
    (tmp_path / "pooling/config.json").write_text("{}")
    (tmp_path / "m/1_Pooling").symlink_to("../pooling")
    models = registry_with(tmp_path, f"mine: {{{EMBEDDER.replace('weights/m', f'{tmp_path}/m')}}}")
    files = Project(load_registry(models), LLMSettings()).weights_files("mine")
    assert files == [f"{tmp_path}/m/1_Pooling/config.json"]


def test_a_duplicate_name_is_an_error_with_both_files(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        load_registry(registry_with(tmp_path, f"sbert: {{{EMBEDDER}}}\n"))
    assert "models.local.yaml: " in str(error.value)
    assert "models.yaml also has a model 'sbert'" in str(error.value)


MISPLACED = {
    "no folder": (
        EMBEDDER.replace("weights/m", "weights/n"),
        r"mine: no such folder: weights/n; correct path \(relative to .*/run\)$",
    ),
    "no absolute folder": (EMBEDDER.replace("weights/m", "/n"), r"mine: no such folder: /n; corr"),
    "a file": (EMBEDDER.replace("weights/m", "weights/m/config.json"), "mine: no such folder: "),
    "the folder above": (EMBEDDER.replace("weights/m", "weights"), "no model in weights, because"),
    "a path beside the hub": (
        f"{HUB}, path: weights/m",
        r"mine: .*source 'hub' needs the name of a repository, not a path \(path 'weights/m'\);"
        r" for a local folder use source: folder; see schemas/models\.schema\.json$",
    ),
    "a path on the hub": (
        HUB.replace("checkpoint: mine", "checkpoint: /home/m"),
        r"the name of a repository, not a path \(checkpoint '/home/m'\); for a local folder use",
    ),
    "a folder on the hub": (
        HUB.replace("checkpoint: mine", "checkpoint: weights/m"),
        r"mine: checkpoint 'weights/m' is also a local folder; set source: folder and path, or pin",
    ),
    "a digest of a chat model on the hub": (
        CHAT.replace("source: folder", "source: hub, repository: a/m"),
        r"mine: llm: source: hub is pinned by revision, not by weights_sha256; see schemas/",
    ),
    "the old word of chat models": (
        CHAT.replace("source: folder", "source: file"),
        r"mine: llm\.source: 'file' is now 'folder', also for a GGUF file; see",
    ),
}


@pytest.mark.parametrize("name", MISPLACED)
def test_misplaced_weights_are_reported_before_the_run(name: str, tmp_path: Path) -> None:
    entry, message = MISPLACED[name]
    models = registry_with(tmp_path, f"mine: {{{entry}}}\n")
    with pytest.raises(UserError, match=message) as error:
        run_report(models, idiolink={"models": ["mine"]})
    assert "\n" not in str(error.value)


def test_a_pinned_repository_may_have_the_name_of_a_folder(tmp_path: Path) -> None:
    entry = HUB.replace("checkpoint: mine", "checkpoint: weights/m, revision: abc")
    run_report(registry_with(tmp_path, f"mine: {{{entry}}}\n"), idiolink={"models": ["mine"]})


def test_a_chat_model_without_its_file_is_left_out_with_the_reason(tmp_path: Path) -> None:
    models = registry_with(tmp_path, f"mine: {{{CHAT}}}\n")
    lines = run_report(models, idiots={"models": ["mine"]}).left_out()
    reason = (
        "nothing is recorded, and its weights are not here (weights/m.gguf: no such file in the"
        " working directory)"
    )
    assert f"left out of idiots ({reason}): mine, 1 run" in lines


def test_adding_a_model_triggers_no_reruns(tmp_path: Path) -> None:
    def handed(run: RunReport) -> list[str]:
        """Return all values that rules pass to jobs downstream of the predictions."""
        shown = [each for study in run.studies for each in (*study.tables(), *study.figures())]
        tasks = [task.canonical() for study in run.studies for task in study.tasks()]
        return [
            *map(run.display_inputs_json, shown),
            *tasks,
            described_models(run.studies, run.project),
            run.description(),
        ]

    more = run_report(registry_with(tmp_path, f"mine: {{{EMBEDDER}}}\n"))
    assert handed(more) == handed(run_report(ROOT / "models.yaml"))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("kind: bm25, label: A, license: MIT", "unknown field 'license'; did you mean 'licence'?"),
        ("kind: embedder, poling: cls", "unknown field 'poling'; did you mean 'pooling'?"),
        ("kind: embedder, source: api, dimension: 2, prefix: a", "unknown field 'dimension'; "),
        (
            "kind: embedder, source: api, query_prefx: a",
            "unknown field 'query_prefx'; did you mean 'query_prefix'?",
        ),
        (
            "kind: llm, prices: {inptu: 1, output: 2}",
            "unknown field 'prices.Prices.inptu'; did you mean 'input'?",
        ),
        (
            "kind: predictions, files: [{study: idiots, sede: 1}]",
            "unknown field 'files.0.sede'; did you mean 'seed'?",
        ),
    ],
)
def test_a_misspelled_field_is_reported_with_the_right_one(
    entry: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=re.escape(f"models.local.yaml: mine: {message}")):
        load_registry(registry_with(tmp_path, f"mine: {{{entry}}}"))


MISNAMED = [
    ("jam", "models", {"models": ["sbrt"]}),
    ("jam", "by_model", {"by_model": {"sbrt": {"seeds": [1]}}}),
    ("jam", "variants.model", {"variants": {"model": "sbrt"}}),
    ("jam", "neutral", {"neutral": "sbrt"}),
    ("jam", "attention", {"attention": "sbrt"}),
    ("idiots", "models", {"models": ["sbrt"]}),
    ("idiots", "by_model", {"by_model": {"sbrt": {"settings": ["zero_shot"]}}}),
    ("idiolink", "models", {"models": ["sbrt"]}),
    ("idiolink", "leave_out", {"leave_out": {"sbrt": "too slow"}}),
    ("idiolink", "finetuning.models", {"finetuning": {"models": ["sbrt"]}}),
]


@pytest.mark.parametrize(("study", "place", "section"), MISNAMED)
def test_each_setting_reports_an_unknown_model_in_the_same_way(
    study: str, place: str, section: dict[str, Any]
) -> None:
    with pytest.raises(UserError) as caught:
        run_report(ROOT / "models.yaml", **{study: section})
    assert str(caught.value).startswith(f"config.yaml: {study}.{place}: unknown model 'sbrt'; ")
