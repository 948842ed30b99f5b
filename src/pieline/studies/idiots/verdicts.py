"""Manual evaluation of IdioTS (section 5.2): cases to judge, and human verdicts.

A model that detects an idiom may name the wrong one. The matching function first decides whether
the answer names the sentence's PIE; people can then judge every case, and their verdicts take
precedence.
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
"""Errors of true positives that do not name the PIE (section 5.2.1): a phrasal verb; another idiom
that contains an element of the sentence, is unrelated, or has the same meaning; an invented idiom
made of words in the sentence; or anything else, such as a collocation.
"""
_HINT = "use the file written by the run, and fill in only the columns verdict and error_type"


class ReviewCase(Frozen):
    """A sentence in which a model detected an idiom; a person judges whether it named the gold PIE.

    In an idiomatic sentence, "yes" means that the model was right for the right reason; in a
    distractor, that it gave the associated PIE a figurative meaning. The verdict of the matching
    function is left out, because it would bias people.

    Attributes:
        gold: Class of the sentence.
        verdict: Human verdict; empty until filled in.
        error_type: Error type of an idiomatic sentence with the verdict "no"; may be empty.
        answer_key: Key of the answer that was judged.
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
    def _typed_by_a_person(cls, value: object) -> object:
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
    """Return whether an answer detects an idiom that matches the sentence's PIE.

    For a distractor, a quotation of the words that play on its PIE also counts. If the field
    `idiom` names nothing, `meaning` is matched instead. An answer that calls the expression literal
    does not detect an idiom.
    """
    name, meaning = prediction.idiom or "", prediction.meaning or ""
    if not prediction.has_idiom or has_denying_comment(name) or find_views(meaning) == {"denies"}:
        return False
    if not normalize(name) or kind_of(name) in {"idioms", "expressions"} or parse_boolean(name):
        name = meaning
    words = normalize(name)
    first = words.partition(" ")[0]
    is_negation = first in ANSWERS.negations and first not in normalize(sentence.pie).split()
    if is_negation and words not in normalize(sentence.sentence):
        return False  # "not spill the beans"
    return points_at_pie(
        name,
        OPENING.sub("", sentence.pie),
        sentence=sentence.sentence,
        language="english",
        echoes=not sentence.is_idiomatic,
    )


def paired(
    sentences: Sequence[IdiotsSentence], predictions: Sequence[DetectionPrediction]
) -> list[tuple[IdiotsSentence, DetectionPrediction]]:
    """Return each sentence with its prediction, in the order of the sentences.

    Raises:
        UserError: Sentences and predictions do not have the same ids, or an id is repeated.
    """
    by_id = {prediction.id: prediction for prediction in predictions}
    odd = sorted(by_id.keys() ^ {sentence.id for sentence in sentences})
    if odd or len(by_id) != len(predictions):
        raise UserError(
            f"sentences and predictions do not match ({(odd or ['a repeated id'])[0]})",
            hint="create the predictions again",
        )
    return [(sentence, by_id[sentence.id]) for sentence in sentences]


def review_cases(
    sentences: Sequence[IdiotsSentence],
    predictions: Sequence[DetectionPrediction],
    run: RunIdentity,
) -> list[ReviewCase]:
    """Return the cases of a run for human judgment: all answers that detect an idiom."""
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
    """Read cases from a file that `save_cases` wrote.

    Raises:
        UserError: The file type or the columns are wrong, a verdict is not yes, no or empty, or a
            case is repeated.
    """
    cases: list[ReviewCase] = []
    seen: set[tuple[RunIdentity, str]] = set()
    for where, _, fields in reviewed_rows(path, _SHOWN, _ANSWERS, hint=_HINT):
        case = validated(ReviewCase, fields, where=where, hint=_HINT)
        if (case.run, case.sentence_id) in seen:
            raise UserError(
                f"{case.sentence_id} occurs twice for this run",
                where=where,
                hint="remove one of the lines",
            )
        seen.add((case.run, case.sentence_id))
        cases.append(case)
    return cases


def human_verdicts(
    cases: Iterable[ReviewCase],
    predictions: Iterable[DetectionPrediction],
    run: RunIdentity,
    *,
    where: str | Path = "",
) -> dict[str, ReviewCase]:
    """Return the judged cases of one run, by sentence id.

    Cases of other runs and cases without a verdict are ignored.

    Args:
        cases: Cases, which may be of several runs.
        predictions: Predictions of the run.
        run: Run to select.
        where: Path of the cases, for error messages.

    Raises:
        UserError: A verdict refers to an answer other than the run's.
    """
    answers = {prediction.id: prediction for prediction in predictions}
    verdicts: dict[str, ReviewCase] = {}
    for case in cases:
        if case.run != run or not case.verdict:
            continue
        answer = answers.get(case.sentence_id)
        if answer is None or answer.answer_key != case.answer_key or not answer.has_idiom:
            raise UserError(
                f"the verdict on {case.sentence_id} is about a different answer of {run.model}",
                where=where,
                hint="judge the case again, or clear its verdict",
            )
        verdicts[case.sentence_id] = case
    return verdicts
