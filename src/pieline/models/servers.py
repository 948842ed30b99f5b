"""Servers for the weights of a language model, and the request parameters that each supports."""

import shlex
from string import Formatter
from typing import NamedTuple

PLACEHOLDERS = frozenset({"checkpoint", "port", "gpus"})
"""What such a command line may leave open: path of the weights, port, number of GPUs."""

_COMMON = frozenset({"temperature", "top_p", "max_tokens", "seed", "stop"})
_MORE = frozenset({"top_k", "response_format", "presence_penalty", "frequency_penalty"})


class ServerKind(NamedTuple):
    """One kind of server: what it serves and supports.

    Attributes:
        serves: GGUF files, folders of safetensors, or both.
        supported_parameters: of a request; null if only the user knows them. What a server
            ignores must not be recorded as if it had been applied.
        fields: of an entry, those that it is started with.
        needs: of these, those that must be said because it would choose silently.
        batches: whether answers may change with what else is asked at that time, or by its seed.
    """

    serves: frozenset[str]
    supported_parameters: frozenset[str] | None
    fields: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    batches: bool = False


GGUF, FOLDER = "a GGUF file", "a folder"
SERVERS = {
    "llama.cpp": ServerKind(
        frozenset({GGUF}), _COMMON | _MORE, frozenset({"chat_template", "gpu_layers"})
    ),
    # It refuses top_k, takes frequency_penalty for another one, and ignores the rest.
    "transformers": ServerKind(
        frozenset({FOLDER}), _COMMON, frozenset({"chat_template", "dtype"}), frozenset({"dtype"})
    ),
    "vllm": ServerKind(
        frozenset({FOLDER}),
        _COMMON | _MORE,
        frozenset({"batch_invariant", "chat_template", "dtype"}),
        frozenset({"dtype"}),
        batches=True,
    ),
}
"""By the name that an entry gives."""

OWN = ServerKind(frozenset({GGUF, FOLDER}), None, batches=True)
"""A command line of the user's own."""


def own_command(server: str, **values: object) -> list[str]:
    """The words of a command line of the user's own.

    Args:
        server: the command line.
        values: of its placeholders.

    Raises:
        ValueError: it is no command line, has an unknown placeholder, or does not say where the
            weights or the port go.
    """
    words = shlex.split(server)
    parts = (part for word in words for part in Formatter().parse(word))
    named = {name for _, name, _, _ in parts if name is not None}
    if unknown := named - PLACEHOLDERS:
        known = ", ".join(sorted(PLACEHOLDERS))
        raise ValueError(f"server: unknown placeholder {{{min(unknown)}}}; known: {known}")
    if lacking := {"checkpoint", "port"} - named:
        raise ValueError(
            f"server: {server!r} is none of {', '.join(sorted(SERVERS))}, and as a"
            f" command it lacks {{{min(lacking)}}}"
        )
    return [word.format(**values) for word in words]
