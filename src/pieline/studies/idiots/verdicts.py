"""Manual evaluation of IdioTS (section 5.2): cases to judge, and human verdicts.

A model that detects an idiom may name the wrong one. A matching function first decides whether the
answer names the PIE of the sentence. People can then judge each answer. A human verdict replaces
the verdict of the matching function.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import field_validator, model_validator

from pieline.core.conditions import RunIdentity
from pieline.core.errors import UserError
from pieline.core.records import Frozen, Id, save_jsonl, validated
from pieline.core.review import reviewed_rows, write_sheet
from pieline.languages.denial import find_views, has_denying_comment, kind_of, parse_boolean
from pieline.languages.english import ANSWERS
from pieline.languages.pointing import points_at_pie
from pieline.languages.spelling import normalize
from pieline.studies.idiots.datasets import OPENING
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence

ErrorType = Literal[
    "phrasal_verb", "idiom_of_element", "unrelated_idiom", "same_meaning", "invented", "other"
]
"""Type of the expression that a true positive names instead of the PIE (section 5.2.1).

The types are: a phrasal verb; an idiom that contains an element of the sentence; an unrelated
idiom; an idiom with the same meaning; an invented idiom made of words in the sentence; and anything
else, such as a collocation.
"""
_HINT = "use the file written by the run, and fill in only the columns verdict and error_type"


class ReviewCase(Frozen):
    """An answer that detects an idiom; a person judges whether the answer names the gold PIE.

    For an idiomatic sentence, "yes" means that the model was right for the right reason. For a
    distractor, "yes" means that the model gave the associated PIE a figurative meaning. The record
    does not contain the verdict of the matching function, which would bias people.

    Attributes:
        gold: Class of the sentence.
        verdict: Human verdict; empty until a person fills it in.
        error_type: Type of the named expression, if the sentence is idiomatic and the verdict is
            "no"; may be empty.
        answer_key: Key of the recorded answer.
    """

    model: str
    setting: str
    seed: int
    sentence_id: Id
    sentence: str
    gold_idiom: str
    gold: Literal["idiomatic", "distractor"]
    idiom: str
    meaning: str
    explanation: str
    verdict: Literal["", "yes", "no"] = ""
    error_type: Literal[""] | ErrorType = ""
    answer_key: str

    @field_validator("verdict", "error_type", mode="before")
    @classmethod
    def _ignore_case_and_spaces(cls, value: object) -> object:
        """Normalize what a person typed, for example "Phrasal verb" to "phrasal_verb"."""
        return value.strip().lower().replace(" ", "_") if isinstance(value, str) else value

    @model_validator(mode="after")
    def _only_wrong_reasons_have_a_type(self) -> Self:
        if self.error_type and (self.gold, self.verdict) != ("idiomatic", "no"):
            raise ValueError('error_type requires an idiomatic sentence with the verdict "no"')
        return self

    @property
    def run(self) -> RunIdentity:
        """Run that contains the case."""
        return RunIdentity(self.model, self.setting, self.seed)


COLUMNS = list(ReviewCase.model_fields)
_ANSWERS = {name: name for name in ("verdict", "error_type")}
_SHOWN = ["sentence_id", *(name for name in COLUMNS if name not in ("sentence_id", *_ANSWERS))]


def names_pie(sentence: IdiotsSentence, prediction: DetectionPrediction) -> bool:
    """Return whether an answer detects an idiom and names the PIE of the sentence.

    An answer that calls the expression literal does not detect an idiom. If the field `idiom` of
    the answer names no expression, the field `meaning` is used instead. For a distractor, an answer
    also names the PIE by quoting the words that play on the PIE.
    """
    idiom, meaning = prediction.idiom or "", prediction.meaning or ""
    calls_it_literal = has_denying_comment(idiom) or find_views(meaning) == {"denies"}
    if not prediction.has_idiom or calls_it_literal:
        return False
    # Some models write only a word such as "idiom", "expression" or "yes" into the field.
    is_only_a_class = kind_of(idiom) in {"idioms", "expressions"}
    is_only_yes = parse_boolean(idiom) is True
    names_nothing = not normalize(idiom) or is_only_a_class or is_only_yes
    name = meaning if names_nothing else idiom
    if _negates_pie(name, sentence):
        return False
    # An answer need not name words such as "to", with which a canonical form begins.
    pie_without_opening = OPENING.sub("", sentence.pie)
    return points_at_pie(
        name,
        pie_without_opening,
        sentence=sentence.sentence,
        language="english",
        echoes=not sentence.is_idiomatic,
    )


def _negates_pie(name: str, sentence: IdiotsSentence) -> bool:
    """Return whether a named idiom negates the PIE: "not spill the beans".

    The first word of the named idiom is then a negation that the PIE lacks. A quotation from the
    sentence does not count.
    """
    normalized_name = normalize(name)
    first_word = normalized_name.partition(" ")[0]
    is_negation = first_word in ANSWERS.negations
    is_in_pie = first_word in normalize(sentence.pie).split()
    is_quotation = normalized_name in normalize(sentence.sentence)
    return is_negation and not is_in_pie and not is_quotation


def paired(
    sentences: Sequence[IdiotsSentence], predictions: Sequence[DetectionPrediction]
) -> list[tuple[IdiotsSentence, DetectionPrediction]]:
    """Return each sentence with its prediction, in the order of the sentences.

    Raises:
        UserError: A sentence has no prediction or several, or a prediction has no sentence.
    """
    prediction_by_id = {prediction.id: prediction for prediction in predictions}
    sentence_ids = {sentence.id for sentence in sentences}
    unmatched_ids = sorted(sentence_ids.symmetric_difference(prediction_by_id))
    has_repeated_id = len(prediction_by_id) != len(predictions)
    if unmatched_ids or has_repeated_id:
        mismatch = unmatched_ids[0] if unmatched_ids else "a repeated id"
        raise UserError(
            f"sentences and predictions do not match ({mismatch})",
            hint="create the predictions again",
        )
    return [(sentence, prediction_by_id[sentence.id]) for sentence in sentences]


def review_cases(
    sentences: Sequence[IdiotsSentence],
    predictions: Sequence[DetectionPrediction],
    run: RunIdentity,
) -> list[ReviewCase]:
    """Return the cases of a run that people can judge: all answers that detect an idiom."""
    return [
        ReviewCase(
            model=run.model,
            setting=run.setting,
            seed=run.seed,
            sentence_id=sentence.id,
            sentence=sentence.sentence,
            gold_idiom=sentence.pie,
            gold="idiomatic" if sentence.is_idiomatic else "distractor",
            idiom=prediction.idiom or "",
            meaning=prediction.meaning or "",
            explanation=prediction.explanation or "",
            answer_key=prediction.answer_key,
        )
        for sentence, prediction in paired(sentences, predictions)
        if prediction.has_idiom
    ]


def save_cases(cases: Iterable[ReviewCase], *, jsonl: str | Path, table: str | Path) -> None:
    """Save cases as JSONL and as CSV; `read_cases` reads both."""
    cases = list(cases)
    save_jsonl(jsonl, cases)
    write_sheet(table, COLUMNS, [case.model_dump() for case in cases])


def read_cases(path: str | Path) -> list[ReviewCase]:
    """Read cases from a file that `save_cases` wrote, possibly with human verdicts.

    Raises:
        UserError: The file type or the columns are wrong, a verdict is not yes, no or empty, or a
            case is repeated.
    """
    cases: dict[tuple[RunIdentity, str], ReviewCase] = {}
    for where, _, fields in reviewed_rows(path, _SHOWN, _ANSWERS, hint=_HINT):
        case = validated(ReviewCase, fields, where=where, hint=_HINT)
        key = (case.run, case.sentence_id)
        if key in cases:
            raise UserError(
                f"{case.sentence_id} occurs twice for this run",
                where=where,
                hint="remove one of the lines",
            )
        cases[key] = case
    return list(cases.values())


def human_verdicts(
    cases: Iterable[ReviewCase],
    predictions: Iterable[DetectionPrediction],
    run: RunIdentity,
    *,
    where: str | Path = "",
) -> dict[str, ReviewCase]:
    """Return the cases of one run that a person judged, by sentence id.

    Args:
        cases: Cases of any runs, with or without verdicts.
        predictions: Predictions of the run.
        run: Run whose cases are returned.
        where: Path of the cases, for error messages.

    Raises:
        UserError: A verdict is about an answer that is not among the predictions.
    """
    prediction_by_id = {prediction.id: prediction for prediction in predictions}
    judged_cases: dict[str, ReviewCase] = {}
    for case in cases:
        if case.run != run or not case.verdict:
            continue
        prediction = prediction_by_id.get(case.sentence_id)
        if (
            prediction is None
            or prediction.answer_key != case.answer_key
            or not prediction.has_idiom
        ):
            raise UserError(
                f"the verdict on {case.sentence_id} is about a different answer of {run.model}",
                where=where,
                hint="judge the case again, or clear its verdict",
            )
        judged_cases[case.sentence_id] = case
    return judged_cases
