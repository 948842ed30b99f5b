"""What ID10M-JAM's section 5 says of its figures in numbers."""

from statistics import median

from pieline.core.records import load_records
from pieline.reporting.given import Given
from pieline.reporting.tables import Group, Row, TableContent
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import (
    Runs,
    accuracy,
    confused_runs,
    negative_drift,
    over_seeds,
    prompted,
)
from pieline.studies.jam.settings import JamSettings
from pieline.studies.jam.tables.common import (
    TextNumbers,
    heads,
    languages_of,
    obstacles_of,
)

PAPER_LLM_RUNS = 16
"""Language models and settings behind the paper's figures: seven in two settings, two in one."""


def text(given: Given) -> TableContent:
    """Medians over the runs of language models, and how many variants confuse some run."""
    metrics = load_records(given.metrics, JamMetrics)
    runs = prompted(metrics)
    of_paper = [item for item in metrics if item.language in JamSettings().languages]
    obstacles = obstacles_of(of_paper)
    made = len({(key.model, key.setting) for key in runs})
    if made < PAPER_LLM_RUNS:
        obstacles.append(f"{made} of the paper's {PAPER_LLM_RUNS} runs were made")
    numbers = TextNumbers(given.files["text_numbers"], obstacles, given.metrics)
    rows = []
    for name, value in sorted(_text_numbers(runs).items()):
        # Medians to two decimals, counts to none.
        decimals = 0 if name.startswith("confusing") else 2
        why = "unknown of every run" if value is None else ""
        cell = numbers.cell(name, value, decimals=decimals, why=why)
        rows.append(Row((name.replace("_", " "),), (cell,)))
    return TableContent(
        heads=(heads("Number", "ours (printed)"),),
        groups=(Group(tuple(rows)),),
        caption="Medians over language models (accuracy on originals and negative drift, in per"
        " cent) and the number of hard variants that confuse at least one of them.",
        notes=given.notes,
        wide=False,
    )


def _text_numbers(runs: Runs) -> dict[str, float | None]:
    """Section 5's medians over runs, and the number of variants that confuse some run."""
    numbers: dict[str, float | None] = {}
    for language in sorted({*JamSettings().languages, *languages_of(runs)}):
        for suffix, setting in (("", "zero_shot"), ("_few_shot", "few_shot_sc_cotbest")):
            chosen = [
                found
                for key, found in runs.items()
                if (key.language, key.setting) == (language, setting)
            ]
            for name, value in (("accuracy", accuracy), ("drift", negative_drift)):
                means = [over_seeds(found, value) for found in chosen]
                known = [item.mean for item in means if item]
                numbers[f"median_{name}_{language}{suffix}"] = median(known) if known else None
        counts = confused_runs(runs, language)
        numbers[f"confusing_variants_{language}"] = (
            sum(count > 0 for count in counts.values()) if counts else None
        )
    return numbers
