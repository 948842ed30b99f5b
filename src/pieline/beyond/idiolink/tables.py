"""Tables of word overlap and its relation to scores (not in the paper)."""

from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter

from pieline.beyond import paths
from pieline.beyond.idiolink.metrics import (
    ALL,
    MEASURES,
    ShortcutEstimate,
    ShortcutMetrics,
    Tenth,
)
from pieline.core.records import load_records
from pieline.reporting.columns import (
    Column,
    Source,
    bounds,
    headers,
    interval_text,
    records_of,
    row,
    sources,
)
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import per_cent
from pieline.reporting.tables import Group, Head, TableContent
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.zero_shot import UNKNOWN, mode_label, notes_on, obstacles_of

LABELS = {
    "jaccard": "Jaccard",
    "recall": "Recall",
    "jaccard_without_span": "Jaccard without span",
    "recall_without_span": "Recall without span",
}
SHOWN = {"jaccard": "sentence", "jaccard_without_span": "without span"}
"""Column headers of the measures in the table; the other measures are only in the CSV."""
_UNDEFINED = ShortcutEstimate(value=None, interval=None)


def overlap(inputs: DisplayInputs) -> TableContent:
    """Build the table of mean overlap (fraction) by usage of the query and of the documents."""
    (item,) = load_records(inputs.metrics, ShortcutMetrics)
    columns = [
        Column[Mapping[str, float]](measure, label, itemgetter(measure), decimals=4)
        for measure, label in LABELS.items()
    ]
    groups = [
        Group(
            tuple(
                row((usage, other), [(column, source) for column in columns])
                for other, means in by_documents.items()
                for source in [
                    Source[Mapping[str, float]](
                        {"query_usage": usage, "document_usage": other},
                        [means],
                        inputs.metrics,
                        obstacles=obstacles_of(item),
                    )
                ]
            )
        )
        for usage, by_documents in item.overlap.items()
    ]
    return TableContent(
        heads=(headers(["Query", "Documents"], columns),),
        groups=tuple(groups),
        caption="Overlap between the content words of queries and of their relevant documents, mean"
        " over queries: the Jaccard index, and the share of the query's words that are in the"
        " document (recall), for whole sentences and without the marked spans.",
        notes=notes_on([item]),
        decimals=4,
        wide=False,
    )


def _texts(study: ConfiguredStudy) -> DisplayInputs | None:
    # All runs share the same texts.
    return given.shown(study, given.others(study, paths.SHORTCUTS)[:1])


OVERLAP_TABLE = Table(
    "idiolink_overlap",
    NOT_IN_PAPER,
    "Words that queries share with their relevant documents.",
    overlap,
    _texts,
)


def tenths_of(item: ShortcutMetrics, measure: str, usage: str = ALL) -> list[Tenth]:
    """Return the tenths of a query usage, from least to most overlap; empty if unknown."""
    return [tenth for tenth in item.tenths.get(measure, ()) if tenth.usage == usage]


def _correlation(item: ShortcutMetrics, measure: str) -> ShortcutEstimate:
    return item.correlations.get(measure, _UNDEFINED)


def _tenth(item: ShortcutMetrics, measure: str, place: int) -> ShortcutEstimate:
    return next(iter(tenths_of(item, measure)[place:]), _UNDEFINED)


ESTIMATES: dict[str, tuple[str, Callable[..., ShortcutEstimate]]] = {
    "correlation": ("Correlation, hundredths", _correlation),
    "ndcg_at_10_least": ("nDCG@10, least overlap", partial(_tenth, place=0)),
    "ndcg_at_10_most": ("nDCG@10, most overlap", partial(_tenth, place=-1)),
}
"""Column header and getter (of a run and a measure) of each estimate."""


def shortcuts(inputs: DisplayInputs) -> TableContent:
    """Build the table of partial correlations, and of nDCG@10 (percent) by tenth of overlap."""
    runs = sources(inputs, ShortcutMetrics, ["model", "query_mode"], obstacles_of)
    columns = [
        _column(f"{name}_{measure}_pct", measure, estimate)
        for name, (_, estimate) in ESTIMATES.items()
        for measure in MEASURES
    ]
    groups = [
        Group(
            tuple(
                row((model.label, mode_label(mode)), [(column, source) for column in columns])
                for mode in QUERY_MODES
                if (source := runs.get((model.name, mode)))
            )
        )
        for model in inputs.models
    ]
    metrics = records_of(runs)
    return TableContent(
        heads=(
            (Head("", 2), *(Head(header, len(SHOWN)) for header, _ in ESTIMATES.values())),
            headers(["Model", "Query"], columns),
        ),
        groups=tuple(groups),
        caption="Spearman's partial correlation of overlap and nDCG@10 over queries, given PIE and"
        " usage, and nDCG@10 in percent of the tenths with the least and most overlap among the"
        " queries of their PIE and usage. In brackets: 95% bootstrap intervals over"
        f" {metrics[0].pies} PIEs. Overlap: mean Jaccard index of the content words of a query and"
        " its relevant documents, of whole sentences and without the marked spans.",
        notes=notes_on(metrics),
    )


def measured(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the word overlap of all zero-shot runs, if it is measured."""
    return given.shown(study, given.others(study, paths.SHORTCUTS), given.ranked(study))


SHORTCUTS_TABLE = Table(
    "idiolink_shortcuts",
    NOT_IN_PAPER,
    "Whether queries that share more words with relevant documents score higher.",
    shortcuts,
    measured,
)


def _column(
    name: str, measure: str, estimate: Callable[..., ShortcutEstimate]
) -> Column[ShortcutMetrics]:
    def value(item: ShortcutMetrics) -> ShortcutEstimate:
        return estimate(item, measure)

    return Column(
        name,
        SHOWN.get(measure, ""),
        lambda item: per_cent(value(item).value),
        unknown=f"{UNKNOWN}, or the queries of each PIE and usage are all alike",
        details=lambda source: bounds(value(source.records[0]).interval),
        text=lambda item: interval_text(per_cent(value(item).value), value(item).interval, 2),
    )
