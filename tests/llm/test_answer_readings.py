"""Test the counts of answer formats, which reveal formats that are not parsed."""

from pathlib import Path
from typing import Any

import pytest
from llm_cases import questions_for, spec_for
from run_script import run_script
from support import ROOT

from pieline.config import layered, load_config
from pieline.core.yamls import read_yaml
from pieline.llm.answers import Answer
from pieline.llm.idioms import parse_idioms
from pieline.llm.parsing import Parsed
from pieline.llm.questions import Question
from pieline.llm.readings import count_forms, count_outcomes
from pieline.llm.recordings import record
from pieline.llm.task import Ask, Task
from pieline.models.llm import LLMEntry


class Naming(Task):
    """Task whose data does not exist."""

    def questions(self, entry: LLMEntry) -> list[Question]:
        raise AssertionError("not needed")

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        raise AssertionError("nothing is asked")

    def reading(self, answer: Answer) -> Parsed[Any]:
        return parse_idioms(answer)


def naming(path: Path, model: str = "m") -> Naming:
    return Naming(model=model, spec="", inputs={}, outputs={}, recordings=str(path))


def recorded(path: Path, texts: list[str]) -> Path:
    questions = questions_for(spec_for(), len(texts))
    answers = [
        Answer(key=question.key, text=text, finish_reason="stop")
        for question, text in zip(questions, texts, strict=True)
    ]
    record(path, zip(questions, answers, strict=True))
    return path


def test_formats_are_counted_with_examples_and_unreadable_ones_first(tmp_path: Path) -> None:
    texts = ["[]", "[]", '["a b"]', '["c d"]', '["e f"]', "Who\nknows?" + "!" * 90]
    path = recorded(tmp_path / "m.jsonl", texts)
    unreadable, named, none = count_forms([naming(path), naming(path)])
    assert (unreadable.kind, unreadable.model, unreadable.outcome) == ("Naming", "m", "unparseable")
    assert unreadable.rule.startswith("no JSON")
    assert unreadable.examples == ("Who knows?" + "!" * 69 + "…",)
    assert (named.outcome, named.rule, named.answers) == ("ok", "list of texts", 3)
    assert set(named.examples) < set(texts)
    assert len(named.examples) == 2
    assert (none.rule, none.answers, none.examples) == ("empty list", 2, ("[]",))


def test_models_and_files_are_counted_separately(tmp_path: Path) -> None:
    paths = [recorded(tmp_path / name, ["[]"]) for name in ("one.jsonl", "two.jsonl")]
    missing = tmp_path / "missing.jsonl"
    forms = count_forms(
        [naming(paths[0]), naming(paths[1]), naming(paths[1], "n"), naming(missing)]
    )
    assert [(form.model, form.answers) for form in forms] == [("m", 2), ("n", 1)]


def test_outcomes_are_counted_in_one_line(tmp_path: Path) -> None:
    answers = [
        Answer(key="1", text='{"idioms": []}', finish_reason="stop"),
        Answer(key="2", text='{"idio', finish_reason="length"),
        Answer(key="3", text='{"idio', finish_reason="length"),
        Answer(key="4", finish_reason="content_filter"),
        Answer(key="5", refusal="No."),
        Answer(key="6", text=""),
    ]
    assert count_outcomes(naming(tmp_path), answers) == (
        "6 answers: 1 readable, 2 cut off, 1 filtered, 1 refused, 1 unreadable"
    )


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.chdir(ROOT)
    raw = layered(read_yaml(ROOT / "config.yaml"), ROOT / "config" / "sample.yaml")
    config = load_config(raw).model_dump_json()
    run_script("answers", input={"models": "models.yaml"}, params={"config": config, "root": ROOT})
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "row",
    [
        ("Identification", "smollm2-135m-instruct", "unparseable", "no JSON, no list"),
        ("Identification", "smollm2-135m-instruct", "ok", 'object with "idioms"'),
        ("Detection", "smollm2-135m-instruct", "ok", "object with hasIdiom"),
        ("Writing", "gemini-2.5-pro", "truncated", "maximum length"),
        ("Validation", "gpt-4o-mini", "unparseable", "no object with judgements"),
    ],
)
def test_every_kind_of_task_is_listed(row: tuple[str, ...], printed: str) -> None:
    assert any(all(cell in line for cell in row) for line in printed.splitlines()), printed
