"""The second, manual level of IdioTS's evaluation (section 5.2): cases to judge, and verdicts.

A model that says "idiom" may name the wrong one. Whether it names the PIE of the sentence is first
decided by the matching function; people can then judge every case, and their verdict replaces it.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pydantic import field_validator, model_validator

from pieline.core.errors import UserError
from pieline.core.files import read_text, write_text
from pieline.core.records import Frozen, Id, save_jsonl, validated
from pieline.core.tables import read_table
from pieline.languages.denial import find_views, has_denying_comment, kind_of, parse_boolean
from pieline.languages.english import ANSWERS
from pieline.languages.pointing import points_at_pie
from pieline.languages.spelling import normalize
from pieline.studies.idiots.raw import OPENING
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence

YesNo = Literal["yes", "no"]
ErrorType = Literal[
    "phrasal_verb", "idiom_of_element", "unrelated_idiom", "same_meaning", "invented", "other"
]
"""What a true positive names that does not name the PIE (section 5.2.1): a phrasal verb; another
idiom, which has an element of the sentence, has nothing to do with it, or means the same; an idiom
that does not exist, made of a word or chunk of the sentence; anything else, as a collocation."""
_HINT = "take the file that the run wrote, and fill in only the columns verdict and error_type"


class DetectionRun(NamedTuple):
    """One run of the study."""

    model: str
    setting: str
    seed: int


class ReviewCase(Frozen):
    """A sentence in which a model found an idiom: does the answer name the gold PIE?

    `gold` is the class of the sentence. In an idiomatic sentence "yes" means that the model was
    right for the right reason; in a distractor, that it gave the associated PIE a figurative
    meaning. `verdict` is empty until a person fills it in, and so is `error_type`, which sorts the
    idiomatic sentences with the verdict "no". `answer_key` ties both to the very answer that was
    judged.
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
    automatic_verdict: YesNo
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
            raise ValueError('error_type sorts idiomatic sentences with the verdict "no"')
        return self

    @property
    def run(self) -> DetectionRun:
        """The run that the case is of."""
        return DetectionRun(self.model, self.setting, self.seed)


COLUMNS = list(ReviewCase.model_fields)


def names_pie(sentence: IdiotsSentence, prediction: DetectionPrediction) -> bool:
    """Whether an answer found an idiom and, by the matching functions, means the sentence's PIE.

    In a distractor also an answer counts that quotes the words which play on the PIE. If the field
    `idiom` names nothing, `meaning` tells which one is explained. An answer that calls the
    expression literal found no idiom in it.
    """
    name, meaning = prediction.idiom or "", prediction.meaning or ""
    if not prediction.has_idiom or has_denying_comment(name) or find_views(meaning) == {"denies"}:
        return False
    if not normalize(name) or kind_of(name) in {"idioms", "expressions"} or parse_boolean(name):
        name = meaning
    named = normalize(name)
    begins = set(named.split()[:1]) - set(normalize(sentence.pie).split())
    if begins & ANSWERS.negations and named not in normalize(sentence.sentence):
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
    """Each sentence with its prediction, in the order of the sentences.

    Raises:
        UserError: a sentence without a prediction or the other way round.
    """
    by_id = {prediction.id: prediction for prediction in predictions}
    odd = sorted(by_id.keys() ^ {sentence.id for sentence in sentences})
    if odd or len(by_id) != len(predictions):
        raise UserError(
            f"sentences and predictions do not belong together ({(odd or ['a repeated id'])[0]})",
            hint="make the predictions again",
        )
    return [(sentence, by_id[sentence.id]) for sentence in sentences]


def review_cases(
    sentences: Sequence[IdiotsSentence],
    predictions: Sequence[DetectionPrediction],
    run: DetectionRun,
) -> list[ReviewCase]:
    """The cases of a run that a person must judge: all answers that found an idiom."""
    return [
        ReviewCase(
            **run._asdict(),
            sentence_id=sentence.id,
            sentence=sentence.sentence,
            gold_idiom=sentence.pie,
            gold="idiomatic" if sentence.is_idiomatic else "distractor",
            idiom=prediction.idiom or "",
            meaning=prediction.meaning or "",
            explanation=prediction.explanation or "",
            automatic_verdict="yes" if names_pie(sentence, prediction) else "no",
            answer_key=prediction.answer_key,
        )
        for sentence, prediction in paired(sentences, predictions)
        if prediction.has_idiom
    ]


def save_cases(cases: Iterable[ReviewCase], *, jsonl: str | Path, table: str | Path) -> None:
    """Write cases as JSONL and as CSV, both of which `read_cases` reads."""
    cases = list(cases)
    save_jsonl(jsonl, cases)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(case.model_dump() for case in cases)
    write_text(table, text.getvalue())


def read_cases(path: str | Path) -> list[ReviewCase]:
    """Read cases from JSONL, or from CSV where the name ends in .csv.

    Raises:
        UserError: another kind of file, other columns, a verdict that is not yes, no or empty, or
            a case that occurs twice; names file and line.
    """
    cases: list[ReviewCase] = []
    seen: set[tuple[DetectionRun, str]] = set()
    is_table = Path(path).suffix.lower() == ".csv"
    if not is_table and Path(path).suffix.lower() != ".jsonl":
        raise UserError("neither .csv nor .jsonl", where=path, hint="save the table as .csv")
    rows: Iterable[tuple[int, object]] = (
        read_table(path, COLUMNS, more=[], hint=_HINT)
        if is_table
        else (
            (number, line)
            for number, line in enumerate(read_text(path).split("\n"), start=1)
            if line.strip()
        )
    )
    for line, row in rows:
        where = f"{path}:{line}"
        case = validated(ReviewCase, row, where=where, hint=_HINT, is_json=not is_table)
        if (case.run, case.sentence_id) in seen:
            raise UserError(
                f"{case.sentence_id} of this run occurs twice", where=where, hint="remove one line"
            )
        seen.add((case.run, case.sentence_id))
        cases.append(case)
    return cases


def human_verdicts(
    cases: Iterable[ReviewCase],
    predictions: Iterable[DetectionPrediction],
    run: DetectionRun,
    *,
    where: str | Path = "",
) -> dict[str, ReviewCase]:
    """What people judged of one run, by sentence.

    Cases (of the file `where`) of other runs and those without a verdict are left out.

    Raises:
        UserError: a verdict on an answer that the run did not give.
    """
    answers = {prediction.id: prediction for prediction in predictions}
    verdicts: dict[str, ReviewCase] = {}
    for case in cases:
        if case.run != run or not case.verdict:
            continue
        answer = answers.get(case.sentence_id)
        if answer is None or answer.answer_key != case.answer_key or not answer.has_idiom:
            raise UserError(
                f"the verdict on {case.sentence_id} judges another answer of {run.model}",
                where=where,
                hint="judge the case anew or empty its verdict",
            )
        verdicts[case.sentence_id] = case
    return verdicts
