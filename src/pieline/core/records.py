"""The records of every JSONL file between two stages, and reading them with an error that helps."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_json, read_text, write_text

_MOST_FIELDS = 10
"""Fields that one error lists besides the first."""

R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")


def _one_word(text: str) -> str:
    if not text or " " in text or not text.isprintable():
        raise ValueError("should be one word, of characters that can be seen")
    return text


Id = Annotated[str, AfterValidator(_one_word)]
"""Name of a sentence or text: part of the lines of runs and of other programs' files."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=80)]
"""Name of a model or of a way of running one: part of paths and command lines."""


class Frozen(BaseModel):
    """Immutable, with exactly the fields it declares, and numbers that are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def canonical(self) -> str:
        """Canonical JSON, as rules hand it to scripts.

        With its defaults: they tell one kind of settings from another where a field takes either.
        """
        return canonical_json(self.model_dump(mode="json"))


class Record(Frozen):
    """A line of a JSONL file: no value of it is converted."""

    model_config = ConfigDict(strict=True)


def explain(error: ValidationError) -> str:
    """One line for the first problem of a pydantic error, with the fields of the others."""
    first, *others = error.errors(include_url=False, include_context=False)
    field = _field(first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    message = message.replace("a valid boolean, unable to interpret input", "true or false")
    kinds = ("literal_error", "bool_parsing")
    given = f" (given: {first['input']!r})" if first["type"] in kinds else ""
    fields = list(dict.fromkeys(_field(other["loc"]) for other in others))
    listed = ", ".join(fields[:_MOST_FIELDS]) + (", …" if len(fields) > _MOST_FIELDS else "")
    more = f" ({len(others)} more: {listed})" if others else ""
    return f"{field}: {message}{given}{more}" if field else f"{message}{more}"


def _field(location: Iterable[int | str]) -> str:
    return ".".join(map(str, location))


def validated(
    kind: type[T] | TypeAdapter[T],
    value: Any,
    *,
    where: str | Path,
    hint: str,
    is_json: bool = False,
) -> T:
    """A value as something that pydantic knows.

    Args:
        kind: what it should be.
        value: what was given.
        where: named in the error.
        hint: what the user should do about it.
        is_json: whether the value is JSON text, in which lists pass for tuples.

    Raises:
        UserError: it is no such thing; names the first field that is wrong.
    """
    adapter = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    try:
        return adapter.validate_json(value) if is_json else adapter.validate_python(value)
    except ValidationError as error:
        raise UserError(explain(error), where=where, hint=hint) from None


def load_record(path: str | Path, record: type[R]) -> R:
    """Read a JSON file that a rule wrote.

    Raises:
        UserError: the file is missing or holds no such record; names the file.
    """
    return validated(record, read_json(path), where=path, hint="make it again")


def load_records(paths: Iterable[str | Path], record: type[R]) -> list[R]:
    """Read JSON files of one record each (see `load_record`)."""
    return [load_record(path, record) for path in paths]


def load_jsonl(path: str | Path, record: type[R]) -> list[R]:
    """Read a JSONL file of one record type; blank lines are not allowed.

    Raises:
        UserError: names file and line of the first line that is not such a record.
    """
    text = read_text(path)
    # Not splitlines: a sentence may hold one of Unicode's other line separators.
    lines = text.removesuffix("\n").split("\n") if text else []
    hint = "correct this line or make the file again from its inputs"
    adapter = TypeAdapter(record)
    return [
        validated(adapter, line, where=f"{path}:{number}", hint=hint, is_json=True)
        for number, line in enumerate(lines, start=1)
    ]


def save_jsonl(path: str | Path, rows: Iterable[BaseModel]) -> None:
    """Write records as canonical JSON lines, atomically."""
    write_text(path, "".join(f"{canonical_json(row.model_dump(mode='json'))}\n" for row in rows))


def check_unique_ids(ids: Sequence[str], *, where: str | Path) -> None:
    """Raise a `UserError` that names the first id that occurs more than once."""
    repeated = sorted(name for name, count in Counter(ids).items() if count > 1)
    if repeated:
        raise UserError(
            f"duplicate id {repeated[0]!r} ({len(repeated)} ids occur more than once)",
            where=where,
            hint="give every record an id of its own",
        )
