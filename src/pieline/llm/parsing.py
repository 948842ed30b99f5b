"""Parse answers into objects, with an outcome and the rule that was applied.

For an unreadable answer, the result has no value but an outcome such as `unparseable`, `refused` or
`truncated`, and the callers decide how their metrics count each outcome.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from pieline.languages.denial import find_views
from pieline.llm.answers import FILTERED, Answer


class Outcome(StrEnum):
    """Outcome of parsing an answer.

    - `ok`: valid, in the requested format
    - `repaired`: close to the requested format
    - `unparseable`: a text in another format, or an ambiguous one
    - `empty`: no text, or only reasoning
    - `refused`: the model declined
    - `filtered`: the provider's filter rejected the request or the answer
    - `truncated`: the answer reached the maximum length
    - `tool_call`: tool calls instead of a text
    - `failed`: the provider reports that the generation failed

    Only answers with the outcome `ok` or `repaired` have a value. Providers bill answers with any
    outcome.
    """

    OK = "ok"
    REPAIRED = "repaired"
    UNPARSEABLE = "unparseable"
    EMPTY = "empty"
    REFUSED = "refused"
    FILTERED = "filtered"
    TRUNCATED = "truncated"
    TOOL_CALL = "tool_call"
    FAILED = "failed"

    @property
    def is_readable(self) -> bool:
        """Whether the answer has a value."""
        return self in (Outcome.OK, Outcome.REPAIRED)


T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """A parsed answer.

    Attributes:
        outcome: Outcome of parsing.
        value: Parsed value; None unless the outcome is `ok` or `repaired`.
        reason: Description of why there is no value; empty if there is one.
        rule: Description of the format that was read; empty if there is no value.
    """

    outcome: Outcome
    value: T | None = None
    reason: str = ""
    rule: str = ""


class Json(NamedTuple):
    """A JSON value, or a value close to JSON, in a text.

    Attributes:
        start, end: Position in the text.
        value: Parsed value; None if it could not be read.
        outcome: `ok` for strict JSON; `repaired`; `unparseable`; or `truncated` if the text ends
            before the value does.
    """

    start: int
    end: int
    value: Any
    outcome: Outcome


DUPLICATE = object()
"""Sentinel for the value of a key that occurs repeatedly in an object, with different values."""


def parse_object(answer: Answer, record: type[M]) -> Parsed[M]:
    """Parse the last JSON object of an answer that has the required fields of `record`.

    Strict JSON gives `ok`; JSON that had to be repaired (quotes, commas, missing closing brackets,
    a Python dict) gives `repaired`. The object is then validated by pydantic in strict mode: a
    wrong type or value gives `unparseable`. If the last object lacks more than closing brackets,
    the outcome is also `unparseable`, because that object may correct an earlier one.
    """
    text, unreadable = answer_text(answer)
    if unreadable:
        return unreadable
    required = sorted(
        field.alias or name for name, field in record.model_fields.items() if field.is_required()
    )
    fields, outcome = None, Outcome.UNPARSEABLE
    reason = f"no object with {', '.join(required)}"
    for piece in json_values(text, opening="{"):
        if piece.outcome is Outcome.TRUNCATED:
            value = _complete_and_parse(text[piece.start :])
            having = next(_objects_with_keys(value, required), None)
            fields, outcome = having, Outcome.REPAIRED
            reason = "the last object is truncated"
        elif (having := next(_objects_with_keys(piece.value, required), None)) is not None:
            fields, outcome = having, piece.outcome
    if fields is None:
        return Parsed(Outcome.UNPARSEABLE, reason=reason)
    try:
        # From JSON, strict mode accepts types that JSON lacks (a list for a tuple, a date).
        value = record.model_validate_json(json.dumps(fields), strict=True)
    except TypeError:
        return Parsed(Outcome.UNPARSEABLE, reason="a key twice, with different values")
    except (ValidationError, ValueError) as error:
        return Parsed(Outcome.UNPARSEABLE, reason=_first_problem(error))
    return Parsed(outcome, value, rule=f"object with {', '.join(required)}")


def answer_text(answer: Answer) -> tuple[str, Parsed[Any] | None]:
    """Return the text of an answer without its reasoning, and a `Parsed` if it is unreadable.

    The second value is None if the text is complete, not blank, and neither filtered nor refused.
    """
    text = decode_strings(without_thoughts(answer.text or ""))
    finish = answer.stop_reason
    is_blank = not text.strip()
    called = answer.tool_calls or finish in ("tool_calls", "function_call")
    for applies, outcome, reason in (
        (answer.failure, Outcome.FAILED, answer.failure),
        (answer.unread, Outcome.UNPARSEABLE, f"content of an unknown kind: {answer.unread}"),
        (finish == "length", Outcome.TRUNCATED, "the answer reached the maximum length"),
        (
            finish == "repetition",
            Outcome.TRUNCATED,
            "the model repeated itself",
        ),
        (finish == FILTERED, Outcome.FILTERED, "the provider filtered the answer"),
        (answer.refusal, Outcome.REFUSED, answer.refusal),
        (finish == "refusal", Outcome.REFUSED, "the model refused"),
        (is_blank and called, Outcome.TOOL_CALL, "the model called tools and returned no text"),
        (is_blank, Outcome.EMPTY, "no text"),
    ):
        if applies:
            return text, Parsed(outcome, reason=reason or "")
    return text, None


def without_thoughts(text: str) -> str:
    """Remove reasoning and special tokens from the text of an answer.

    Reasoning is text between tags such as `<think>` and `</think>` (see `_OPENING`), which may be
    nested, and all text before a channel for the final answer. If there is no opening tag before a
    closing tag, all text before the closing tag is reasoning, because some chat templates write the
    opening tag into the prompt. If an opening tag is never closed, all text after it is reasoning.
    The answer ends at the first token that ends a turn.
    """
    text = _CLOSING.sub("</think>", _FINAL.split(text)[-1])
    text = _OPENING.sub("<think>", text)
    kept, depth = "", 0
    for part in re.split("(</?think>)", text):
        if part == "<think>":
            depth += 1
        elif part == "</think>":
            kept = kept if depth else ""
            depth = max(0, depth - 1)
        elif not depth:
            answer, *next_turn = _TURN_END.split(_WRAPPER.sub("", part), maxsplit=1)
            kept += answer
            if next_turn:
                break
    return kept


def decode_strings(text: str) -> str:
    r"""Replace the JSON strings in a text that contain JSON by their content.

    Some gateways encode an answer twice: `"{\"idioms\": []}"`. Within other JSON, only objects are
    replaced.
    """
    bare = re.sub(r"\A\s*```\w*\s*|\s*```\s*\Z", "", text).strip()
    if '\\"' in bare and not re.search(r'(?<!\\)"', bare):  # without the quotes around it
        bare = f'"{bare}"'
    content = json_or_none(bare)
    if isinstance(content, str) and _STARTS_WITH_JSON.match(content):
        return content

    def decoded(string: re.Match[str]) -> str:
        content = json_or_none(string[0])
        value = json_or_none(content) if isinstance(content, str) else None
        before = text[: string.start()]
        is_outside = all(before.count(one) == before.count(other) for one, other in ("{}", "[]"))
        kinds = dict | list if is_outside else dict
        return str(content) if isinstance(value, kinds) else string[0]

    return _JSON_IN_STRING.sub(decoded, text)


def json_or_none(text: str) -> Any:
    """Parse a text that is entirely JSON; return None for other texts."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def json_values(text: str, position: int = 0, opening: str = "{[") -> Iterator[Json]:
    """Yield the outermost JSON objects and lists in a text, in order.

    An object begins with a brace and a key, and a list with a bracket and a value, so "{2}" is not
    an object. A list of only numbers, such as "[1]", is skipped as a reference. A value that is not
    strict JSON is repaired if it is closed. An unclosed value is `truncated`; the values inside it
    are not yielded, because its missing end could change their meaning.

    Args:
        text: Text of an answer.
        position: Start of the search.
        opening: Characters with which a value may begin.
    """
    starts = re.compile("|".join(_VALUE_STARTS[sign] for sign in opening), re.IGNORECASE)
    while begin := starts.search(text, position):
        piece = json_at(text, begin.start())
        if not (isinstance(piece.value, list) and _is_reference(piece.value)):
            yield piece
        position = piece.end


def json_at(text: str, start: int) -> Json:
    """Return the object or list that begins at a position in a text (see `json_values`)."""
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
    """Return the end of the value whose bracket opens at `start`, or 0 if it is never closed.

    With `quotes`, brackets inside double quotes are ignored.
    """
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
    """Parse a closed value that is almost JSON or is a Python literal; return None on failure.

    Apostrophes inside strings in single quotes do not end them (`['bull's eye']`). If it is unclear
    where such a string ends, or if the value would lack a word, the value is not parsed.
    """
    value = _python_value(piece)
    value = _json_value(piece) if value is None else value
    # Both parsers skip comments, and json_repair also other text.
    kept = _words(_texts(value))
    if _words(piece) <= kept:
        return value
    comments = _COMMENT.findall(_PYTHON_STRING.sub('""', piece))
    is_harmless = not any('"' in comment or find_views(comment) for comment in comments)
    return value if is_harmless and _words(_without_comments(piece)) <= kept else None


def _without_comments(piece: str) -> str:
    parts = re.split(f"({_PYTHON_STRING.pattern})", piece, flags=_PYTHON_STRING.flags)
    return "".join(
        part if place % 2 else _COMMENT.sub(" ", part) for place, part in enumerate(parts)
    )


def _python_value(piece: str) -> Any:
    # Python would join two strings without a comma between them.
    if re.search(r'""\s*""', _PYTHON_STRING.sub('""', piece)):
        return None
    try:
        return ast.literal_eval(piece)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _words(text: str) -> Counter[str]:
    """Count the words in a text, which may have escaped characters; JSON's words do not count."""
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), text)
    text = re.sub(r"\\[nrtbf]|\\", lambda escape: " " if len(escape[0]) > 1 else "", text)
    return Counter(re.findall(r"[^\W\d_]+", text)) - _LITERALS


def _texts(value: Any) -> str:
    """Return all strings in a value, separated by spaces."""
    if isinstance(value, dict):
        return " ".join(f"{_texts(key)} {_texts(item)}" for key, item in value.items())
    if isinstance(value, list | tuple | set):
        return " ".join(map(_texts, value))
    return value if isinstance(value, str) else ""


def _json_value(piece: str) -> Any:
    from json_repair import repair_json

    piece = _STRING.sub(_to_double_quotes, piece)
    rest = re.sub(r'"(?:\\.|[^"\\])*"', '""', piece, flags=re.DOTALL)
    # json_repair would read a comment in brackets as another string.
    if _STRAY_QUOTE.search(rest) or re.search(r'""\s*\(', rest):
        return None
    try:
        return repair_json(piece, return_objects=True)
    except (ValueError, RecursionError):
        return None


def _to_double_quotes(string: re.Match[str]) -> str:
    """Return a string of `_STRING` in double quotes, or unchanged if its end is unclear."""
    content = string["content"]
    if content is None or re.search(r"['’]\s*[,'‘]|,\s*['‘]", content):
        return string[0]
    return string["before"] + json.dumps(re.sub(r"\\(['’])", r"\1", content), ensure_ascii=False)


def _complete_and_parse(piece: str) -> Any:
    """Parse a value that lacks only closing brackets; return None if it lacks more.

    A text that ends inside a string or a word lacks more and is not repaired.
    """
    piece = piece.rstrip().removesuffix("```").rstrip()
    ended = re.search(r"(?:[\]}\"'”’\d]|true|false|null|none)$", piece, re.IGNORECASE)
    return _repaired(piece) if ended and piece.count('"') % 2 == 0 else None


def _objects_with_keys(value: Any, required: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the outermost objects in `value` that have all required keys, last first."""
    if isinstance(value, dict):
        if all(key in value for key in required):
            yield value
            return
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in reversed(value):
            yield from _objects_with_keys(item, required)


def _is_reference(value: list[Any]) -> bool:
    return bool(value) and all(type(item) in (int, float) for item in value)


def _first_problem(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _mark_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        fields[key] = value if fields.get(key, value) == value else DUPLICATE
    return fields


_LITERALS = Counter(dict.fromkeys(("true", "false", "null", "True", "False", "None"), 1 << 30))
_STRICT = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_mark_duplicates)
_REASONING = r"[a-z:_]*(?:think|thought|reason|reflect|analysis|scratchpad|rationale)[a-z_]*"
_OPENING = re.compile(
    rf"""
    (?:(?:
        <\|?{_REASONING}(?:\s[^<>]*)?\|?> | ◁think▷ | (?-i:\[THINK(?:ING)?\]) | <\|inner_prefix\|>
        | <\|channel\|?>[^<]*(?:<\|constrain\|>[^<]*)?(?:<\|message\|>)?
        | \A\s*(?:here(?:'s|\ is)\ my\ thought\ process: | analysis(?-i:(?=[A-Z])))
    )\s*)+  # repeated if both the chat template and the server write it
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Beginnings of reasoning in current models: tags (`<think>`, `<seed:think>`, `[THINK]`,
`<|begin_of_thought|>`), and the channels of gpt-oss with and without special tokens."""
_CLOSING = re.compile(
    rf"""
    <\|?(?:/|end_(?:of_)?){_REASONING}\|?> | ◁/think▷ | (?-i:\[/THINK(?:ING)?\])
    | <\|inner_suffix\|> | <channel\|> | ^here(?:'s|\ is)\ my\ response:
    | ^\.\.\.\ ?done\ thinking\.
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_FINAL = re.compile(
    r"""
    <\|channel\|>\s*final\b\s*(?:<\|constrain\|>\s*\w+\s*)?(?:<\|message\|>)?
    | \A\s*analysis(?=[A-Z]).*?assistantfinal | \[BEGIN\ FINAL\ RESPONSE\]
    """,
    re.DOTALL | re.VERBOSE,
)
"""Marks after which only the answer follows."""
_WRAPPER = re.compile(
    r"""
    <\|(?:begin|start|end)_(?:of_)?(?:answer|box|response|solution)\|>
    | \A\s*<details\ type="reasoning"[^>]*>.*?</details>
    | \A(?:\s*(?:
        <[|｜](?:(?:im_)?start\w*|begin\w*|end_header_id|message|assistant|bos|chatbot_token)[|｜]>
        | <s> | <bos> | <start_of_turn>
    )(?:(?:assistant|model)\b)?)+
    """,
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
"""Special tokens around an answer or at its start, and the reasoning blocks of Open WebUI."""
_TURN_END = re.compile(
    r"""
    <[|｜][^<>|｜\n]{1,40}[|｜]> | </s> | <eos> | <(?:end|start)_of_turn> | <turn\|> | <\|turn>
    | \[/?INST\] | \[EOS\] | \[\|endofturn\|\] | \[e~\[ | \[END\ FINAL\ RESPONSE\]
    """,
    re.VERBOSE,
)
_STARTS_WITH_JSON = re.compile(r"\s*(?:```\w*\s*)?[\[{]")
_JSON_IN_STRING = re.compile(r'"\s*[\[{](?:\\.|[^"\\])*"', re.DOTALL)
_MARKS = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_COMMENT = re.compile(r"(?://|\#)[^\n]*|/\*.*?\*/", re.DOTALL)
_PYTHON_STRING = re.compile(r""" "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' """, re.DOTALL | re.VERBOSE)
_STRING = re.compile(
    r"""
    "(?:\\.|[^"\\])*"
    | (?P<before>[\[{,:]\s*) (?:['‘‚]|(?P<double>[“„«]))
    (?P<content>(?:\\.|[^\\])*?)
    (?(double)[”“»]|['’‘])
    (?=\s*(?:[\]}:]|,\s*(?:["'‘‚“„«\[{\]}]|-?\d|(?:true|false|null|none)\b|\w+\s*:)))
    """,
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
"""A string in double quotes, or one in other quotes before what can follow a string in JSON."""
_STRAY_QUOTE = re.compile(r"(?<!\w)['‘’‚]|['‘’](?!\w)")
_VALUE_STARTS = {
    "{": r"""\{(?=\s*(?:\}|["'“”„‘’«]?[^\W\d][\w -]*["'“”‘’»]?\s*:|["“][^"“”{}]*\Z|\Z))""",
    "[": r"""\[(?=\s*(?:[\]\[{"'“”„‘’«]|-?\d|(?:null|none|true|false)\b|\Z))""",
}
