"""What all tables and figures of ID10M-JAM say alike."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pieline.core.conditions import Measured, MetricRecord, data_is_explained
from pieline.core.uncertainty import Interval, Spread
from pieline.core.upstream import BY_COUNTS
from pieline.languages.registry import find
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
"""Parts of every table, in the paper's order; the second and the last are not the paper's."""


def title_of(setting: str) -> str:
    """What tables and figures call a setting; one of the user's has the name that it was given."""
    return GROUPS.get(setting, setting)


PROMPTS = (
    "SC: self-consistency, an idiom stays if most of several sampled answers name it; CoTBest:"
    " chain of thought that lists candidates and chooses at most one idiom."
)

JUDGED = (
    "Within sampling range, which is not equal, is a mean in the 95 % t interval (Welch) for the"
    " difference of two means, of our seeds and the paper's (from one seed of ours: in the"
    " prediction interval), and a deviation in the F interval for the ratio of two variances. Of a"
    " printed single seed, or a deviation of 0.00, the deviations of the same column over several"
    " seeds are taken, pooled by language, of prompted and of fine-tuned models apart."
)
PAPER_SEEDS = {False: len(JamSettings().seeds), True: len(JamFineTuning().seeds)}
"""Seeds behind the paper's deviations: of prompted models, and of fine-tuned ones."""
PrintedRuns = Mapping[RunKey, PrintedRow]
"""A printed table by run; its models are called as in models.yaml."""

R = TypeVar("R")

NOT_RELEASED = "sample data or other than the released ID10M-JAM"


def percentage(
    name: str,
    header: str,
    share: Callable[[R], tuple[float | None, Interval | None]],
    latex: str | None = None,
) -> Column[R]:
    """A share in per cent, shown with its interval; the CSV has the interval's bounds."""

    def value(item: R) -> float | None:
        return per_cent(share(item)[0])

    def details(source: Source[R]) -> dict[str, str]:
        return bounds(share(source.records[0])[1]) if source.records else {}

    def text(item: R) -> str:
        return interval_text(value(item), share(item)[1], 1)

    return Column(name, header, value, latex, details=details, text=text)


def code_of(language: str) -> str:
    """What narrow columns call a language."""
    return find(language).code.upper()


def printed_runs(given: DisplayInputs) -> dict[RunKey, dict[str, float]]:
    """The printed table `published`, in its order, as far as its models are described."""
    names = {model.published_as: model.name for model in (*given.models, *given.absent)}
    rows = given.printed("setting", "model", "language")
    return {
        RunKey(setting, names[label], language): row
        for (setting, label, language), row in rows.items()
        if label in names
    }


def printed_seeds(printed: PrintedRuns, key: RunKey) -> PrintedSeeds:
    """The seeds behind a run's printed numbers.

    The pool is of runs of its language and kind (fine-tuned or prompted) over several seeds.
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


def run_sources(given: DisplayInputs) -> dict[RunKey, Source[JamMetrics]]:
    """Our runs with their seeds, in the order of these."""
    found = sources(given, JamMetrics, RunKey._fields, obstacles_of, order=lambda item: item.seed)
    return {RunKey(*key): source for key, source in found.items()}


def seeds_of(run: Source[JamMetrics]) -> str:
    """The seeds of a run, as a CSV has them."""
    return " ".join(str(item.seed) for item in run.records)


def languages_of(runs: Iterable[RunKey]) -> list[str]:
    """The languages of some runs, in the order of every table."""
    return sorted({key.language for key in runs})


def not_counted(
    runs: Iterable[RunKey], counted: Iterable[RunKey], given: DisplayInputs
) -> list[tuple[str, str]]:
    """Language and label of the models that have runs, but none that Figure 3 counts."""
    labels = given.labels()
    every, some = ({(key.language, labels[key.model]) for key in of} for of in (runs, counted))
    return sorted(every - some)


def not_made(given: DisplayInputs, runs: Collection[RunKey]) -> list[RunKey]:
    """The runs that the configuration names and of which no seed was run."""
    keys = (RunKey(setting, model, language) for model, setting, language, _ in given.left_out())
    return [key for key in dict.fromkeys(keys) if key not in runs]


def left_out_seeds(given: DisplayInputs, runs: Collection[RunKey]) -> tuple[str, ...]:
    """Notes on seeds that are missing of runs that were made otherwise."""
    labels = given.labels()
    return tuple(
        f"Without seed {seed} of {labels[model]} ({title_of(setting)}, {find(language).label}):"
        f" {reason}."
        for (model, setting, language, seed), reason in given.left_out().items()
        if RunKey(setting, model, language) in runs
    )


def of_other_data(*measured: Measured) -> list[str]:
    """What keeps numbers of other data than the paper's from being comparable.

    Of the user's own data the conditions say it.
    """
    other = (item.data_note or NOT_RELEASED for item in measured if not data_is_explained(item))
    return list(dict.fromkeys(other))


def data_notes(*metrics: MetricRecord) -> tuple[str, ...]:
    """That the data were verified by counts, if they were."""
    return (BY_COUNTS,) if any(item.data_note == BY_COUNTS for item in metrics) else ()


def obstacles_of(*metrics: JamMetrics) -> list[str]:
    """What makes numbers of these runs incomparable with the printed ones."""
    found = of_other_data(*metrics)
    if not all(item.overall.variants for item in metrics):
        found.append("no hard variants")
    return [*found, *deviations_of(*metrics)]


def deviations_of(*metrics: MetricRecord) -> list[str]:
    """How the conditions of these runs deviate from the paper's."""
    return list(dict.fromkeys(reason for item in metrics for reason in item.conditions.deviations))


def marked(label: str, made: Mapping[str, Sequence[JamMetrics | NeutralMetrics]]) -> str:
    """A model's label with the answers of its runs that could not be read, if there are any.

    Args:
        label: of the model.
        made: its runs, by what to call them.
    """
    counts = ((name, *unreadable(found)) for name, found in made.items())
    told = [f"{name} {number} of {total}".strip() for name, number, total in counts if number]
    return f"{label} (unreadable: {', '.join(told)})" if told else label


def notes_on(metrics: Sequence[JamMetrics], given: DisplayInputs) -> tuple[str, ...]:
    """What to say of runs below a table: how they were scored, and of what data they are."""
    released = {item.scoring for item in metrics} == {"released"}
    lost = any(unreadable([item])[0] for item in metrics)
    as_what = "as answers that name no idiom" if released else "as wrong"
    return (
        *(["Scored as the released analysis does."] if released else []),
        *([f"Unreadable answers (of all, over seeds) count {as_what}."] if lost else []),
        *data_notes(*metrics),
        *given.notes,
    )
