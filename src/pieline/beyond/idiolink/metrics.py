"""Relate queries' scores to word overlap with relevant documents, a possible lexical shortcut.

Only content words count. The overlap between a query and a document is measured by the Jaccard
index and by recall (the share of the query's words in the document). Both are computed for the
sentences and for the sentences without their marked spans, which makes four measures.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
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
"""Name for queries or documents of all usages together."""
TENTHS = 10

Array = NDArray[Any]

_WORDS_WITHOUT_CONTENT = LANGUAGE.function_words | LANGUAGE.quantifiers

Overlaps = dict[str, dict[str, dict[str, float]]]
"""Mean overlap with relevant documents, by query id, document usage (or `all`) and measure."""


class ShortcutEstimate(Frozen):
    """An estimate and its 95% bootstrap interval over PIEs; either is null if it is undefined."""

    value: float | None
    interval: Interval | None


class Tenth(ShortcutEstimate):
    """Mean nDCG@10 (fraction) of one tenth of the queries by overlap.

    The queries are divided into tenths separately for each PIE and usage.

    Attributes:
        tenth: Number of the tenth, from 1 (lowest overlap) to 10 (highest overlap).
        usage: Usage of the queries, or `all`.
        queries: Number of queries in the tenth.
        overlap: Mean overlap of the queries (fraction).
    """

    tenth: int
    usage: str
    queries: int
    overlap: float


class Shortcuts(Frozen):
    """Relation between the word overlap of queries and a run's nDCG@10.

    Attributes:
        pies: Number of PIEs, which are resampled with all their queries for the intervals.
        overlap: Mean overlap (fraction) by usage of the queries, usage of the documents, and
            measure.
        correlations: Partial rank correlation of overlap and nDCG@10 over queries, given PIE and
            usage (see `partial_correlation`), by measure. Empty if the nDCG@10 of some query is
            unknown.
        tenths: Tenths of the queries of each usage and of all queries, by measure. Empty if the
            nDCG@10 of some query is unknown.
    """

    pies: int
    overlap: dict[str, dict[str, dict[str, float]]]
    correlations: dict[str, ShortcutEstimate]
    tenths: dict[str, list[Tenth]]


class ShortcutMetrics(Measured, Shortcuts):
    """Relation between word overlap and nDCG@10 in one run."""

    model: str
    query_mode: str
    seed: int


def tenths_of(metrics: ShortcutMetrics, measure: str, usage: str = ALL) -> list[Tenth]:
    """Return the tenths of the queries of a usage, from least to most overlap.

    The result is empty if the nDCG@10 of some query is unknown.
    """
    return [tenth for tenth in metrics.tenths.get(measure, ()) if tenth.usage == usage]


EstimateGetter = Callable[[ShortcutMetrics, str], ShortcutEstimate | None]
"""Function from a run's metrics and a measure of overlap to an estimate; None if unknown."""


def _correlation(metrics: ShortcutMetrics, measure: str) -> ShortcutEstimate | None:
    return metrics.correlations.get(measure)


def _tenth_with_least_overlap(metrics: ShortcutMetrics, measure: str) -> ShortcutEstimate | None:
    tenths = tenths_of(metrics, measure)
    return tenths[0] if tenths else None


def _tenth_with_most_overlap(metrics: ShortcutMetrics, measure: str) -> ShortcutEstimate | None:
    tenths = tenths_of(metrics, measure)
    return tenths[-1] if tenths else None


def _measure_of_estimate(
    name: str, measure: str, get_estimate: EstimateGetter, unit: Unit
) -> Measure[ShortcutMetrics]:
    """Return the measure that reads an estimate and its interval for a measure of overlap."""

    def value(metrics: ShortcutMetrics) -> float | None:
        estimate = get_estimate(metrics, measure)
        return estimate.value if estimate else None

    def interval(metrics: ShortcutMetrics) -> Interval | None:
        estimate = get_estimate(metrics, measure)
        return estimate.interval if estimate else None

    unknown = f"{UNKNOWN}, or the queries of each PIE and usage are all alike"
    return share(f"{name}_{measure}", value, interval, unit=unit, unknown=unknown)


OVERLAP = tuple(
    Measure[Mapping[str, float]](measure, itemgetter(measure), decimals=4) for measure in MEASURES
)
"""Measures that read the mean overlap from a mapping by measure."""
_ESTIMATES: dict[str, tuple[EstimateGetter, Unit]] = {
    # The unit of the correlation is hundredths.
    "correlation": (_correlation, ""),
    "ndcg_at_10_least": (_tenth_with_least_overlap, "%"),
    "ndcg_at_10_most": (_tenth_with_most_overlap, "%"),
}
ESTIMATES = tuple(
    _measure_of_estimate(name, measure, get_estimate, unit)
    for name, (get_estimate, unit) in _ESTIMATES.items()
    for measure in MEASURES
)
"""Measures that read the correlations, and the nDCG@10 of the first and last tenths."""


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text, except for function words and quantifiers."""
    return frozenset(normalize(text).split()) - _WORDS_WITHOUT_CONTENT


def overlaps(queries: Iterable[Query], documents: Iterable[Document], qrels: Scores) -> Overlaps:
    """Return the mean overlap of each query with its relevant documents, by document usage."""
    document_usages = {document.id: document.usage for document in documents}
    document_words = {document.id: _words_of(document) for document in documents}
    mean_overlaps: Overlaps = {}
    for query in queries:
        query_words = _words_of(query)
        overlaps_by_usage: dict[str, list[dict[str, float]]] = defaultdict(list)
        for document_id in qrels[query.id]:
            overlap = _overlap(query_words, document_words[document_id])
            overlaps_by_usage[document_usages[document_id]].append(overlap)
            overlaps_by_usage[ALL].append(overlap)
        mean_overlaps[query.id] = {
            usage: _mean_by_measure(usage_overlaps)
            for usage, usage_overlaps in overlaps_by_usage.items()
        }
    return mean_overlaps


class _Words(NamedTuple):
    """Content words of a sentence, and of the sentence without its span."""

    of_sentence: frozenset[str]
    of_context: frozenset[str]


def _words_of(text: PieText) -> _Words:
    context = text.sentence.replace(text.span, " ", 1)
    return _Words(content_words(text.sentence), content_words(context))


def _overlap(query: _Words, document: _Words) -> dict[str, float]:
    """Return the word overlap of a query with a document (fraction), by measure."""
    return {
        "jaccard": _jaccard(query.of_sentence, document.of_sentence),
        "recall": _recall(query.of_sentence, document.of_sentence),
        "jaccard_without_span": _jaccard(query.of_context, document.of_context),
        "recall_without_span": _recall(query.of_context, document.of_context),
    }


def _jaccard(query_words: frozenset[str], document_words: frozenset[str]) -> float:
    """Return the Jaccard index of two sets of words; 0 if both are empty."""
    return len(query_words & document_words) / max(1, len(query_words | document_words))


def _recall(query_words: frozenset[str], document_words: frozenset[str]) -> float:
    """Return the share of the query's words that are in the document; 0 if it has no words."""
    return len(query_words & document_words) / max(1, len(query_words))


def _mean_by_measure(overlaps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {measure: fmean(overlap[measure] for overlap in overlaps) for measure in MEASURES}


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
    sorted_queries = sorted(queries, key=lambda query: query.id)
    usages = np.array([query.usage for query in sorted_queries])
    pie_names, pies = np.unique([query.pie for query in sorted_queries], return_inverse=True)
    cell_names = [f"{query.usage} {query.pie}" for query in sorted_queries]
    _, cells = np.unique(cell_names, return_inverse=True)
    ndcg = np.array([scores[query.id]["ndcg_at_10"] for query in sorted_queries], dtype=float)
    query_arrays = _QueryArrays(usages, pies, cells, ndcg)

    overlap_by_usage = {}
    for usage in np.unique(usages).tolist():
        ids = [query.id for query in sorted_queries if query.usage == usage]
        overlap_by_usage[usage] = _mean_overlap([query_overlaps[query_id] for query_id in ids])
    correlations: dict[str, ShortcutEstimate] = {}
    tenths: dict[str, list[Tenth]] = {}
    has_unknown_score = np.isnan(ndcg).any()
    if not has_unknown_score:
        # A single PIE has no interval.
        pie_resamples = resamples if len(pie_names) > 1 else 0
        single_stratum = [0] * len(pie_names)
        draws = draw_units(single_stratum, resamples=pie_resamples, seed=0)
        for measure in MEASURES:
            overlap = np.array([query_overlaps[query.id][ALL][measure] for query in sorted_queries])
            correlations[measure] = partial_correlation(overlap, ndcg, cells, draws[:, pies])
            tenths[measure] = _score_tenths(query_arrays, overlap, draws)
    return Shortcuts(
        pies=len(pie_names), overlap=overlap_by_usage, correlations=correlations, tenths=tenths
    )


class _QueryArrays(NamedTuple):
    """Values of all queries; all arrays have the same order of queries.

    Attributes:
        usages: Usage of each query.
        pies: Number of each query's PIE.
        cells: Number of each query's cell, which consists of the queries of one PIE and usage.
        ndcg: nDCG@10 of each query (fraction).
    """

    usages: Array
    pies: Array
    cells: Array
    ndcg: Array


def _mean_overlap(
    query_overlaps: Iterable[Mapping[str, Mapping[str, float]]],
) -> dict[str, dict[str, float]]:
    """Return the mean overlap over queries, by usage of the documents and measure."""
    overlaps_by_usage: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    for query_overlap in query_overlaps:
        for usage, overlap in query_overlap.items():
            overlaps_by_usage[usage].append(overlap)
    return {
        usage: _mean_by_measure(usage_overlaps)
        for usage, usage_overlaps in overlaps_by_usage.items()
    }


def _score_tenths(queries: _QueryArrays, overlap: Array, draws: Array) -> list[Tenth]:
    """Return the tenths of all queries and of each usage, with their mean overlap and nDCG@10.

    Args:
        queries: Values of the queries.
        overlap: Overlap of each query.
        draws: Number of times that each resample draws each PIE, shape (resamples, PIEs).
    """
    tenth_of_query = _tenths(overlap, queries.cells)
    tenths = []
    for usage in (ALL, *np.unique(queries.usages).tolist()):
        has_usage = (queries.usages == usage) | (usage == ALL)
        for number in np.unique(tenth_of_query[has_usage]).tolist():
            is_member = has_usage & (tenth_of_query == number)
            sum_per_pie = np.bincount(queries.pies, queries.ndcg * is_member)
            count_per_pie = np.bincount(queries.pies, is_member)
            resampled_means = resampled_ratios(draws, sum_per_pie, count_per_pie)
            tenths.append(
                Tenth(
                    tenth=number,
                    usage=usage,
                    queries=int(is_member.sum()),
                    overlap=fmean(overlap[is_member].tolist()),
                    value=fmean(queries.ndcg[is_member].tolist()),
                    interval=percentile_interval(resampled_means),
                )
            )
    return tenths


def _tenths(overlap: Array, cells: Array) -> Array:
    """Return the tenth (1 to 10) of each query, after sorting its cell's queries by overlap.

    Cells with fewer than ten queries do not have all tenths.
    """
    cell_sizes = np.bincount(cells)
    first_places = np.cumsum(cell_sizes) - cell_sizes
    by_cell_and_overlap = np.lexsort((overlap, cells))
    sorted_cells = cells[by_cell_and_overlap]
    places_in_cell = np.arange(len(cells)) - first_places[sorted_cells]
    tenths = np.empty_like(by_cell_and_overlap)
    tenths[by_cell_and_overlap] = places_in_cell * TENTHS // cell_sizes[sorted_cells] + 1
    return tenths


def partial_correlation(
    first: Array, second: Array, cells: Array, draws: Array
) -> ShortcutEstimate:
    """Return Spearman's partial correlation of two variables over queries, given PIE and usage.

    Both variables are ranked over all queries, and the mean rank of each (PIE, usage) cell is
    subtracted. The result is Pearson's correlation of these residuals.

    Args:
        first: Value of the first variable for each query.
        second: Value of the second variable for each query.
        cells: Number of each query's (PIE, usage) cell.
        draws: Weight of each query in each resample, equal for all queries of a PIE; shape
            (resamples, queries).
    """
    # The order of the values is the same in each resample, but their ranks depend on the weights.
    _, first_levels = np.unique(first, return_inverse=True)
    _, second_levels = np.unique(second, return_inverse=True)
    equal_weights = np.ones(len(cells))
    value = _weighted_correlation(first_levels, second_levels, cells, equal_weights)
    resampled = [
        _weighted_correlation(first_levels, second_levels, cells, weights) for weights in draws
    ]
    return ShortcutEstimate(
        value=None if np.isnan(value) else value,
        interval=percentile_interval(np.array(resampled)),
    )


def _weighted_correlation(
    first_levels: Array, second_levels: Array, cells: Array, weights: Array
) -> float:
    """Return the partial correlation of weighted queries; NaN if it is undefined.

    A query's level is the place of its value among the sorted distinct values of all queries.
    """
    first = _residual_ranks(first_levels, cells, weights)
    second = _residual_ranks(second_levels, cells, weights)
    scale = np.sqrt(np.sum(weights * first**2) * np.sum(weights * second**2))
    return float(np.sum(weights * first * second) / scale) if scale else np.nan


def _residual_ranks(levels: Array, cells: Array, weights: Array) -> Array:
    """Return the rank of each query, minus the mean rank of the query's cell."""
    weight_of_level = np.bincount(levels, weights)
    rank_of_level = np.cumsum(weight_of_level) - weight_of_level / 2
    ranks = rank_of_level[levels]
    # The mean needs no weights, because all queries of a cell have the same weight.
    mean_rank_of_cell = np.bincount(cells, ranks) / np.bincount(cells)
    return ranks - mean_rank_of_cell[cells]
