"""The example study, copied and run as docs/adding/code.md describes, with scripted answers."""

from pathlib import Path

import pandas as pd
import pytest
from support import ROOT, copy_project
from test_adding import SECTIONS, carry_out

from pieline.core.files import read_json, sha256
from pieline.llm.answers import Answer
from pieline.llm.questions import make_question
from pieline.llm.recordings import read_answers, record
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry

FOLDER = ROOT / "examples" / "completion_study"
MODEL = "smollm2-135m-instruct"
RECORDINGS = f"recordings/completion/{MODEL}.jsonl"
ANSWERS = {"break the": "Ice.", "spill the": "the beans, which", "under the": "under the weather"}
TRUNCATED = "spill the"
REGISTRY = load_registry(ROOT / "models.yaml")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the study, with one of three answers truncated, and return the folder of the run."""
    project = copy_project(tmp_path_factory.mktemp("example") / "project")
    entry = REGISTRY[MODEL]
    assert isinstance(entry, LLMEntry)
    recorded = []
    for beginning, text in ANSWERS.items():
        turn = ("user", f"Complete this English idiom with one word: {beginning}")
        question = make_question(entry, [turn], {"temperature": 0, "max_tokens": 80})
        reason = "length" if beginning == TRUNCATED else "stop"
        answer = Answer(
            key=question.key, text=text, finish_reason=reason, returned_model=entry.checkpoint
        )
        recorded.append((question, answer))
    record(project / RECORDINGS, recorded)
    carry_out(SECTIONS["A study"], project)
    assert read_answers(project / RECORDINGS).keys() == {one.key for one, _ in recorded}
    return project / "mine"


def test_the_example_has_at_most_365_lines() -> None:
    files = [path for path in FOLDER.iterdir() if path.is_file() and path.name != "README.md"]
    assert {path.suffix for path in files} == {".py", ".smk", ".yaml", ".csv", ".jsonl", ".jinja"}
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) <= 365
    assert len((FOLDER / "README.md").read_text("utf-8").splitlines()) <= 30


def test_the_table_has_our_and_the_printed_numbers(example: Path) -> None:
    table = pd.read_csv(example / "paper_tables/completion_accuracy.csv", dtype=str)
    ours, not_run = table.fillna("").to_dict("records")
    assert (ours["model"], ours["measure"], ours["unit"]) == (MODEL, "accuracy", "%")
    assert float(ours["ours"]) == pytest.approx(200 / 3)
    assert (ours["printed"], ours["verdict"], ours["reason"]) == ("66.67", "reproduced", "")
    assert ours["files"] == f"results/metrics/completion/{MODEL}.json"
    assert (not_run["model"], not_run["ours"], not_run["printed"]) == ("gpt-4o-mini", "", "100")
    assert (not_run["verdict"], not_run["reason"]) == ("not run", "not in this configuration")
    assert "GPT-4o mini" in (example / "paper_tables/completion_accuracy.tex").read_text("utf-8")
    assert (example / "paper_tables/figures/completion_bars.pdf").exists()
    assert "CompletionSettings" in read_json(example.parent / "schemas/config.schema.json")["$defs"]


def test_the_frame_has_the_numbers_of_the_table(example: Path) -> None:
    frame = pd.read_parquet(example / "paper_tables/numbers.parquet")
    rows = frame[frame["study"] == "completion"]
    table = pd.read_csv(example / "paper_tables/completion_accuracy.csv").fillna("")
    for name in ("model", "verdict", "place"):
        assert list(rows[name]) == list(table[name])
    assert list(rows["counts"]) == [True, True]
    assert list(rows["printed"]) == list(table["printed"])


def test_the_metric_file_states_its_inputs(example: Path) -> None:
    metrics = read_json(example / f"results/metrics/completion/{MODEL}.json")
    predictions = f"results/predictions/completion/{MODEL}.jsonl"
    assert metrics["computed_from"] == {predictions: sha256(example / predictions)}
    assert metrics["conditions"]["settings"]["max_tokens"] == 80
    assert metrics["conditions"]["deviations"] == []


def test_the_items_reproduce_the_number_of_the_table(example: Path) -> None:
    items = pd.read_parquet(example / "results/items/completion.parquet")
    assert list(items["word"]) == ["ice", "beans", "weather"]
    assert list(items["answer"].fillna("")) == ["Ice.", "", "under the weather"]
    assert list(items["outcome"]) == ["ok", "truncated", "ok"]
    assert list(items["correct"]) == [True, False, True]
    assert set(items["metrics"]) == {f"results/metrics/completion/{MODEL}.json"}
