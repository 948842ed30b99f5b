"""Constructed IdioLink runs with the printed scores; they are not results.

For each query with R relevant documents, the number of hits among the first R ranks and the
relevant ranks among the first ten are chosen so that the means over all queries are the printed
R-Precision and nDCG@10.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple, TypeVar

from pieline.reporting.printed import read_printed
from pieline.studies.idiolink.datasets.relevance import meaning_qrels
from pieline.studies.idiolink.predictions.bm25_tuning import Bm25Parameters, GridPoint, Tuning
from pieline.studies.idiolink.predictions.runs import RankedRun
from pieline.studies.idiolink.records import Document, Query

T = TypeVar("T")
BM25 = "bm25"
"""Value of `model` for BM25's runs."""

_CUT = 10
"""Number of ranks in nDCG@10."""
_DISCOUNTS = [1 / math.log2(rank + 1) for rank in range(1, _CUT + 1)]
_FIRST, _LAST = 0.9, 0.1
"""Scores of the first and the last rank; only their order matters."""


class Target(NamedTuple):
    """Target means of a run, as fractions."""

    r_precision: float
    ndcg_at_10: float


class Pattern(NamedTuple):
    """Relevant ranks (from 0) among the first ten, and the sum of their discounts."""

    gain: float
    ranks: frozenset[int]


def printed_run(
    queries: Sequence[Query],
    documents: Sequence[Document],
    *,
    model: str,
    query_mode: str,
    composition: str,
    published: Path,
    top_k: int,
    train_mode: str | None = None,
    seed: int = 0,
    seeds: Sequence[int] = (),
) -> RankedRun:
    """Rank the documents for each query so that the run has the printed scores.

    The run is deterministic. If the numbers of queries and relevant documents do not allow the
    printed means, the run approximates them.

    Args:
        queries: All queries of the split.
        documents: Documents of the index.
        model: See `target`.
        query_mode: See `target`.
        composition: See `target`.
        published: Folder of the printed numbers.
        top_k: Number of documents per query.
        train_mode: Mode of fine-tuning; None without fine-tuning.
        seed: Seed of the training run.
        seeds: Seeds of all training runs, whose scores have the printed mean and deviation.
    """
    aim = target(
        published,
        model=model,
        query_mode=query_mode,
        composition=composition,
        train_mode=train_mode,
        step=_step(seed, seeds),
    )
    relevant = [list(relevant_ids) for relevant_ids in meaning_qrels(queries, documents).values()]
    sizes = [len(relevant_ids) for relevant_ids in relevant]
    hits = _hits(aim.r_precision, sizes)
    patterns = _first_ten(aim.ndcg_at_10, sizes, hits)
    by_pie: defaultdict[str, list[str]] = defaultdict(list)
    for document in documents:
        by_pie[document.pie].append(document.id)
    fall = (_FIRST - _LAST) / max(top_k - 1, 1)
    scores = [round(_FIRST - fall * place, 6) for place in range(top_k)]
    run = {}
    for query, relevant_ids, count, pattern in zip(queries, relevant, hits, patterns, strict=True):
        # Irrelevant documents of the same PIE come first.
        rivals = sorted({*by_pie[query.pie]} - {*relevant_ids})
        rest = (document.id for document in documents if document.pie != query.pie)
        ranking = _ranking(relevant_ids, count, pattern, chain(rivals, rest))
        run[query.id] = dict(zip(ranking, scores, strict=False))
    return run


def target(
    published: Path,
    *,
    model: str,
    query_mode: str,
    composition: str,
    train_mode: str | None = None,
    step: float = 0.0,
) -> Target:
    """Return the target scores of a run: the printed ones, or an approximation.

    Models that are not printed get the mean over the printed ones. On an index without some usages,
    BM25 gets the scores of the authors' released run if it covers the query mode; all other scores
    are scaled by the change in BM25's scores with sentence queries. Both losses get the same
    scores, because the paper does not state which loss its numbers use.

    Args:
        published: Folder of the printed numbers.
        model: Printed name of the checkpoint, `BM25`, or any other name.
        query_mode: One of the four query modes.
        composition: Composition of the index.
        train_mode: Mode of fine-tuning; None without fine-tuning.
        step: Distance from the printed mean, in printed standard deviations.
    """
    by_mode = {"query_mode": query_mode}
    if train_mode is not None:
        row = _mean_row(
            published / "idiolink_table5.csv", by_mode | {"train_mode": train_mode}, model
        )
    elif model == BM25:
        row = _mean_row(published / "idiolink_bm25.csv", by_mode)
    else:
        row = _mean_row(published / "idiolink_table2.csv", by_mode, model)
    scores = {
        column: row[column] + step * row.get(f"{column}_std", 0.0)
        for column in ("r_precision_pct", "ndcg_at_10_pct")
    }
    if composition != "full":
        released = _released_rows(published, query_mode, composition)
        if model == BM25 and released:
            scores = {column: float(released[0][column]) for column in scores}
        else:
            sentence = {"query_mode": "sentence"}
            full = _mean_row(published / "idiolink_bm25.csv", sentence)
            (of_composition,) = _released_rows(published, "sentence", composition)
            less = {column: float(of_composition[column]) for column in scores}
            scores = {column: scores[column] * less[column] / full[column] for column in scores}
    return Target(*(value / 100 for value in scores.values()))


def printed_tuning(
    *,
    query_mode: str,
    composition: str,
    k1: Sequence[float],
    b: Sequence[float],
    published: Path,
) -> Tuning:
    """Return BM25's tuning with the printed parameters as the best grid point.

    If no parameters are printed for the composition, those of the full index are used; if these are
    not in the grid, the nearest point is the best one. Scores decrease with the distance from the
    printed parameters.
    """
    by_mode = {"query_mode": query_mode}
    rows = [
        *_released_rows(published, query_mode, composition),
        *_rows(published / "idiolink_bm25.csv", by_mode),
    ]
    printed = next(row for row in rows if row["k1"])
    best = float(rows[0]["ndcg_at_10_pct"]) / 100

    def distance(first: float, second: float) -> float:
        return abs(first - float(printed["k1"])) + abs(second - float(printed["b"]))

    points = [(first, second) for first in k1 for second in b]
    chosen = min(points, key=lambda point: distance(*point))
    return Tuning(
        query_mode=query_mode,
        composition=composition,
        chosen=Bm25Parameters(k1=chosen[0], b=chosen[1]),
        grid=[
            GridPoint(k1=first, b=second, ndcg_at_10=best * (1 - distance(first, second) / 10))
            for first, second in points
        ],
    )


def _step(seed: int, seeds: Sequence[int]) -> float:
    """Return the `step` of a seed; the steps of all seeds have mean 0 and standard deviation 1.

    With fewer than two seeds, the step is 0.
    """
    if len(seeds) < 2:
        return 0.0
    places = range(len(seeds))
    return (seeds.index(seed) - fmean(places)) / stdev(places)


_printed = cache(read_printed)


def _rows(path: Path, where: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the printed rows that match `where`."""
    return [row for row in _printed(path) if where.items() <= row.items()]


def _released_rows(published: Path, query_mode: str, composition: str) -> list[dict[str, str]]:
    """Return BM25's scores in the released run for sentence queries, as a list of no or one row."""
    where = {"model": "bm25", "query_mode": query_mode, "composition": composition}
    rows = _rows(published / "idiolink_released_run.csv", where | {"scope": "overall"})
    scores = {f"{row['metric']}_pct": f"{100 * float(row['value']):.2f}" for row in rows}
    return [scores | {"k1": "", "b": ""}] if scores and query_mode == "sentence" else []


def _mean_row(path: Path, where: Mapping[str, str], model: str | None = None) -> dict[str, float]:
    """Return the printed scores of a model; without printed scores, the mean over all models."""
    rows = _rows(path, where)
    rows = [row for row in rows if row.get("model") == model] or rows
    columns = [column for column in rows[0] if column.startswith(("r_precision", "ndcg"))]
    return {column: fmean(float(row[column]) for row in rows) for column in columns}


def _hits(mean: float, sizes: Sequence[int]) -> list[int]:
    """Return each query's number of hits in the first R ranks, for a mean R-Precision."""

    def nearest(place: int, level: float) -> tuple[int, float]:
        count = min(max(round(sizes[place] * level), 0), sizes[place])
        return count, count / sizes[place]

    return _chosen(mean, sizes, nearest)


def _first_ten(mean: float, sizes: Sequence[int], hits: Sequence[int]) -> list[Pattern]:
    """Return each query's pattern of the first ten ranks, for a mean nDCG@10."""

    def nearest(place: int, level: float) -> tuple[Pattern, float]:
        ideal = sum(_DISCOUNTS[: sizes[place]])
        feasible = _patterns(*_bounds(sizes[place], hits[place]))
        over = bisect_left(feasible, level * ideal, key=lambda pattern: pattern.gain)
        around = feasible[max(over - 1, 0) : over + 1]
        pattern = min(around, key=lambda pattern: abs(pattern.gain - level * ideal))
        return pattern, pattern.gain / ideal

    return _chosen(mean, sizes, nearest)


def _chosen(
    mean: float, sizes: Sequence[int], nearest: Callable[[int, float], tuple[T, float]]
) -> list[T]:
    """Choose a value per query so that the mean is met, carrying each error to the next query.

    Args:
        mean: Target mean over all queries.
        sizes: Number of relevant documents per query. Queries with more relevant documents come
            later, because their values have finer steps.
        nearest: Function from a query's index and a target to the nearest value and its score.
    """
    values: dict[int, T] = {}
    over = 0.0
    for place in sorted(range(len(sizes)), key=lambda place: sizes[place]):
        values[place], level = nearest(place, mean + over)
        over += mean - level
    return [values[place] for place in range(len(sizes))]


def _bounds(size: int, hits: int) -> tuple[int, int, int, int]:
    """Return the arguments of `_patterns` for a query's numbers of relevant documents and hits.

    Hits that do not fit into ranks 11 to R must be among the first ten. With fewer than ten
    relevant documents, all hits are among the first ten, and other relevant documents may follow.
    """
    if size >= _CUT:
        return _CUT, max(0, hits - (size - _CUT)), min(hits, _CUT), 0
    return size, hits, hits, size - hits


@cache
def _patterns(first: int, fewest: int, most: int, behind: int) -> list[Pattern]:
    """Return the patterns with `fewest` to `most` hits in the `first` ranks, by ascending gain.

    The patterns have at most `behind` relevant documents after these ranks.
    """
    patterns = []
    for pattern in _all_patterns():
        hits = sum(rank < first for rank in pattern.ranks)
        if fewest <= hits <= most and len(pattern.ranks) - hits <= behind:
            patterns.append(pattern)
    return patterns


@cache
def _all_patterns() -> list[Pattern]:
    """Return all patterns by ascending gain."""
    patterns = []
    for code in range(1 << _CUT):
        ranks = [rank for rank in range(_CUT) if code >> rank & 1]
        patterns.append((sum(_DISCOUNTS[rank] for rank in ranks), ranks))
    return [Pattern(gain, frozenset(ranks)) for gain, ranks in sorted(patterns)]


def _ranking(
    relevant: Sequence[str], hits: int, pattern: Pattern, others: Iterator[str]
) -> Iterator[str]:
    """Yield the first ten documents by the pattern, then the remaining hits, then the others."""
    waiting = iter(relevant)
    for rank in range(_CUT):
        yield from islice(waiting if rank in pattern.ranks else others, 1)
    yield from islice(waiting, max(hits - len(pattern.ranks), 0))
    yield from others
