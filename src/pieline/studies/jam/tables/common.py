"""Helpers shared by the tables and figures of ID10M-JAM."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pieline.core.conditions import Measured, MetricRecord, data_is_explained
from pieline.core.uncertainty import Interval, Spread
from pieline.core.upstream import BY_COUNTS
from pieline.languages.registry import get_language
from pieline.reporting.columns import Column, Source, bounds, interval_text, sources
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import PrintedRow, per_cent
from pieline.reporting.seeds import PrintedSeeds
from pieline.studies.jam.metrics.neutral import NeutralMetrics
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import RunKey, unreadable
from pieline.studies.jam.settings import JamFineTuning, JamSettings

GROUPS = {
    "zero_shot": "Zero-shot",
    "zero_shot_schema": "Zero-shot, form enforced",
    "few_shot_sc_cotbest": "Few-shot +SC+CoTBest",
    "reasoning": "Reasoning LLMs",
    "fine_tuned": "Encoders",
    "baseline": "No model",
}
"""Titles of table sections in the paper's order; the second and the last are not in the paper."""


_OTHER_TITLES = {
    "fine_tuned_originals": "Encoders + originals",
    "fine_tuned_neutral": "Encoders + neutral contexts",
    "fine_tuned_hard": "Encoders + hard variants",
}


def title_of(setting: str) -> str:
    """Return the display name of a setting; user-defined settings keep their name."""
    return (GROUPS | _OTHER_TITLES).get(setting, setting)


PROMPTS = (
    "SC: self-consistency, an idiom stays if most of several sampled answers name it; CoTBest:"
    " chain of thought that lists candidates and chooses at most one idiom."
)

JUDGED = (
    "A mean is within sampling range, but not equal, if it lies in the 95% t interval (Welch) for"
    " the difference between our mean and the paper's (with one seed of ours: in the prediction"
    " interval). A deviation is within sampling range if it lies in the F interval for the ratio of"
    " two variances. For a single printed seed, or a printed deviation of 0.00, the deviations of"
    " the same column over several seeds are pooled by language, separately for prompted and for"
    " fine-tuned models."
)
PAPER_SEEDS = {False: len(JamSettings().seeds), True: len(JamFineTuning().seeds)}
"""Number of seeds behind the paper's standard deviations, by whether the model is fine-tuned."""
PrintedRuns = Mapping[RunKey, PrintedRow]
"""Rows of a printed table by run, with model names as in models.yaml."""

R = TypeVar("R")

NOT_RELEASED = "sample data or other than the released ID10M-JAM"


def percentage(
    name: str,
    header: str,
    share: Callable[[R], tuple[float | None, Interval | None]],
    latex: str | None = None,
) -> Column[R]:
    """Return a column with a share and its interval in percent; the CSV also has the bounds."""

    def value(item: R) -> float | None:
        return per_cent(share(item)[0])

    def details(source: Source[R]) -> dict[str, str]:
        return bounds(share(source.records[0])[1]) if source.records else {}

    def text(item: R) -> str:
        return interval_text(value(item), share(item)[1], 1)

    return Column(name, header, value, latex, details=details, text=text)


def code_of(language: str) -> str:
    """Return the uppercase language code shown in narrow columns."""
    return get_language(language).code.upper()


def printed_runs(inputs: DisplayInputs) -> dict[RunKey, dict[str, float]]:
    """Return the rows of the printed table `published` by run, for described models only."""
    names = {model.published_as: model.name for model in (*inputs.models, *inputs.absent)}
    rows = inputs.printed("setting", "model", "language")
    return {
        RunKey(setting, names[label], language): row
        for (setting, label, language), row in rows.items()
        if label in names
    }


def printed_seeds(printed: PrintedRuns, key: RunKey) -> PrintedSeeds:
    """Return the seeds behind a run's printed numbers.

    Their pool is taken from printed runs with several seeds, the same language and the same kind of
    model (fine-tuned or prompted).
    """
    fine_tuned = key.setting == "fine_tuned"
    seeds = PrintedSeeds(PAPER_SEEDS[fine_tuned])

    def pool(column: str) -> list[Spread]:
        alike = (
            seeds.spread(row, column)
            for other, row in printed.items()
            if (other.language, other.setting == "fine_tuned") == (key.language, fine_tuned)
        )
        return [item for item in alike if item and item.seeds > 1]

    return replace(seeds, pool=pool)


def run_sources(inputs: DisplayInputs) -> dict[RunKey, Source[JamMetrics]]:
    """Return the sources of our runs, with one record per seed, in order of seed."""
    by_key = sources(inputs, JamMetrics, RunKey._fields, obstacles_of, order=lambda item: item.seed)
    return {RunKey(*key): source for key, source in by_key.items()}


def seeds_of(run: Source[JamMetrics]) -> str:
    """Return the seeds of a run, separated by spaces."""
    return " ".join(str(item.seed) for item in run.records)


def languages_of(runs: Iterable[RunKey]) -> list[str]:
    """Return the languages of these runs in alphabetical order."""
    return sorted({key.language for key in runs})


def not_counted(
    runs: Iterable[RunKey], counted: Iterable[RunKey], inputs: DisplayInputs
) -> list[tuple[str, str]]:
    """Return the language and label of each model with runs, none of which Figure 3 counts."""
    labels = inputs.labels()
    every, some = ({(key.language, labels[key.model]) for key in of} for of in (runs, counted))
    return sorted(every - some)


def missing_runs(inputs: DisplayInputs, runs: Collection[RunKey]) -> list[RunKey]:
    """Return the configured runs for which no seed was run."""
    keys = (RunKey(setting, model, language) for model, setting, language, _ in inputs.left_out())
    return [key for key in dict.fromkeys(keys) if key not in runs]


def _left_out_seeds(inputs: DisplayInputs, runs: Collection[RunKey]) -> tuple[str, ...]:
    """Return notes on missing seeds of runs that have other seeds."""
    labels = inputs.labels()
    return tuple(
        f"Without seed {seed} of {labels[model]}"
        f" ({title_of(setting)}, {get_language(language).label}): {reason}."
        for (model, setting, language, seed), reason in inputs.left_out().items()
        if RunKey(setting, model, language) in runs
    )


def of_other_data(*measured: Measured) -> list[str]:
    """Return why numbers on data other than the paper's are not comparable.

    The result has no reason for the user's own data, because the run conditions state it.
    """
    other = (item.data_note or NOT_RELEASED for item in measured if not data_is_explained(item))
    return list(dict.fromkeys(other))


def data_notes(*metrics: MetricRecord) -> tuple[str, ...]:
    """Return a note if data of these metrics were verified only by counts; else an empty tuple."""
    return (BY_COUNTS,) if any(item.data_note == BY_COUNTS for item in metrics) else ()


def obstacles_of(*metrics: JamMetrics) -> list[str]:
    """Return why the metrics of these runs are not comparable with the printed ones."""
    reasons = of_other_data(*metrics)
    if not all(item.overall.variants for item in metrics):
        reasons.append("no hard variants")
    return [*reasons, *deviations_of(*metrics)]


def deviations_of(*metrics: MetricRecord) -> list[str]:
    """Return how the conditions of these runs deviate from the paper's."""
    return list(dict.fromkeys(reason for item in metrics for reason in item.conditions.deviations))


def marked(label: str, runs: Mapping[str, Sequence[JamMetrics | NeutralMetrics]]) -> str:
    """Return a model's label, with its number of unreadable answers if there are any.

    Args:
        label: Label of the model.
        runs: Runs of the model by a name (possibly empty), which is displayed with their number.
    """
    counts = ((name, *unreadable(seeds)) for name, seeds in runs.items())
    parts = [f"{name} {number} of {total}".strip() for name, number, total in counts if number]
    return f"{label} (unreadable: {', '.join(parts)})" if parts else label


def notes_on(metrics: Sequence[JamMetrics], inputs: DisplayInputs) -> tuple[str, ...]:
    """Return the notes below a table on missing seeds, scoring, unreadable answers and data."""
    runs = {RunKey(item.setting, item.model, item.language) for item in metrics}
    released = {item.scoring for item in metrics} == {"released"}
    has_unreadable = any(unreadable([item])[0] for item in metrics)
    as_what = "as answers that name no idiom" if released else "as wrong"
    return (
        *_left_out_seeds(inputs, runs),
        *(["Scored as the released analysis does."] if released else []),
        *([f"Unreadable answers (of all, over seeds) count {as_what}."] if has_unreadable else []),
        *data_notes(*metrics),
        *inputs.notes,
    )
