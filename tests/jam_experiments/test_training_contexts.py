"""Test the training of encoders on texts of other PIEs."""

from collections import Counter
from pathlib import Path

import pytest
from jam.jam_cases import original, sample_originals, sentences_of
from run_script import run_script
from support import ROOT

from pieline.beyond.jam.folds import FOLDS, assign_folds
from pieline.beyond.jam.study import ExtendedJam, added_texts
from pieline.beyond.settings import BeyondJam
from pieline.core.files import read_json, write_json, write_text
from pieline.core.records import load_jsonl, save_jsonl
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.studies.jam import runs as jam_runs
from pieline.studies.jam.bio import Tag
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.raw.id10m import TaggedSentence, format_id10m, read_id10m
from pieline.studies.jam.records import JamSentence, as_sentence
from pieline.studies.jam.settings import JamSettings

SAMPLE = ROOT / "data/sample/id10m/train_english.tsv"
PIES = ["broke the ice", "a piece of cake", "break the ice", "spilled the beans", "on the ball"]


def dataset() -> list[JamSentence]:
    """Return originals with one hard variant each; those with an even number are literal."""
    sentences = []
    for number, pie in enumerate(PIES):
        text, figurative = f"On day {number} it was {pie}, they said.", number % 2 == 1
        item = original(text, pie, figurative=figurative, id=f"test-{number:04}")
        sentences += sentences_of(item, "It was very cold.")
    return sentences


def test_inflections_of_a_pie_share_a_fold() -> None:
    folds = assign_folds(dataset(), FOLDS)
    assert folds["test-0000"] == folds["test-0002"] != folds["test-0001"]
    assert len(folds) == len(PIES)


def test_an_original_with_pies_of_two_groups_joins_them() -> None:
    first = original("On day 1 it broke the ice, they said.", "broke the ice", id="test-1")
    second = original("On day 2 he was on the ball, they said.", "on the ball", id="test-2")
    both = first.model_copy(update={"id": "test-3", "pies": (*first.pies, *second.pies)})
    folds = assign_folds([as_sentence(item) for item in (first, second, both)], FOLDS)
    assert set(folds.values()) == {0}


@pytest.mark.parametrize("language", ["english", "german"])
def test_the_folds_of_the_sample_are_of_similar_size(language: str) -> None:
    originals = [as_sentence(item) for item in sample_originals(language)]
    sizes = Counter(assign_folds(originals, FOLDS).values())
    assert len(sizes) == FOLDS
    assert max(sizes.values()) < 0.6 * len(originals)


def write_fold_data(
    folder: Path, setting: str, words: str = "text"
) -> tuple[list[Path], dict[str, int]]:
    """Run the script of the rule on `dataset`, and return the training files and folds."""
    usual = next(item for item in read_id10m(SAMPLE, split="train") if item.spans)
    write_text(folder / "train.tsv", format_id10m([usual]))
    save_jsonl(folder / "dataset.jsonl", dataset())
    trains = [folder / f"fold-{fold}.tsv" for fold in range(FOLDS)]
    run_script(
        "jam_fold_data",
        input={"train": folder / "train.tsv", "added": folder / "dataset.jsonl"},
        output={"train": trains, "folds": folder / "folds.json"},
        params={},
        wildcards={"setting": setting, "language": "english"},
    )
    return trains, read_json(folder / "folds.json")


@pytest.mark.parametrize("setting", ["fine_tuned_hard", "fine_tuned_originals"])
def test_no_encoder_is_trained_on_the_pies_that_it_tags(setting: str, tmp_path: Path) -> None:
    trains, folds = write_fold_data(tmp_path, setting)
    seen: list[str] = []
    for fold, path in enumerate(trains):
        usual, *added = read_id10m(path, split="train")
        assert usual.tokens
        expected = [
            training_text(item)
            for item in dataset()
            if folds[item.original_id] != fold
            and (item.is_original or setting == "fine_tuned_hard")
        ]
        assert [(item.tokens, item.tags) for item in added] == [
            (item.tokens, item.tags) for item in expected
        ]
        held_out = {item.pies[0] for item in dataset() if folds[item.original_id] == fold}
        assert held_out
        assert not [item.text for item in added for pie in held_out if pie in item.text]
        seen += [item.text for item in added]
    # Each text is training data of exactly one fold, since there are two.
    assert len(seen) == len(set(seen)) == (10 if setting == "fine_tuned_hard" else 5)


def training_text(item: JamSentence) -> TaggedSentence:
    return TaggedSentence(item.id, item.tokens, item.tags)


def test_the_script_tags_by_fold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Spy:
        """Tag the first word of each sentence if the weights are those of fold 1."""

        def __init__(self, weights: str) -> None:
            self.tags = weights == "fold-1"

        def tag(self, texts: list[list[str]], *, drop_stray_tags: bool) -> list[list[Tag]]:
            assert not drop_stray_tags
            first: Tag = "B-IDIOM" if self.tags else "O"
            return [[first, *["O"] * (len(text) - 1)] for text in texts]

    monkeypatch.setattr(
        "pieline.studies.jam.training.tagger.load_tagger", lambda entry, weights: Spy(weights)
    )
    folds = assign_folds(dataset(), FOLDS)
    save_jsonl(tmp_path / "sentences.jsonl", dataset())
    write_json(tmp_path / "folds.json", folds)
    entry = load_registry(ROOT / "models.yaml")["minilm-tagger"]
    run_script(
        "tag_idioms",
        input={
            "weights": ["fold-0", "fold-1"],
            # Snakemake passes a single file as a string.
            "folds": str(tmp_path / "folds.json"),
            "sentences": tmp_path / "sentences.jsonl",
        },
        output=[tmp_path / "predictions.jsonl"],
        params={"spec": entry.execution_spec(), "words": "text", "form": "paper"},
    )
    predictions = load_jsonl(tmp_path / "predictions.jsonl", IdiomPrediction)
    assert [(item.id, bool(item.idioms)) for item in predictions] == [
        (item.id, folds[item.original_id] == 1) for item in dataset()
    ]


def study(*contexts: str) -> ExtendedJam:
    fields = {
        "models": ["mbert"],
        "variants": {"source": "sample"},
    }
    run = Project(registry=load_registry(ROOT / "models.yaml"), llm=LLMSettings(), root=ROOT)
    beyond = BeyondJam.model_validate({"training_contexts": contexts})
    return ExtendedJam(JamSettings.model_validate(fields), run, beyond)


def test_runs_with_added_texts_are_configured() -> None:
    jam = study("neutral", "hard")
    runs = {
        (run.where["setting"], run.where["language"])
        for run in jam.plan.made(kind="encoder", experiment="")
    }
    usual = {("fine_tuned", "english"), ("fine_tuned", "german")}
    assert runs == usual | {
        ("fine_tuned_neutral", "english"), ("fine_tuned_hard", "english"),
        ("fine_tuned_hard", "german"),
    }  # fmt: skip
    assert added_texts(jam, "english", "fine_tuned_hard") == "results/datasets/jam/english.jsonl"
    neutral = "results/variants/jam_neutral/english.jsonl"
    assert added_texts(jam, "english", "fine_tuned_neutral") == neutral
    added = jam_runs.conditions(jam, "mbert", "fine_tuned_hard").deviations
    assert "other PIEs (hard)" in added[-1]
    assert jam_runs.conditions(jam, "mbert", "fine_tuned").deviations == added[:-1]
    assert "jam_prompts" in {table.name for table in jam.tables()}
    usual_runs = study()
    encoders = usual_runs.plan.made(kind="encoder")
    assert {run.where["setting"] for run in encoders} == {"fine_tuned"}
    assert "jam_prompts" not in {table.name for table in usual_runs.tables()}


def test_settings_of_encoders_are_reserved() -> None:
    with pytest.raises(ValueError, match="'fine_tuned_hard' is not a setting of language models"):
        JamSettings(settings=["fine_tuned_hard"])
