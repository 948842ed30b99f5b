"""Lexical shortcuts: relation of queries' scores to word overlap with relevant documents.

Only content words count. The four measures of overlap between a query and a document are the
Jaccard index and recall (the share of the query's words in the document), each over the
sentences and over the sentences without their marked spans.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter, itemgetter
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pieline.core.conditions import Measured
from pieline.core.measures import Measure, Unit, share
from pieline.core.records import Frozen
from pieline.core.uncertainty import Interval, draw_units, percentile_interval, resampled_ratios
from pieline.languages.english import LANGUAGE
from pieline.languages.spelling import normalize
from pieline.studies.idiolink.metrics.scores import UNKNOWN, QueryScores
from pieline.studies.idiolink.metrics.validation import Scores
from pieline.studies.idiolink.records import Document, PieText, Query

MEASURES = ("jaccard", "recall", "jaccard_without_span", "recall_without_span")
ALL = "all"
"""Name of the group of all usages."""
TENTHS = 10

Array = NDArray[Any]

_NO_CONTENT = LANGUAGE.function_words | LANGUAGE.quantifiers

Overlaps = dict[str, dict[str, dict[str, float]]]
"""Mean overlap with relevant documents, by query id, document usage (or `all`) and measure."""


class ShortcutEstimate(Frozen):
    """An estimate and its bootstrap interval over PIEs; each is null if undefined."""

    value: float | None
    interval: Interval | None


class Tenth(ShortcutEstimate):
    """Mean nDCG@10 of one tenth of the queries, by overlap among queries of the same PIE and usage.

    Attributes:
        tenth: Number of the tenth, from 1 (lowest overlap) to 10 (highest overlap).
        usage: Usage of the queries, or `all`.
        overlap: Mean overlap of the queries.
    """

    tenth: int
    usage: str
    queries: int
    overlap: float


class Shortcuts(Frozen):
    """Relation between the word overlap of queries and a run's nDCG@10.

    Attributes:
        pies: Number of PIEs, which are resampled with all their queries for the intervals.
        overlap: Mean overlap by usage of the queries, usage of the documents, and measure.
        correlations: Partial rank correlation of overlap and nDCG@10 over queries given PIE and
            usage, by measure; empty if the nDCG@10 of some query is unknown.
        tenths: Tenths of the queries of each usage and of all queries, by measure; empty if the
            nDCG@10 of some query is unknown.
    """

    pies: int
    overlap: dict[str, dict[str, dict[str, float]]]
    correlations: dict[str, ShortcutEstimate]
    tenths: dict[str, list[Tenth]]


class ShortcutMetrics(Measured, Shortcuts):
    """Shortcut metrics of a run."""

    model: str
    query_mode: str
    seed: int


def tenths_of(item: ShortcutMetrics, measure: str, usage: str = ALL) -> list[Tenth]:
    """Return the tenths of a query usage, from least to most overlap; empty if unknown."""
    return [tenth for tenth in item.tenths.get(measure, ()) if tenth.usage == usage]


def _correlation(item: ShortcutMetrics, measure: str) -> ShortcutEstimate | None:
    return item.correlations.get(measure)


def _least(item: ShortcutMetrics, measure: str) -> ShortcutEstimate | None:
    return next(iter(tenths_of(item, measure)), None)


def _most(item: ShortcutMetrics, measure: str) -> ShortcutEstimate | None:
    return next(reversed(tenths_of(item, measure)), None)


def _estimate(
    name: str,
    measure: str,
    of: Callable[[ShortcutMetrics, str], ShortcutEstimate | None],
    unit: Unit,
) -> Measure[ShortcutMetrics]:
    def value(item: ShortcutMetrics) -> float | None:
        estimate = of(item, measure)
        return estimate.value if estimate else None

    def interval(item: ShortcutMetrics) -> Interval | None:
        estimate = of(item, measure)
        return estimate.interval if estimate else None

    unknown = f"{UNKNOWN}, or the queries of each PIE and usage are all alike"
    return share(f"{name}_{measure}", value, interval, unit=unit, unknown=unknown)


OVERLAP = tuple(
    Measure[Mapping[str, float]](measure, itemgetter(measure), decimals=4) for measure in MEASURES
)
"""Measures of mean overlap."""
_ESTIMATES: dict[str, tuple[Callable[[ShortcutMetrics, str], ShortcutEstimate | None], Unit]] = {
    # In hundredths.
    "correlation": (_correlation, ""),
    "ndcg_at_10_least": (_least, "%"),
    "ndcg_at_10_most": (_most, "%"),
}
ESTIMATES = tuple(
    _estimate(name, measure, of, unit)
    for name, (of, unit) in _ESTIMATES.items()
    for measure in MEASURES
)
"""Measures of the relation between overlap and nDCG@10."""


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text, except for function words and quantifiers."""
    return frozenset(normalize(text).split()) - _NO_CONTENT


def overlaps(queries: Iterable[Query], documents: Iterable[Document], qrels: Scores) -> Overlaps:
    """Return the mean overlaps of each query with its relevant documents."""
    usages = {document.id: document.usage for document in documents}
    words = {document.id: _words(document) for document in documents}
    result: Overlaps = {}
    for query in queries:
        query_words = _words(query)
        by_usage: dict[str, list[list[float]]] = defaultdict(list)
        for document in qrels[query.id]:
            values = _compare(query_words, words[document])
            by_usage[usages[document]].append(values)
            by_usage[ALL].append(values)
        result[query.id] = {usage: _means(rows) for usage, rows in by_usage.items()}
    return result


class _Words(NamedTuple):
    """Content words of a sentence, and of the sentence without its span."""

    of_sentence: frozenset[str]
    of_context: frozenset[str]


def _words(text: PieText) -> _Words:
    context = text.sentence.replace(text.span, " ", 1)
    return _Words(content_words(text.sentence), content_words(context))


def _compare(query: _Words, document: _Words) -> list[float]:
    """Return the overlaps of a query with a document, in the order of `MEASURES`."""
    return [
        *_overlap(query.of_sentence, document.of_sentence),
        *_overlap(query.of_context, document.of_context),
    ]


def _overlap(one: frozenset[str], other: frozenset[str]) -> tuple[float, float]:
    """Return the Jaccard index, and the share of `one` that is in `other`; 0 without words."""
    shared = len(one & other)
    return shared / max(1, len(one | other)), shared / max(1, len(one))


def _means(rows: Iterable[Iterable[float]]) -> dict[str, float]:
    return dict(zip(MEASURES, map(fmean, zip(*rows, strict=True)), strict=True))


def shortcuts(
    queries: Iterable[Query], query_overlaps: Overlaps, scores: QueryScores, *, resamples: int
) -> Shortcuts:
    """Relate the nDCG@10 of queries to their word overlap with relevant documents.

    Args:
        queries: All queries of the run.
        query_overlaps: Overlaps returned by `overlaps`.
        scores: Scores of each query.
        resamples: Number of resamples of the PIEs with all their queries.
    """
    ordered = sorted(queries, key=attrgetter("id"))
    usages = np.array([query.usage for query in ordered])
    members_of = {usage: usages == usage for usage in np.unique(usages).tolist()}
    names, pies = np.unique([query.pie for query in ordered], return_inverse=True)
    rows = np.array([query_overlaps[query.id] for query in ordered])
    measured = Shortcuts(
        pies=len(names),
        overlap={usage: _mean_overlap(rows[members]) for usage, members in members_of.items()},
        correlations={},
        tenths={},
    )
    ndcg = np.array([scores[query.id]["ndcg_at_10"] for query in ordered], dtype=float)
    if np.isnan(ndcg).any():
        return measured
    _, cells = np.unique([f"{query.usage} {query.pie}" for query in ordered], return_inverse=True)
    draws = draw_units([0] * len(names), resamples=resamples if len(names) > 1 else 0, seed=0)
    everyone = np.ones(len(ordered), dtype=bool)
    for measure in MEASURES:
        overlap = np.array([each[ALL][measure] for each in rows])
        tenths = _tenths(overlap, cells)
        measured.correlations[measure] = partial_correlation(overlap, ndcg, cells, draws[:, pies])
        measured.tenths[measure] = []
        for usage, members in {ALL: everyone, **members_of}.items():
            for number in np.unique(tenths[members]).tolist():
                chosen = members & (tenths == number)
                resampled = resampled_ratios(
                    draws, np.bincount(pies, ndcg * chosen), np.bincount(pies, chosen)
                )
                measured.tenths[measure].append(
                    Tenth(
                        tenth=number,
                        usage=usage,
                        queries=int(chosen.sum()),
                        overlap=fmean(overlap[chosen].tolist()),
                        value=fmean(ndcg[chosen].tolist()),
                        interval=percentile_interval(resampled),
                    )
                )
    return measured


def _mean_overlap(
    queries: Iterable[Mapping[str, Mapping[str, float]]],
) -> dict[str, dict[str, float]]:
    """Return the mean overlap over queries by usage of the documents, and measure."""
    by_usage: dict[str, list[Iterable[float]]] = {}
    for of_query in queries:
        for usage, values in of_query.items():
            by_usage.setdefault(usage, []).append(values.values())
    return {usage: _means(rows) for usage, rows in by_usage.items()}


def partial_correlation(
    first: Array, second: Array, cells: Array, draws: Array
) -> ShortcutEstimate:
    """Return Spearman's partial correlation of two variables over queries, given PIE and usage.

    Both variables are ranked over all queries, and the mean rank of each (PIE, usage) cell is
    subtracted. The result is Pearson's correlation of these residuals.

    Args:
        first: Value of the first variable for each query.
        second: Value of the second variable for each query.
        cells: Index of each query's (PIE, usage) cell.
        draws: Weight of each query in each resample, equal for all queries of a PIE; shape
            (resamples, queries).
    """
    places = [np.unique(values, return_inverse=True)[1] for values in (first, second)]
    sizes = np.bincount(cells)

    def correlation(weights: Array) -> float:
        residuals = []
        for of_one in places:
            counts = np.bincount(of_one, weights)
            ranks = (np.cumsum(counts) - counts / 2)[of_one]
            residuals.append(ranks - (np.bincount(cells, ranks) / sizes)[cells])
        one, other = residuals
        scale = np.sqrt(np.sum(weights * one**2) * np.sum(weights * other**2))
        return float(np.sum(weights * one * other) / scale) if scale else np.nan

    value = correlation(np.ones(len(cells)))
    return ShortcutEstimate(
        value=None if np.isnan(value) else value,
        interval=percentile_interval(np.array([correlation(row) for row in draws])),
    )


def _tenths(overlap: Array, cells: Array) -> Array:
    """Return the tenth (1 to 10) of each query by overlap within its cell.

    Cells with fewer than ten queries do not have all tenths.
    """
    sizes = np.bincount(cells)
    order = np.lexsort((overlap, cells))
    in_cell = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[cells[order]]
    tenths = np.empty_like(order)
    tenths[order] = in_cell * TENTHS // sizes[cells[order]] + 1
    return tenths
