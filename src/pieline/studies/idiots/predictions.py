"""Detection of idioms in sentences (IdioTS, section 4).

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
"""Largest share of external predictions that may contradict themselves.

An error is reported if the share of "no" rows that name an idiom and the share of "yes" rows that
name no idiom are both larger.
"""
_INPUT_TOKENS = 242
"""Mean number of input tokens of a question with the paper's prompt."""
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
    """Convert words such as "true" and "no" to booleans; return other values unchanged.

    The prompt asks for "true/false", so some models write words instead of JSON booleans.
    """
    if not isinstance(value, str) or value.strip().isdigit():
        return value
    truth = parse_boolean(value)
    return value if truth is None else truth


def _join_texts(value: object) -> object:
    """Join a list of texts to one text; return other values unchanged.

    Some models return the idiom as a list.
    """
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return "; ".join(value)
    return value


Text = Annotated[str | None, BeforeValidator(_join_texts)]


class DetectionAnswer(BaseModel):
    """JSON object in an answer (section 4.2).

    `hasIdiom` must be true or false. Other fields may be missing, because they do not apply if the
    model detects no idiom.
    """

    model_config = ConfigDict(frozen=True)

    has_idiom: Annotated[bool, BeforeValidator(_true_or_false), Field(alias="hasIdiom")]
    idiom: Text = None
    meaning: Text = None
    explanation: Text = None


class NegatedAnswer(DetectionAnswer):
    """JSON object in an answer to the negated question, whether the sentence is free of idioms.

    The answer is inverted, so `has_idiom` has the same meaning as in `DetectionAnswer`.
    """

    has_idiom: Annotated[
        bool,
        BeforeValidator(_true_or_false),
        AfterValidator(operator.not_),
        Field(alias="freeOfIdioms"),
    ]


def detection_questions(
    sentences: Iterable[IdiotsSentence],
    entry: LLMEntry,
    prompt: Prompt,
    parameters: Mapping[str, Any],
    *,
    setting: str,
    seed: int,
) -> list[Question]:
    """Return one question per sentence, in the order of the sentences.

    In the setting `SCHEMA_SETTING`, the provider enforces a JSON schema of the answer. In other
    settings, the provider enforces the response format of the prompt, if there is one.

    Args:
        sentences: Sentences to ask about.
        entry: Entry of the model in models.yaml.
        prompt: Prompt that contains the sentence.
        parameters: Request parameters, such as the temperature.
        setting: Name of the prompt setting.
        seed: Seed, which is sent if the provider accepts a seed.

    Raises:
        UserError: The model does not support this setting, or the prompt lacks the sentence.
    """
    obstacle = unsupported_reason(entry, setting)
    if obstacle:
        raise UserError(obstacle, where=entry.label, hint="remove the model or the setting")
    prompt.check_shows("sentence")
    response_format = ANSWER_SCHEMA if setting == SCHEMA_SETTING else prompt.response_format
    request = {**parameters, "seed": seed, "response_format": response_format}
    questions = []
    for sentence in sentences:
        messages = prompt.messages(sentence=sentence.sentence)
        questions.append(make_question(entry, messages, request, name=sentence.id))
    return questions


class Detection(Task):
    """Task that asks a model whether each sentence of IdioTS contains an idiom.

    `inputs` has `sentences` and `prompt`; `outputs` has `predictions`, a file with one prediction
    per sentence.
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
        """Return the number and size of the paper's requests; empty for custom prompts."""
        if self.setting not in {"zero_shot", SCHEMA_SETTING}:
            return PaperSize()
        sentences = PRINTED_COUNTS["idiomatic sentences"] + PRINTED_COUNTS["distractors"]
        return PaperSize(sentences, _INPUT_TOKENS, self.parameters.max_tokens)

    def likely_output_tokens(self) -> int:
        """Return an estimate of the number of output tokens per answer.

        An answer has four JSON fields, two of which are sentences.
        """
        return 100

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask about every sentence and save the predictions."""
        questions = self.questions(entry)
        answer_by_key = ask(questions)
        predictions = [
            read_prediction(sentence.id, answer_by_key[question.key], self._record)
            for sentence, question in zip(self._sentences(), questions, strict=True)
        ]
        save_jsonl(self.outputs["predictions"], predictions)

    def reading(self, answer: Answer) -> Parsed[DetectionAnswer]:
        """Parse a model's answer about a sentence."""
        return read_detection(answer, self._record)

    @property
    def _record(self) -> type[DetectionAnswer]:
        """Class of the parsed answers, which depends on whether the prompt negates the question."""
        parameters = self.parameters
        is_negated = isinstance(parameters, OwnParameters) and parameters.negated
        return NegatedAnswer if is_negated else DetectionAnswer

    def _sentences(self) -> list[IdiotsSentence]:
        return load_jsonl(self.inputs["sentences"], IdiotsSentence)


def read_detection(answer: Answer, record: type[DetectionAnswer]) -> Parsed[DetectionAnswer]:
    """Parse the last JSON object that contains a verdict, the field `hasIdiom`, in an answer.

    The outcome is `unparseable` if the last object and the objects directly before it have
    different verdicts, or if the text after the last object retracts the answer.

    Args:
        answer: Answer of the model.
        record: Class of the answer; the alias of its field `has_idiom` is the key of the verdict.
    """
    verdict_key = str(record.model_fields["has_idiom"].alias)
    answer = _rename_verdict_key(answer, record, verdict_key)
    parsed = parse_object(answer, record)
    if parsed.value is None:
        return parsed
    text, _ = answer_text(answer)
    has_idiom = parsed.value.has_idiom
    # A negated answer is inverted when it is parsed, but the text contains the original verdict.
    last_verdict = not has_idiom if record is NegatedAnswer else has_idiom
    objects = _objects_with_verdicts(text, verdict_key, last_verdict=last_verdict)
    if len(_verdicts_of_last_objects(objects, text)) > 1:
        return Parsed(Outcome.UNPARSEABLE, reason="two verdicts side by side")
    last_object, _ = objects[-1]
    named_idioms = [parsed.value.idiom or ""] if has_idiom else []
    if is_retracted(text[last_object.end :], named_idioms):
        return Parsed(Outcome.UNPARSEABLE, reason="the text after the answer takes it back")
    return parsed


def _objects_with_verdicts(
    text: str, verdict_key: str, *, last_verdict: bool
) -> list[tuple[Json, set[str]]]:
    """Return the JSON objects in a text that contain verdicts, each with its verdicts.

    `last_verdict` is the verdict of the last object, even if this object is truncated.
    """
    objects = []
    for json_object in json_values(text, opening="{"):
        if json_object.outcome is Outcome.TRUNCATED:
            # Only the last object can be truncated.
            verdicts = {str(last_verdict).lower()}
        else:
            verdicts = _verdicts_in(json_object.value, verdict_key)
        if verdicts:
            objects.append((json_object, verdicts))
    return objects


def _verdicts_of_last_objects(objects: Sequence[tuple[Json, set[str]]], text: str) -> set[str]:
    """Return the verdicts of the last object, and of the objects directly before the last one.

    Args:
        objects: JSON objects in the text, each with its verdicts.
        text: Text of the answer. Between adjacent objects, the text contains only conjunctions and
            code fences.
    """
    last_object, last_verdicts = objects[-1]
    verdicts = set(last_verdicts)
    next_start = last_object.start
    for json_object, verdicts_of_object in reversed(objects[:-1]):
        text_between = re.sub(r"```\w*", "", text[json_object.end : next_start])
        if not is_conjunction(text_between):
            break
        verdicts |= verdicts_of_object
        next_start = json_object.start
    return verdicts


def _rename_verdict_key(answer: Answer, record: type[DetectionAnswer], verdict_key: str) -> Answer:
    """Return an answer in which a synonym of the verdict key is replaced by the verdict key.

    Synonyms are, for example, "has_idiom" and "is_idiomatic". The answer is unchanged if it already
    contains the verdict key, or if it contains several synonyms.
    """
    text = answer.text or ""
    if f'"{verdict_key}"' in text:
        return answer
    known_keys = {str(field.alias or name) for name, field in record.model_fields.items()}
    synonyms = []
    for key in set(_TRUE_OR_FALSE.findall(text)) - known_keys:
        differs_only_in_spelling = _letters(key) == _letters(verdict_key)
        # A key such as "is_idiomatic" would have the opposite meaning in a negated answer.
        means_has_idiom = record is DetectionAnswer and is_decision(key)
        if differs_only_in_spelling or means_has_idiom:
            synonyms.append(key)
    if len(synonyms) != 1:
        return answer
    text = text.replace(f'"{synonyms[0]}"', f'"{verdict_key}"')
    return answer.model_copy(update={"text": text})


def _letters(key: str) -> str:
    """Return the letters and digits of a JSON key in lowercase."""
    return re.sub(r"[\W_]", "", key).casefold()


def _verdicts_in(json_value: Any, verdict_key: str) -> set[str]:
    """Return the verdicts, as lowercase text, in a JSON value and the objects within it."""
    if isinstance(json_value, dict):
        if verdict_key in json_value:
            return {str(_true_or_false(json_value[verdict_key])).lower()}
        children = list(json_value.values())
    elif isinstance(json_value, list | tuple):
        children = list(json_value)
    else:
        return set()
    verdicts: set[str] = set()
    for child in children:
        verdicts |= _verdicts_in(child, verdict_key)
    return verdicts


def read_prediction(
    sentence_id: str,
    answer: Answer,
    record: type[DetectionAnswer] = DetectionAnswer,
) -> DetectionPrediction:
    """Parse an answer about a sentence; `has_idiom` is None if the answer is unreadable."""
    parsed = read_detection(answer, record)
    fields = parsed.value.model_dump() if parsed.value else {}
    return DetectionPrediction(
        id=sentence_id,
        outcome=parsed.outcome.value,
        rule=parsed.rule,
        reason=parsed.reason,
        answer_key=answer.key,
        **fields,
    )


_TRUE_OR_FALSE = re.compile(
    r'"([^"\\\n]+)"\s*:\s*(?:true|false|"(?:yes|no|true|false)")', re.IGNORECASE
)
"""Pattern of a JSON key with the value true, false, "yes" or "no"; the group is the key."""

EmptyIsNull = BeforeValidator(lambda value: None if value == "" else value)
"""Validator that converts an empty cell of a table to null."""


def _from_pandas(value: object) -> object:
    """Convert "1.0" and "0.0" to booleans; return other values unchanged.

    pandas writes booleans as these numbers if the column contains a missing answer.
    """
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

    Args:
        path: Path of a table with the columns of `ForeignDetection`.
        sentences: Sentences of IdioTS.

    Raises:
        UserError: Ids are missing or unknown; a row is invalid; no row has an answer; idioms are
            named although no answer is "yes"; the idiom of a "yes" is "none"; many "no" rows name
            an idiom and many "yes" rows do not; many rows name idioms of other sentences; or the
            answers fit the next or previous sentences better.
    """
    text_by_id = {sentence.id: sentence.sentence for sentence in sentences}
    numbered_rows = align_rows(read_rows(path, ForeignDetection), text_by_id, where=path)
    places = [f"{path}:{line}" for line, _ in numbered_rows]
    rows = [row for _, row in numbered_rows]
    if all(row.has_idiom is None for row in rows):
        raise UserError("has_idiom is empty in every row", where=path, hint="write true or false")
    _check_columns_agree(rows, places)
    predictions = [_to_prediction(row, where) for row, where in zip(rows, places, strict=True)]
    _check_idioms(places, predictions, sentences)
    _check_order([row.has_idiom for row in rows], sentences, path)
    return predictions


def _check_columns_agree(rows: Sequence[ForeignDetection], places: Sequence[str]) -> None:
    """Raise a `UserError` if many values of has_idiom and idiom contradict each other.

    This is the case if has_idiom is never true although idioms are named, or if both kinds of
    contradictions are frequent: "no" rows that name an idiom, and "yes" rows that name no idiom.
    """
    answers = Counter(row.has_idiom for row in rows)
    places_with_idiom: list[str] = []
    yes_without_idiom: list[str] = []
    no_with_idiom: list[str] = []
    for row, where in zip(rows, places, strict=True):
        names_idiom = bool(row.idiom and not is_none_answer(row.idiom))
        if names_idiom:
            places_with_idiom.append(where)
        if row.has_idiom and not names_idiom:
            yes_without_idiom.append(where)
        if row.has_idiom is False and names_idiom:
            no_with_idiom.append(where)
    if places_with_idiom and not answers[True]:
        raise UserError(
            f"has_idiom is never true, but {pluralize(len(places_with_idiom), 'row')} set idiom",
            where=places_with_idiom[0],
            hint="correct has_idiom, or leave idiom empty",
        )
    often_yes_without_idiom = len(yes_without_idiom) > MOST_CONTRADICTIONS * answers[True]
    often_no_with_idiom = len(no_with_idiom) > MOST_CONTRADICTIONS * answers[False]
    if often_yes_without_idiom and often_no_with_idiom:
        raise UserError(
            f"idiom is set in {len(no_with_idiom)} of {answers[False]} rows in which has_idiom is"
            f" false, but empty in {len(yes_without_idiom)} of {answers[True]} in which it is true",
            where=no_with_idiom[0],
            hint="check that both columns belong together, and that true means an idiom",
        )


def _check_order(
    answers: Sequence[bool | None], sentences: Sequence[IdiotsSentence], path: str | Path
) -> None:
    """Raise a `UserError` if answers fit the next or previous sentences better than their own."""
    labels = [sentence.is_idiomatic for sentence in sentences]
    correct = [answer == label for answer, label in zip(answers, labels, strict=True)]
    next_labels = labels[1:] + labels[:1]
    previous_labels = labels[-1:] + labels[:-1]
    for other, labels_of_other in (("next", next_labels), ("previous", previous_labels)):
        correct_for_other = [
            answer == label for answer, label in zip(answers, labels_of_other, strict=True)
        ]
        if fits_better(correct_for_other, correct):
            raise UserError(
                f"the answers fit the {other} sentences: {sum(correct_for_other)} of"
                f" {len(correct)} are correct for them, but only {sum(correct)} for their own",
                where=path,
                hint="check the ids",
            )


def _check_idioms(
    places: Sequence[str],
    predictions: Sequence[DetectionPrediction],
    sentences: Sequence[IdiotsSentence],
) -> None:
    """Raise a `UserError` if many named idioms belong to other sentences, as with shifted ids.

    An idiom that belongs to no sentence is a wrong answer, but does not show that ids are wrong.
    """
    misplaced = []
    number_of_idioms = 0
    for where, prediction, sentence in zip(places, predictions, sentences, strict=True):
        idiom = prediction.idiom or ""
        if not prediction.has_idiom or not normalize(idiom):
            continue
        number_of_idioms += 1
        if _belongs_to(idiom, sentence):
            continue
        if any(_belongs_to(idiom, other) for other in sentences):
            example = f"{idiom!r} in {sentence.sentence!r} ({sentence.id})"
            misplaced.append((where, example))
    check_named_idioms(misplaced, number_of_idioms)


def _belongs_to(idiom: str, sentence: IdiotsSentence) -> bool:
    """Return whether a named idiom occurs in a sentence or matches the PIE of the sentence."""
    if occurs_in(idiom, sentence.sentence, language="english"):
        return True
    return matches_pie(idiom, OPENING.sub("", sentence.pie), language="english")


def _to_prediction(row: ForeignDetection, where: str) -> DetectionPrediction:
    """Convert an external prediction; `where` is the row's location, for error messages.

    The digest of the row replaces the key of a recorded answer, so that human verdicts refer to
    exactly this prediction.

    Raises:
        UserError: The row has the answer "yes" and an idiom such as "none".
    """
    answer_key = hashlib.sha256(row.model_dump_json().encode()).hexdigest()
    if row.has_idiom is None:
        return DetectionPrediction(id=row.id, outcome="empty", answer_key=answer_key)
    if row.has_idiom and row.idiom and is_none_answer(row.idiom):
        raise UserError(
            f"has_idiom is true, but idiom is {row.idiom!r}",
            where=where,
            hint="correct one of them",
        )
    return DetectionPrediction(**row.model_dump(), outcome="ok", answer_key=answer_key)
