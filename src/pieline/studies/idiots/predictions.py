"""Idiom detection: does the sentence hold an idiom, and which (IdioTS, section 4).

By prompting a language model, or as a system of one's own said elsewhere.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from pieline.core.errors import UserError, pluralize
from pieline.core.external import ExternalRow, align_rows, read_rows
from pieline.core.records import load_jsonl, save_jsonl
from pieline.languages.denial import denies_idioms, is_conjunction, is_none_answer, is_retracted
from pieline.languages.spelling import normalize
from pieline.llm.answers import Answer
from pieline.llm.obstacles import SCHEMA_SETTING, unsupported_reason
from pieline.llm.parsing import Outcome, Parsed, answer_text, json_values, parse_object
from pieline.llm.prompts import Prompt, load_prompt
from pieline.llm.questions import Question, make_question
from pieline.llm.task import Ask, Task
from pieline.models.llm import LLMEntry
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.idiots.settings import DetectionParameters, OwnParameters

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


def _opposite(value: object) -> object:
    """The opposite of a truth value, also of one as text."""
    value = _true_or_false(value)
    return not value if isinstance(value, bool) else value


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


class NegatedAnswer(DetectionAnswer):
    """Answer to the negated question (is the sentence free of idioms?): yes means no idiom."""

    has_idiom: Annotated[bool, BeforeValidator(_opposite), Field(alias="freeOfIdioms")]


def detection_questions(
    sentences: Iterable[IdiotsSentence],
    spec: LLMEntry,
    prompt: Prompt,
    parameters: Mapping[str, Any],
    *,
    setting: str,
    seed: int,
) -> list[Question]:
    """One question a sentence, in order; the prompt's user turn takes `sentence`.

    `SCHEMA_SETTING` has the answer's form enforced; any other setting leaves that to the prompt.
    The seed is sent where the provider accepts one.

    Raises:
        UserError: the model cannot be asked in this setting.
    """
    wanted = {**parameters, "seed": seed}
    if lack := unsupported_reason(spec, setting):
        raise UserError(lack, where=spec.label, hint="leave the model or the setting out")
    prompt.check_shows("sentence")
    enforced = ANSWER_SCHEMA if setting == SCHEMA_SETTING else prompt.response_format
    wanted["response_format"] = enforced
    return [
        make_question(spec, prompt.messages(sentence=sentence.sentence), wanted, name=sentence.id)
        for sentence in sentences
    ]


class Detection(Task):
    """Whether each sentence of IdioTS holds an idiom, and which; one prediction a sentence.

    `inputs` are `sentences` and `prompt`, the only output is `predictions`.
    """

    setting: str
    seed: int
    parameters: DetectionParameters | OwnParameters

    def questions(self, entry: LLMEntry) -> list[Question]:
        """One question a sentence."""
        return detection_questions(
            self._sentences(),
            entry,
            load_prompt(self.inputs["prompt"]),
            self.parameters.model_dump(exclude={"negated"}),
            setting=self.setting,
            seed=self.seed,
        )

    def likely_output_tokens(self) -> int:
        """Four JSON fields, two of them a sentence each."""
        return 100

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask about every sentence and write what was said of it."""
        questions = self.questions(entry)
        answers = ask(questions)
        predictions = [
            read_prediction(sentence.id, answers[question.key], self._record)
            for sentence, question in zip(self._sentences(), questions, strict=True)
        ]
        save_jsonl(self.outputs["predictions"], predictions)

    def reading(self, answer: Answer) -> Parsed[DetectionAnswer]:
        """The four fields."""
        return read_detection(answer, self._record)

    @property
    def _record(self) -> type[DetectionAnswer]:
        """The form of an answer."""
        own = self.parameters
        negated = isinstance(own, OwnParameters) and own.negated
        return NegatedAnswer if negated else DetectionAnswer

    def _sentences(self) -> list[IdiotsSentence]:
        return load_jsonl(self.inputs["sentences"], IdiotsSentence)


def read_detection(
    answer: Answer, record: type[DetectionAnswer] = DetectionAnswer
) -> Parsed[DetectionAnswer]:
    """The last object of an answer with `hasIdiom`, if nothing beside or after it says otherwise.

    `unparseable` are objects side by side that differ in `hasIdiom`, a yes that names "none", and
    a yes or no that the text after it takes back.

    Args:
        answer: of the model.
        record: its form; the field that decides is called by its alias there.
    """
    decides = str(record.model_fields["has_idiom"].alias)
    parsed = parse_object(answer, record)
    if parsed.value is None:
        return parsed
    text, _ = answer_text(answer)
    yes = parsed.value.has_idiom
    pieces = []
    for piece in json_values(text, opening="{"):
        # One that lacks its last braces is the last, which was read.
        is_cut = piece.outcome is Outcome.TRUNCATED
        said_of = {decides: yes ^ (record is NegatedAnswer)}
        if verdicts := _verdicts(said_of if is_cut else piece.value, decides):
            pieces.append((piece, verdicts))
    last, said = pieces[-1]
    for (one, _), (other, verdicts) in pairwise(reversed(pieces)):
        if not is_conjunction(re.sub(r"```\w*", "", text[other.end : one.start])):
            break
        said = said | verdicts
    reason = ""
    idiom, why = parsed.value.idiom or "", parsed.value.explanation or ""
    if len(said) > 1:
        reason = "two verdicts side by side"
    elif yes and ((normalize(idiom) and is_none_answer(idiom)) or denies_idioms(why)):
        reason = "says yes and names none"
    elif is_retracted(text[last.end :], has_idiom=yes):
        reason = "the text after the answer takes it back"
    return Parsed(Outcome.UNPARSEABLE, reason=reason) if reason else parsed


def _verdicts(value: Any, decides: str) -> set[str]:
    """All that objects within a value say of the field that decides."""
    if isinstance(value, list | tuple):
        return set().union(*(_verdicts(item, decides) for item in value))
    if not isinstance(value, dict):
        return set()
    if decides in value:
        return {str(value[decides]).strip().lower()}
    return set().union(*(_verdicts(item, decides) for item in value.values()))


def read_prediction(
    sentence_id: str, answer: Answer, record: type[DetectionAnswer] = DetectionAnswer
) -> DetectionPrediction:
    """What an answer says of a sentence; one that cannot be read says neither yes nor no."""
    parsed = read_detection(answer, record)
    return DetectionPrediction(
        id=sentence_id,
        outcome=parsed.outcome.value,
        rule=parsed.rule,
        reason=parsed.reason,
        answer_key=answer.key,
        **(parsed.value.model_dump() if parsed.value else {}),
    )


EmptyIsNull = BeforeValidator(lambda value: None if value == "" else value)
"""An empty cell of a table says nothing."""


class ForeignDetection(ExternalRow):
    """What a system said of a sentence; no `has_idiom` (null, or an empty cell) is no answer."""

    has_idiom: Annotated[bool | None, EmptyIsNull]
    idiom: Annotated[str | None, EmptyIsNull] = None
    meaning: Annotated[str | None, EmptyIsNull] = None
    explanation: Annotated[str | None, EmptyIsNull] = None


def read_predictions(
    path: str | Path, sentences: Sequence[IdiotsSentence]
) -> list[DetectionPrediction]:
    """One prediction a sentence, in their order.

    The digest of what is said stands for the key of a recorded answer, so that people's verdicts
    are tied to it.

    Raises:
        UserError: ids are missing or unknown, a row cannot be read, or no row has an answer or a
            yes where idioms are named; names file and line.
    """
    texts = {one.id: one.sentence for one in sentences}
    rows = list(align_rows(read_rows(path, ForeignDetection), texts, where=path))
    if all(row.has_idiom is None for _, row in rows):
        raise UserError("has_idiom is empty in every row", where=path, hint="write true or false")
    named = [line for line, row in rows if row.idiom and not is_none_answer(row.idiom)]
    if named and not any(row.has_idiom for _, row in rows):
        raise UserError(
            f"has_idiom is true nowhere, but idiom is filled in {pluralize(len(named), 'row')}",
            where=f"{path}:{named[0]}",
            hint="correct has_idiom, or leave idiom empty",
        )
    return [_taken(row, f"{path}:{line}") for line, row in rows]


def _taken(row: ForeignDetection, where: str) -> DetectionPrediction:
    if row.has_idiom and row.idiom and is_none_answer(row.idiom):
        raise UserError(
            f"has_idiom is true and idiom {row.idiom!r}", where=where, hint="correct one of them"
        )
    said: dict[str, Any] = row.model_dump()
    if row.has_idiom is None:
        said = {"id": row.id}
    return DetectionPrediction(
        **said,
        outcome="empty" if row.has_idiom is None else "ok",
        answer_key=hashlib.sha256(row.model_dump_json().encode()).hexdigest(),
    )
