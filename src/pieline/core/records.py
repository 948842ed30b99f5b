"""Validate, read and write records in JSON and JSONL files."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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

from pieline.core.errors import UserError, pluralize, suggest_name
from pieline.core.files import canonical_json, read_json, read_text, write_text
from pieline.core.texts import nfc

_MOST_FIELDS = 10
"""Maximum number of further invalid fields that an error message lists."""

R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")


def _check_word(text: str) -> str:
    if not text or " " in text or not text.isprintable():
        raise ValueError("should be one word of printable characters")
    return nfc(text)


Id = Annotated[str, AfterValidator(_check_word)]
"""Id of a sentence or text: a word in NFC, because TREC rankings separate fields by spaces."""


def _check_line(text: str) -> str:
    if len(text.splitlines()) != 1 or not text.strip():
        raise ValueError("should be one line of text")
    return text


Line = Annotated[str, AfterValidator(_check_line)]
"""Text without line breaks, for tables and figures."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=80)]
"""Name of a model or setting that is safe in paths and on command lines."""


class Frozen(BaseModel):
    """Immutable pydantic model that rejects unknown fields, NaN and infinity."""

    # A process uses few of the classes that it imports, so each is built when it is first used.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    def canonical(self) -> str:
        """Return the fields as canonical JSON, which rules pass to scripts.

        The JSON includes default values, because in a field that accepts several classes, a default
        value may identify the class.
        """
        return canonical_json(self.model_dump(mode="json"))


class Record(Frozen):
    """A record of a JSON or JSONL file, validated without type conversion."""

    model_config = ConfigDict(strict=True)


def explain(error: ValidationError, known: Collection[str] = ()) -> str:
    """Describe a validation error of pydantic in one line.

    The line contains the message for the first invalid field, and the names of the other invalid
    fields.

    Args:
        error: The validation error.
        known: Names of the record's fields. If a field is missing and the input has an unknown
            field with a similar name, the line suggests the unknown field.
    """
    first, *further_errors = error.errors(include_url=False, include_context=False)
    field = _dotted_path(first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    message = _EXPECTED_CLASS.sub("an object with named fields", message)
    message = message.replace("a valid boolean, unable to interpret input", "true or false")
    remarks: list[str] = []
    if known and first["type"] == "missing" and isinstance(first["input"], Mapping):
        unknown_fields = [name for name in first["input"] if name not in known]
        remarks.append(suggest_name(field, unknown_fields))
    if field and first["type"] in ("literal_error", "bool_parsing"):
        remarks.append(f" (given: {first['input']!r})")
    if further_errors:
        paths = list(dict.fromkeys(_dotted_path(further["loc"]) for further in further_errors))
        ellipsis = ", …" if len(paths) > _MOST_FIELDS else ""
        names = ", ".join(paths[:_MOST_FIELDS])
        remarks.append(f" ({len(further_errors)} more: {names}{ellipsis})")
    description = "".join([message, *remarks])
    return f"{field}: {description}" if field else description


_EXPECTED_CLASS = re.compile(
    r"a (?:valid )?dictionary or (?:an )?instance of [\w.]+|an instance of [\w.]+"
)
"""Parts of pydantic's messages that name the class of a record."""


def _dotted_path(location: Iterable[int | str]) -> str:
    """Return the location of a validation error as a dotted path of fields and list positions.

    Omits the names of classes and types that pydantic adds to locations in unions.
    """
    class_names = {record_class.__name__ for record_class in _subclasses(BaseModel)}
    parts = [str(part) for part in location]
    return ".".join(part for part in parts if part not in class_names and "[" not in part)


def _subclasses(base: type) -> Iterator[type]:
    """Yield all direct and indirect subclasses of a class."""
    subclass: type
    for subclass in base.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def validated(
    kind: type[T] | TypeAdapter[T],
    value: Any,
    *,
    where: str | Path,
    hint: str,
    is_json: bool = False,
) -> T:
    """Validate a value and return the result, which has the expected type.

    Args:
        kind: Expected type, or a `TypeAdapter` of the expected type.
        value: Value to validate.
        where: Location for the error message.
        hint: Hint for the error message.
        is_json: Whether the value is JSON text. Arrays in JSON are also accepted for tuples.

    Raises:
        UserError: The value is invalid; the message states the first invalid field.
    """
    adapter = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    try:
        return adapter.validate_json(value) if is_json else adapter.validate_python(value)
    except ValidationError as error:
        field_names = getattr(kind, "model_fields", ())
        raise UserError(explain(error, field_names), where=where, hint=hint) from None


def load_record(path: str | Path, record_class: type[R]) -> R:
    """Read a record from a JSON file that a rule wrote.

    Raises:
        UserError: The file is missing or invalid.
    """
    return validated(record_class, read_json(path), where=path, hint="make it again")


def load_records(paths: Iterable[str | Path], record_class: type[R]) -> list[R]:
    """Return the record in each JSON file, in the order of the paths (see `load_record`)."""
    return [load_record(path, record_class) for path in paths]


def load_jsonl(path: str | Path, record_class: type[R]) -> list[R]:
    """Read the records of a JSONL file, which must not contain blank lines.

    Raises:
        UserError: The file cannot be read, or a line is invalid; the message states the location.
    """
    text = read_text(path)
    # splitlines would also split at Unicode line separators within a sentence.
    lines = text.removesuffix("\n").split("\n") if text else []
    if text.lstrip().startswith("[") and text.rstrip().endswith("]"):
        hint = "write one JSON object per line, without brackets and commas around them"
        raise UserError("a JSON array instead of lines", where=path, hint=hint)
    return list(_records(lines, record_class, path))


def iterate_jsonl(path: str | Path, record_class: type[R]) -> Iterator[R]:
    """Yield the records of a JSONL file that a rule wrote, and hold only one of them in memory.

    Raises:
        UserError: The file cannot be read, or a line is invalid; the message states the location.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="\n") as stream:
            lines = (line.removesuffix("\n") for line in stream)
            yield from _records(lines, record_class, path)
    except (OSError, UnicodeDecodeError):
        read_text(path)  # raises the error with the location
        raise


def _records(lines: Iterable[str], record_class: type[R], path: str | Path) -> Iterator[R]:
    """Yield the record of each line; raise a `UserError` with the location for an invalid line."""
    hint = "correct this line or make the file again from its inputs"
    adapter = TypeAdapter(record_class)
    for number, line in enumerate(lines, start=1):
        yield validated(adapter, line, where=f"{path}:{number}", hint=hint, is_json=True)


def save_jsonl(path: str | Path, rows: Iterable[BaseModel]) -> None:
    """Write records as lines of canonical JSON, atomically."""
    write_text(path, "".join(f"{canonical_json(row.model_dump(mode='json'))}\n" for row in rows))


def check_unique_ids(ids: Sequence[str], *, where: str | Path) -> None:
    """Raise a `UserError` if an id occurs more than once; the message names one such id."""
    duplicates = sorted(id_ for id_, occurrences in Counter(ids).items() if occurrences > 1)
    if duplicates:
        raise UserError(
            f"duplicate id {duplicates[0]!r} ({len(duplicates)} ids occur more than once)",
            where=where,
            hint="give each record a unique id",
        )


def check_ids(
    line_of_id: dict[str, int], ids: Sequence[str], things: str, *, where: str | Path
) -> None:
    """Raise a `UserError` if an id is unknown or missing; the message contains counts and examples.

    Args:
        line_of_id: Line number of each id in the file.
        ids: Expected ids.
        things: Plural noun for the error message, such as "sentences".
        where: Path of the file.
    """
    expected = set(ids)
    unknown = [id_ for id_ in line_of_id if id_ not in expected]
    missing = [id_ for id_ in ids if id_ not in line_of_id]
    problems = []
    if unknown:
        problems.append(f"{pluralize(len(unknown), 'unknown id')}, such as {unknown[0]!a}")
    if missing:
        problems.append(
            f"no prediction for {len(missing)} of {len(ids)} {things}, such as {missing[0]!a}"
        )
    if problems:
        line_suffix = f":{line_of_id[unknown[0]]}" if unknown else ""
        # If no id is missing, the unknown ids may be of sentences that `limit` excludes.
        limit_hint = "" if missing else ", of which the setting `limit` keeps only the first"
        hint = f"predict the {things} of the dataset{limit_hint}"
        raise UserError("; ".join(problems), where=f"{where}{line_suffix}", hint=hint)
