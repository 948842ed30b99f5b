"""Custom settings: a name, a template and parameters in the configuration."""

import json
from pathlib import Path
from typing import Any

import pytest
from own_cases import run_report, write
from support import ROOT

from pieline.config import load_config
from pieline.core.errors import UserError
from pieline.core.records import load_jsonl, save_jsonl
from pieline.llm import prompts
from pieline.llm.answers import Answer
from pieline.llm.questions import Question
from pieline.studies.idiots import tasks as idiots_tasks
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.jam import tasks as jam_tasks
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence

MODEL = "smollm2-135m-instruct"
SENTENCE = JamSentence(
    id="test-0001",
    original_id="test-0001",
    variant_number=0,
    language="english",
    sentence="It broke the ice.",
    tokens=("It ", "broke ", "the ", "ice", "."),
    tags=("O", "B-IDIOM", "I-IDIOM", "I-IDIOM", "O"),
    pies=("broke the ice",),
    true_idioms=("broke the ice",),
    is_figurative=True,
)
DETECTED = IdiotsSentence(
    id="s1", pie_id="i1", pie="Break the ice", sentence="It broke the ice.", translation="",
    is_idiomatic=True,
)  # fmt: skip


def asked(folder: Path, study: str, template: str) -> Any:
    """Create a study that queries the bundled model with a custom prompt called `plain`."""
    file = str(write(folder / "plain.jinja", template))
    own = {"plain": {"file": file, "temperature": 0, "max_tokens": 7}}
    changes: dict[str, Any] = {"models": [MODEL], "settings": ["plain"], "prompts": own}
    if study == "jam":
        changes["neutral"] = None
    return run_report(ROOT / "models.yaml", **{study: changes}).all_studies[study]


def answers(text: str) -> Any:
    """Create a function that answers every question with the same text."""

    def ask(questions: list[Question]) -> dict[str, Answer]:
        return {one.key: Answer(key=one.key, text=text, finish_reason="stop") for one in questions}

    return ask


def in_folder(task: Any, folder: Path, sentences: list[Any]) -> Any:
    """Return the task with its sentences and predictions in a folder."""
    save_jsonl(folder / "sentences.jsonl", sentences)
    inputs = task.inputs | {"sentences": str(folder / "sentences.jsonl")}
    outputs = {"predictions": str(folder / "predictions.jsonl")}
    return task.model_copy(update={"inputs": inputs, "outputs": outputs})


def test_id10m_jam_uses_a_custom_prompt(tmp_path: Path) -> None:
    template = "=== user ===\nIdioms in this {{ language }} sentence? {{ sentence }}\n"
    study = asked(tmp_path, "jam", template)
    runs = study.plan.select(kind="llm", experiment="", language="english")
    assert {run.where["setting"] for run in runs} == {"plain"}
    identification = jam_tasks.identification(study, **runs[0].where)
    task = in_folder(identification, tmp_path, [SENTENCE])
    entry = study.project.language_model(MODEL)
    (question,) = task.questions(entry)
    assert [turn.content for turn in question.messages] == [
        "Idioms in this English sentence? It broke the ice."
    ]
    assert question.parameters["max_tokens"] == 7
    task.run(entry, answers('{"idioms": ["broke the ice"]}'))
    (prediction,) = load_jsonl(tmp_path / "predictions.jsonl", IdiomPrediction)
    assert prediction.idioms == ("broke the ice",)


def test_idiots_uses_a_custom_prompt(tmp_path: Path) -> None:
    study = asked(tmp_path, "idiots", "=== user ===\nIdiom? {{ sentence }}\n")
    (run,) = study.plan
    task = in_folder(idiots_tasks.detection(study, **run.where), tmp_path, [DETECTED])
    entry = study.project.language_model(MODEL)
    (question,) = task.questions(entry)
    assert [turn.content for turn in question.messages] == ["Idiom? It broke the ice."]
    # Unset parameters have the paper's values.
    assert {name: question.parameters[name] for name in ("max_tokens", "top_k")} == {
        "max_tokens": 7,
        "top_k": 40,
    }
    task.run(entry, answers(json.dumps({"hasIdiom": True, "idiom": "break the ice"})))
    (prediction,) = load_jsonl(tmp_path / "predictions.jsonl", DetectionPrediction)
    assert (prediction.has_idiom, prediction.idiom) == (True, "break the ice")


@pytest.mark.parametrize("study", ["jam", "idiots"])
def test_numbers_of_a_custom_prompt_are_not_compared(study: str, tmp_path: Path) -> None:
    own = asked(tmp_path, study, "=== user ===\n{{ sentence }}\n")
    conditions = next(iter(own.plan)).conditions
    assert "the prompt is plain, not one of the paper's" in conditions.deviations
    assert conditions.settings["max_tokens"] == 7


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("=== user ===\n{{ sentense }}\n", r"plain\.jinja:2: .*'sentense' is undefined"),
        ("{{ sentence }}\n", r"plain\.jinja: does not begin with a turn"),
        ("=== user ===\nIdiom?\n", r"plain\.jinja: does not show the full sentence; "),
        ("=== user ===\nIdiom? sentence\n", r"plain\.jinja: does not show the full sentence"),
        ("=== user ===\n{% if sentence %}Idiom?{% endif %}\n", "not show the full sentence"),
        ("=== user ===\n{{ sentence[:9] }}\n", "not show the full sentence"),
        (
            "=== user ===\n{% if sentence|length < 60 %}{{ sentence }}{% endif %}\n",
            "not show the full sentence",
        ),
        ("=== user ===\n{{ sentence[:500] }}\n", "not show the full sentence"),
        ("=== user ===\n{{ sentence.split()|last }}\n", "not show the full sentence"),
        ("=== user ===\n{{ sentence|length }}\n", "not show the full sentence"),
        ("=== user ===\n{{ sentence.upper }}\n", r"plain\.jinja:2: .*a function"),
    ],
)
@pytest.mark.parametrize("study", ["jam", "idiots"])
def test_an_invalid_template_is_rejected_before_any_query(
    study: str, template: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        asked(tmp_path, study, template)


@pytest.mark.parametrize("study", ["jam", "idiots"])
@pytest.mark.parametrize("place", ["{{ sentence|upper }}", "{{ {'text': sentence} }}"])
def test_a_template_may_show_the_sentence_in_its_own_way(
    study: str, place: str, tmp_path: Path
) -> None:
    asked(tmp_path, study, f"=== user ===\n{place}\n")


@pytest.mark.parametrize("study", ["jam", "idiots"])
def test_a_project_prompt_without_the_sentence_is_rejected(study: str, tmp_path: Path) -> None:
    own = asked(tmp_path, study, "=== user ===\n{{ sentence }}\n")
    task = own.tasks()[0]
    task = in_folder(task, tmp_path, [SENTENCE if study == "jam" else DETECTED])
    write(tmp_path / "plain.jinja", "=== user ===\nIdiom?\n")
    with pytest.raises(UserError, match="does not show the full sentence"):
        task.questions(own.project.language_model(MODEL))


PLAIN = {"plain": {"file": "plain.jinja"}}


@pytest.mark.parametrize(
    ("study", "section", "message"),
    [
        ("jam", {"settings": ["plane"], "prompts": PLAIN}, "unknown setting 'plane'.*'plain'"),
        ("idiots", {"settings": ["plane"], "prompts": PLAIN}, "unknown setting 'plane'.*'plain'"),
        ("jam", {"by_model": {MODEL: {"settings": ["few"]}}}, "unknown setting 'few'"),
        ("jam", {"settings": ["fine_tuned"]}, "'fine_tuned' is not a setting of language models"),
        ("jam", {"prompts": {"baseline": {"file": "x"}}}, "setting 'baseline' is already defined"),
        (
            "idiots",
            {"prompts": {"zero_shot": {"file": "x"}}},
            "setting 'zero_shot' is already defined",
        ),
        ("idiots", {"prompts": {"a/b": {"file": "x"}}}, "pattern"),
    ],
)
def test_a_setting_must_have_one_meaning(study: str, section: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_config({study: section})


@pytest.mark.parametrize(
    "body",
    [
        "{{ sentence }}"
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{{ sentence | replace('a', 'b') }}"
        "{% for a in range(99999) if range(99999) | list | sort | length < 0 %}{% endfor %}",
    ],
)
def test_a_template_that_takes_too_long_is_reported(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "_LONGEST_S", 0.2)
    path = write(tmp_path / "long.jinja", f"=== user ===\n{body}\n")
    problem = r"long\.jinja:2: cannot fill in the template: it takes more than 0\.2 seconds"
    with pytest.raises(UserError, match=problem):
        prompts.load_prompt(path).check_shows("sentence")


def test_constants_that_take_too_long_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jinja computes constant expressions when it reads a template."""
    monkeypatch.setattr(prompts, "_LONGEST_S", 0.2)
    nested = "'a'" + " | replace('a', 'aaaaaaaaaa')" * 3 + " | map('upper') | join" * 4000
    path = write(tmp_path / "long.jinja", f"=== user ===\n{{{{ {nested} }}}}\n")
    with pytest.raises(UserError, match=r"long\.jinja:.*(more than 0\.2 seconds|recursion)"):
        prompts.load_prompt(path)
