"""Read the body of a provider's response into the fields of an answer.

The body is read as the provider sent it, because litellm maps every reason for stopping that it
does not know to `stop`, and rejects bodies with malformed secondary fields. Nothing in a body is an
error here: failures and content of unknown kinds become fields of the answer, and malformed counts,
ids and names are ignored.
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

from pieline.llm.answers import FILTERED, ToolCall, finish_reason

Body = Mapping[str, Any]

_INCOMPLETE = "incomplete"
"""Status of OpenAI's /responses whose reason is in another field."""

_FILTER_CODE = re.compile(
    "contentfilter|contentmoderation|contentpolicyviolation|datainspectionfailed|moderationblocked"
    "|responsibleaipolicyviolation|(?:inputtext|outputtext)?sensitivecontentdetected"
    "|prohibitedcontent|1301"  # Zhipu
)
"""Codes of filters in lower case, without other characters than letters and digits."""
_CODES = frozenset({"code", "type", "status", "reason"})
_FILTER_MESSAGE = re.compile(
    r"content (?:management|filtering|safety|usage) polic|usage polic|content exists risk"
    r"|blocked by content filter|new_sensitive|violates usage guidelines",
    re.IGNORECASE,
)
_SAFETY_CHECK = "SAFETY_CHECK_TYPE_"
"""Part of xAI's message about a filtered question, which has the status of a rejected key."""
_DEEPEST = 8
_SHOWN = 200


@dataclass
class _Output:
    """What a provider generated.

    Attributes:
        exists: Whether the body contains an output, even an empty one.
        texts, thoughts, refusals: Texts of the parts of each kind.
        calls: Requested function calls.
        reasons: Reasons for stopping, in the provider's words.
        errors: Errors that the body reports.
        unread: Content of unknown kinds.
    """

    exists: bool = False
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    reasons: list[Any] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    unread: list[Any] = field(default_factory=list)


def answer_fields(path: str, body: Body) -> dict[str, Any]:
    """Return the fields of an `Answer`; if there is neither a text nor a reason, `error` is set.

    Args:
        path: Path of the URL, whose end determines the format.
        body: Body of a response.
    """
    if path.endswith("/embeddings"):
        return _embedding_fields(body)
    read = next((read for end, read in _FORMATS.items() if path.endswith(end)), _read_chat)
    output = read(body)
    counts = token_counts(body)
    failed, is_filtered = _failures([*_errors(body), *output.errors])
    named = [FILTERED] if is_filtered else output.reasons
    stated = [str(name)[:_SHOWN] for name in named if name not in (None, "")]
    reason = finish_reason(stated)
    text = "".join(output.texts) if output.texts else None
    if reason == "stop" and output.calls:
        reason = "tool_calls"
    if not (failed or stated or text or output.refusals or output.calls or output.unread):
        failed = ["the response has no text and no reason for stopping"]
    provider_reason = ", ".join(dict.fromkeys(stated))
    if text and counts.get("output_tokens") == 0:
        counts["output_tokens"] = None  # a missing or wrong count
    return {
        "text": text,
        "reasoning": ("\n\n" if read is _read_responses else "").join(output.thoughts) or None,
        "refusal": "".join(output.refusals) or None,
        "finish_reason": reason,
        "provider_reason": provider_reason if stated and provider_reason != reason else None,
        "error": "; ".join(failed) or None,
        "unread": _shown(output.unread[0]) if output.unread else None,
        "tool_calls": tuple(output.calls) or None,
        "fingerprint": _string(body.get("system_fingerprint")),
        **counts,
    }


def is_filtered_error(body: Any, *, by_message: bool = True) -> bool:
    """Return whether the body of an error states that a filter rejected the request.

    Args:
        body: Parsed body.
        by_message: Whether the text of the message counts, too.
    """
    for name, value in _fields(body):
        if name == "flagged_input" and value:  # OpenRouter's moderation
            return True
        if not isinstance(value, str):
            continue
        code = re.sub(r"[\W_]", "", value.lower())
        if (name in _CODES and _FILTER_CODE.fullmatch(code)) or _SAFETY_CHECK in value:
            return True
        if by_message and name in ("", "error", "message") and _FILTER_MESSAGE.search(value):
            return True
    return False


def _fields(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of all fields in an error, also in JSON within a text.

    Gateways put the error of the provider into a field of their own error.
    """
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, Mapping | list) and depth < _DEEPEST:
        items = value.items() if isinstance(value, Mapping) else ((name, item) for item in value)
        for key, item in items:
            yield from _fields(item, str(key), depth + 1)
    yield name, value


def _errors(body: Body) -> list[Any]:
    """Return the errors of a whole body, some of which may be empty."""
    base = body.get("base_resp")  # MiniMax
    failed = isinstance(base, Mapping) and bool(base.get("status_code"))
    return [body.get("error"), body.get("errors"), base if failed else None]


def _failures(errors: Iterable[Any]) -> tuple[list[str], bool]:
    """Return the errors of a response as texts, and whether one of them is that of a filter.

    Some providers send an empty error with every answer.
    """
    present = [e for e in errors if (any(e.values()) if isinstance(e, Mapping) else e)]
    failed = [e for e in present if not is_filtered_error(e)]
    shown = [f"the response reports an error: {_shown(error)}" for error in failed]
    return shown, len(failed) < len(present)


def _read_chat(body: Body) -> _Output:
    output = _Output()
    choice = _first(body.get("choices"))
    if choice is None:
        return output
    output.exists = True
    output.reasons = [choice.get("finish_reason"), choice.get("native_finish_reason")]
    output.errors.append(choice.get("error"))
    message = choice.get("message")
    if not isinstance(message, Mapping):
        # A filter may leave no message. A part of a stream or a bare text is no chat completion.
        if message is not None or not choice.keys().isdisjoint(("delta", "text")):
            output.unread.append(choice)
        return output
    _add_content(message.get("content"), output)
    output.errors.append(message.get("error"))
    thoughts = message.get("reasoning_content")
    if not isinstance(thoughts, str):
        thoughts = message.get("reasoning")
    if thoughts and isinstance(thoughts, str) and not output.thoughts:
        output.thoughts.append(thoughts)
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        output.refusals.append(refusal)
    elif refusal and not any(output.texts):
        output.refusals.append(_shown(refusal))
    called = message.get("tool_calls")
    for call in (*(called if isinstance(called, list) else ()), message.get("function_call")):
        if isinstance(call, Mapping):
            function = call.get("function", call)
            output.calls.append(_call(function if isinstance(function, Mapping) else call))
    return output


def _read_messages(body: Body) -> _Output:
    output = _Output(exists="content" in body, reasons=[body.get("stop_reason")])
    _add_content(body.get("content"), output)
    return output


def _read_generated(body: Body) -> _Output:
    output = _Output()
    candidate = _first(body.get("candidates"))
    if candidate is None:
        feedback = body.get("promptFeedback")
        if isinstance(feedback, Mapping) and feedback.get("blockReason"):
            output.exists, output.reasons = True, [FILTERED]
        return output
    output.exists, output.reasons = True, [candidate.get("finishReason")]
    content = candidate.get("content")
    _add_content(content.get("parts") if isinstance(content, Mapping) else content, output)
    return output


def _read_responses(body: Body) -> _Output:
    items = body.get("output")
    status, details = body.get("status"), body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    output = _Output(exists=isinstance(items, list))
    output.reasons = [None if status == _INCOMPLETE and reason else status, reason]
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping) and item.get("type", "message") == "message":
            _add_content(item.get("content"), output)
        else:
            _add_part(item, output)
    return output


_FORMATS: dict[str, Callable[[Body], _Output]] = {
    "/messages": _read_messages,
    ":generateContent": _read_generated,
    "/responses": _read_responses,
}


def _first(items: Any) -> Body | None:
    """Return the first object in a list; None if there is none."""
    first = items[0] if isinstance(items, list) and items else None
    return first if isinstance(first, Mapping) else None


def _add_content(content: Any, output: _Output) -> None:
    """Add the content of a message: a text, a list of parts, or null."""
    if isinstance(content, list):
        for part in content:
            _add_part(part, output)
    elif content is not None:
        _add_part(content, output)


def _add_part(part: Any, output: _Output) -> None:
    if part is None:
        return
    if isinstance(part, str):
        output.texts.append(part)
        return
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in _THOUGHTS or (kind is None and isinstance(part, Mapping) and part.get("thought")):
        output.thoughts += _thoughts(part)
    elif kind == "refusal" and isinstance(part.get("refusal"), str):
        output.refusals.append(part["refusal"])
    elif kind in ("tool_use", "function_call"):
        output.calls.append(_call(part))
    elif kind is None and isinstance(part, Mapping) and isinstance(part.get("functionCall"), dict):
        output.calls.append(_call(part["functionCall"]))
    elif kind in ("text", "output_text", None) and _is_text(part):
        # Some providers mark the text of a refusal.
        (output.refusals if part.get("refusal") is True else output.texts).append(part["text"])
    elif not (kind is None and isinstance(part, Mapping) and part.keys() == {"thoughtSignature"}):
        output.unread.append(part)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:_SHOWN]


_THOUGHTS = frozenset(
    {"reasoning", "reasoning_content", "reasoning_text", "redacted_thinking", "thinking", "thought"}
)


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("text"), str)


def _thoughts(part: Body) -> Iterator[str]:
    """Yield the texts in a part with reasoning, which may be nested."""
    names = "thinking", "thought", "reasoning", "reasoning_content", "text", "summary", "content"
    for name in names:
        value = part.get(name)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                yield each
            elif isinstance(each, Mapping):
                yield from _thoughts(each)


def _call(call: Body) -> ToolCall:
    arguments = next(
        (call[name] for name in ("arguments", "input", "args") if call.get(name) is not None), ""
    )
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(name=_string(call.get("name")), arguments=text)


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def identifiers(body: Body) -> dict[str, str | None]:
    """Return the model's name and the response id in a response body, each None if absent."""
    return {
        "returned_model": _string(body.get("modelVersion")) or _string(body.get("model")),
        "response_id": _string(body.get("id")) or _string(body.get("responseId")),
    }


def _embedding_fields(body: Body) -> dict[str, Any]:
    """Return the fields of an embedding; `error` is set if the body has no finite vector.

    The text of the answer is the base64 encoding of the vector as little-endian float32.
    """
    counts = {"input_tokens": None} | token_counts(body) | {"output_tokens": 0}
    failed, _ = _failures(_errors(body)[:1])
    vector = array("f")
    with suppress(LookupError, TypeError, OverflowError):
        vector = array("f", body["data"][0]["embedding"])
    if not failed and not (vector and all(map(math.isfinite, vector))):
        failed = ["the response has no vector"]
    if failed:
        return {"error": failed[0], **counts}
    if sys.byteorder == "big":
        vector.byteswap()
    return {"text": b64encode(vector.tobytes()).decode(), **counts}


def token_counts(body: Body) -> dict[str, int | None]:
    """Return the token counts in a body by field of `Answer`; empty if there are none.

    A missing count is 0, because Gemini omits zeros. A count that is not a finite number of at
    least 0 is None (unknown); fractions are rounded up.
    """
    usage = body.get("usage") or body.get("usageMetadata")
    if not isinstance(usage, Mapping):
        return {}
    cached = _sum(usage, "cache_read_input_tokens"), _sum(usage, "cache_creation_input_tokens")
    if "prompt_tokens" in usage:
        input_tokens = _sum(usage, "prompt_tokens")
    else:  # Anthropic's input tokens exclude the cache.
        names = "input_tokens", "promptTokenCount"
        input_tokens = _total(_sum(usage, *names), *cached)
    output = _sum(usage, "completion_tokens", "output_tokens", "candidatesTokenCount")
    thoughts = _sum(usage, "thoughtsTokenCount")
    inputs = _objects(usage, "prompt_tokens_details", "input_tokens_details")
    outputs = _objects(usage, "completion_tokens_details", "output_tokens_details")
    flat = {**inputs, **outputs}
    reasoned = _count(flat.get("reasoning_tokens")) or 0
    total = _sum(usage, "totalTokenCount", "total_tokens") or None
    # Some of Gemini's models include thoughts in the candidates. xAI's completion tokens exclude
    # reasoning, and the total is the sum of all three.
    if _total(input_tokens, output, _sum(usage, "toolUsePromptTokenCount")) != total:
        output = _total(output, thoughts)
    if (
        output is not None
        and reasoned
        and (reasoned > output or total == _total(input_tokens, output, reasoned))
    ):
        output += reasoned
    if not (input_tokens or output):
        return {}
    read = [flat.get("cached_tokens"), usage.get("cachedContentTokenCount"), cached[0]]
    read.append(usage.get("prompt_cache_hit_tokens"))  # DeepSeek
    spent = flat.get("reasoning_tokens"), flat.get("thinking_tokens"), thoughts or None
    counts = {
        "input_tokens": input_tokens,
        "output_tokens": output,
        "cached_tokens": next(filter(None, map(_count, read)), None),
        "cache_write_tokens": _count(flat.get("cache_write_tokens")) or cached[1] or None,
        "reasoning_tokens": next((n for n in map(_count, spent) if n is not None), None),
    }
    return {name: n for name, n in counts.items() if n is not None or name.endswith("put_tokens")}


def _count(value: Any) -> int | None:
    """Return a token count; None if the value is not a usable number."""
    if isinstance(value, float) and math.isfinite(value):
        value = math.ceil(value)
    return value if type(value) is int and value >= 0 else None


def _sum(usage: Body, *names: str) -> int | None:
    """Return the sum of the counts with these names; None if one is present but unusable."""
    return _total(*(_count(usage[name]) for name in names if name in usage))


def _total(*counts: int | None) -> int | None:
    return None if None in counts else sum(count or 0 for count in counts)


def _objects(usage: Body, *names: str) -> dict[str, Any]:
    """Return the fields of all objects with these names."""
    found = (usage.get(name) for name in names)
    return {
        key: value for each in found if isinstance(each, Mapping) for key, value in each.items()
    }
