"""Which differences between query modes are more than chance. Not in the paper."""

from collections.abc import Iterator

from pieline.core.records import load_records
from pieline.reporting.given import Given
from pieline.reporting.printed import compare, percent_bounds, rounded
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.idiolink.metrics.significance import ModeSignificance
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


def _rows(item: ModeSignificance, label: str, path: str) -> Iterator[Row]:
    """A row for each pair of modes."""
    obstacles = obstacles_of(item)
    for first, second in dict.fromkeys((pair.first, pair.second) for pair in item.comparisons):
        cells = []
        for pair in item.comparisons:
            if (pair.first, pair.second) != (first, second):
                continue
            key = {"model": item.model, "seed": str(item.seed), "first": pair.first}
            key |= {"second": pair.second, "metric": pair.metric, "p_value": "", "p_holm": ""}
            bounds = percent_bounds(pair.interval, 2)
            key["low"], key["high"] = bounds or ("", "")
            if pair.difference is None:
                compared, shown = compare(None, None, obstacles=[UNKNOWN, *obstacles]), ""
            else:
                key |= {"p_value": f"{pair.p_value:.4g}", "p_holm": f"{pair.p_holm:.4g}"}
                points = 100 * pair.difference
                compared = compare(points, None, obstacles=obstacles)
                shown = f"{rounded(points, 2)} [{', '.join(bounds)}]" if bounds else ""
            number = Number(key, compared, (path,))
            cells += [Cell(number, text=shown), Cell(text=rounded(pair.p_holm, 4))]
        yield Row((label, mode_label(first), mode_label(second)), tuple(cells))
