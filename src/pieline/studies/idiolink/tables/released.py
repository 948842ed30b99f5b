"""The table of our scores beside those of the authors' released run."""

from collections import Counter
from dataclasses import replace

import pandas as pd

from pieline.core.errors import pluralize
from pieline.core.records import load_records
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import EQUAL, Number, rows_of
from pieline.reporting.ours import KEYS, OurNumbers
from pieline.reporting.printed import rounded
from pieline.reporting.published import read_released
from pieline.reporting.tables import Cell, Group, Head, Row, TableContent
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.metrics.ranking import RANKING
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.zero_shot import (
    COMPOSITION_LABELS,
    METRICS,
    mode_label,
    notes_on,
    obstacles_of,
    of_rankings,
    released_note,
    released_obstacles,
    run_of,
)

_SCOPES = {
    "": "overall",
    "idiomatic": "idiomatic",
    "literal": "literal",
    "by_subject": "same subject",
}
"""Labels of the released run's scopes: all queries, those of one usage, and all queries with the
documents of their subject as relevant."""


def released_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return those of our scores that the authors' released run has, too."""
    numbers = OurNumbers(inputs.study)
    records = load_records(inputs.metrics, IdiolinkMetrics)
    for item, path in zip(records, inputs.metrics, strict=True):
        for scope in list(_SCOPES)[1:]:
            scores = {"by_subject": item.same_subject, **item.by_usage}.get(scope)
            numbers.add(
                {**run_of(item), "scope": scope},
                RANKING,
                scores,
                files=[path],
                obstacles=obstacles_of(item),
                released_obstacles=released_obstacles(item),
                released_note=released_note(item),
            )
    ours = pd.concat([of_rankings(inputs), numbers.frame()])
    theirs = read_released(inputs.files, inputs.names())
    assert theirs is not None
    return ours.merge(theirs[[*KEYS]], on=[*KEYS])


def released_run(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out our scores, the printed ones and those of the authors' released run.

    A row has a model, query mode and composition that both runs have.
    """
    by_run = rows_of(numbers, ("model", "composition", "query_mode"), across=("scope",))
    groups = []
    for model in inputs.models:
        rows = []
        for composition, label in COMPOSITION_LABELS.items():
            for mode in QUERY_MODES:
                if not (scores := by_run.get((model.name, composition, mode))):
                    continue
                cells = (
                    _cell(scores.get(f"{scope} {metric}".strip()))
                    for metric in METRICS
                    for scope in _SCOPES
                )
                rows.append(Row((model.label, label, mode_label(mode)), tuple(cells)))
        groups.append(Group(tuple(rows)))
    heads = [Head(label, span=len(_SCOPES)) for label in METRICS.values()]
    return TableContent(
        heads=(
            (Head("", span=3), *heads),
            (*map(Head, ("Model", "Index", "Query")), *map(Head, [*_SCOPES.values()] * 2)),
        ),
        groups=tuple(group for group in groups if group.rows),
        caption="Our scores and, in brackets, those of the authors' released run, in percent. The"
        " paper does not print the latter; scores in parentheses are printed in its Table 2.",
        notes=(
            *_counted(numbers),
            *notes_on(load_records(inputs.metrics, IdiolinkMetrics)),
        ),
        long=True,
    )


def _cell(number: Number | None) -> Cell:
    """Return the cell of a score, as a text with the printed and the released one."""
    if number is None:
        return Cell()
    printed = [] if number.printed is None else [f"({number.printed:g})"]
    texts = [rounded(number.ours, 2) or "–", *printed, f"[{rounded(number.released, 2)}]"]
    return Cell(replace(number, printed=None), text=" ".join(texts))


def _reference(study: ConfiguredStudy) -> DisplayInputs | None:
    reference, ranked = given.released_run(study), given.ranked(study)
    runs = given.zero_shot(study, ranked, *study.settings.compositions)
    inputs = given.shown(study, runs, ranked)
    return inputs.with_files(**reference) if inputs and reference else None


RELEASED_TABLE = Table(
    "idiolink_released",
    NOT_IN_PAPER,
    "Our scores and those of the authors' released run, in percent.",
    released_run,
    _reference,
    released_numbers,
    printed=("idiolink_table2",),
)


def _counted(numbers: pd.DataFrame) -> list[str]:
    """Return a note with the number of equal scores by query mode."""
    counts: dict[str, Counter[str]] = {}
    judged = numbers[numbers["released_verdict"] != ""]
    for mode, verdict in zip(judged["query_mode"], judged["released_verdict"], strict=True):
        counts.setdefault(mode, Counter())[verdict] += 1
    listed = [
        f"{mode_label(mode)}: {verdicts[EQUAL]} of {pluralize(verdicts.total(), 'score')}"
        for mode, verdicts in counts.items()
    ]
    equal = "Equal to the released run at four digits (as fractions)"
    return [f"{equal}: {'; '.join(listed)}."] if listed else []
