"""Compare a request body with its question, and record the body without repeating texts.

litellm constructs the body, and may add a limit, change a role or drop a parameter. Before a body
is sent, it is therefore compared, field by field, with the body expected for the question in the
provider's format. The body is recorded with the answer, so that the comparison can be repeated.

The end of the URL path determines the format: OpenAI's chat completions (also used by Together and
local servers), embeddings and responses, Anthropic's messages, or Gemini's generateContent.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pieline.llm.answers import SentRequest
from pieline.llm.questions import Message, Question
from pieline.models.llm import api_model_name, normalized

Body = dict[str, Any]

_REFERENCE = "question"
_ABSENT = object()
_SHOWN = 80


def shorten_request(question: Question, path: str, body: Body) -> SentRequest:
    """Return the request to record, with references in place of the question's content."""
    parts = _parts(question)
    texts = {part: name for name, part in reversed(parts.items()) if isinstance(part, str)}
    larger = {name: part for name, part in parts.items() if not isinstance(part, str)}

    def shortened(value: Any) -> Any:
        if isinstance(value, str):
            return {_REFERENCE: texts[value]} if value in texts else value
        for name, part in larger.items():
            if value == part:
                return {_REFERENCE: name}
        if isinstance(value, dict):
            short = {name: shortened(item) for name, item in value.items()}
            # Escape a body that itself contains {"question": ...}.
            return {_REFERENCE: short} if short.keys() == {_REFERENCE} else short
        return [shortened(item) for item in value] if isinstance(value, list) else value

    return SentRequest(path=path, body={name: shortened(item) for name, item in body.items()})


def restore_body(question: Question, kept: SentRequest) -> Body:
    """Return the request body that `shorten_request` shortened.

    Raises:
        KeyError, TypeError: A reference does not exist in the question.
    """
    parts = _parts(question)

    def restored(value: Any) -> Any:
        if isinstance(value, dict):
            if value.keys() == {_REFERENCE}:
                value = value[_REFERENCE]
                if not isinstance(value, dict):
                    return parts[value]
            return {name: restored(item) for name, item in value.items()}
        return [restored(item) for item in value] if isinstance(value, list) else value

    return {name: restored(item) for name, item in kept.body.items()}


def _parts(question: Question) -> dict[int | str, Any]:
    """Return the parts of a question that a body may refer to, by reference.

    The parts are the text of each turn (by index), all turns (`messages`), and the parameters and
    raw fields that are objects (by name).
    """
    return {
        **{number: turn.content for number, turn in enumerate(question.messages)},
        "messages": [turn._asdict() for turn in question.messages],
        **{
            name: value
            for name, value in (*question.parameters.items(), *question.body.items())
            if isinstance(value, dict)
        },
    }


def merge_fields(request: Mapping[str, Any], fields: Mapping[str, Any], at: str = "") -> Body:
    """Return a request body with the raw fields of an entry merged in.

    If both have an object under the same name, the two objects are merged.

    Raises:
        ValueError: Both have another field with the same name, in any spelling (`maxTokens`,
            `max_tokens`).
    """
    names = {normalized(name): name for name in request}
    result = dict(request)
    for name, value in fields.items():
        place = f"{at}.{name}" if at else name
        same = names.get(normalized(name))
        if same is None:
            result[name] = value
        elif same == name and isinstance(value, Mapping) and isinstance(request[name], Mapping):
            result[name] = merge_fields(request[name], value, place)
        else:
            raise ValueError(f"already has {same}, so body cannot set {place}")
    return result


def difference(question: Question, path: str, body: Body) -> str | None:
    """Return how a body for a URL path differs from its question; None if it does not.

    Properties that a format cannot express are ignored: the index of the sample and, in the formats
    of Anthropic and Gemini, the name of a JSON schema and its strictness, which is implied.
    """
    model = api_model_name(question.model)
    for end, expected in _FORMATS.items():
        if path.endswith(end.format(model=model)):
            try:
                complete = merge_fields(expected(question, model, body), question.body)
            except ValueError as error:
                return str(error)
            return next(_differences(complete, body), None)
    return f"goes to {path}, which is the address of an unknown format or of another model"


def describe_mismatch(question: Question, kept: SentRequest) -> str | None:
    """Return how a recorded body differs from its question; None if it does not."""
    try:
        differs = difference(question, kept.path, restore_body(question, kept))
    except (KeyError, TypeError):
        return "the request body refers to something that the question does not have"
    return f"the request body {differs}" if differs else None


def _differences(expected: Any, actual: Any, at: str = "") -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for name in sorted(expected.keys() | actual.keys()):
            values = expected.get(name, _ABSENT), actual.get(name, _ABSENT)
            yield from _differences(*values, at=f"{at}.{name}" if at else name)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for number, values in enumerate(zip(expected, actual, strict=True)):
            yield from _differences(*values, at=f"{at}.{number}")
    elif expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
        yield f"has {at} {_shown(actual)}, but the question has {_shown(expected)}"


def _shown(value: Any) -> str:
    text = "none" if value is _ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _chat(question: Question, model: str, body: Body) -> Body:
    spelled = {"max_tokens": "max_completion_tokens", "seed": "random_seed"}  # OpenAI, Mistral
    names = {name: other for name, other in spelled.items() if other in body}
    turns = [turn._asdict() for turn in question.messages]
    return {"model": model, "messages": turns, **_renamed(question.parameters, names)}


def responses_body(question: Question) -> Body:
    """Return the body of a question in OpenAI's /responses format, without its raw fields."""
    fields = _renamed(question.parameters, {"max_tokens": "max_output_tokens"})
    if effort := fields.pop("reasoning_effort", None):
        fields["reasoning"] = {"effort": effort}
    if form := fields.pop("response_format", None):
        fields["text"] = {"format": {"type": form["type"], **form.get("json_schema", {})}}
    turns = [turn._asdict() for turn in question.messages]
    return {"model": api_model_name(question.model), "input": turns, **fields}


def _embeddings(question: Question, model: str, body: Body) -> Body:
    return {"model": model, "input": [turn.content for turn in question.messages]}


def _messages(question: Question, model: str, body: Body) -> Body:
    system, turns = _system_apart(question.messages)
    fields = _renamed(question.parameters, {"stop": "stop_sequences"})
    if "json_schema" in fields.get("response_format", ()):
        schema = fields.pop("response_format")["json_schema"]["schema"]
        fields["output_format"] = {"type": "json_schema", "schema": schema}
    return {
        "model": model,
        "messages": [{"role": turn.role, "content": [_text(turn)]} for turn in turns],
        **({"system": [_text(turn) for turn in system]} if system else {}),
        **fields,
    }


def _text(turn: Message) -> dict[str, str]:
    return {"type": "text", "text": turn.content}


def _generate_content(question: Question, model: str, body: Body) -> Body:
    system, turns = _system_apart(question.messages)
    roles = {"assistant": "model"}
    names = {"max_tokens": "max_output_tokens", "stop": "stop_sequences"}
    config = _renamed(question.parameters, names)
    form = config.pop("response_format", None)
    if form:
        config["response_mime_type"] = "application/json"
        if "json_schema" in form:
            config["response_json_schema"] = form["json_schema"]["schema"]
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
        **({"generationConfig": config} if config else {}),
    }


def _system_apart(turns: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    """Split turns into the leading system turns and the rest (for Anthropic and Gemini)."""
    count = next((i for i, turn in enumerate(turns) if turn.role != "system"), len(turns))
    return turns[:count], turns[count:]


def _renamed(parameters: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in parameters.items()}


_FORMATS: dict[str, Callable[[Question, str, Body], Body]] = {
    "/chat/completions": _chat,
    "/embeddings": _embeddings,
    "/responses": lambda question, *_: responses_body(question),
    "/messages": _messages,
    "/models/{model}:generateContent": _generate_content,
}
