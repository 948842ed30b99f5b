"""From an answer to an object, always with a stated outcome.

An answer that cannot be read is never turned into an empty one: callers get `unparseable`,
`refused`, `truncated` or `error` and decide what that means for their measure.
"""

import ast
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from pieline.llm.answers import Answer


class Outcome(StrEnum):
    """What became of an answer."""

    OK = "ok"
    REPAIRED = "repaired"
    UNPARSEABLE = "unparseable"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    ERROR = "error"

    @property
    def is_readable(self) -> bool:
        """Whether the answer has a value."""
        return self in (Outcome.OK, Outcome.REPAIRED)


T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """An outcome and, if it is `ok` or `repaired`, the value.

    Attributes:
        outcome: what became of the answer.
        value: null unless the outcome is readable.
        reasoning: thoughts, whether the provider returned them apart or the text held them.
        reason: why there is no value, for people.
    """

    outcome: Outcome
    value: T | None = None
    reasoning: str | None = None
    reason: str = ""


def parse_object(answer: Answer, record: type[M]) -> Parsed[M]:
    """The last JSON object of the answer that has the required fields of `record`, as a `record`.

    Strictly written JSON gives `ok`; JSON that had to be repaired (quotes, commas, a missing
    closing brace; a Python dict) gives `repaired`. The object is then validated by pydantic in
    strict mode: a wrong type or value gives `unparseable`.
    """
    closed, text, reasoning = _read(answer)
    if closed is not None:
        return Parsed(closed.outcome, None, reasoning, closed.reason)
    required = {
        field.alias or name for name, field in record.model_fields.items() if field.is_required()
    }
    found, end = last_object(text, required)
    outcome = Outcome.OK
    # What comes after the last strict object may be a later, less well written one.
    repaired = repaired_object(text[end:], required)
    if repaired is not None:
        outcome, found = Outcome.REPAIRED, repaired
    if found is None:
        reason = f"no object with {', '.join(sorted(required))}"
        return Parsed(Outcome.UNPARSEABLE, None, reasoning, reason)
    try:
        # Through JSON: strict mode then accepts what JSON can say (a list for a tuple, a date).
        value = record.model_validate_json(json.dumps(found), strict=True)
    except (ValidationError, ValueError) as error:
        return Parsed(Outcome.UNPARSEABLE, None, reasoning, _first_problem(error))
    return Parsed(outcome, value, reasoning)


def parse_list(answer: Answer, key: str) -> Parsed[list[str]]:
    """The texts after the last `key:` of the answer, as in `idioms: [piss off, lose face]`.

    The form that ID10M-JAM's prompt asks for (its Figure 4) has a bare list in brackets, separated
    by commas. A bare list, a list of quoted texts and a JSON object with the key give `ok`;
    a list whose closing bracket is missing at the end of a line, or texts without brackets give
    `repaired`. An empty list in brackets is `ok` and empty; nothing at all is `unparseable`.
    """
    closed, text, reasoning = _read(answer)
    if closed is not None:
        return Parsed(closed.outcome, None, reasoning, closed.reason)
    marks = list(
        re.finditer(
            rf"(?<!\w)['\"*_]*{re.escape(key)}['\"*_]*\s*[:=][*_]*[ \t]*", text, re.IGNORECASE
        )
    )
    if not marks:
        return Parsed(Outcome.UNPARSEABLE, None, reasoning, f"no {key!r}")
    outcome, items = _list_at(text[marks[-1].end() :])
    if items is None:
        return Parsed(Outcome.UNPARSEABLE, None, reasoning, f"no list after {key!r}")
    return Parsed(outcome, items, reasoning)


def split_thoughts(text: str) -> tuple[str, str | None]:
    """Take `<think>...</think>` out of a text: the rest, and the thoughts (null if there are none).

    A closing tag without an opening one ends thoughts that began with the text (some chat
    templates write the opening tag themselves); an opening one without a closing one begins
    thoughts that never ended.
    """
    thoughts: list[str] = []
    before, closing, after = text.partition("</think>")
    if closing and "<think>" not in before:
        thoughts.append(before)
        text = after
    thoughts += re.findall(r"<think>(.*?)(?:</think>|\Z)", text, re.DOTALL)
    rest = re.sub(r"<think>.*?(?:</think>|\Z)", "", text, flags=re.DOTALL)
    return rest.strip() if thoughts else rest, "\n".join(map(str.strip, thoughts)) or None


def last_object(text: str, required: Collection[str]) -> tuple[dict[str, Any] | None, int]:
    """The last object in strict JSON within a text that has these keys, and where it ends.

    Of objects within one another the outermost that has the keys counts.
    """
    found: dict[str, Any] | None = None
    found_end = 0
    position = text.find("{")
    while position >= 0:
        try:
            value, end = _STRICT.raw_decode(text, position)
        except RecursionError:
            break  # thousands of braces within one another: no answer
        except ValueError:
            end = position + 1
        else:
            having = next(_having(value, required), None)
            if having is not None:
                found, found_end = having, end
        position = text.find("{", end)
    return found, found_end


def repaired_object(text: str, required: Collection[str]) -> dict[str, Any] | None:
    """The last object with these keys in a text that is nearly JSON, or a Python dict.

    Only a value that was written to its end counts: text that breaks off within a string does not.
    """
    start = text.find("{")
    if start < 0:
        return None
    from json_repair import repair_json

    stop = text.rfind("}") + 1
    piece = text[start:stop] if stop > start else text[start:].rstrip().removesuffix("```").rstrip()
    if stop <= start and not re.search(
        r"(?:[\]\"'”’\d]|true|false|null|none)$", piece, re.IGNORECASE
    ):
        return None
    try:
        return next(_having(ast.literal_eval(piece), required))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError, StopIteration):
        pass
    try:
        value = repair_json(piece, return_objects=True)
    except (ValueError, RecursionError):
        return None
    return next(_having(value, required), None)


def _read(answer: Answer) -> tuple[Parsed[None] | None, str, str | None]:
    """An outcome that needs no parsing (else null), the text without thoughts, the thoughts."""
    text, thoughts = split_thoughts(answer.text or "")
    reasoning = "\n".join(filter(None, [answer.reasoning, thoughts])) or None
    closed: Parsed[None] | None = None
    if answer.finish_reason == "length":
        closed = Parsed(Outcome.TRUNCATED, reason="the answer reached its longest length")
    elif answer.finish_reason in ("content_filter", "refusal") or answer.text is None:
        closed = Parsed(Outcome.REFUSED, reason=answer.refusal or "no text")
    return closed, text, reasoning


def _having(value: Any, required: Collection[str]) -> Iterator[dict[str, Any]]:
    """Objects within `value` that have the keys: the outermost, the last first."""
    if isinstance(value, dict):
        if all(key in value for key in required):
            yield value
            return
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in reversed(value):
            yield from _having(item, required)


def _list_at(text: str) -> tuple[Outcome, list[str] | None]:
    """The list that a text begins with."""
    if not text.lstrip().startswith("["):
        line = text.split("\n", 1)[0].strip().strip("`}*").rstrip(" .,")
        items = _items(line)
        return (Outcome.REPAIRED, items) if items else (Outcome.UNPARSEABLE, None)
    text = text.lstrip()
    try:
        value, _ = _STRICT.raw_decode(text)
        if all(isinstance(item, str) for item in value):
            return Outcome.OK, value
    except (ValueError, RecursionError):
        pass
    inside, bracket, _ = text[1:].partition("]")
    if not bracket:
        inside = inside.split("\n", 1)[0]
    if "[" in inside:
        return Outcome.UNPARSEABLE, None
    items = _items(inside)
    if bracket:
        return Outcome.OK, items
    return (Outcome.REPAIRED, items) if items else (Outcome.UNPARSEABLE, None)


def _items(text: str) -> list[str]:
    """Texts separated by commas, with or without quotes; commas within quotes separate nothing."""
    pieces = re.findall(r"""\s*("[^"]*"|'(?:[^']|'(?=\w))*'|[^,]+)\s*(?:,|$)""", text)
    stripped = (piece.strip().strip('"“”*').strip() for piece in pieces)
    unquoted = (re.sub(r"^'(.*)'$", r"\1", piece).strip() for piece in stripped)
    return [piece for piece in unquoted if piece]


def _first_problem(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_STRICT = json.JSONDecoder(parse_constant=_no_constant)
