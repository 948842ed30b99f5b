"""Detect whether a sentence contains an idiom, and which one (IdioTS, section 4).

Predictions come from prompting a language model or from an external system.
"""

import hashlib
import operator
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from pieline.core.errors import UserError, pluralize
from pieline.core.external import ExternalRow, align_rows, read_rows
from pieline.core.records import load_jsonl, save_jsonl
from pieline.core.texts import fits_better
from pieline.languages.denial import (
    is_conjunction,
    is_decision,
    is_none_answer,
    is_retracted,
    parse_boolean,
)
from pieline.languages.matching import matches_pie, occurs_in
from pieline.languages.spelling import normalize
from pieline.llm.answers import Answer
from pieline.llm.obstacles import SCHEMA_SETTING, unsupported_reason
from pieline.llm.parsing import Json, Outcome, Parsed, answer_text, json_values, parse_object
from pieline.llm.prompts import Prompt, load_prompt
from pieline.llm.questions import Question, make_question
from pieline.llm.task import Ask, PaperSize, Task
from pieline.models.llm import LLMEntry
from pieline.models.predictions import check_named_idioms
from pieline.studies.idiots.datasets import OPENING
from pieline.studies.idiots.records import PRINTED_COUNTS, DetectionPrediction, IdiotsSentence
from pieline.studies.idiots.settings import DetectionParameters, OwnParameters

MOST_CONTRADICTIONS = 0.2
"""Maximum share of "no" rows that name an idiom and of "yes" rows that name none; an error is
reported only if both shares are larger."""
_INPUT_TOKENS = 242
"""Mean input tokens of a question with the paper's prompt."""
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
    """Convert words such as "true" and "no" to booleans, because the prompt says "true/false"."""
    truth = parse_boolean(value) if isinstance(value, str) and not value.strip().isdigit() else None
    return value if truth is None else truth


def _one_text(value: object) -> object:
    """Join a list of texts, because some models return the idiom as a one-element list."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "; ".join(value)
    return value


Text = Annotated[str | None, BeforeValidator(_one_text)]


class DetectionAnswer(BaseModel):
    """JSON object in an answer (section 4.2).

    `hasIdiom` must be true or false. The other fields may be missing, because they do not apply if
    the model detects no idiom.
    """

    model_config = ConfigDict(frozen=True)

    has_idiom: Annotated[bool, BeforeValidator(_true_or_false), Field(alias="hasIdiom")]
    idiom: Text = None
    meaning: Text = None
    explanation: Text = None


class NegatedAnswer(DetectionAnswer):
    """JSON object in an answer to the negated question: whether the sentence is free of idioms."""

    has_idiom: Annotated[
        bool,
        BeforeValidator(_true_or_false),
        AfterValidator(operator.not_),
        Field(alias="freeOfIdioms"),
    ]


def detection_questions(
    sentences: Iterable[IdiotsSentence],
    spec: LLMEntry,
    prompt: Prompt,
    parameters: Mapping[str, Any],
    *,
    setting: str,
    seed: int,
) -> list[Question]:
    """Return one question per sentence, in order.

    In `SCHEMA_SETTING`, the provider enforces the answer's JSON schema. In other settings, it
    enforces the prompt's response format, if there is one. The seed is sent to providers that
    accept one.

    Raises:
        UserError: The model does not support this setting, or the prompt lacks the sentence.
    """
    if obstacle := unsupported_reason(spec, setting):
        raise UserError(obstacle, where=spec.label, hint="remove the model or the setting")
    prompt.check_shows("sentence")
    enforced = ANSWER_SCHEMA if setting == SCHEMA_SETTING else prompt.response_format
    request = {**parameters, "seed": seed, "response_format": enforced}
    return [
        make_question(spec, prompt.messages(sentence=sentence.sentence), request, name=sentence.id)
        for sentence in sentences
    ]


class Detection(Task):
    """Task that asks a model whether each sentence of IdioTS contains an idiom.

    `inputs` has `sentences` and `prompt`; the only output is `predictions`, one per sentence.
    """

    setting: str
    seed: int
    parameters: DetectionParameters | OwnParameters

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return one question per sentence."""
        return detection_questions(
            self._sentences(),
            entry,
            load_prompt(self.inputs["prompt"]),
            self.parameters.model_dump(exclude={"negated"}),
            setting=self.setting,
            seed=self.seed,
        )

    def limit_setting(self) -> str:
        """Return the name of the setting that limits the length of the answers."""
        return f"idiots.by_model.{self.model}.max_tokens.{self.setting}"

    def paper_size(self) -> PaperSize:
        """Return the size on the paper's data, for the paper's prompt."""
        if self.setting not in {"zero_shot", SCHEMA_SETTING}:
            return PaperSize()
        sentences = PRINTED_COUNTS["idiomatic sentences"] + PRINTED_COUNTS["distractors"]
        return PaperSize(sentences, _INPUT_TOKENS, self.parameters.max_tokens)

    def likely_output_tokens(self) -> int:
        """Estimate the output tokens of an answer: four JSON fields, two of which are sentences."""
        return 100

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask about every sentence and save the predictions."""
        questions = self.questions(entry)
        answers = ask(questions)
        predictions = [
            read_prediction(sentence.id, answers[question.key], self._record)
            for sentence, question in zip(self._sentences(), questions, strict=True)
        ]
        save_jsonl(self.outputs["predictions"], predictions)

    def reading(self, answer: Answer) -> Parsed[DetectionAnswer]:
        """Parse the four fields of an answer."""
        return read_detection(answer, self._record)

    @property
    def _record(self) -> type[DetectionAnswer]:
        """Record class of parsed answers."""
        parameters = self.parameters
        is_negated = isinstance(parameters, OwnParameters) and parameters.negated
        return NegatedAnswer if is_negated else DetectionAnswer

    def _sentences(self) -> list[IdiotsSentence]:
        return load_jsonl(self.inputs["sentences"], IdiotsSentence)


def read_detection(
    answer: Answer,
    record: type[DetectionAnswer] = DetectionAnswer,
) -> Parsed[DetectionAnswer]:
    """Parse the last JSON object with `hasIdiom` in an answer, unless other verdicts contradict it.

    The outcome is `unparseable` if adjacent objects differ in `hasIdiom`, or if the text after the
    last object retracts the answer.

    Args:
        answer: Answer of the model.
        record: Class of the answer; the alias of `has_idiom` names the field to read.
    """
    decides = str(record.model_fields["has_idiom"].alias)
    answer = _with_known_key(answer, record, decides)
    parsed = parse_object(answer, record)
    if parsed.value is None:
        return parsed
    text, _ = answer_text(answer)
    has_idiom = parsed.value.has_idiom
    # The value of the field `decides`, before `NegatedAnswer` inverts it.
    decision = has_idiom if record is DetectionAnswer else not has_idiom
    objects = []
    for found in json_values(text, opening="{"):
        # A truncated object is the last one, which `parse_object` has repaired.
        is_truncated = found.outcome is Outcome.TRUNCATED
        verdicts = _verdicts({decides: decision} if is_truncated else found.value, decides)
        if verdicts:
            objects.append((found, verdicts))
    if len(_last_verdicts(objects, text)) > 1:
        return Parsed(Outcome.UNPARSEABLE, reason="two verdicts side by side")
    last, _ = objects[-1]
    named = [parsed.value.idiom or ""] if has_idiom else []
    if is_retracted(text[last.end :], named):
        return Parsed(Outcome.UNPARSEABLE, reason="the text after the answer takes it back")
    return parsed


def _last_verdicts(objects: Sequence[tuple[Json, set[str]]], text: str) -> set[str]:
    """Return the verdicts of the last object, and of the objects directly before it.

    Args:
        objects: Objects in the text, each with its verdicts.
        text: Text of the answer; only conjunctions and code fences may separate adjacent objects.
    """
    last, verdicts = objects[-1]
    start = last.start
    for previous, previous_verdicts in reversed(objects[:-1]):
        if not is_conjunction(re.sub(r"```\w*", "", text[previous.end : start])):
            break
        verdicts = verdicts | previous_verdicts
        start = previous.start
    return verdicts


def _with_known_key(answer: Answer, record: type[DetectionAnswer], decides: str) -> Answer:
    """Rename a key that can only mean `decides`, such as "has_idiom" or "is_idiomatic".

    The answer is unchanged if it has the key `decides`, or several such keys.
    """
    text = answer.text or ""
    if f'"{decides}"' in text:
        return answer
    fields = {str(field.alias or name) for name, field in record.model_fields.items()}
    synonyms = set()
    for key in set(_TRUE_OR_FALSE.findall(text)) - fields:
        is_same_word = _letters(key) == _letters(decides)
        if is_same_word or (record is DetectionAnswer and is_decision(key)):
            synonyms.add(key)
    if len(synonyms) != 1:
        return answer
    text = text.replace(f'"{synonyms.pop()}"', f'"{decides}"')
    return answer.model_copy(update={"text": text})


def _letters(key: str) -> str:
    return re.sub(r"[\W_]", "", key).casefold()


def _verdicts(value: Any, decides: str) -> set[str]:
    """Return all values of the field `decides` (as lowercase text) in objects within a value."""
    if isinstance(value, list | tuple):
        return set().union(*(_verdicts(item, decides) for item in value))
    if not isinstance(value, dict):
        return set()
    if decides in value:
        return {str(_true_or_false(value[decides])).lower()}
    return set().union(*(_verdicts(item, decides) for item in value.values()))


def read_prediction(
    sentence_id: str,
    answer: Answer,
    record: type[DetectionAnswer] = DetectionAnswer,
) -> DetectionPrediction:
    """Return the prediction for a sentence; `has_idiom` is None if the answer is unreadable."""
    parsed = read_detection(answer, record)
    return DetectionPrediction(
        id=sentence_id,
        outcome=parsed.outcome.value,
        rule=parsed.rule,
        reason=parsed.reason,
        answer_key=answer.key,
        **(parsed.value.model_dump() if parsed.value else {}),
    )


_TRUE_OR_FALSE = re.compile(
    r'"([^"\\\n]+)"\s*:\s*(?:true|false|"(?:yes|no|true|false)")', re.IGNORECASE
)
"""A JSON key with the value true, false, "yes" or "no"."""

EmptyIsNull = BeforeValidator(lambda value: None if value == "" else value)
"""Validator that converts empty cells of a table to null."""


def _from_pandas(value: object) -> object:
    """Convert "1.0" and "0.0", which pandas writes for booleans if an answer is missing."""
    return {"1.0": True, "0.0": False}.get(str(value), value)


class ForeignDetection(ExternalRow):
    """An external prediction for a sentence; an empty or null `has_idiom` means no answer."""

    has_idiom: Annotated[bool | None, BeforeValidator(_from_pandas), EmptyIsNull]
    idiom: Annotated[str | None, EmptyIsNull] = None
    meaning: Annotated[str | None, EmptyIsNull] = None
    explanation: Annotated[str | None, EmptyIsNull] = None


def read_predictions(
    path: str | Path, sentences: Sequence[IdiotsSentence]
) -> list[DetectionPrediction]:
    """Read one external prediction per sentence, in the order of the sentences.

    The digest of a row replaces the key of a recorded answer, so that human verdicts refer to
    exactly this prediction.

    Raises:
        UserError: Ids are missing or unknown; a row is invalid; no row has an answer; idioms are
            named although no answer is "yes"; the idiom of a "yes" is "none"; many "no" rows name
            an idiom and many "yes" rows do not; many rows name idioms of other sentences; or the
            answers fit the next or previous sentences better.
    """
    texts = {one.id: one.sentence for one in sentences}
    rows = list(align_rows(read_rows(path, ForeignDetection), texts, where=path))
    if all(row.has_idiom is None for _, row in rows):
        raise UserError("has_idiom is empty in every row", where=path, hint="write true or false")
    named = [line for line, row in rows if row.idiom and not is_none_answer(row.idiom)]
    if named and not any(row.has_idiom for _, row in rows):
        raise UserError(
            f"has_idiom is never true, but {pluralize(len(named), 'row')} set idiom",
            where=f"{path}:{named[0]}",
            hint="correct has_idiom, or leave idiom empty",
        )
    _check_agreement(rows, path)
    predictions = [_to_prediction(row, f"{path}:{line}") for line, row in rows]
    _check_idioms([f"{path}:{line}" for line, _ in rows], predictions, sentences)
    _check_order([row.has_idiom for _, row in rows], sentences, path)
    return predictions


def _check_agreement(rows: Sequence[tuple[int, ForeignDetection]], path: str | Path) -> None:
    """Raise a `UserError` if has_idiom and idiom contradict each other in both directions."""
    yes_without_idiom, no_with_idiom = [], []
    answers = Counter(row.has_idiom for _, row in rows)
    for line, row in rows:
        names_idiom = bool(row.idiom and not is_none_answer(row.idiom))
        if row.has_idiom and not names_idiom:
            yes_without_idiom.append(line)
        if row.has_idiom is False and names_idiom:
            no_with_idiom.append(line)
    many_without = len(yes_without_idiom) > MOST_CONTRADICTIONS * answers[True]
    many_with = len(no_with_idiom) > MOST_CONTRADICTIONS * answers[False]
    if many_without and many_with:
        raise UserError(
            f"idiom is set in {len(no_with_idiom)} of {answers[False]} rows in which has_idiom is"
            f" false, but empty in {len(yes_without_idiom)} of {answers[True]} in which it is true",
            where=f"{path}:{no_with_idiom[0]}",
            hint="check that both columns belong together, and that true means an idiom",
        )


def _check_order(
    answers: Sequence[bool | None], sentences: Sequence[IdiotsSentence], path: str | Path
) -> None:
    """Raise a `UserError` if the answers fit the next or previous sentences clearly better."""
    labels = [sentence.is_idiomatic for sentence in sentences]
    fits = [answer == label for answer, label in zip(answers, labels, strict=True)]
    for other, distance in (("next", 1), ("previous", -1)):
        moved = labels[distance:] + labels[:distance]
        shifted = [answer == label for answer, label in zip(answers, moved, strict=True)]
        if fits_better(shifted, fits):
            raise UserError(
                f"the answers fit the {other} sentences: {sum(shifted)} of {len(fits)} are correct"
                f" for them, but only {sum(fits)} for their own",
                where=path,
                hint="check the ids",
            )


def _check_idioms(
    places: Sequence[str],
    predictions: Sequence[DetectionPrediction],
    sentences: Sequence[IdiotsSentence],
) -> None:
    """Raise a `UserError` if many named idioms belong to other sentences, as with shifted ids.

    An idiom that occurs in no sentence is a wrong answer, but does not show that ids are wrong.
    """
    misplaced, total = [], 0
    for where, prediction, sentence in zip(places, predictions, sentences, strict=True):
        idiom = prediction.idiom or ""
        if not prediction.has_idiom or not normalize(idiom):
            continue
        total += 1
        if not _names(idiom, sentence) and any(_names(idiom, other) for other in sentences):
            example = f"{idiom!r} in {sentence.sentence!r} ({sentence.id})"
            misplaced.append((where, example))
    check_named_idioms(misplaced, total)


def _names(idiom: str, sentence: IdiotsSentence) -> bool:
    return occurs_in(idiom, sentence.sentence, language="english") or matches_pie(
        idiom, OPENING.sub("", sentence.pie), language="english"
    )


def _to_prediction(row: ForeignDetection, where: str) -> DetectionPrediction:
    if row.has_idiom and row.idiom and is_none_answer(row.idiom):
        raise UserError(
            f"has_idiom is true, but idiom is {row.idiom!r}",
            where=where,
            hint="correct one of them",
        )
    fields: dict[str, Any] = row.model_dump()
    if row.has_idiom is None:
        fields = {"id": row.id}
    return DetectionPrediction(
        **fields,
        outcome="empty" if row.has_idiom is None else "ok",
        answer_key=hashlib.sha256(row.model_dump_json().encode()).hexdigest(),
    )
