"""Define questions to models, and the keys under which the answers are recorded."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, sha256_of
from pieline.models.llm import LLMEntry

EMBEDDED = "embedded"
"""Role of a text to embed, which is the only turn of its question."""


class Message(NamedTuple):
    """One turn of a conversation.

    Attributes:
        role: `system`, `user`, `assistant` or `EMBEDDED`.
        content: Text of the turn.
    """

    role: str
    content: str


@dataclass(frozen=True)
class Question:
    """A question that requests one answer from a model.

    Attributes:
        model: Checkpoint of the queried model (`LLMEntry.checkpoint`).
        messages: Turns that are sent verbatim, in this order.
        parameters: Parameters that are sent, by name.
        sample: Index (from 0) of the sample if the same question is asked several times.
        name: Subject of the question (such as a sentence id) for messages; not part of the key.
        dropped: Names of the requested parameters that the provider does not accept. These
            parameters are not sent, and so are not part of the key.
        body: Raw fields that are merged into the request as written (`LLMEntry.body`).
    """

    model: str
    messages: tuple[Message, ...]
    parameters: Mapping[str, Any] = field(hash=False)
    sample: int = 0
    name: str = field(default="", compare=False)
    dropped: tuple[str, ...] = field(default=(), compare=False)
    body: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        parameters = dict(sorted(self.parameters.items()))
        object.__setattr__(self, "parameters", _normalize_numbers(parameters))
        object.__setattr__(self, "body", _normalize_numbers(self.body))

    @property
    def is_embedded(self) -> bool:
        """Whether the question requests the embedding of a text."""
        return self.messages[0].role == EMBEDDED

    def content(self) -> dict[str, Any]:
        """Return the fields that the key is computed from, as JSON values."""
        content = {
            "model": self.model,
            "messages": [{"role": role, "content": text} for role, text in self.messages],
            "parameters": dict(self.parameters),
            "sample": self.sample,
        }
        if self.body:
            # As text, because the order of the fields (such as a schema's properties) can matter.
            content["body"] = json.dumps(self.body, ensure_ascii=False)
        return content

    @cached_property
    def key(self) -> str:
        """Hexadecimal SHA-256 of the canonical JSON of `content()`.

        Raises:
            UserError: The question cannot be written as JSON (unpaired surrogate, NaN).
        """
        try:
            text = canonical_json(self.content()).encode("utf-8")
        except ValueError as error:  # a lone surrogate, a NaN
            raise UserError(
                f"the question cannot be written as JSON: {error}", where=self.name
            ) from None
        return sha256_of(text)


def make_question(
    spec: LLMEntry,
    messages: Sequence[tuple[str, str]],
    parameters: Mapping[str, Any],
    *,
    sample: int = 0,
    name: str = "",
) -> Question:
    """Return a question in the form in which the model's provider receives it.

    Parameters that the provider does not accept are omitted from the question and its key, and
    listed in `Question.dropped`. Parameters whose value is None are ignored. The question includes
    the fields that are always sent (`LLMEntry.defaults`, `LLMEntry.body`), and its system turns
    have the role `LLMEntry.system_role`.
    """
    sent, dropped = spec.split_parameters(parameters)
    roles = {"system": spec.system_role or "system"}
    turns = tuple(Message(roles.get(role, role), content) for role, content in messages)
    return Question(
        spec.checkpoint, turns, sent, sample, name=name, dropped=dropped, body=spec.body or {}
    )


def _normalize_numbers(value: Any) -> Any:
    """Convert whole floats in a value to integers, so that `1` and `1.0` result in the same key."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _normalize_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_normalize_numbers(item) for item in value]
    return value
