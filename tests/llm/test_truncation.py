"""Test that a run whose first answers are all cut off stops, and that it resumes as configured."""

from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer, Reply, Request, answer
from llm_cases import ask_server, questions_for, settings_for, spec_for
from support import ROOT

from pieline.config import layered, load_config, load_studies
from pieline.core.errors import UserError
from pieline.llm.client import ask
from pieline.llm.questions import make_question
from pieline.llm.recordings import read_answers
from pieline.llm.truncation import FirstAnswers
from pieline.models.registry import load_registry

CUT = answer("well, let me think about", finish_reason="length")


def cut(request: Request) -> Reply:
    return CUT


def stopped(*arguments: Any, **options: Any) -> str:
    with pytest.raises(UserError) as error:
        ask(*arguments, progress=False, **options)
    return str(error.value)


def test_a_run_stops_if_its_first_ten_answers_are_all_cut(folder: Path) -> None:
    path = folder / "jam" / "a.jsonl"
    with FaultServer(cut) as server:
        spec, settings = spec_for(server.api_base), settings_for(folder, concurrency=1)
        questions = questions_for(spec, 14)
        limit = "jam.zero_shot.max_tokens"
        message = (
            "Test model: 10 of 10 answers are cut off at 20 tokens; 4 questions are not asked;"
            f" raise {limit}, or set llm.stop_when_cut: false to ask only these questions"
        )
        assert (
            stopped(
                questions,
                spec,
                settings,
                path,
                first_answers=FirstAnswers(spec, limit_setting=limit),
            )
            == message
        )
        assert len(read_answers(path)) == len(server.requests) == 10
        # Nothing is asked again, and nothing else, until the limit or the switch changes.
        assert (
            stopped(
                questions,
                spec,
                settings,
                path,
                first_answers=FirstAnswers(spec, limit_setting=limit),
            )
            == message
        )
        assert len(server.requests) == 10
        off = settings.model_copy(update={"stop_when_cut": False})
        assert len(ask(questions, spec, off, path, progress=False)) == 14
        assert sorted(request.text for request in server.requests) == sorted(
            question.messages[0].content for question in questions
        )


def test_a_higher_limit_makes_new_questions(folder: Path) -> None:
    def behave(request: Request) -> Reply:
        return CUT if request.body["max_tokens"] < 100 else answer("yes")

    with FaultServer(behave) as server:
        spec, settings = spec_for(server.api_base), settings_for(folder, concurrency=1)
        stopped(questions_for(spec, 12), spec, settings, folder / "a.jsonl")
        higher = [
            make_question(spec, question.messages, {"max_tokens": 100, "seed": 1})
            for question in questions_for(spec, 12)
        ]
        assert len(ask(higher, spec, settings, folder / "a.jsonl", progress=False)) == 12
    assert len(read_answers(folder / "a.jsonl")) == 22


def test_a_run_continues_if_one_of_the_first_answers_is_complete(folder: Path) -> None:
    with FaultServer(lambda sent: answer("yes") if sent.text == "q7" else CUT) as server:
        assert len(ask_server(folder, server.api_base, 14, concurrency=1)) == 14


def test_concurrent_answers_are_recorded_and_few_questions_never_stop(folder: Path) -> None:
    with FaultServer(cut) as server:
        spec, settings = spec_for(server.api_base), settings_for(folder, concurrency=8)
        stopped(questions_for(spec, 30), spec, settings, folder / "a.jsonl")
        assert 10 <= len(server.requests) == len(read_answers(folder / "a.jsonl")) < 20
        few = questions_for(spec, 10, prefix="few")
        assert len(ask(few, spec, settings, folder / "b.jsonl", progress=False)) == 10


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "cut off; .* raise max_tokens in defaults of Test model in models.yaml"),
        (
            {"defaults": {"max_tokens": 50}},
            "cut off at 50 tokens; .* raise max_tokens in defaults of Test model in models",
        ),
    ],
)
def test_the_error_names_the_field_of_the_entry_that_limits_the_length(
    folder: Path, entry: dict[str, Any], message: str
) -> None:
    with FaultServer(cut) as server:
        spec, settings = spec_for(server.api_base, **entry), settings_for(folder, concurrency=1)
        questions = [make_question(spec, [("user", str(i))], {}) for i in range(12)]
        with pytest.raises(UserError, match=message):
            ask(questions, spec, settings, folder / "a.jsonl", progress=False)


def test_only_the_bundled_model_has_a_limit_on_the_sample() -> None:
    models = ["smollm2-135m-instruct", "gpt-4o-mini"]
    own = {"studies": ["jam"], "jam": {"models": models, "neutral": None}}
    config = load_config(layered(own, ROOT / "config/sample.yaml"))
    jam = load_studies(config, load_registry(ROOT / "models.yaml"), ROOT)["jam"]
    limits = {
        (task.model, task.setting): task.parameters.max_tokens  # type: ignore[attr-defined]
        for spec in jam.llm_tasks()
        for task in spec.tasks()
    }
    assert limits == {
        ("smollm2-135m-instruct", "zero_shot"): 96,
        ("smollm2-135m-instruct", "few_shot_sc_cotbest"): 64,
        ("gpt-4o-mini", "zero_shot"): None,
        ("gpt-4o-mini", "few_shot_sc_cotbest"): None,
    }
