"""Determine why a language model cannot be queried on this machine or in a setting."""

from collections.abc import Iterator

from pieline.core.errors import UserError
from pieline.llm.keys import api_base, api_key
from pieline.llm.settings import LLMSection
from pieline.models.llm import LLMEntry
from pieline.models.llm_weights import find_weights

SCHEMA_SETTING = "zero_shot_schema"
"""Setting in which the provider enforces the format of the answer."""


def unsupported_reason(entry: LLMEntry, setting: str) -> str:
    """Return why a model does not support a setting; empty if the model supports the setting."""
    if setting == SCHEMA_SETTING and "response_format" not in entry.accepts:
        return "the provider enforces no form of the answer"
    return ""


def obstacles(entry: LLMEntry, settings: LLMSection) -> Iterator[UserError]:
    """Yield the reasons why a model cannot be queried, as errors to raise or print.

    In mode `replay`, the mode is the only reason. Slow checks are skipped: the function neither
    contacts the provider nor computes digests of weights.
    """

    def obstacle(what: str, hint: str) -> UserError:
        return UserError(what, where=entry.label, hint=hint)

    if settings.mode == "replay":
        yield obstacle("llm.mode is replay", "import recordings, or ask with llm.mode: record")
        return
    end_reason = settings.end_reason(entry)
    if end_reason:
        yield obstacle(end_reason, "import its recordings, or leave the model out")
    try:
        api_key(entry)
    except UserError as error:
        yield error
    try:
        api_base(entry, settings)
    except UserError as error:
        yield error
    if entry.is_local:
        try:
            find_weights(entry)
        except UserError as error:
            what = f"its weights are not here ({error.where}: {error.what})"
            yield obstacle(what, error.hint)
    if entry.cost_is_unknown:
        yield obstacle(
            "it has no prices, so its cost is unknown",
            "add prices to its entry, or `prices: free` if it costs nothing",
        )
    if entry.paid and settings.max_cost_usd == 0:
        yield obstacle(
            "it costs money and llm.max_cost_usd is 0",
            "raise it: `snakemake --cores 1 estimate_cost` prints what the run may cost",
        )
