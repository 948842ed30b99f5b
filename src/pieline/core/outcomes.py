"""What became of an answer, for everything that reads predictions."""

from typing import Literal

OutcomeName = Literal[
    "ok", "repaired", "unparseable", "empty", "refused", "filtered", "truncated", "tool_call"
]
"""What became of an answer (see `pieline.llm.parsing.Outcome`)."""


READABLE: frozenset[str] = frozenset({"ok", "repaired"})
"""Outcomes of answers that say something."""
