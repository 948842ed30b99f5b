"""What ID10M-JAM's section 5 says of its figures in numbers."""

from statistics import median

from pieline.core.records import load_records
from pieline.reporting.given import Given
from pieline.reporting.seeds import median_tolerance
from pieline.reporting.tables import Group, Row, TableContent
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import (
    accuracy,
    confused_runs,
    negative_drift,
    over_seeds,
    panel,
    prompted,
)
from pieline.studies.jam.settings import JamSettings
from pieline.studies.jam.tables.common import (
    TextNumbers,
    heads,
    languages_of,
    notes_on,
    obstacles_of,
    pool_of,
    printed_runs,
    printed_spread,
)

_PANELS = {"": "zero_shot", "_few_shot": "few_shot_sc_cotbest"}
"""Settings whose medians the paper tells, by how their numbers' names end."""
_MEDIANS = {"accuracy": (accuracy, "success"), "drift": (negative_drift, "negative_drift_pct")}
"""What they are of, with the column of Table 3."""
_JUDGED = (
    "A median counts as reproduced within the distance that 95 % of pairs of draws have, if each"
    " printed run is drawn with its deviation (of a single seed: those of the language, pooled)."
)


def text(given: Given) -> TableContent:
    """Medians over the runs of language models, and how many variants confuse some run."""
    metrics = load_records(given.metrics, JamMetrics)
    runs, printed = prompted(metrics), printed_runs(given)
    wanted = {key[:2] for key in printed if key.setting != "fine_tuned"}
    made = {key[:2] for key in runs}
    of_paper = [item for item in metrics if item.language in JamSettings().languages]
    obstacles = obstacles_of(of_paper)
    if wanted - made:
        obstacles.append(f"{len(wanted & made)} of the paper's {len(wanted)} runs were made")
    if made - wanted:
        obstacles.append("with runs that the paper does not have")
    numbers = TextNumbers(given.files["text_numbers"], obstacles, given.metrics)
    reasoning = {model.name for model in (*given.models, *given.absent) if model.reasoning}
    rows = []

    def add(name: str, value: float | None, decimals: int, tolerance: float = 0.0) -> None:
        why = "unknown of every run" if value is None else ""
        cell = numbers.cell(name, value, decimals=decimals, why=why, tolerance=tolerance)
        rows.append(Row((name.replace("_", " "),), (cell,)))

    for language in sorted({*JamSettings().languages, *languages_of(runs)}):
        counts = confused_runs(runs, language)
        confusing = sum(count > 0 for count in counts.values()) if counts else None
        add(f"confusing_variants_{language}", confusing, 0)
        for name, (value, column) in _MEDIANS.items():
            for ending, setting in _PANELS.items():
                ours, theirs = (
                    [key for key in panel(of, setting, reasoning) if key.language == language]
                    for of in (runs, printed)
                )
                means = [found.mean for key in ours if (found := over_seeds(runs[key], value))]
                tolerance = 0.0
                if theirs:
                    spreads = (printed_spread(printed, key, column) for key in theirs)
                    known = [item for item in spreads if item]
                    tolerance = median_tolerance(known, pool_of(printed, theirs[0], column))
                if name == "accuracy":  # Table 3 prints successes.
                    tolerance *= 100 / (numbers.printed(f"variants_{language}") or 100)
                middle = median(means) if means else None
                add(f"median_{name}_{language}{ending}", middle, 2, tolerance)
    return TableContent(
        heads=(heads("Number", "ours (printed)"),),
        groups=(Group(tuple(rows)),),
        caption="Medians over language models (accuracy on originals and negative drift, in per"
        " cent) and the number of hard variants that confuse at least one of them. Reasoning models"
        " are in the medians of both settings, as in Figure 2.",
        notes=(
            *([_JUDGED] if any(item.dataset_is_released for item in metrics) else []),
            *notes_on(metrics, given),
        ),
        wide=False,
    )
