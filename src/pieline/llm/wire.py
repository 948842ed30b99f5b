"""What goes over the wire: whether a request's body is its question, and keeping it short.

litellm writes the body, and on the way it may add a limit, change a role or drop a parameter. So
the body is compared with the one that the question stands for in the provider's format, field by
field, before it is sent; and it is kept beside the answer, so that anyone can compare it again.

Formats are told by the end of the address: OpenAI's chat completions (which Together and local
servers speak as well), Anthropic's messages and Gemini's generateContent.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pieline.llm.answers import Sent
from pieline.llm.questions import Message, Question

Body = dict[str, Any]

_ABSENT = object()
_SHOWN = 80


def sent(question: Question, path: str, body: Body) -> Sent:
    """A body to keep: of each string that is a turn's text only the turn's number is kept."""
    turns = {turn.content: number for number, turn in reversed([*enumerate(question.messages)])}

    def shortened(value: Any) -> Any:
        if isinstance(value, str) and value in turns:
            return {"turn": turns[value]}
        if isinstance(value, dict):
            short = {name: shortened(item) for name, item in value.items()}
            # A body that itself says {"turn": ...} must not be taken for such a number.
            return {"turn": short} if short.keys() == {"turn"} else short
        return [shortened(item) for item in value] if isinstance(value, list) else value

    return Sent(path=path, body=shortened(body))


def body_of(question: Question, kept: Sent) -> Body:
    """The body that `sent` made shorter, as it was.

    Raises:
        IndexError, AttributeError: it names a turn that the question does not have.
    """

    def restored(value: Any) -> Any:
        if isinstance(value, dict):
            if value.keys() == {"turn"}:
                turn = value["turn"]
                if isinstance(turn, int):
                    return question.messages[turn].content
                value = turn
            return {name: restored(item) for name, item in value.items()}
        return [restored(item) for item in value] if isinstance(value, list) else value

    body: Body = restored(kept.body)
    return body


def difference(question: Question, path: str, body: Body) -> str | None:
    """How a body, sent to this path, differs from its question; null if it does not.

    What no format can say of a question does not count: the number of the sample, and in Gemini's
    the name of a JSON schema and that it is strict, which it always is there.
    """
    model = question.model.partition("@sha256:")[0].partition("/")[2]
    for end, expected in _FORMATS.items():
        if path.endswith(end.format(model=model)):
            return next(_differences(expected(question, model, body), body), None)
    return f"goes to {path}, which is the address of no format that is known, or of another model"


def misfit(question: Question, kept: Sent) -> str | None:
    """What is wrong with a body that was kept; null if it is its question's."""
    try:
        differs = difference(question, kept.path, body_of(question, kept))
    except (IndexError, AttributeError):
        return "the body that was sent names a turn that the question does not have"
    return f"the body that was sent {differs}" if differs else None


def _differences(expected: Any, found: Any, at: str = "") -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for name in sorted(expected.keys() | found.keys()):
            values = expected.get(name, _ABSENT), found.get(name, _ABSENT)
            yield from _differences(*values, at=f"{at}.{name}" if at else name)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, values in enumerate(zip(expected, found, strict=True)):
            yield from _differences(*values, at=f"{at}.{number}")
    elif expected != found or isinstance(expected, bool) != isinstance(found, bool):
        yield f"has {at} {_shown(found)} where the question has {_shown(expected)}"


def _shown(value: Any) -> str:
    text = "none" if value is _ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _chat(question: Question, model: str, body: Body) -> Body:
    limit = "max_completion_tokens"
    names = {"max_tokens": limit} if limit in body else {}
    turns = [turn._asdict() for turn in question.messages]
    return {"model": model, "messages": turns, **_renamed(question.parameters, names)}


def _messages(question: Question, model: str, body: Body) -> Body:
    system, turns = _system_apart(question.messages)
    return {
        "model": model,
        "messages": [{"role": turn.role, "content": [_text(turn)]} for turn in turns],
        **({"system": [_text(turn) for turn in system]} if system else {}),
        **_renamed(question.parameters, {"stop": "stop_sequences"}),
    }


def _text(turn: Message) -> dict[str, str]:
    return {"type": "text", "text": turn.content}


def _generate_content(question: Question, model: str, body: Body) -> Body:
    system, turns = _system_apart(question.messages)
    roles = {"assistant": "model"}
    names = {"max_tokens": "max_output_tokens", "stop": "stop_sequences"}
    said = _renamed(question.parameters, names)
    form = said.pop("response_format", None)
    if form:
        said["response_mime_type"] = "application/json"
        if "json_schema" in form:
            said["response_json_schema"] = form["json_schema"]["schema"]
    return {
        "contents": [
            {"role": roles.get(turn.role, turn.role), "parts": [{"text": turn.content}]}
            for turn in turns
        ],
        **(
            {"system_instruction": {"parts": [{"text": t.content} for t in system]}}
            if system
            else {}
        ),
        **({"generationConfig": said} if said else {}),
    }


def _system_apart(turns: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    """The system's turns at the beginning, which two formats keep apart, and the rest."""
    count = next((i for i, turn in enumerate(turns) if turn.role != "system"), len(turns))
    return turns[:count], turns[count:]


def _renamed(parameters: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in parameters.items()}


_FORMATS: dict[str, Callable[[Question, str, Body], Body]] = {
    "/chat/completions": _chat,
    "/messages": _messages,
    "/models/{model}:generateContent": _generate_content,
}
