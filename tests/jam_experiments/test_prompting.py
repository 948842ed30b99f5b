"""Test prompts, few-shot examples, self-consistency and unreadable answers."""

import ast
import json
import os
import random
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path

import pandas as pd
import pytest
from jam_experiments.tiny import sentences
from support import MIRROR, ROOT, needs_mirror

from pieline.core.errors import UserError
from pieline.core.records import load_jsonl, save_jsonl
from pieline.llm.answers import Answer
from pieline.llm.questions import Question
from pieline.models.llm import LLMEntry
from pieline.studies.jam.predictions.prompt_settings import FewShot, PromptSetting, ZeroShot
from pieline.studies.jam.predictions.prompting import (
    Identification,
    choose_examples,
    combine,
    questions_about,
)
from pieline.studies.jam.predictions.records import IdiomPrediction, IdiomSample
from pieline.studies.jam.raw.id10m import TaggedSentence, format_id10m, read_id10m
from pieline.studies.jam.records import JamSentence

PROMPTS = ROOT / "prompts" / "jam"
RELEASED = PROMPTS / "released"
TRAIN = sentences(60, seed=1)


def model(*, reasoning: bool = False, accepts: Sequence[str] = ()) -> LLMEntry:
    return LLMEntry.model_validate(
        {
            "kind": "llm",
            "label": "M",
            "licence": "none",
            "source": "api",
            "litellm_id": "openai/m",
            "provider": "p",
            "api_key_env": "P_KEY",
            "accepts": list(accepts or ["temperature", "seed", "max_tokens", "response_format"]),
            "reasoning": reasoning,
        }
    )


def sentence(language: str = "english") -> JamSentence:
    return JamSentence.model_validate(
        {
            "language": language,
            "sentence": "They asked to go dutch.",
            "tokens": ("They ", "asked ", "to ", "go ", "dutch", "."),
            "tags": ("O", "O", "O", "B-IDIOM", "I-IDIOM", "O"),
            "pies": ("go dutch",),
            "true_idioms": ("go dutch",),
            "is_figurative": True,
            "id": "test-0001",
            "original_id": "test-0001",
            "variant_number": 0,
        }
    )


def task(
    setting: PromptSetting, *, folder: Path = PROMPTS, seed: int = 42, **few_shot: object
) -> Identification:
    """Return a task with prompts from a folder and without `sentences` and `train`."""
    shown = setting == "few_shot_sc_cotbest"
    return Identification(
        model="m",
        spec=model().execution_spec(),
        inputs={
            "prompt": str(folder / f"{setting.removesuffix('_schema')}.jinja"),
            "example": str(folder / "few_shot_example.jinja"),
        },
        outputs={},
        recordings="",
        setting=setting,
        seed=seed,
        parameters=FewShot.model_validate(few_shot) if shown else ZeroShot(),
    )


def with_files(asked: Identification, folder: Path, *asked_about: JamSentence) -> Identification:
    """Return the task with its data files in a folder, including these sentences."""
    files = {name: str(folder / name) for name in ("sentences", "train", "predictions")}
    save_jsonl(files["sentences"], asked_about)
    outputs = {"predictions": files.pop("predictions")}
    return asked.model_copy(update={"inputs": {**asked.inputs, **files}, "outputs": outputs})


def questions(
    asked: Identification,
    about: JamSentence,
    *,
    entry: LLMEntry | None = None,
    examples: Sequence[TaggedSentence] | None = None,
) -> list[Question]:
    """Return the questions about a sentence; few-shot examples come from TRAIN by default."""
    if examples is None and isinstance(asked.parameters, FewShot):
        examples = choose_examples(TRAIN, 5, seed=asked.seed)
    return questions_about([about], entry or model(), asked, examples or ())[about.id]


FIGURE_4 = (
    "You are a professional linguist specializing in figurative language and your task is to "
    "analyse sentences that may contain an idiom, also known as an idiomatic expression. This is a "
    "definition of idiom: 'A phrase, expression, or group of words that has a meaning different "
    "from the individual meanings of the words themselves, and employed to convey ideas in a "
    "non-literal or metaphorical manner'. Mark idioms only when their usage in the context is "
    "idiomatic/figurative and let literal meanings remain unmarked. You are given one sentence in "
    "German, you are an expert of this language.\n\nIf detected, write the idioms exactly as they "
    "are in the sentence, without any changes. Only answer in JSON."
)


def test_zero_shot_is_figure_4_and_nothing_else() -> None:
    (question,) = questions(task("zero_shot"), sentence("german"))
    assert [tuple(turn) for turn in question.messages] == [
        ("system", FIGURE_4),
        ("user", "Sentence: They asked to go dutch."),
    ]
    assert question.parameters == {"temperature": 0.3, "seed": 42}


def test_few_shot_shows_ten_examples_and_samples_five_times() -> None:
    asked = questions(task("few_shot_sc_cotbest"), sentence())
    assert len(asked) == len({question.key for question in asked}) == 5
    assert {question.parameters["temperature"] for question in asked} == {0.8}
    # A shared seed would make the five answers identical.
    assert len({question.parameters["seed"] for question in asked}) == 5
    system, *turns, last = asked[0].messages
    assert system.content.startswith(FIGURE_4.replace("German", "English"))
    assert last.content == "Sentence: They asked to go dutch."
    assert [turn.role for turn in turns] == ["user", "assistant"] * 10
    shown = [turn.content.removeprefix("Sentence: ") for turn in turns[::2]]
    by_text = {item.text: item for item in TRAIN}
    answers = [turn.content for turn in turns[1::2]]
    assert sum(bool(by_text[text].spans) for text in shown) == 5
    for text, answer in zip(shown, answers, strict=True):
        idioms = by_text[text].idioms
        assert answer.endswith(f"idioms: [{idioms[0]}]" if idioms else "idioms: []")
        assert ("candidates: none" in answer) == (not idioms)


def replicated(path: Path, seed: int) -> list[str]:
    """Replicate how the authors' code chooses examples with pandas."""
    rows, tokens, tags = [], [], []
    for line in [*path.read_text().split("\n"), ""]:
        if line.strip():
            token, tag = line.split("\t")
            tokens.append(token)
            tags.append(tag)
        elif tokens:
            rows.append({"sentence": "".join(tokens), "idioms": tags.count("B-IDIOM")})
            tokens, tags = [], []
    frame = pd.DataFrame(rows)
    kinds = [frame[frame.idioms > 0], frame[frame.idioms == 0]]
    drawn = pd.concat([kind.sample(5, random_state=seed) for kind in kinds], ignore_index=True)
    shown = drawn.sentence.to_list()
    random.seed(seed)
    random.shuffle(shown)
    return shown


def drawn(train: Sequence[TaggedSentence], seed: int) -> list[str]:
    return [example.text for example in choose_examples(train, 5, seed=seed)]


def test_examples_are_drawn_as_in_the_released_code(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_text(format_id10m(TRAIN))
    for seed in (42, 43, 44, 1773):
        assert drawn(read_id10m(path, split="train"), seed) == replicated(path, seed)


@needs_mirror
@pytest.mark.parametrize("language", ["english", "german", "italian", "spanish"])
def test_examples_of_the_real_dev_split_match_the_released_code(language: str) -> None:
    path = MIRROR / f"id10m/dev_{language}.tsv"
    train = read_id10m(path, split="dev")
    for seed in (42, 43, 44):
        assert drawn(train, seed) == replicated(path, seed)


def test_too_few_examples_are_one_line() -> None:
    with pytest.raises(UserError, match=r"sentences with an idiom \(500 examples requested"):
        choose_examples(TRAIN, 500, seed=42)


def test_reasoning_models_are_sent_no_temperature() -> None:
    (question,) = questions(task("zero_shot"), sentence(), entry=model(reasoning=True))
    assert "temperature" not in question.parameters


@pytest.mark.parametrize(
    ("setting", "folder", "entry", "problem"),
    [
        ("few_shot_sc_cotbest", PROMPTS, model(reasoning=True), "do not support the setting"),
        (
            "zero_shot_schema",
            PROMPTS,
            model(accepts=["temperature"]),
            "enforces no form of the answer",
        ),
        ("zero_shot", RELEASED, model(accepts=["temperature"]), "enforces no form of the answer"),
    ],
)
def test_a_model_that_cannot_be_asked_is_an_error(
    setting: PromptSetting, folder: Path, entry: LLMEntry, problem: str
) -> None:
    with pytest.raises(UserError, match=problem):
        questions(task(setting, folder=folder), sentence(), entry=entry)


def test_the_schema_setting_is_enforced() -> None:
    (question,) = questions(task("zero_shot_schema"), sentence())
    assert question.parameters["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("text", "finish", "outcome", "idioms"),
    [
        ("idioms: [go dutch]", "stop", "ok", ("go dutch",)),
        ('{"idioms": ["go dutch", "pissed off"]}', "stop", "ok", ("go dutch", "pissed off")),
        ('```json\n{"idioms": []}\n```', "stop", "ok", ()),
        ("idioms: []", "stop", "ok", ()),
        ("idioms: none", "stop", "repaired", ()),
        ('{"idiom": ["go dutch"]}', "stop", "ok", ("go dutch",)),
        ("candidates:\n- go dutch: figurative\nidioms: [go dutch]", "stop", "ok", ("go dutch",)),
        ("There is no idiom here.", "stop", "ok", ()),
        ("The idiom here is go dutch.", "stop", "unparseable", None),
        ("idioms: [go dut", "length", "truncated", None),
        (None, "content_filter", "filtered", None),
    ],
)
def test_reading_one_answer(
    text: str | None, finish: str, outcome: str, idioms: tuple[str, ...] | None
) -> None:
    reading = task("zero_shot").reading(Answer(key="k", text=text, finish_reason=finish))
    assert (reading.outcome, reading.value) == (outcome, None if idioms is None else list(idioms))
    assert bool(reading.rule) == (idioms is not None)


def sample(*idioms: str, outcome: str = "ok") -> IdiomSample:
    named = idioms if outcome in ("ok", "repaired") else None
    return IdiomSample.model_validate({"key": "k", "outcome": outcome, "idioms": named})


def voted(*answers: IdiomSample, language: str = "english", **few_shot: object) -> IdiomPrediction:
    how = FewShot.model_validate(few_shot)
    return combine("s", answers, language=language, few_shot=how)


DUTCH = ["go dutch", "asked"]


@pytest.mark.parametrize(
    ("how", "answers", "outcome", "idioms"),
    [
        # An idiom needs three of five answers, or two of two or three.
        ({}, [["go dutch"], ["Go  Dutch."], ["asked"], ["asked"], []], "ok", ()),
        ({}, [["go dutch"], ["Go  Dutch."], ["go dutch"], ["asked"], []], "ok", ("go dutch",)),
        ({"samples": 3}, [["go dutch"], ["Go  Dutch."], ["asked"]], "ok", ("go dutch",)),
        ({"samples": 2}, [["go dutch"], ["asked"]], "ok", ()),
        # Different PIEs, and parts of one, are not added up.
        (
            {"samples": 3},
            [["break the ice"], ["thin ice"], ["break the bank"]],
            "ok",
            (),
        ),
        # An answer selects at most one idiom.
        ({}, [DUTCH, DUTCH[::-1], ["go dutch", *DUTCH], ["asked"], []], "ok", ()),
        ({}, [DUTCH, DUTCH[::-1], DUTCH, ["went dutch"], ["asked"]], "ok", ("go dutch",)),
        ({"samples": 1}, [DUTCH], "ok", ("go dutch",)),
        # Too few readable answers are unknown and not empty.
        ({}, [["a b"], ["a b"], "truncated", "truncated", "unparseable"], "truncated", None),
        ({}, [["x y"], ["x y"], [], [], "refused"], "ok", ()),
        # The first answer can count alone.
        ({"votes": "first"}, [["a b", "c d"], *[["x y"]] * 4], "ok", ("a b", "c d")),
        ({"votes": "first"}, ["refused", ["a b"], *[["x y"]] * 4], "refused", None),
    ],
)
def test_votes(
    how: dict[str, object],
    answers: list[list[str] | str],
    outcome: str,
    idioms: Sequence[str] | None,
) -> None:
    samples = [
        sample(outcome=answer) if isinstance(answer, str) else sample(*answer) for answer in answers
    ]
    prediction = voted(*samples, **how)
    assert prediction.outcome == outcome
    assert prediction.idioms == (None if idioms is None else tuple(idioms))
    # All idioms named by each answer are kept.
    assert list(prediction.samples) == samples


def test_one_answer_without_votes_counts_in_full() -> None:
    prediction = combine("s", [sample("x y", "X  y", "broke the ice")], language="english")
    assert prediction.idioms == ("x y", "broke the ice")


@pytest.mark.parametrize(
    ("language", "forms", "kept"),
    [
        ("english", ("broke the ice", "break the ice", "to break the ice"), 0),
        # The form that matches the most others represents all.
        ("english", ("bite the bullet and told", "biting bullets", "bite the bullet"), 2),
        ("english", ("had cold feet", "cold feet", "get cold feet"), 1),
        ("german", ("nahm ihn auf den Arm", "auf den Arm nehmen", "auf den Arm genommen"), 0),
    ],
)
def test_forms_of_one_pie_are_votes_for_it(
    language: str, forms: tuple[str, ...], kept: int
) -> None:
    answers = [*map(sample, forms), sample(), sample()]
    assert voted(*answers, language=language).idioms == (forms[kept],)
    for order in permutations(answers):
        assert len(voted(*order, language=language).idioms or ()) == 1


def test_a_run_asks_every_question_once_and_keeps_the_order(tmp_path: Path) -> None:
    seen: list[Question] = []

    def ask(questions: Sequence[Question]) -> Mapping[str, Answer]:
        seen.extend(questions)
        texts = ["idioms: [go dutch]"] * 3 + ["idioms: []"] * 2
        return {
            question.key: Answer(key=question.key, text=texts[question.sample])
            for question in questions
        }

    first = sentence()
    other = {"sentence": "We asked to go dutch.", "tokens": ("We ", *first.tokens[1:])}
    second = first.model_copy(update={"id": "test-0002", **other})
    asked = with_files(task("few_shot_sc_cotbest"), tmp_path, first, second)
    Path(asked.inputs["train"]).write_text(format_id10m(TRAIN))
    asked.run(model(), ask)
    predictions = load_jsonl(asked.outputs["predictions"], IdiomPrediction)
    assert [item.id for item in predictions] == ["test-0001", "test-0002"]
    assert [item.idioms for item in predictions] == [("go dutch",)] * 2
    assert len(seen) == 10
    assert seen == asked.questions(model())
    assert [item.key for item in predictions[0].samples] == [question.key for question in seen[:5]]
    assert all(item.rule for item in predictions[0].samples)


def test_a_changed_train_split_gives_other_examples(tmp_path: Path) -> None:
    asked = with_files(task("few_shot_sc_cotbest"), tmp_path, sentence())
    train = Path(asked.inputs["train"])
    shown = []
    for seed in (1, 2):
        train.write_text(format_id10m(sentences(60, seed=seed)))
        os.utime(train, ns=(seed, seed))
        shown.append([question.messages for question in asked.questions(model())])
        assert shown[-1] == [question.messages for question in asked.questions(model())]
    assert shown[0] != shown[1]


def test_the_released_form_is_enforced_and_asked_as_the_code_asks() -> None:
    (question,) = questions(task("zero_shot", folder=RELEASED), sentence("german"))
    system, user = question.messages
    assert user.content == "Sentence:They asked to go dutch.\n"
    assert system.content.split() == FIGURE_4.replace("German", "german").split()
    form = question.parameters["response_format"]["json_schema"]
    assert form["strict"] is True
    assert (list(form["schema"]["properties"]), form["schema"]["required"]) == (["idioms"],) * 2


def test_released_examples_are_the_filled_in_form() -> None:
    question = questions(task("few_shot_sc_cotbest", folder=RELEASED), sentence())[0]
    fields = ["sentence", "potential_idioms", "explanation", "idioms"]
    schema = question.parameters["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == schema["required"] == fields
    system, *turns, last = question.messages
    assert system.content.split() == FIGURE_4.replace("German", "english").split()
    assert last.content.endswith("dutch.\n")
    by_text = {item.text: item for item in TRAIN}
    for shown, answer in zip(turns[::2], turns[1::2], strict=True):
        text = shown.content.removeprefix("sentence: ")
        filled = ast.literal_eval(answer.content)
        assert list(filled) == fields
        assert filled["sentence"] == text
        assert filled["potential_idioms"] == filled["idioms"] == by_text[text].idioms
    explained = [ast.literal_eval(turn.content)["explanation"] for turn in turns[1::2]]
    assert len(set(explained)) == 1


@pytest.mark.parametrize("named", [[], ["go dutch"]])
@pytest.mark.parametrize(
    "explanation",
    ["'asked' is meant literally, so it is no idiom.", "There is no idiom.", "Used figuratively."],
)
def test_only_the_choice_of_the_enforced_form_is_read(named: list[str], explanation: str) -> None:
    fields = {
        "sentence": "They asked to go dutch.",
        "potential_idioms": ["go dutch", "asked"],
        "explanation": explanation,
        "idioms": named,
    }
    answer = Answer(key="k", text=json.dumps(fields), finish_reason="stop")
    reading = task("few_shot_sc_cotbest").reading(answer)
    assert (reading.outcome, reading.value) == ("ok", named)


def test_examples_without_their_sentence_are_refused(tmp_path: Path) -> None:
    for name in ("few_shot_sc_cotbest.jinja", "few_shot_example.jinja"):
        text = (PROMPTS / name).read_text("utf-8")
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / name).write_text(text.replace("{{ sentence }}", ""), "utf-8")
    asked = task("few_shot_sc_cotbest", folder=tmp_path)
    with pytest.raises(UserError, match=r"few_shot_example\.jinja: does not show the full sente"):
        questions(asked, sentence())
