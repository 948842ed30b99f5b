"""What keeps a language model from being asked on this machine."""

import os
from collections.abc import Iterator

from pieline.core.errors import UserError
from pieline.llm.settings import LLMSettings
from pieline.llm.weights import find_weights
from pieline.models.llm import LLMEntry

SCHEMA_SETTING = "zero_shot_schema"
"""The setting in which the provider enforces the form of the answer."""


def cannot_be_asked(entry: LLMEntry, setting: str) -> str:
    """Why a model cannot be asked in a setting, whoever asks; empty if it can."""
    if setting == SCHEMA_SETTING and "response_format" not in entry.accepts:
        return "the provider enforces no form of the answer"
    return ""


def obstacles(entry: LLMEntry, settings: LLMSettings) -> Iterator[str]:
    """All that keeps a model from being asked, each as half a sentence.

    Looks at nothing that takes time: neither provider nor digest of weights.
    """
    if settings.mode == "replay":
        yield "llm.mode is replay"
        return
    if entry.retired or entry.checkpoint in settings.retired:
        yield "the checkpoint is retired"
    if entry.api_key_env and not os.environ.get(entry.api_key_env, "").strip():
        yield f"the environment variable {entry.api_key_env} is not set"
    if entry.is_local:
        try:
            find_weights(entry)
        except UserError as error:
            yield f"its weights are not here ({error.where}: {error.what})"
    if entry.cost_is_unknown:
        yield "its entry has no prices, so its cost is unknown"
    if entry.paid and settings.max_cost_usd == 0:
        yield "it costs money and llm.max_cost_usd is 0"
