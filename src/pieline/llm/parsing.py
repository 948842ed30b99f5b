"""From an answer to an object, always with a stated outcome and the rule that read it.

An answer that cannot be read is never turned into one that says nothing: callers get `unparseable`,
`refused`, `truncated`, ... and decide what that means for their measure.
"""

import ast
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from pieline.llm.answers import FILTERED, Answer


class Outcome(StrEnum):
    """Outcome of an answer; a provider bills each of them.

    `ok` was written as asked and `repaired` nearly so. All others have no value: `unparseable` has
    a text of another form, `empty` has none (or only thoughts), `refused` is the model's and
    `filtered` the provider's refusal, `truncated` reached the longest length, and `tool_call` has
    calls of tools in place of a text.
    """

    OK = "ok"
    REPAIRED = "repaired"
    UNPARSEABLE = "unparseable"
    EMPTY = "empty"
    REFUSED = "refused"
    FILTERED = "filtered"
    TRUNCATED = "truncated"
    TOOL_CALL = "tool_call"

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
        reason: why there is no value, for people.
        rule: the form that was read, for people; empty if there is no value.
    """

    outcome: Outcome
    value: T | None = None
    reason: str = ""
    rule: str = ""


class Json(NamedTuple):
    """A value in JSON, or nearly JSON, within a text.

    Attributes:
        start, end: where it stands.
        value: null also where it could not be read.
        outcome: `ok` if it is strict JSON, `repaired`, `unparseable`, or `truncated` if the text
            ends within it.
    """

    start: int
    end: int
    value: Any
    outcome: Outcome


TWICE = object()
"""The value of a key that an object has twice, with different values."""


def parse_object(answer: Answer, record: type[M]) -> Parsed[M]:
    """Parse the last JSON object of an answer that has the required fields of `record`.

    Strictly written JSON gives `ok`; JSON that had to be repaired (quotes, commas, a missing
    closing brace; a Python dict) gives `repaired`. The object is then validated by pydantic in
    strict mode: a wrong type or value gives `unparseable`. So does a last object that breaks off:
    it may have taken back what the one before it says.
    """
    text, unread = answer_text(answer)
    if unread:
        return unread
    required = sorted(
        field.alias or name for name, field in record.model_fields.items() if field.is_required()
    )
    fields, outcome = None, Outcome.UNPARSEABLE
    reason = f"no object with {', '.join(required)}"
    for piece in json_values(text, opening="{"):
        if piece.outcome is Outcome.TRUNCATED:
            value = _without_last_braces(text[piece.start :])
            having = next(_having(value, required), None)
            fields, outcome = having, Outcome.REPAIRED
            reason = "the last object breaks off"
        elif (having := next(_having(piece.value, required), None)) is not None:
            fields, outcome = having, piece.outcome
    if fields is None:
        return Parsed(Outcome.UNPARSEABLE, reason=reason)
    try:
        # Through JSON: strict mode then accepts what JSON can say (a list for a tuple, a date).
        value = record.model_validate_json(json.dumps(fields), strict=True)
    except TypeError:
        return Parsed(Outcome.UNPARSEABLE, reason="a key twice, with different values")
    except (ValidationError, ValueError) as error:
        return Parsed(Outcome.UNPARSEABLE, reason=_first_problem(error))
    return Parsed(outcome, value, rule=f"object with {', '.join(required)}")


def answer_text(answer: Answer) -> tuple[str, Parsed[Any] | None]:
    """Return an answer's text without thoughts, and its outcome if that cannot be read."""
    text = without_thoughts(answer.text or "")
    finish = answer.finish_reason
    is_blank = not text.strip()
    called = answer.tool_calls or finish in ("tool_calls", "function_call")
    for applies, outcome, reason in (
        (finish == "length", Outcome.TRUNCATED, "the answer reached its longest length"),
        (finish == FILTERED, Outcome.FILTERED, "the provider filtered the answer"),
        (answer.refusal, Outcome.REFUSED, answer.refusal),
        (finish == "refusal", Outcome.REFUSED, "the model refused"),
        (is_blank and called, Outcome.TOOL_CALL, "tools were called and nothing was said"),
        (is_blank, Outcome.EMPTY, "no text"),
    ):
        if applies:
            return text, Parsed(outcome, reason=reason or "")
    return text, None


def without_thoughts(text: str) -> str:
    """Remove `<think>...</think>` from a text.

    A closing tag without an opening one ends thoughts that began with the text (some chat
    templates write the opening tag themselves); an opening one without a closing one begins
    thoughts that never ended.
    """
    before, closing, after = text.partition("</think>")
    if closing and "<think>" not in before:
        text = after
    return re.sub(r"<think>.*?(?:</think>|\Z)", "", text, flags=re.DOTALL)


def json_values(text: str, position: int = 0, opening: str = "{[") -> Iterator[Json]:
    """Yield the outermost JSON objects and lists of a text that is no JSON itself, in order.

    An object begins with a brace and a key, a list with a bracket and a value, so that neither
    "see [1]" nor "{2}" is one; a list of numbers only is a reference. What is not strict JSON is
    repaired if it is closed. The last value may be one that is not (`truncated`); nothing within it
    is looked for, because what its end would say of it is not known.

    Args:
        text: of an answer.
        position: where to begin.
        opening: the signs that a value may begin with.
    """
    starts = re.compile("|".join(_BEGINS[sign] for sign in opening), re.IGNORECASE)
    while begin := starts.search(text, position):
        piece = json_at(text, begin.start())
        if not (isinstance(piece.value, list) and _is_reference(piece.value)):
            yield piece
        position = piece.end


def json_at(text: str, start: int) -> Json:
    """Return the object or list that begins at a position of a text (see `json_values`)."""
    try:
        value, end = _STRICT.raw_decode(text, start)
    except (ValueError, RecursionError):
        end = _closing(text, start, quotes=True) or _closing(text, start, quotes=False)
    else:
        return Json(start, end, value, Outcome.OK)
    if not end:
        return Json(start, len(text), None, Outcome.TRUNCATED)
    value = _repaired(text[start:end])
    readable = isinstance(value, dict if text[start] == "{" else list)
    outcome = Outcome.REPAIRED if readable else Outcome.UNPARSEABLE
    return Json(start, end, value if readable else None, outcome)


def _closing(text: str, start: int, *, quotes: bool) -> int:
    """Return where the bracket at a position is closed, 0 if nowhere; `quotes` hide brackets."""
    depth, quoted = 0, False
    for mark in _MARKS.finditer(text, start):
        sign = mark[0]
        if sign == '"':
            quoted = quotes and not quoted
        elif not quoted and len(sign) == 1:
            depth += 1 if sign in "{[" else -1
            if depth == 0:
                return mark.end()
    return 0


def _repaired(piece: str) -> Any:
    """Parse a closed value that is nearly JSON, or Python; null if it is neither."""
    try:
        return ast.literal_eval(piece)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        pass
    from json_repair import repair_json

    try:
        return repair_json(piece, return_objects=True)
    except (ValueError, RecursionError):
        return None


def _without_last_braces(piece: str) -> Any:
    """Parse a value that lacks only closing brackets; null if it lacks more.

    Text that breaks off within a string or a word was not written to its end.
    """
    piece = piece.rstrip().removesuffix("```").rstrip()
    ended = re.search(r"(?:[\]}\"'”’\d]|true|false|null|none)$", piece, re.IGNORECASE)
    return _repaired(piece) if ended and piece.count('"') % 2 == 0 else None


def _having(value: Any, required: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the outermost objects within `value` that have the keys, the last first."""
    if isinstance(value, dict):
        if all(key in value for key in required):
            yield value
            return
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in reversed(value):
            yield from _having(item, required)


def _is_reference(value: list[Any]) -> bool:
    return bool(value) and all(type(item) in (int, float) for item in value)


def _first_problem(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        fields[key] = value if fields.get(key, value) == value else TWICE
    return fields


_STRICT = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_once)
_MARKS = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_BEGINS = {
    "{": r"""\{(?=\s*(?:\}|["'“”‘’]?[^\W\d][\w -]*["'“”‘’]?\s*:|["“][^"“”{}]*\Z|\Z))""",
    "[": r"""\[(?=\s*(?:[\]\[{"'“”‘’]|-?\d|(?:null|none|true|false)\b|\Z))""",
}
