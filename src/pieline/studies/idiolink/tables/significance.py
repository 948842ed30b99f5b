"""Which differences between query modes are more than chance. Not in the paper."""

from collections.abc import Iterator

from pieline.core.records import load_records
from pieline.reporting.given import Given
from pieline.reporting.printed import compare, rounded
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
    permutations = max(item.permutations for item in found)
    about = (
        "Differences between query modes in points (second minus first), each with the {p}-value of"
        f" a two-sided paired randomisation test over queries ({permutations} permutations),"
        " corrected by Holm's procedure for a model's pairs of modes."
    )
    tested = all(pair.difference is not None for item in found for pair in item.comparisons)
    scores = (head for label in METRICS.values() for head in (Head(label), _P_VALUE))
    return TableContent(
        heads=((Head("Model"), Head("First"), Head("Second"), *scores),),
        groups=groups,
        caption=about.format(p="p"),
        caption_latex=about.format(p="$p$"),
        notes=notes_on(found) if tested else (*notes_on(found), UNKNOWN_NOTE),
        long=True,
    )


_P_VALUE = Head("p", latex="$p$")


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
            if pair.difference is None:
                compared = compare(None, None, obstacles=[UNKNOWN, *obstacles])
            else:
                key |= {"p_value": f"{pair.p_value:.4g}", "p_holm": f"{pair.p_holm:.4g}"}
                compared = compare(100 * pair.difference, None, obstacles=obstacles)
            cells += [Cell(Number(key, compared, (path,))), Cell(text=rounded(pair.p_holm, 4))]
        yield Row((label, mode_label(first), mode_label(second)), tuple(cells))
