"""Which differences between query modes are more than chance. Not in the paper."""

from collections import defaultdict
from collections.abc import Iterator

from pieline.core.records import load_records
from pieline.reporting.columns import Column, Source, bounds, cell, interval_text
from pieline.reporting.given import Given
from pieline.reporting.printed import per_cent, rounded
from pieline.reporting.tables import Cell, Group, Head, Row, TableContent
from pieline.studies.idiolink.metrics.significance import ModeComparison, ModeSignificance
from pieline.studies.idiolink.tables.zero_shot import (
    METRICS,
    UNKNOWN,
    UNKNOWN_NOTE,
    mode_label,
    notes_on,
    obstacles_of,
)


def significance(given: Given) -> TableContent:
    """Differences between query modes (points) with their p-values.

    A fine-tuned model has the label of what it was made from.
    """
    found = load_records(given.metrics, ModeSignificance)
    labels = given.labels()
    groups = tuple(
        Group(tuple(_rows(item, _label(item, labels[item.model.split("+", maxsplit=1)[0]]), path)))
        for item, path in zip(found, given.metrics, strict=True)
    )
    about = (
        "Differences between query modes in points (second minus first), each with its 95 %"
        " interval and the {p}-value of a two-sided paired randomisation test, corrected by Holm's"
        f" procedure for a model's pairs of modes. {_drawn(found[0])}"
    )
    tested = all(pair.difference is not None for item in found for pair in item.comparisons)
    scores = (head for label in METRICS.values() for head in (Head(label), _P_VALUE))
    return TableContent(
        heads=((Head("Model"), Head("First"), Head("Second"), *scores),),
        groups=groups,
        caption=about.format(p="p"),
        caption_latex=about.format(p="$p$").replace("%", r"\%"),
        notes=notes_on(found) if tested else (*notes_on(found), UNKNOWN_NOTE),
        long=True,
        label_widths=(0.16, 0.11, 0.11),
    )


_P_VALUE = Head("p", latex="$p$")


def _drawn(test: ModeSignificance) -> str:
    """What was drawn for intervals and tests; all tests of a run have the same queries."""
    every = "all " if test.patterns == 2**test.pies else ""
    return (
        f"Drawn were {test.pies} PIEs with all their queries ({test.queries}): {test.resamples:,}"
        f" bootstrap samples, and {every}{test.patterns:,} sign patterns over PIEs."
    )


def _label(item: ModeSignificance, base: str) -> str:
    """What the table calls a model."""
    _, *training = item.model.split("+")
    if not training:
        return base
    return f"{base} ({mode_label(training[0])}, {training[1]} loss, seed {item.seed})"


def _difference(metric: str, label: str) -> Column[ModeComparison]:
    """The difference by a metric; p-values and interval are in the CSV."""

    def details(source: Source[ModeComparison]) -> dict[str, str]:
        (pair,) = source.records
        chances = {"p_value": pair.p_value, "p_holm": pair.p_holm}
        texts = {key: f"{p:.4g}" if p is not None else "" for key, p in chances.items()}
        return texts | bounds(pair.interval)

    return Column(
        metric,
        label,
        lambda pair: per_cent(pair.difference),
        unknown=UNKNOWN,
        details=details,
        text=lambda pair: interval_text(per_cent(pair.difference), pair.interval, 2),
    )


COLUMNS = {metric: _difference(metric, label) for metric, label in METRICS.items()}


def _rows(item: ModeSignificance, label: str, path: str) -> Iterator[Row]:
    """A row for each pair of modes."""
    by_modes: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for pair in item.comparisons:
        key = {"model": item.model, "seed": str(item.seed)}
        key |= {"first": pair.first, "second": pair.second}
        source = Source(key, [pair], (path,), obstacles=obstacles_of(item))
        cells = (cell(COLUMNS[pair.metric], source), Cell(text=rounded(pair.p_holm, 4)))
        by_modes[pair.first, pair.second] += cells
    for (first, second), shown in by_modes.items():
        yield Row((label, mode_label(first), mode_label(second)), tuple(shown))
