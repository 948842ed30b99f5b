"""Outcomes of parsing a model's answer."""

from typing import Literal

OutcomeName = Literal[
    "ok",
    "repaired",
    "unparseable",
    "empty",
    "refused",
    "filtered",
    "truncated",
    "tool_call",
    "failed",
]
"""Outcome of parsing an answer (see `pieline.llm.parsing.Outcome`)."""


READABLE: frozenset[str] = frozenset({"ok", "repaired"})
"""Outcomes that provide a prediction."""
