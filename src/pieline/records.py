"""The records of every JSONL file between two rooms, and reading them with an error that helps."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from pieline.errors import UserError
from pieline.files import canonical_json, read_json, read_text, write_text

Usage = Literal["literal", "idiomatic", "simplification", "sense"]
QueryUsage = Literal["literal", "idiomatic"]
DistractorKind = Literal["whole_phrase", "parts", "other_role", "look_alike"]
"""How a distractor plays on its PIE (IdioTS, section 3.3): the whole phrase in its literal meaning,
parts of it, its words in another syntactic role, or something that only sounds like it."""

OutcomeName = Literal["ok", "repaired", "unparseable", "refused", "truncated", "error"]
"""What became of an answer (see `pieline.llm.parsing.Outcome`)."""

READABLE: frozenset[str] = frozenset({"ok", "repaired"})
"""Outcomes of answers that say something."""

R = TypeVar("R", bound=BaseModel)


class Record(BaseModel):
    """A line of a JSONL file: immutable, with exactly the fields it declares."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PieText(Record):
    """A text with a marked span that carries the meaning of a PIE (IdioLink, section 3.1).

    `pie` is the canonical form, `span` the words that carry its meaning in `sentence`, `subject`
    the domain, `is_gold` whether a person checked it.
    """

    id: str
    sentence: str
    pie: str
    span: str
    subject: str
    is_gold: bool

    @model_validator(mode="after")
    def _span_is_verbatim(self) -> Self:
        if not self.span or self.span not in self.sentence:
            raise ValueError(f"span {self.span!r} is not in its sentence")
        return self


class Document(PieText):
    """A document of the IdioLink index."""

    usage: Usage


class Query(PieText):
    """An IdioLink query: its PIE is used literally or idiomatically."""

    usage: QueryUsage


class IdiotsSentence(Record):
    """A sentence of IdioTS (section 3).

    `pie` is the idiom in canonical form, which an idiomatic sentence uses and on which a distractor
    plays; `distractor_kind` (section 3.3) is None for an idiomatic sentence and where nobody marked
    it; `translation` is the Spanish one.
    """

    id: str
    pie_id: str
    pie: str
    sentence: str
    translation: str
    is_idiomatic: bool
    distractor_kind: DistractorKind | None = None

    @model_validator(mode="after")
    def _only_distractors_have_a_kind(self) -> Self:
        if self.is_idiomatic and self.distractor_kind:
            raise ValueError("an idiomatic sentence has no distractor kind")
        return self


class DetectionPrediction(Record):
    """What a model said of one sentence of IdioTS (section 4.2).

    `has_idiom`, `idiom`, `meaning` and `explanation` are the four fields of its answer, all None
    unless the outcome is `ok` or `repaired`; `reason` says why there is none then. `answer_key` is
    the digest under which the answer is recorded.
    """

    id: str
    outcome: OutcomeName
    has_idiom: bool | None = None
    idiom: str | None = None
    meaning: str | None = None
    explanation: str | None = None
    reason: str = ""
    answer_key: str

    @model_validator(mode="after")
    def _readable_answers_decide(self) -> Self:
        if (self.has_idiom is None) == (self.outcome in READABLE):
            raise ValueError(f"outcome {self.outcome!r} with has_idiom {self.has_idiom!r}")
        return self


def explain(error: ValidationError) -> str:
    """One line for the first problem of a pydantic error: field and what is wrong with it."""
    first = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    given = f" (given: {first['input']!r})" if first["type"] == "literal_error" else ""
    more = f" and {error.error_count() - 1} more" if error.error_count() > 1 else ""
    return f"{field}: {message}{given}{more}" if field else f"{message}{more}"


def load_record(path: str | Path, record: type[R]) -> R:
    """Read a JSON file that a rule wrote.

    Raises:
        UserError: the file is missing or holds no such record; names the file.
    """
    try:
        return record.model_validate(read_json(path))
    except ValidationError as error:
        raise UserError(explain(error), where=path, mend="make it again") from None


def load_records(paths: Iterable[str | Path], record: type[R]) -> list[R]:
    """Read JSON files of one record each (see `load_record`)."""
    return [load_record(path, record) for path in paths]


def parse_record(text: str, record: type[R], *, option: str) -> R:
    """Read settings that a rule hands to its script as JSON.

    Args:
        text: the option's value.
        record: what it must be.
        option: its name on the command line.

    Raises:
        UserError: the text is no such record; names the option.
    """
    try:
        return record.model_validate_json(text)
    except ValidationError as error:
        mend = f"pass {', '.join(record.model_fields)} as JSON"
        raise UserError(explain(error), where=option, mend=mend) from None


def load_jsonl(path: str | Path, record: type[R]) -> list[R]:
    """Read a JSONL file of one record type; blank lines are not allowed.

    Raises:
        UserError: names file and line of the first line that is not such a record.
    """
    rows = []
    text = read_text(path)
    # Not splitlines: a sentence may hold one of Unicode's other line separators.
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, start=1):
        where = f"{path}:{number}"
        try:
            rows.append(record.model_validate_json(line))
        except ValidationError as error:
            mend = "correct this line or make the file again from its inputs"
            raise UserError(explain(error), where=where, mend=mend) from None
    return rows


def save_jsonl(path: str | Path, rows: Iterable[BaseModel]) -> None:
    """Write records as canonical JSON lines, atomically."""
    write_text(path, "".join(f"{canonical_json(row.model_dump(mode='json'))}\n" for row in rows))


def check_unique_ids(ids: Sequence[str], *, where: str | Path) -> None:
    """Raise a `UserError` that names the first id that stands more than once."""
    repeated = sorted(name for name, count in Counter(ids).items() if count > 1)
    if repeated:
        raise UserError(
            f"duplicate id {repeated[0]!r} ({len(repeated)} ids stand more than once)",
            where=where,
            mend="give every record an id of its own",
        )
