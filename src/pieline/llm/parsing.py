"""Parse answers into objects, and report the outcome of parsing and the rule that was applied.

An unreadable answer has no value. Its outcome states why, for example `unparseable`, `refused` or
`truncated`, and the callers decide how their metrics count each outcome.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
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
    - `unparseable`: a text in another format, or an ambiguous text
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
"""Sentinel for the value of a key that occurs in an object repeatedly, with different values."""


def parse_object(answer: Answer, record_type: type[M]) -> Parsed[M]:
    """Parse an answer's last JSON object that has the required fields of `record_type`.

    The outcome is `ok` for strict JSON, and `repaired` for an object with wrong quotes or commas,
    without closing brackets, or in Python's notation. The outcome is `unparseable` if a field has a
    wrong type or value according to pydantic's strict mode. The outcome is also `unparseable` if
    the last object lacks more than closing brackets, because that object may correct an earlier
    object.
    """
    text, unreadable = answer_text(answer)
    if unreadable:
        return unreadable
    required = sorted(
        field.alias or name
        for name, field in record_type.model_fields.items()
        if field.is_required()
    )
    fields, outcome = None, Outcome.UNPARSEABLE
    reason = f"no object with {', '.join(required)}"
    for piece in json_values(text, opening="{"):
        if piece.outcome is Outcome.TRUNCATED:
            completed = _complete_and_parse(text[piece.start :])
            # Replaces an earlier object even if there are no fields.
            fields, outcome = _last_object_with_keys(completed, required), Outcome.REPAIRED
            reason = "the last object is truncated"
        else:
            fields_of_piece = _last_object_with_keys(piece.value, required)
            if fields_of_piece is not None:
                fields, outcome = fields_of_piece, piece.outcome
    if fields is None:
        return Parsed(Outcome.UNPARSEABLE, reason=reason)
    try:
        # Strict mode accepts a list for a tuple, and a text for a date, only when it reads JSON.
        value = record_type.model_validate_json(json.dumps(fields), strict=True)
    except TypeError:
        return Parsed(Outcome.UNPARSEABLE, reason="a key twice, with different values")
    except (ValidationError, ValueError) as error:
        return Parsed(Outcome.UNPARSEABLE, reason=_first_problem(error))
    return Parsed(outcome, value, rule=f"object with {', '.join(required)}")


def answer_text(answer: Answer) -> tuple[str, Parsed[Any] | None]:
    """Return the text of an answer without the reasoning, and a `Parsed` if it is unreadable.

    The second value is None if the text is complete, not blank, and neither filtered nor refused.
    """
    text = decode_strings(without_thoughts(answer.text or ""))
    stop_reason = answer.stop_reason
    called_tools = answer.tool_calls or stop_reason in ("tool_calls", "function_call")
    # The first reason that applies decides, whether or not there is a text.
    if answer.failure:
        outcome, reason = Outcome.FAILED, answer.failure
    elif answer.unread:
        outcome, reason = Outcome.UNPARSEABLE, f"content of an unknown kind: {answer.unread}"
    elif stop_reason == "length":
        outcome, reason = Outcome.TRUNCATED, "the answer reached the maximum length"
    elif stop_reason == "repetition":
        outcome, reason = Outcome.TRUNCATED, "the model repeated itself"
    elif stop_reason == FILTERED:
        outcome, reason = Outcome.FILTERED, "the provider filtered the answer"
    elif answer.refusal:
        outcome, reason = Outcome.REFUSED, answer.refusal
    elif stop_reason == "refusal":
        outcome, reason = Outcome.REFUSED, "the model refused"
    elif text.strip():
        return text, None
    elif called_tools:
        outcome, reason = Outcome.TOOL_CALL, "the model called tools and returned no text"
    else:
        outcome, reason = Outcome.EMPTY, "no text"
    return text, Parsed(outcome, reason=reason)


def without_thoughts(text: str) -> str:
    """Remove reasoning and special tokens from the text of an answer.

    Reasoning is text between tags such as `<think>` and `</think>` (see `_OPENING`), which may be
    nested, and all text before a channel for the final answer. If a closing tag has no opening tag,
    all text before the closing tag is reasoning, because some chat templates write the opening tag
    into the prompt. If an opening tag is never closed, all text after that tag is reasoning. The
    answer ends at the first token that ends a turn.
    """
    final_text = _FINAL.split(text)[-1]
    tagged_text = _OPENING.sub("<think>", _CLOSING.sub("</think>", final_text))
    answer_so_far, open_tags = "", 0
    for piece in re.split("(</?think>)", tagged_text):
        if piece == "<think>":
            open_tags += 1
        elif piece == "</think>" and open_tags:
            open_tags -= 1
        elif piece == "</think>":  # the opening tag is in the prompt
            answer_so_far = ""
        elif not open_tags:
            visible_text = _WRAPPER.sub("", piece)
            part_of_answer, *next_turn = _TURN_END.split(visible_text, maxsplit=1)
            answer_so_far += part_of_answer
            if next_turn:
                break
    return answer_so_far


def decode_strings(text: str) -> str:
    r"""Replace each JSON string that itself contains JSON by the content of the string.

    Some gateways encode an answer twice: `"{\"idioms\": []}"`. A string inside other JSON is
    replaced only if its content is an object.
    """
    # The entire text may be one encoded string, perhaps in a code block.
    whole = re.sub(r"\A\s*```\w*\s*|\s*```\s*\Z", "", text).strip()
    # An encoded text may lack the quotes around it, so that every quote in the text is escaped.
    if '\\"' in whole and not re.search(r'(?<!\\)"', whole):
        whole = f'"{whole}"'
    whole_content = json_or_none(whole)
    if isinstance(whole_content, str) and _STARTS_WITH_JSON.match(whole_content):
        return whole_content

    def decode(string: re.Match[str]) -> str:
        content = json_or_none(string[0])
        if not isinstance(content, str):
            return string[0]
        value = json_or_none(content)
        is_outside_json = _has_balanced_brackets(text[: string.start()])
        is_replaced = isinstance(value, dict) or (isinstance(value, list) and is_outside_json)
        return content if is_replaced else string[0]

    return _JSON_IN_STRING.sub(decode, text)


def _has_balanced_brackets(text: str) -> bool:
    return text.count("{") == text.count("}") and text.count("[") == text.count("]")


def json_or_none(text: str) -> Any:
    """Parse a text that is a JSON value and nothing else; return None for other texts."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def json_values(text: str, position: int = 0, opening: str = "{[") -> Iterator[Json]:
    """Yield the outermost JSON objects and lists in a text, in order.

    An object begins with a brace and a key, and a list with a bracket and a value, so "{2}" is not
    an object. A list of only numbers, such as "[1]", is skipped as a reference. A value that is not
    strict JSON is repaired if it is closed. An unclosed value is `truncated`. The values inside an
    unclosed value are not yielded, because the missing end could change their meaning.

    Args:
        text: Text of an answer.
        position: Start of the search.
        opening: Characters with which a value may begin.
    """
    starts = re.compile("|".join(_VALUE_STARTS[sign] for sign in opening), re.IGNORECASE)
    while match := starts.search(text, position):
        piece = json_at(text, match.start())
        is_list = isinstance(piece.value, list)
        if not (is_list and _is_reference(piece.value)):
            yield piece
        position = piece.end


def json_at(text: str, start: int) -> Json:
    """Return the object or list that begins at a position in a text (see `json_values`)."""
    with suppress(ValueError, RecursionError):
        value, end = _STRICT.raw_decode(text, start)
        return Json(start, end, value, Outcome.OK)
    # An unbalanced quote hides the closing bracket, so search again without regard to quotes.
    end = _end_of_value(text, start, skip_quoted=True)
    end = end or _end_of_value(text, start, skip_quoted=False)
    if not end:
        return Json(start, len(text), None, Outcome.TRUNCATED)
    value = _repair(text[start:end])
    expected_type = dict if text[start] == "{" else list
    if not isinstance(value, expected_type):
        return Json(start, end, None, Outcome.UNPARSEABLE)
    return Json(start, end, value, Outcome.REPAIRED)


def _end_of_value(text: str, start: int, *, skip_quoted: bool) -> int:
    """Return the end of the value whose bracket opens at `start`; 0 if the value is never closed.

    Args:
        text: Text of an answer.
        start: Position of the opening bracket.
        skip_quoted: Whether brackets inside double quotes are ignored.
    """
    depth, is_quoted = 0, False
    for mark in _MARKS.finditer(text, start):
        sign = mark[0]
        is_escape = sign.startswith("\\")
        if sign == '"':
            is_quoted = skip_quoted and not is_quoted
        elif not is_quoted and not is_escape:
            depth += 1 if sign in "{[" else -1
            if depth == 0:
                return mark.end()
    return 0


def _repair(piece: str) -> Any:
    """Parse a closed value that is almost JSON or is a Python literal; return None on failure.

    Apostrophes inside strings in single quotes do not end them (`['bull's eye']`). If it is unclear
    where such a string ends, or if the value would lack a word of `piece`, the value is not parsed.
    """
    value = _parse_python(piece)
    if value is None:
        value = _parse_repaired_json(piece)
    # Both parsers skip comments, and json_repair also skips other text.
    words_of_value = _count_words(_join_strings(value))
    if _count_words(piece) <= words_of_value:
        return value
    # A comment may be lost, unless it contains a string or states what is an idiom.
    comments = _COMMENT.findall(_PYTHON_STRING.sub('""', piece))
    comments_are_harmless = not any('"' in comment or find_views(comment) for comment in comments)
    lacks_only_comments = _count_words(_without_comments(piece)) <= words_of_value
    return value if comments_are_harmless and lacks_only_comments else None


def _without_comments(piece: str) -> str:
    """Replace each comment outside of strings by a space."""
    # With a group, the result alternates between other text and strings.
    split = re.split(f"({_PYTHON_STRING.pattern})", piece, flags=_PYTHON_STRING.flags)
    split[::2] = [_COMMENT.sub(" ", outside_strings) for outside_strings in split[::2]]
    return "".join(split)


def _parse_python(piece: str) -> Any:
    """Parse a Python literal; return None on failure."""
    # Python would join two strings without a comma between them.
    if re.search(r'""\s*""', _PYTHON_STRING.sub('""', piece)):
        return None
    try:
        return ast.literal_eval(piece)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _count_words(text: str) -> Counter[str]:
    """Count the words in a text with JSON's escapes, except the words `true`, `null` and so on."""
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), text)
    text = re.sub(r"\\[nrtbf]", " ", text)
    text = text.replace("\\", "")
    return Counter(re.findall(r"[^\W\d_]+", text)) - _LITERALS


def _join_strings(value: Any) -> str:
    """Return all strings in a value, separated by spaces."""
    if isinstance(value, dict):
        return " ".join(
            f"{_join_strings(key)} {_join_strings(item)}" for key, item in value.items()
        )
    if isinstance(value, list | tuple | set):
        return " ".join(_join_strings(item) for item in value)
    return value if isinstance(value, str) else ""


def _parse_repaired_json(piece: str) -> Any:
    """Parse a value that json_repair can repair; return None if the repair would be a guess."""
    from json_repair import repair_json

    piece = _STRING.sub(_to_double_quotes, piece)
    outside_strings = re.sub(r'"(?:\\.|[^"\\])*"', '""', piece, flags=re.DOTALL)
    # json_repair would read a comment in brackets as another string.
    has_comment_in_brackets = re.search(r'""\s*\(', outside_strings)
    if _STRAY_QUOTE.search(outside_strings) or has_comment_in_brackets:
        return None
    try:
        return repair_json(piece, return_objects=True)
    except (ValueError, RecursionError):
        return None


def _to_double_quotes(string: re.Match[str]) -> str:
    """Return a match of `_STRING` with the string in double quotes.

    A string that already has double quotes, or whose end is unclear, is returned unchanged.
    """
    content = string["content"]
    if content is None:  # already in double quotes
        return string[0]
    may_contain_several_strings = re.search(r"['’]\s*[,'‘]|,\s*['‘]", content)
    if may_contain_several_strings:
        return string[0]
    unescaped = re.sub(r"\\(['’])", r"\1", content)
    return string["before"] + json.dumps(unescaped, ensure_ascii=False)


def _complete_and_parse(piece: str) -> Any:
    """Parse a value that lacks only closing brackets; return None if it lacks more.

    A text that ends inside a string or a word is not repaired.
    """
    piece = piece.rstrip().removesuffix("```").rstrip()
    ends_with_value = re.search(r"(?:[\]}\"'”’\d]|true|false|null|none)$", piece, re.IGNORECASE)
    ends_inside_string = piece.count('"') % 2 == 1
    return _repair(piece) if ends_with_value and not ends_inside_string else None


def _last_object_with_keys(value: Any, required: Collection[str]) -> dict[str, Any] | None:
    """Return the last object in a JSON value that has all required keys; None if there is none.

    The objects inside such an object are not searched.
    """
    if isinstance(value, dict):
        if all(key in value for key in required):
            return value
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in reversed(value):
            last_object = _last_object_with_keys(item, required)
            if last_object is not None:
                return last_object
    return None


def _is_reference(value: list[Any]) -> bool:
    """Return whether a list contains only numbers, like a reference to the literature."""
    return bool(value) and all(type(item) in (int, float) for item in value)


def _first_problem(error: ValueError) -> str:
    """Return the message of an error.

    For an error of pydantic, returns its first problem and the path of the field with the problem.
    """
    if not isinstance(error, ValidationError):
        return str(error)
    problem = error.errors(include_url=False, include_input=False)[0]
    field_path = ".".join(str(step) for step in problem["loc"])
    return f"{field_path}: {problem['msg']}"


def _reject_constant(name: str) -> Any:
    """Raise a `ValueError` for `NaN` and `Infinity`, which Python's JSON parser accepts."""
    raise ValueError(f"{name} is not JSON")


def _mark_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object in which a key with different values has the value `DUPLICATE`."""
    fields: dict[str, Any] = {}
    for key, value in pairs:
        fields[key] = value if fields.get(key, value) == value else DUPLICATE
    return fields


_LITERALS = Counter(dict.fromkeys(("true", "false", "null", "True", "False", "None"), 1 << 30))
"""Words to subtract from a count of words: more of each than any text contains."""
_STRICT = json.JSONDecoder(parse_constant=_reject_constant, object_pairs_hook=_mark_duplicates)
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
"""A string in double quotes, or a string in other quotes before what can follow one in JSON."""
_STRAY_QUOTE = re.compile(r"(?<!\w)['‘’‚]|['‘’](?!\w)")
_VALUE_STARTS = {
    "{": r"""\{(?=\s*(?:\}|["'“”„‘’«]?[^\W\d][\w -]*["'“”‘’»]?\s*:|["“][^"“”{}]*\Z|\Z))""",
    "[": r"""\[(?=\s*(?:[\]\[{"'“”„‘’«]|-?\d|(?:null|none|true|false)\b|\Z))""",
}
