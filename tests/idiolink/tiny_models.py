"""Tiny models of each architecture family, as folders with a models.yaml entry."""

from pathlib import Path
from typing import Any

from pieline.models.embedder import ConfiguredEmbedder
from rehearsal.weights.anatomy import Anatomy
from rehearsal.weights.checkpoints import save_checkpoint

SENTENCES = [
    "They broke the ice with a joke.",
    "It melted.",
    "And then the warm water broke the ice in it, they joke with a query.",
]
_WORDS = (
    *("They", "they", "broke", "the", "ice", "with", "a", "joke", "It", "melted", "And", "then"),
    *("warm", "water", "in", "it", "query", "Instruct"),
)
"""Words that are single tokens in each vocabulary; other words are split."""
WORDS = tuple(word for word in _WORDS if word.islower())
"""Words of an uncased vocabulary."""
DECODERS = ("qwen2", "qwen3", "mistral", "llama", "gemma2")


def save_tiny(family: str, folder: Path, *, pooling: str | None = None) -> Path:
    """Write a tiny model of a family; `pooling` makes it a sentence-transformers folder."""
    words = _WORDS if family in DECODERS else WORDS
    return save_checkpoint(Anatomy(family, pooling, hidden=32), folder, words=words)


def tiny_entry(folder: Path, **fields: Any) -> ConfiguredEmbedder:
    """Return a models.yaml entry for a folder."""
    shared = {"label": "tiny", "licence": "CC0-1.0", "checkpoint": "tiny", "kind": "embedder"}
    shared |= {"source": "folder", "path": str(folder), "trained_with_instructions": False}
    shared |= {"instruction_format": "instruct_query", "max_length": 128, "batch_size": 4}
    return ConfiguredEmbedder.model_validate(shared | fields)
