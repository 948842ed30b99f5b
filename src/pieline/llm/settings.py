"""Settings for querying language models: the section `llm` of config.yaml."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pieline.core.errors import UserError, nearest
from pieline.core.settings import Field, Settings
from pieline.models.llm import LLMEntry, Url

TIMEOUT_S = 120.0
"""Default timeout in seconds for models that do not think."""
THINKING_TIMEOUT_S = 900.0
"""Default timeout in seconds for models that think: thinking can take minutes, and is billed even
if the request is abandoned."""


class ProviderLimits(Settings):
    """Limits on the requests to one provider."""

    concurrency: int = Field(
        default=8,
        ge=1,
        le=256,
        affects="nothing",
        description="Maximum number of concurrent requests.",
    )
    requests_per_minute: int | None = Field(
        default=None,
        ge=1,
        affects="nothing",
        description="Maximum number of requests per minute; null: no limit.",
    )
    tokens_per_minute: int | None = Field(
        default=None,
        ge=1,
        affects="nothing",
        description="Maximum number of tokens per minute; null: no limit.",
    )
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        affects="nothing",
        description="Maximum seconds per attempt; null: llm.timeout_s.",
    )


class LLMSection(Settings):
    """Settings for querying language models: the `llm:` section of config.yaml."""

    mode: Literal["record", "replay", "fresh"] = Field(
        default="record",
        affects="predictions",
        deviates=False,
        description="'record': ask only questions without recorded answers; 'replay': use only"
        " recorded answers; 'fresh': ask all questions again, and then replace the recorded"
        " answers.",
    )
    max_cost_usd: float = Field(
        default=0.0,
        ge=0,
        affects="nothing",
        description="Maximum total cost, in US dollars, of all runs that use this recordings"
        " folder; with 0, models that cost money are not queried.",
    )
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        affects="nothing",
        description="Maximum seconds per attempt, from sending the request to the last byte of the"
        " answer, for providers without their own timeout_s; null: 120, or 900 for a reasoning"
        " model.",
    )
    providers: dict[str, ProviderLimits] = Field(
        default_factory=dict,
        affects="nothing",
        description="Limits by provider; 'default' applies to providers that are not listed.",
    )
    api_bases: dict[str, Url] = Field(
        default_factory=dict,
        affects="nothing",
        description="Address of a gateway, by provider; the address in a model's entry takes"
        " precedence.",
    )
    stop_when_cut: bool = Field(
        default=True,
        affects="nothing",
        description="Stop a run if its first answers are useless: if ten or more are all cut off at"
        " the maximum length or answer prompts that the server cut, or if none of twenty or more is"
        " readable. Later runs also ask nothing until the cause is fixed. With 'false', the"
        " remaining questions are asked.",
    )
    recordings_folder: Path = Field(
        default=Path("recordings"),
        affects="nothing",
        description="Folder of all recorded answers, the spending ledger and the lock files.",
    )

    def for_jobs(self, root: Path, entries: Iterable[object]) -> "LLMSettings":
        """Return the settings for jobs.

        In these settings, the recordings folder is relative to the working directory, and `retired`
        contains each checkpoint that has ended according to models.yaml and is not queried through
        a gateway.

        Args:
            root: Project folder, relative to the working directory.
            entries: Entries of models.yaml.

        Raises:
            UserError: `api_bases` names a provider that no entry has.
        """
        models = [entry for entry in entries if isinstance(entry, LLMEntry)]
        providers = {entry.provider for entry in models if not entry.is_local}
        unknown_providers = self.api_bases.keys() - providers
        if unknown_providers:
            provider = min(unknown_providers)
            raise UserError(
                f"no model has the provider {provider!r}",
                where="llm.api_bases",
                hint=nearest(provider, providers),
            )
        retired = {}
        for entry in models:
            reason = entry.end_reason()
            if reason and self.gateway(entry) is None:
                retired[entry.checkpoint] = reason
        folder = root / self.recordings_folder
        return LLMSettings(**{**dict(self), "recordings_folder": folder, "retired": retired})

    def gateway(self, entry: LLMEntry) -> str | None:
        """Return the address of a model's gateway (`api_bases`); None if the model has no gateway.

        Local models and models whose entry has an address are not queried through a gateway.
        """
        if entry.is_local or entry.api_base:
            return None
        return self.api_bases.get(entry.provider)

    def end_reason(self, entry: LLMEntry) -> str:
        """Return why a model that has ended cannot be queried; empty if it can be queried."""
        return entry.end_reason() if self.gateway(entry) is None else ""

    def timeout(self, entry: LLMEntry) -> float:
        """Return the timeout in seconds for one attempt at a question to this model."""
        default = THINKING_TIMEOUT_S if entry.bills_thoughts else TIMEOUT_S
        return self.limits(entry.provider).timeout_s or self.timeout_s or default

    def limits(self, provider: str) -> ProviderLimits:
        """Return a provider's own limits, else those of `default`, else the default values."""
        return self.providers.get(provider) or self.providers.get("default") or ProviderLimits()


class LLMSettings(LLMSection):
    """Settings with which jobs query language models; users cannot set the fields added here.

    Attributes:
        retired: Reasons for not querying checkpoints that have ended, by checkpoint.
        max_attempts: Maximum number of attempts per question; recorded failures of earlier runs
            count.
        backoff_s: Scale in seconds of the random exponential jitter between attempts.
        max_wait_s: Maximum seconds of the jitter, and of the wait that a provider may request
            (Retry-After); if a provider requests a longer wait, the question fails.
        start_timeout_s: Maximum seconds for the server of a local model to start.
    """

    retired: dict[str, str] = Field(default={})
    max_attempts: int = 6
    backoff_s: float = 1.0
    max_wait_s: float = 300.0
    start_timeout_s: float = 1800.0

    def end_reason(self, entry: LLMEntry) -> str:
        """Return why a model that has ended cannot be queried; empty if it can be queried.

        The reason is read from `retired`, because execution specs omit the dates of entries.
        """
        return self.retired.get(entry.checkpoint) or super().end_reason(entry)
