"""Compare a request body with its question, and record the body without repeating texts.

litellm constructs the body, and may add a limit, change a role or drop a parameter. Therefore, each
field of a body is compared, before the body is sent, with the body that is expected for the
question in the provider's format. The body is recorded with the answer, so that the comparison can
be repeated.

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
"""Only key of an object that refers to a part of the question."""
_ABSENT = object()
"""Sentinel for the value of a field that a body does not have."""
_SHOWN = 80
"""Maximum characters of a value in an error message."""


def shorten_request(question: Question, path: str, body: Body) -> SentRequest:
    """Return the request to record, with references in place of the question's content.

    Args:
        question: Question that is sent.
        path: Path of the URL.
        body: Request body.
    """
    reference_by_text: dict[str, int | str] = {}
    larger_parts: dict[int | str, Any] = {}
    for reference, part in _referable_parts(question).items():
        if isinstance(part, str):
            reference_by_text.setdefault(part, reference)
        else:
            larger_parts[reference] = part

    def shorten(value: Any) -> Any:
        if isinstance(value, str):
            is_text_of_turn = value in reference_by_text
            return {_REFERENCE: reference_by_text[value]} if is_text_of_turn else value
        for reference, part in larger_parts.items():
            if value == part:
                return {_REFERENCE: reference}
        if isinstance(value, list):
            return [shorten(item) for item in value]
        if isinstance(value, dict):
            shortened = {name: shorten(item) for name, item in value.items()}
            # Escape a body that itself contains {"question": ...}.
            return {_REFERENCE: shortened} if shortened.keys() == {_REFERENCE} else shortened
        return value

    return SentRequest(path=path, body={name: shorten(item) for name, item in body.items()})


def restore_body(question: Question, recorded: SentRequest) -> Body:
    """Return the request body that `shorten_request` shortened.

    Raises:
        KeyError, TypeError: A reference does not exist in the question.
    """
    parts = _referable_parts(question)

    def restore(value: Any) -> Any:
        if isinstance(value, list):
            return [restore(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {_REFERENCE}:
            reference = value[_REFERENCE]
            if not isinstance(reference, dict):
                return parts[reference]
            value = reference  # an escaped object
        return {name: restore(item) for name, item in value.items()}

    return {name: restore(item) for name, item in recorded.body.items()}


def _referable_parts(question: Question) -> dict[int | str, Any]:
    """Return the parts of a question that a body may refer to, by reference.

    The parts are the text of each turn (by index), all turns (`messages`), and the parameters and
    raw fields that are objects (by name).
    """
    parts: dict[int | str, Any] = {
        index: turn.content for index, turn in enumerate(question.messages)
    }
    parts["messages"] = [turn._asdict() for turn in question.messages]
    for fields in (question.parameters, question.body):
        parts.update({name: value for name, value in fields.items() if isinstance(value, dict)})
    return parts


def merge_fields(request: Mapping[str, Any], fields: Mapping[str, Any], path: str = "") -> Body:
    """Return a request body with the raw fields of an entry merged in.

    If the body and the raw fields have an object under the same name, the two objects are merged.

    Args:
        request: Request body, or an object in it.
        fields: Raw fields to merge in.
        path: Names of the objects that contain the fields, separated by dots, for error messages.

    Raises:
        ValueError: A field is in both, possibly in different spellings (`maxTokens`,
            `max_tokens`), and is not an object with the same name in both.
    """
    names_in_request = {normalized(name): name for name in request}
    merged = dict(request)
    for name, value in fields.items():
        field_path = f"{path}.{name}" if path else name
        name_in_request = names_in_request.get(normalized(name))
        if name_in_request is None:
            merged[name] = value
            continue
        are_objects = isinstance(value, Mapping) and isinstance(request.get(name), Mapping)
        if name_in_request != name or not are_objects:
            raise ValueError(f"already has {name_in_request}, so body cannot set {field_path}")
        merged[name] = merge_fields(request[name], value, field_path)
    return merged


def difference(question: Question, path: str, body: Body) -> str | None:
    """Return how a body for a URL path differs from its question; None if it does not differ.

    Properties that a format cannot express are ignored: the index of the sample and, in the formats
    of Anthropic and Gemini, the name of a JSON schema and its strictness, which is implied.
    """
    model = api_model_name(question.model)
    for end_of_path, build_body in _FORMATS.items():
        if path.endswith(end_of_path.format(model=model)):
            try:
                expected = merge_fields(build_body(question, model, body), question.body)
            except ValueError as error:
                return str(error)
            differences = list(_find_differences(expected, body))
            return differences[0] if differences else None
    return f"goes to {path}, which is the address of an unknown format or of another model"


def describe_mismatch(question: Question, recorded: SentRequest) -> str | None:
    """Return how a recorded body differs from its question; None if it does not differ."""
    try:
        problem = difference(question, recorded.path, restore_body(question, recorded))
    except (KeyError, TypeError):
        return "the request body refers to something that the question does not have"
    return f"the request body {problem}" if problem else None


def _find_differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Yield a description of each field in which two JSON values differ.

    Args:
        expected: Value that the question implies.
        actual: Value in the request body.
        path: Names and indices of the objects and lists that contain the values.
    """
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for name in sorted(expected.keys() | actual.keys()):
            field_path = f"{path}.{name}" if path else name
            expected_field = expected.get(name, _ABSENT)
            actual_field = actual.get(name, _ABSENT)
            yield from _find_differences(expected_field, actual_field, field_path)
        return
    are_lists = isinstance(expected, list) and isinstance(actual, list)
    if are_lists and len(expected) == len(actual):
        for index, (expected_item, actual_item) in enumerate(zip(expected, actual, strict=True)):
            yield from _find_differences(expected_item, actual_item, f"{path}.{index}")
        return
    # In Python, true equals 1.
    only_one_is_boolean = isinstance(expected, bool) != isinstance(actual, bool)
    if expected != actual or only_one_is_boolean:
        actual_json, expected_json = _to_short_json(actual), _to_short_json(expected)
        yield f"has {path} {actual_json}, but the question has {expected_json}"


def _to_short_json(value: Any) -> str:
    """Return the beginning of a value's JSON; "none" for `_ABSENT`."""
    text = "none" if value is _ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _chat_body(question: Question, model: str, body: Body) -> Body:
    """Return the expected body in OpenAI's chat format, with the parameters' names in `body`.

    OpenAI and Mistral have other names for some parameters.
    """
    other_names = {"max_tokens": "max_completion_tokens", "seed": "random_seed"}
    names_in_body = {name: other for name, other in other_names.items() if other in body}
    turns = [turn._asdict() for turn in question.messages]
    return {"model": model, "messages": turns, **_rename(question.parameters, names_in_body)}


def responses_body(question: Question) -> Body:
    """Return a question's body in OpenAI's format of responses, without the raw fields."""
    fields = _rename(question.parameters, {"max_tokens": "max_output_tokens"})
    effort = fields.pop("reasoning_effort", None)
    if effort:
        fields["reasoning"] = {"effort": effort}
    response_format = fields.pop("response_format", None)
    if response_format:
        schema = response_format.get("json_schema", {})
        fields["text"] = {"format": {"type": response_format["type"], **schema}}
    turns = [turn._asdict() for turn in question.messages]
    return {"model": api_model_name(question.model), "input": turns, **fields}


def _embeddings_body(question: Question, model: str, body: Body) -> Body:
    """Return the expected body in OpenAI's format of embeddings."""
    return {"model": model, "input": [turn.content for turn in question.messages]}


def _messages_body(question: Question, model: str, body: Body) -> Body:
    """Return the expected body in Anthropic's format of messages."""
    system_turns, other_turns = _split_system_turns(question.messages)
    fields = _rename(question.parameters, {"stop": "stop_sequences"})
    if "json_schema" in fields.get("response_format", ()):
        schema = fields.pop("response_format")["json_schema"]["schema"]
        fields["output_format"] = {"type": "json_schema", "schema": schema}
    if system_turns:
        fields["system"] = [_text_part(turn) for turn in system_turns]
    messages = [{"role": turn.role, "content": [_text_part(turn)]} for turn in other_turns]
    return {"model": model, "messages": messages, **fields}


def _text_part(turn: Message) -> dict[str, str]:
    """Return the text of a turn in Anthropic's format."""
    return {"type": "text", "text": turn.content}


def _generate_content_body(question: Question, model: str, body: Body) -> Body:
    """Return the expected body in Gemini's format of generateContent."""
    system_turns, other_turns = _split_system_turns(question.messages)
    role_names = {"assistant": "model"}
    contents = [
        {"role": role_names.get(turn.role, turn.role), "parts": [{"text": turn.content}]}
        for turn in other_turns
    ]
    expected: Body = {"contents": contents}
    if system_turns:
        parts = [{"text": turn.content} for turn in system_turns]
        expected["system_instruction"] = {"parts": parts}
    parameter_names = {"max_tokens": "max_output_tokens", "stop": "stop_sequences"}
    config = _rename(question.parameters, parameter_names)
    response_format = config.pop("response_format", None)
    if response_format:
        config["response_mime_type"] = "application/json"
        if "json_schema" in response_format:
            config["response_json_schema"] = response_format["json_schema"]["schema"]
    if config:
        expected["generationConfig"] = config
    return expected


def _split_system_turns(turns: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    """Split turns into the system turns at the start and all later turns."""
    count = 0
    while count < len(turns) and turns[count].role == "system":
        count += 1
    return turns[:count], turns[count:]


def _rename(parameters: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return parameters under the provider's names; `names` maps our names to names that differ."""
    return {names.get(name, name): value for name, value in parameters.items()}


_FORMATS: dict[str, Callable[[Question, str, Body], Body]] = {
    "/chat/completions": _chat_body,
    "/embeddings": _embeddings_body,
    "/responses": lambda question, *_: responses_body(question),
    "/messages": _messages_body,
    "/models/{model}:generateContent": _generate_content_body,
}
"""Functions that return the expected body for a question, a model name and the actual body, by the
end of the URL path."""
