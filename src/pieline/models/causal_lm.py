"""Entries of kind causal_lm."""

from typing import Literal

from pieline.models.checkpoint import CheckpointEntry


class CausalEntry(CheckpointEntry):
    """A causal language model whose attention is looked into (ID10M-JAM, appendix H)."""

    kind: Literal["causal_lm"]
    needs_gpu: bool = False
