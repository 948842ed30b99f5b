"""What ID10M-JAM's section 5 says of its figures in numbers."""

from statistics import median

from pieline.core.records import load_records
from pieline.reporting.given import Given
from pieline.reporting.printed import compare, read_published, rounded
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
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
from pieline.studies.jam.tables.common import languages_of, notes_of, obstacles_of

PAPER_LLM_RUNS = 16
"""Language models and settings behind the paper's figures: seven in two settings, two in one."""


def text(given: Given) -> TableContent:
    """Medians over the runs of language models, and how many variants confuse some run."""
    metrics = load_records(given.metrics, JamMetrics)
    runs = prompted(metrics)
    printed = read_published(given.files["text_numbers"], ["id"])
    obstacles = obstacles_of(metrics)
    made = len({(key.model, key.setting) for key in runs})
    if made < PAPER_LLM_RUNS:
        obstacles.append(f"{made} of the paper's {PAPER_LLM_RUNS} runs were made")
    rows = []
    for name, value in sorted(_text_numbers(runs).items()):
        comparison = compare(
            value,
            printed.get((f"jam.{name}",), {}).get("value"),
            obstacles=obstacles if value is not None else ["unknown of every run", *obstacles],
        )
        number = Number({"id": f"jam.{name}", "metric": "value"}, comparison, given.metrics)
        # Medians to two decimals, counts to none.
        text = rounded(value, 0 if name.startswith("confusing") else 2)
        rows.append(Row((name.replace("_", " "),), (Cell(number, text=text),)))
    return TableContent(
        heads=((Head("Number"), Head("ours (printed)")),),
        groups=(Group(tuple(rows)),),
        caption="Medians over language models (accuracy on originals and negative drift, in per"
        " cent) and the number of hard variants that confuse at least one of them.",
        notes=notes_of(*(item.dataset_is_released for item in metrics)),
        wide=False,
    )


def _text_numbers(runs: Runs) -> dict[str, float | None]:
    """Section 5's medians over runs, and the number of variants that confuse some run."""
    numbers: dict[str, float | None] = {}
    for language in sorted({*JamSettings().languages, *languages_of(runs)}):
        for suffix, settings in (
            ("", ("zero_shot",)),
            ("_few_shot", ("few_shot_sc_cotbest",)),
        ):
            chosen = [
                found
                for key, found in runs.items()
                if key.language == language and key.setting in settings
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
