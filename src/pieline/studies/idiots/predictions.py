"""Idiom detection by prompting: does the sentence hold an idiom, and which (IdioTS, section 4)."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.client import ask
from pieline.llm.locks import lock
from pieline.llm.parsing import parse_object
from pieline.llm.prompts import Prompt
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import read_answers
from pieline.llm.settings import LLMSettings
from pieline.models.llm import LLMSpec
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence

SCHEMA_SETTING = "zero_shot_schema"
"""The setting in which the provider enforces the four JSON fields that the prompt asks for."""

ANSWER_SCHEMA: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "idiom_detection",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {
                "hasIdiom": {"type": "boolean"},
                "idiom": {"type": "string"},
                "meaning": {"type": "string"},
                "explanation": {"type": "string"},
            },
            "required": ["hasIdiom", "idiom", "meaning", "explanation"],
            "additionalProperties": False,
        },
    },
}


def _true_or_false(value: object) -> object:
    """A boolean for the texts "true" and "false", which the prompt's "true/false" invites."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    return value


def _one_text(value: object) -> object:
    """One text for a list of texts: some models name the idiom as a list of one."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "; ".join(value)
    return value


Text = Annotated[str | None, BeforeValidator(_one_text)]


class DetectionAnswer(BaseModel):
    """The answer's object (section 4.2).

    Without a readable `hasIdiom` there is no answer; the other fields may be missing, since a model
    that finds no idiom has nothing to put into them.
    """

    model_config = ConfigDict(frozen=True)

    has_idiom: Annotated[bool, BeforeValidator(_true_or_false), Field(alias="hasIdiom")]
    idiom: Text = None
    meaning: Text = None
    explanation: Text = None


def detection_questions(
    sentences: Iterable[IdiotsSentence],
    spec: LLMSpec,
    prompt: Prompt,
    parameters: Mapping[str, Any],
    *,
    setting: str,
    seed: int,
) -> list[Question]:
    """One question a sentence, in order.

    Args:
        sentences: of the dataset.
        spec: the model.
        prompt: system and user turn; the user turn takes `sentence`.
        parameters: request parameters, without the seed.
        setting: `SCHEMA_SETTING` has the answer's form enforced; any other leaves it to the prompt.
        seed: sent where the provider accepts one.

    Raises:
        UserError: the schema setting with a model whose provider enforces no schema.
    """
    wanted = {**parameters, "seed": seed}
    if setting == SCHEMA_SETTING:
        if "response_format" not in spec.accepts:
            raise UserError(
                f"the provider enforces no answer format, so there is no setting {setting!r}",
                where=spec.label,
                mend="leave the model or the setting out",
            )
        wanted["response_format"] = ANSWER_SCHEMA
    return [
        make_question(spec, prompt.messages(sentence=sentence.sentence), wanted, name=sentence.id)
        for sentence in sentences
    ]


def detect(
    sentences: Sequence[IdiotsSentence],
    questions: Sequence[Question],
    spec: LLMSpec,
    settings: LLMSettings,
    recordings: str | Path,
) -> list[DetectionPrediction]:
    """Ask what is not recorded and read every answer; one prediction a sentence, in order.

    Settings and seeds of one model share a file of recordings: runs that have to ask take turns.

    Raises:
        UserError: see `pieline.llm.client.ask`.
    """
    place = Path(recordings)
    keys = {question.key for question in questions}
    recorded = settings.mode == "record" and read_answers(place, keys).keys() == keys
    turn: AbstractContextManager[object] = nullcontext()
    if not recorded and settings.mode != "replay":
        turn = lock(
            place.parent,
            f"{place.name}.turn",
            lambda: print(f"waiting for another run that is asking {spec.label}", file=sys.stderr),
        )
    with turn:
        answers = ask(questions, spec, settings, place)
    if failed := sum(answer.error is not None for answer in answers.values()):
        print(
            f"{spec.label}: {failed} questions failed and count as errors; to ask them again,"
            " delete the predictions and run again",
            file=sys.stderr,
        )
    return [
        read_prediction(sentence.id, answers[question.key])
        for sentence, question in zip(sentences, questions, strict=True)
    ]


def read_prediction(sentence_id: str, answer: Answer) -> DetectionPrediction:
    """What an answer says of a sentence; one that cannot be read says neither yes nor no."""
    parsed = parse_object(answer, DetectionAnswer)
    said = parsed.value
    return DetectionPrediction(
        id=sentence_id,
        outcome=parsed.outcome.value,
        has_idiom=said.has_idiom if said else None,
        idiom=said.idiom if said else None,
        meaning=said.meaning if said else None,
        explanation=said.explanation if said else None,
        reason=parsed.reason,
        answer_key=answer.key,
    )
