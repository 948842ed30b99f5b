"""Read the body of a provider's response into the fields of an answer.

The body is read as the provider sent it, because litellm maps every reason for stopping that
litellm does not know to `stop`, and rejects bodies with malformed secondary fields. No content of a
body raises an error here: failures and content of unknown kinds become fields of the answer, and
malformed counts, ids and names are ignored.
"""

import json
import math
import re
import sys
from array import array
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pieline.llm.answers import FILTERED, ToolCall, finish_reason, total

Body = Mapping[str, Any]

_INCOMPLETE = "incomplete"
"""Status of an answer of OpenAI's /responses that is cut off; the field `incomplete_details` states
the reason."""

_FILTER_CODE = re.compile(
    "contentfilter|contentmoderation|contentpolicyviolation|datainspectionfailed|moderationblocked"
    "|responsibleaipolicyviolation|(?:inputtext|outputtext)?sensitivecontentdetected"
    "|prohibitedcontent|1301"  # Zhipu
)
"""Codes of filters, reduced to lowercase letters and digits."""
_CODE_FIELDS = frozenset({"code", "type", "status", "reason"})
"""Fields of an error that may contain a code of a filter."""
_FILTER_MESSAGE = re.compile(
    r"content (?:management|filtering|safety|usage) polic|usage polic|content exists risk"
    r"|blocked by content filter|new_sensitive|violates usage guidelines",
    re.IGNORECASE,
)
_SAFETY_CHECK = "SAFETY_CHECK_TYPE_"
"""Part of xAI's message about a filtered question, whose HTTP status is that of a rejected key."""
_DEEPEST = 8
"""Maximum nesting of the fields that are searched for an error of a filter."""
_SHOWN = 200
"""Maximum characters of an error, a reason or unread content in an answer."""


@dataclass
class _Output:
    """Generated output in a response body.

    Attributes:
        texts, thoughts, refusals: Texts of the answer, of its reasoning and of refusals.
        calls: Requested function calls.
        reasons: Reasons for stopping, in the provider's words; null or empty if not stated.
        errors: Errors that the output reports; null or empty if there is none.
        unread: Content of unknown kinds.
    """

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    reasons: list[Any] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    unread: list[Any] = field(default_factory=list)


def answer_fields(path: str, body: Body) -> dict[str, Any]:
    """Return the fields of an `Answer` that a response body determines.

    The field `error` is also set if the body has no content and states no reason for stopping.

    Args:
        path: Path of the URL, whose end determines the format.
        body: Body of a response.
    """
    if path.endswith("/embeddings"):
        return _embedding_fields(body)
    output = _read_output(path, body)
    text = "".join(output.texts) if output.texts else None

    errors, is_filtered = _describe_errors([*_errors(body), *output.errors])
    reasons = [FILTERED] if is_filtered else output.reasons
    stated_reasons = [str(reason)[:_SHOWN] for reason in reasons if reason not in (None, "")]
    has_content = bool(text or output.refusals or output.calls or output.unread)
    if not (has_content or errors or stated_reasons):
        errors = ["the response has no text and no reason for stopping"]

    our_reason = finish_reason(stated_reasons)
    if our_reason == "stop" and output.calls:
        our_reason = "tool_calls"
    provider_reason = ", ".join(dict.fromkeys(stated_reasons)) or None

    counts = token_counts(body)
    if text and counts.get("output_tokens") == 0:
        counts["output_tokens"] = None  # a missing or wrong count

    return {
        "text": text,
        "reasoning": "".join(output.thoughts) or None,
        "refusal": "".join(output.refusals) or None,
        "finish_reason": our_reason,
        "provider_reason": provider_reason if provider_reason != our_reason else None,
        "error": "; ".join(errors) or None,
        "unread": _to_short_json(output.unread[0]) if output.unread else None,
        "tool_calls": tuple(output.calls) or None,
        "fingerprint": _nonempty_string(body.get("system_fingerprint")),
        **counts,
    }


def is_filtered_error(body: Any, *, by_message: bool = True) -> bool:
    """Return whether the body of an error states that a filter rejected the request.

    Args:
        body: Parsed body.
        by_message: Whether the words of an error message also count, and not only codes.
    """
    for name, value in _error_fields(body):
        if name == "flagged_input" and value:  # OpenRouter's moderation
            return True
        if isinstance(value, str) and _states_filter(name, value, by_message=by_message):
            return True
    return False


def _states_filter(name: str, text: str, *, by_message: bool) -> bool:
    """Return whether the text in a field of an error states that a filter rejected the request.

    `name` is the name of the field. See `is_filtered_error` for `by_message`.
    """
    code = re.sub(r"[\W_]", "", text.lower())
    if name in _CODE_FIELDS and _FILTER_CODE.fullmatch(code):
        return True
    if _SAFETY_CHECK in text:
        return True
    # An error that is only a text has no name.
    is_message = name in ("", "error", "message")
    return by_message and is_message and bool(_FILTER_MESSAGE.search(text))


def _error_fields(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each field in an error, also of fields in JSON within a text.

    Gateways put the error of the provider into a field of their own error.
    """
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if depth < _DEEPEST:
        if isinstance(value, Mapping):
            for inner_name, inner_value in value.items():
                yield from _error_fields(inner_value, str(inner_name), depth + 1)
        elif isinstance(value, list):
            for element in value:
                yield from _error_fields(element, name, depth + 1)
    yield name, value


def _errors(body: Body) -> list[Any]:
    """Return the errors in the top-level fields of a body; an error may be null or empty."""
    base = body.get("base_resp")  # MiniMax
    reports_failure = isinstance(base, Mapping) and bool(base.get("status_code"))
    return [body.get("error"), body.get("errors"), base if reports_failure else None]


def _describe_errors(errors: Iterable[Any]) -> tuple[list[str], bool]:
    """Return descriptions of errors, and whether at least one error is from a filter.

    Errors from filters are not described. Empty errors are ignored, because some providers send an
    empty error with every answer.
    """
    descriptions = []
    is_filtered = False
    for error in errors:
        has_content = any(error.values()) if isinstance(error, Mapping) else bool(error)
        if not has_content:
            continue
        if is_filtered_error(error):
            is_filtered = True
        else:
            descriptions.append(f"the response reports an error: {_to_short_json(error)}")
    return descriptions, is_filtered


def _read_output(path: str, body: Body) -> _Output:
    """Read a body in the format that the end of the URL path determines (default: chat)."""
    for end_of_path, read_format in _FORMATS.items():
        if path.endswith(end_of_path):
            return read_format(body)
    return _read_chat(body)


def _read_chat(body: Body) -> _Output:
    """Read a body in OpenAI's format of chat completions."""
    output = _Output()
    choice = _first_object(body.get("choices"))
    if choice is None:
        return output
    output.reasons = [choice.get("finish_reason"), choice.get("native_finish_reason")]
    output.errors.append(choice.get("error"))
    message = choice.get("message")
    if isinstance(message, Mapping):
        _add_message(message, output)
    elif message is not None or "delta" in choice or "text" in choice:
        # A part of a stream or a bare text is no chat completion. A filter may leave no message.
        output.unread.append(choice)
    return output


def _add_message(message: Body, output: _Output) -> None:
    """Add the content, reasoning, refusal and function calls of a chat message to an output."""
    _add_content(message.get("content"), output)
    output.errors.append(message.get("error"))

    reasoning = message.get("reasoning_content")
    if not isinstance(reasoning, str):
        reasoning = message.get("reasoning")
    # Some providers repeat the reasoning that the content contains.
    if reasoning and isinstance(reasoning, str) and not output.thoughts:
        output.thoughts.append(reasoning)

    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        output.refusals.append(refusal)
    elif refusal and not any(output.texts):  # for example `"refusal": true`
        output.refusals.append(_to_short_json(refusal))

    tool_calls = message.get("tool_calls")
    calls = [*tool_calls] if isinstance(tool_calls, list) else []
    calls.append(message.get("function_call"))
    for call in calls:
        if isinstance(call, Mapping):
            # An element of `tool_calls` has the name and the arguments in its field `function`.
            function = call.get("function")
            output.calls.append(_to_tool_call(function if isinstance(function, Mapping) else call))


def _read_messages(body: Body) -> _Output:
    """Read a body in Anthropic's format of messages."""
    output = _Output(reasons=[body.get("stop_reason")])
    _add_content(body.get("content"), output)
    return output


def _read_generated_content(body: Body) -> _Output:
    """Read a body in Gemini's format of generateContent."""
    output = _Output()
    candidate = _first_object(body.get("candidates"))
    if candidate is None:
        feedback = body.get("promptFeedback")
        if isinstance(feedback, Mapping) and feedback.get("blockReason"):
            output.reasons = [FILTERED]
        return output
    output.reasons = [candidate.get("finishReason")]
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, Mapping) else content
    _add_content(parts, output)
    return output


def _read_responses(body: Body) -> _Output:
    """Read a body in OpenAI's format of responses."""
    output = _Output()
    status, details = body.get("status"), body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    is_explained = status == _INCOMPLETE and bool(reason)
    output.reasons = [reason] if is_explained else [status, reason]
    items = body.get("output")
    if isinstance(items, list):
        for item in items:
            if isinstance(item, Mapping) and item.get("type", "message") == "message":
                _add_content(item.get("content"), output)
            else:
                _add_part(item, output)
    # The thoughts are separate summaries, not the parts of one text.
    output.thoughts = ["\n\n".join(output.thoughts)]
    return output


_FORMATS: dict[str, Callable[[Body], _Output]] = {
    "/messages": _read_messages,
    ":generateContent": _read_generated_content,
    "/responses": _read_responses,
}
"""Function that reads each format of a response body, by the end of the URL path."""


def _first_object(items: Any) -> Body | None:
    """Return the first element of a list if the element is an object, else None."""
    if not isinstance(items, list) or not items:
        return None
    return items[0] if isinstance(items[0], Mapping) else None


def _add_content(content: Any, output: _Output) -> None:
    """Add the content of a message (a text, a list of parts, or null) to an output."""
    if isinstance(content, list):
        for part in content:
            _add_part(part, output)
    elif content is not None:
        _add_part(content, output)


def _add_part(part: Any, output: _Output) -> None:
    """Add a part of the content to an output; a part of an unknown kind is added to `unread`."""
    if part is None:
        return
    if isinstance(part, str):
        output.texts.append(part)
        return
    if not isinstance(part, Mapping):
        output.unread.append(part)
        return
    kind = part.get("type")  # Gemini's parts have no type
    if not isinstance(kind, str | None):
        output.unread.append(part)
    elif kind in _THOUGHT_KINDS or (kind is None and part.get("thought")):
        output.thoughts += _thought_texts(part)
    elif kind == "refusal" and isinstance(part.get("refusal"), str):
        output.refusals.append(part["refusal"])
    elif kind in ("tool_use", "function_call"):
        output.calls.append(_to_tool_call(part))
    elif kind is None and isinstance(part.get("functionCall"), dict):
        output.calls.append(_to_tool_call(part["functionCall"]))
    elif kind in ("text", "output_text", None) and isinstance(part.get("text"), str):
        if part.get("refusal") is True:  # Some providers mark the text of a refusal.
            output.refusals.append(part["text"])
        else:
            output.texts.append(part["text"])
    elif part.keys() != {"thoughtSignature"}:  # a signature alone has no content
        output.unread.append(part)


def _to_short_json(value: Any) -> str:
    """Return the first `_SHOWN` characters of a value as JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)[:_SHOWN]


_THOUGHT_KINDS = frozenset(
    {"reasoning", "reasoning_content", "reasoning_text", "redacted_thinking", "thinking", "thought"}
)
"""Types of parts that contain reasoning."""


def _thought_texts(part: Body) -> Iterator[str]:
    """Yield the texts of reasoning in a part, also those in the part's lists and objects."""
    names = "thinking", "thought", "reasoning", "reasoning_content", "text", "summary", "content"
    for name in names:
        content = part.get(name)
        elements = content if isinstance(content, list) else [content]
        for element in elements:
            if isinstance(element, str):
                yield element
            elif isinstance(element, Mapping):
                yield from _thought_texts(element)


def _to_tool_call(call: Body) -> ToolCall:
    """Convert a function call in any provider's format."""
    values = (call.get(name) for name in ("arguments", "input", "args"))
    arguments = next((value for value in values if value is not None), "")
    arguments_json = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(name=_nonempty_string(call.get("name")), arguments=arguments_json)


def _nonempty_string(value: Any) -> str | None:
    """Return a nonempty string unchanged, and None for any other value."""
    return value if isinstance(value, str) and value else None


def identifiers(body: Body) -> dict[str, str | None]:
    """Return the `Answer` fields `returned_model` and `response_id` for a response body.

    A field is None if the body does not state its value.
    """
    model = _nonempty_string(body.get("modelVersion")) or _nonempty_string(body.get("model"))
    response_id = _nonempty_string(body.get("id")) or _nonempty_string(body.get("responseId"))
    return {"returned_model": model, "response_id": response_id}


def _embedding_fields(body: Body) -> dict[str, Any]:
    """Return the fields of an `Answer` for a body in OpenAI's format of embeddings.

    The text of the answer is the base64 encoding of the vector as little-endian float32. If the
    body has no finite vector, the field `error` is set instead of the text.
    """
    counts: dict[str, int | None] = {"input_tokens": None, **token_counts(body), "output_tokens": 0}
    errors, _ = _describe_errors([body.get("error")])
    if errors:
        return {"error": errors[0], **counts}
    vector = array("f")
    with suppress(LookupError, TypeError, OverflowError):
        vector = array("f", body["data"][0]["embedding"])
    is_finite = all(math.isfinite(component) for component in vector)
    if not vector or not is_finite:
        return {"error": "the response has no vector", **counts}
    if sys.byteorder == "big":
        vector.byteswap()
    return {"text": b64encode(vector.tobytes()).decode(), **counts}


def token_counts(body: Body) -> dict[str, int | None]:
    """Return the token counts in a body, by field of `Answer`; empty if no tokens are counted.

    A missing count of input or output tokens is 0, because Gemini omits zeros. A count that is not
    a finite number of at least 0 is None (unknown). Fractions are rounded up.
    """
    usage = body.get("usage") or body.get("usageMetadata")
    if not isinstance(usage, Mapping):
        return {}
    details = _usage_details(usage)
    cache_read = _sum(usage, "cache_read_input_tokens")
    cache_written = _sum(usage, "cache_creation_input_tokens")
    if "prompt_tokens" in usage:
        input_tokens = _sum(usage, "prompt_tokens")
    else:  # Anthropic's input tokens exclude the cache.
        not_cached = _sum(usage, "input_tokens", "promptTokenCount")
        input_tokens = total([not_cached, cache_read, cache_written])
    output_tokens = _output_tokens(usage, details, input_tokens)
    if not (input_tokens or output_tokens):
        return {}
    counts = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    # `_sum` returns 0 for a missing field, so a 0 is no reported count.
    optional_counts = {
        "cached_tokens": _first_count(
            details.get("cached_tokens"),
            usage.get("cachedContentTokenCount"),
            cache_read,
            usage.get("prompt_cache_hit_tokens"),  # DeepSeek
            at_least=1,
        ),
        "cache_write_tokens": _first_count(
            details.get("cache_write_tokens"), cache_written, at_least=1
        ),
        "reasoning_tokens": _first_count(
            details.get("reasoning_tokens"),
            details.get("thinking_tokens"),
            _sum(usage, "thoughtsTokenCount") or None,
        ),
    }
    reported = {name: count for name, count in optional_counts.items() if count is not None}
    return {**counts, **reported}


def _output_tokens(usage: Body, details: Body, input_tokens: int | None) -> int | None:
    """Return the number of output tokens, including reasoning; None if the number is unknown.

    Some providers report output tokens without reasoning, which the reported total reveals.
    """
    output_tokens = _sum(usage, "completion_tokens", "output_tokens", "candidatesTokenCount")
    reported_total = _sum(usage, "totalTokenCount", "total_tokens") or None
    # Only some of Gemini's models include thoughts in the candidates.
    total_without_thoughts = total(
        [input_tokens, output_tokens, _sum(usage, "toolUsePromptTokenCount")]
    )
    if total_without_thoughts != reported_total:
        output_tokens = total([output_tokens, _sum(usage, "thoughtsTokenCount")])
    reasoning_tokens = _count(details.get("reasoning_tokens")) or 0
    if output_tokens is None or not reasoning_tokens:
        return output_tokens
    # xAI's completion tokens exclude reasoning, and the total is the sum of all three.
    is_sum_of_three = reported_total == total([input_tokens, output_tokens, reasoning_tokens])
    if is_sum_of_three or reasoning_tokens > output_tokens:
        return output_tokens + reasoning_tokens
    return output_tokens


def _count(value: Any) -> int | None:
    """Return a reported token count, rounded up; None if it is not a finite nonnegative number."""
    if isinstance(value, float) and math.isfinite(value):
        value = math.ceil(value)
    return value if type(value) is int and value >= 0 else None


def _first_count(*values: Any, at_least: int = 0) -> int | None:
    """Return the first usable token count of `at_least` or more; None if there is none."""
    for value in values:
        count = _count(value)
        if count is not None and count >= at_least:
            return count
    return None


def _sum(usage: Body, *names: str) -> int | None:
    """Return the sum of the counts in the existing fields `names`; None if a count is unusable."""
    return total([_count(usage[name]) for name in names if name in usage])


def _usage_details(usage: Body) -> dict[str, Any]:
    """Return the fields of all objects in `usage` that detail counts of input or output tokens."""
    details: dict[str, Any] = {}
    for name in (
        "prompt_tokens_details",
        "input_tokens_details",
        "completion_tokens_details",
        "output_tokens_details",
    ):
        fields = usage.get(name)
        if isinstance(fields, Mapping):
            details.update(fields)
    return details
