"""The table of our scores beside those of the authors' released run."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from pieline.core.errors import pluralize
from pieline.reporting.columns import Source, records_of, sources
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription
from pieline.reporting.printed import Comparison, rounded
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.reference import (
    EQUAL,
    SCOPES,
    published_name,
    read_released,
    released_score,
    score_of,
)
from pieline.studies.idiolink.tables.zero_shot import (
    COMPOSITION_LABELS,
    METRICS,
    mode_label,
    notes_on,
    obstacles_of,
)


def released_run(inputs: DisplayInputs) -> TableContent:
    """Build the table of our scores, the printed ones and those of the authors' released run.

    A row has a model, query mode and composition that both runs have.
    """
    released = read_released(inputs.files["released"])
    printed = inputs.printed("model", "query_mode")
    keys = ("model", "query_mode", "composition")
    runs = sources(inputs, IdiolinkMetrics, keys, obstacles_of)
    counts: dict[str, Counter[str]] = defaultdict(Counter)

    def cell(
        model: ModelDescription, source: Source[IdiolinkMetrics], scope: str, metric: str
    ) -> Cell:
        (item,) = source.records
        theirs = released_score(
            released,
            item,
            published_name(model),
            scope=scope,
            metric=metric,
            obstacles=source.obstacles,
        )
        if theirs is None:
            return Cell()
        ours = score_of(item, scope, metric)
        in_paper = None
        if scope == "overall" and item.composition == "full":
            row = printed.get((model.published_as or "", item.query_mode), {})
            in_paper = row.get(f"{metric}_pct")
        if theirs.verdict:
            counts[item.query_mode][theirs.verdict] += 1
        numbers = [rounded(ours, 2) or "–"]
        numbers += [f"({in_paper:g})"] if in_paper is not None else []
        key = {
            **source.key,
            "scope": scope,
            "metric": metric,
            **theirs.columns(),
            "in_table_2": "" if in_paper is None else f"{in_paper:g}",
        }
        compared = Comparison(ours=ours, printed=None, comparable=False, reason="", decimals=4)
        text = " ".join([*numbers, f"[{rounded(theirs.score, 2)}]"])
        return Cell(Number(key, compared, source.files), text=text)

    groups = []
    for model in inputs.models:
        rows = []
        for composition, label in COMPOSITION_LABELS.items():
            for mode in QUERY_MODES:
                source = runs.get((model.name, mode, composition))
                if not source or len(source.records) != 1:
                    continue
                cells = tuple(cell(model, source, s, m) for m in METRICS for s in SCOPES)
                if any(each.number for each in cells):
                    rows.append(Row((model.label, label, mode_label(mode)), cells))
        groups.append(Group(tuple(rows)))
    measured = records_of(runs)
    heads = [Head(label, span=len(SCOPES)) for label in METRICS.values()]
    return TableContent(
        heads=(
            (Head("", span=3), *heads),
            (*map(Head, ("Model", "Index", "Query")), *map(Head, [*SCOPES.values()] * 2)),
        ),
        groups=tuple(group for group in groups if group.rows),
        caption="Our scores and, in brackets, those of the authors' released run, in percent. The"
        " paper does not print the latter; scores in parentheses are printed in its Table 2.",
        notes=(*_counted(counts), *notes_on(measured)),
        long=True,
    )


def _reference(study: ConfiguredStudy) -> DisplayInputs | None:
    reference = given.released_run(study)
    inputs = given.shown(study, given.of_compositions(study), given.ranked(study))
    return inputs.with_files(**reference) if inputs and reference else None


RELEASED_TABLE = Table(
    "idiolink_released",
    NOT_IN_PAPER,
    "Our scores and those of the authors' released run, in percent.",
    released_run,
    _reference,
    printed="idiolink_table2",
)


def _counted(counts: Mapping[str, Counter[str]]) -> list[str]:
    """Return a note with the number of equal scores by query mode."""
    listed = [
        f"{mode_label(mode)}: {verdicts[EQUAL]} of {pluralize(verdicts.total(), 'score')}"
        for mode, verdicts in counts.items()
    ]
    equal = "Equal to the released run at four digits (as fractions)"
    return [f"{equal}: {'; '.join(listed)}."] if listed else []
