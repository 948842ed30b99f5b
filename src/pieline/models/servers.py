"""Define the servers for local language models and the features that each server supports."""

import shlex
from string import Formatter
from typing import NamedTuple

PLACEHOLDERS = frozenset({"checkpoint", "port", "gpus"})
"""Placeholders in a custom server command: path of the weights, port, and number of GPUs."""

_SUPPORTED = frozenset(
    {
        "temperature", "top_p", "top_k", "max_tokens", "seed", "stop",
        "response_format", "presence_penalty", "frequency_penalty",
    }
)  # fmt: skip


class ServerKind(NamedTuple):
    """Kind of server and its features.

    Attributes:
        serves: Supported formats of weights: `GGUF`, `FOLDER` or both.
        supported_parameters: Request parameters that affect answers; None if unknown. An entry must
            not accept other parameters, because they would be recorded without having an effect.
        fields: Fields of an entry that are passed to the server when it is started.
        needs: Fields that an entry must set, because the server would otherwise choose a value.
    """

    serves: frozenset[str]
    supported_parameters: frozenset[str] | None
    fields: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()


GGUF, FOLDER = "a GGUF file", "a folder"
SERVERS = {
    "llama.cpp": ServerKind(frozenset({GGUF}), _SUPPORTED, frozenset({"chat_template"})),
    "vllm": ServerKind(
        frozenset({FOLDER}),
        _SUPPORTED,
        frozenset({"chat_template", "dtype"}),
        frozenset({"dtype"}),
    ),
}
"""Known servers, by their names in entries."""

CUSTOM = ServerKind(frozenset({GGUF, FOLDER}), None)
"""Features assumed for a custom server command."""


def custom_command(server: str, **values: object) -> list[str]:
    """Return the words of a custom server command after filling in its placeholders.

    Args:
        server: Command line.
        values: Values of the placeholders.

    Raises:
        ValueError: The command cannot be parsed, has an unknown placeholder, or lacks
            `{checkpoint}` or `{port}`.
    """
    words = shlex.split(server)
    placeholders: set[str] = set()
    for word in words:
        for _, placeholder, _, _ in Formatter().parse(word):
            if placeholder is not None:
                placeholders.add(placeholder)
    unknown = placeholders - PLACEHOLDERS
    if unknown:
        known = ", ".join(sorted(PLACEHOLDERS))
        raise ValueError(f"server: unknown placeholder {{{min(unknown)}}}; known: {known}")
    missing = {"checkpoint", "port"} - placeholders
    if missing:
        raise ValueError(
            f"server: {server!r} is not one of {', '.join(sorted(SERVERS))}, and as a"
            f" command it lacks {{{min(missing)}}}"
        )
    return [word.format(**values) for word in words]
