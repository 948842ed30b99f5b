"""What keeps a language model from being asked on this machine."""

import os

from pieline.core.errors import UserError
from pieline.llm.server import find_weights
from pieline.models.llm import LLMEntry

SCHEMA_SETTING = "zero_shot_schema"
"""The setting in which the provider enforces the form of the answer."""


def cannot_be_asked(entry: LLMEntry, setting: str) -> str:
    """Why a model cannot be asked in a setting, whoever asks; empty if it can."""
    if setting == SCHEMA_SETTING and "response_format" not in entry.accepts:
        return "the provider enforces no form of the answer"
    return ""


def obstacle(entry: LLMEntry, mode: str) -> str:
    """What keeps a model from being asked, as half a sentence; empty if nothing does.

    Looks at nothing that takes time: neither provider nor digest of weights.

    Args:
        entry: the model.
        mode: `llm.mode`.
    """
    if mode == "replay":
        return "llm.mode is replay"
    if entry.retired:
        return "the checkpoint is retired"
    if entry.api_key_env and not os.environ.get(entry.api_key_env, "").strip():
        return f"the environment variable {entry.api_key_env} is not set"
    if entry.is_local:
        try:
            find_weights(entry)
        except UserError as error:
            return f"its weights are not here ({error.where}: {error.what})"
    return ""
