"""The section `llm` of config.yaml on a command line."""

import json

from pieline.errors import UserError
from pieline.llm.spec import LLMSettings, load_settings


def load_llm_settings(text: str) -> LLMSettings:
    """The settings that a rule hands to its script, as JSON.

    Raises:
        UserError: the text is no such settings.
    """
    try:
        entry = json.loads(text)
    except ValueError:
        entry = None
    if not isinstance(entry, dict):
        raise UserError("not a JSON object", where="--settings", mend="pass the section llm")
    return load_settings(entry, where="--settings")
