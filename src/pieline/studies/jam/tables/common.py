"""What all tables and figures of ID10M-JAM say alike."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from pieline.languages.registry import find
from pieline.reporting.given import Given
from pieline.reporting.printed import compare, read_published
from pieline.reporting.tables import Cell, Head, Number
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import RunKey

GROUPS = {
    "zero_shot": "Zero-shot",
    "zero_shot_schema": "Zero-shot, form enforced",
    "few_shot_sc_cotbest": "Few-shot +SC+CoTBest",
    "reasoning": "Reasoning LLMs",
    "fine_tuned": "Encoders",
}
"""Parts of every table, in the paper's order; the second is not the paper's."""

NOT_RELEASED = "sample data or other than the released ID10M-JAM"


def heads(*texts: str) -> tuple[Head, ...]:
    """Headings of one column each, written alike everywhere."""
    return tuple(map(Head, texts))


class TextNumbers:
    """Cells of numbers that the paper's text prints (published/text_numbers.csv).

    Args:
        path: the file.
        obstacles: what makes ours incomparable with them.
        metrics: the metric files that ours come from.
        key: what identifies each besides its id.
    """

    def __init__(
        self,
        path: str | Path,
        obstacles: Sequence[str],
        metrics: tuple[str, ...],
        key: Mapping[str, str] | None = None,
    ) -> None:
        self._printed = read_published(path, ["id"])
        self._obstacles, self._metrics, self._key = obstacles, metrics, key or {}

    def cell(self, name: str, ours: float | None, *, decimals: int, why: str = "") -> Cell:
        """The cell of `jam.<name>`, printed to so many decimals; `why` says why ours is unknown."""
        identifier = f"jam.{name}"
        comparison = compare(
            ours,
            self._printed.get((identifier,), {}).get("value"),
            obstacles=[why, *self._obstacles] if why else self._obstacles,
            decimals=decimals,
        )
        key = {**self._key, "id": identifier, "metric": "value"}
        return Cell(Number(key, comparison, self._metrics))


def unknown(key: Mapping[str, str], reason: str) -> Cell:
    """The cell of a number that is not there because its run was not made."""
    return Cell(Number(key, compare(None, None, obstacles=[f"not run: {reason}"])))


def code_of(language: str) -> str:
    """What narrow columns call a language."""
    return find(language).code.upper()


def languages_of(runs: Iterable[RunKey]) -> list[str]:
    """The languages of some runs, in the order of every table."""
    return sorted({key.language for key in runs})


def not_made(given: Given, runs: Collection[RunKey]) -> list[RunKey]:
    """The runs that the configuration names and of which no seed was run."""
    keys = (RunKey(setting, model, language) for model, setting, language, _ in given.left_out())
    return [key for key in dict.fromkeys(keys) if key not in runs]


def left_out_seeds(given: Given, runs: Collection[RunKey]) -> tuple[str, ...]:
    """Notes on seeds that are missing of runs that were made otherwise."""
    labels = given.labels()
    return tuple(
        f"Without seed {seed} of {labels[model]} ({GROUPS[setting]}, {find(language).label}):"
        f" {reason}."
        for (model, setting, language, seed), reason in given.left_out().items()
        if RunKey(setting, model, language) in runs
    )


def obstacles_of(metrics: Sequence[JamMetrics]) -> list[str]:
    """What makes numbers of these runs incomparable with the printed ones."""
    found = []
    if not all(item.dataset_is_released for item in metrics):
        found.append(NOT_RELEASED)
    if not all(item.overall.variants for item in metrics):
        found.append("no hard variants")
    reasons = (reason for item in metrics for reason in item.conditions.deviations)
    return [*found, *dict.fromkeys(reasons)]
