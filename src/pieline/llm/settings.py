"""How language models may be asked: the section `llm` of config.yaml."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from pieline.core.settings import Settings
from pieline.models.llm import LLMEntry


class ProviderLimits(Settings):
    """What one provider allows one account; null is no limit."""

    concurrency: int = Field(default=8, ge=1, le=256)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)


class LLMSettings(Settings):
    """How language models may be asked: the `llm:` section of config.yaml.

    Attributes:
        mode: `record` reads recordings and asks what is missing; `replay` never asks; `fresh` asks
            everything anew and then replaces the recordings.
        max_cost_usd: most that all runs with this recordings folder may spend together (see
            `spending`). The default of 0 asks nothing that costs money.
        timeout_s: seconds for one attempt, from sending to the last byte.
        start_timeout_s: seconds that the server of a local model may take to load it.
        max_attempts: attempts for one question before it counts as failed.
        backoff_s: scale of the random exponential wait between attempts.
        max_wait_s: longest wait that a Retry-After header is followed for.
        providers: limits by provider; the entry `default` serves those not listed.
        recordings_folder: holds all recordings, the spending ledger and the lock files.
        retired: checkpoints that are not asked, with the reason; a job is told those that
            models.yaml calls retired.
    """

    mode: Literal["record", "replay", "fresh"] = "record"
    max_cost_usd: float = Field(default=0.0, ge=0)
    timeout_s: float = Field(default=120.0, gt=0)
    start_timeout_s: float = Field(default=1800.0, gt=0)
    max_attempts: int = Field(default=6, ge=1)
    backoff_s: float = Field(default=1.0, gt=0)
    max_wait_s: float = Field(default=300.0, gt=0)
    providers: dict[str, ProviderLimits] = Field(default_factory=dict)
    recordings_folder: Path = Path("recordings")
    retired: dict[str, str] = Field(default_factory=dict)

    def for_jobs(self, root: Path, entries: Iterable[object]) -> Self:
        """The same as jobs need it.

        Args:
            root: folder of the project, as seen from the working directory.
            entries: of models.yaml.
        """
        ended = {
            entry.checkpoint: entry.retired
            for entry in entries
            if isinstance(entry, LLMEntry) and entry.retired
        }
        return self.model_copy(
            update={
                "recordings_folder": root / self.recordings_folder,
                "retired": self.retired | ended,
            }
        )

    def limits(self, provider: str) -> ProviderLimits:
        """The limits of `provider`, else those of `default`."""
        return self.providers.get(provider) or self.providers.get("default") or ProviderLimits()
