"""Ranking, reading and validation of TREC runs, with ties broken as in trec_eval."""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from math import isfinite
from pathlib import Path
from typing import NamedTuple, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from pieline.core.errors import UserError, pluralize
from pieline.core.files import GZIP_START, open_gzip
from pieline.core.records import check_ids
from pieline.core.texts import fits_better, nfc
from pieline.studies.idiolink.predictions.mteb import mteb_scores, task_of
from pieline.studies.idiolink.records import QUERY_MODES, Meaning

RankedRun = dict[str, dict[str, float]]
"""Scores by query id and document id; the documents of a query are in ranking order."""

_FIELDS = ("query", "Q0", "document", "rank", "score", "tag")
"""Fields of a line of a TREC run, in order."""
_LINE_HINT = f"write `{' '.join(_FIELDS)}` in each line"
_QUERIES_AT_ONCE = 256
"""Number of queries that are compared with the documents at once."""
_ROWS_AT_ONCE = 4096
"""Number of document vectors that are read and normalized at once."""
_FLOAT32_BYTES = 4
_BLOCK_BYTES = 1 << 26
"""Size of a block of document vectors; the papers' corpora fit into one block."""
_NDCG_CUT = 10
"""Cutoff of nDCG@10."""
_MAX_CONSTANT_SHARE = 0.05
"""A run is rejected if at least this share of the queries have constant scores."""
_MIN_PART = 0.05
"""A run is rejected if it ranks no document of a usage or subject that makes up at least this share
of the documents."""
_MOST_DIGITS = 6
"""Scores may be rounded if no score has more decimals than this number."""
_MAX_TIED_SHARE = 0.5
"""A run is rejected if rounding the scores changed the rankings of more than this share of the
queries."""
_MAX_MOVED_SHARE = 0.1
"""Rounding counts as a change of a ranking if more than this share of the documents moved."""


class _Scored(NamedTuple):
    """Scores and indices of some documents."""

    scores: NDArray[np.floating]
    indices: NDArray[np.intp]


def cosine_scores(
    queries: NDArray[np.float32], documents: NDArray[np.float32]
) -> Iterator[NDArray[np.float32]]:
    """Yield, for each query, the cosine similarities with all documents, of shape (documents,)."""
    return _scores_of_unit_vectors(queries, _normalize(documents))


def _scores_of_unit_vectors(
    queries: NDArray[np.float32], unit_documents: NDArray[np.float32]
) -> Iterator[NDArray[np.float32]]:
    """Yield, for each query, the cosine similarities with document vectors of length 1."""
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        yield from _normalize(queries[start : start + _QUERIES_AT_ONCE]) @ unit_documents.T


def in_order(score_by_id: Mapping[str, float]) -> list[str]:
    """Return the ids of a query's documents from best to worst.

    Scores are compared as doubles, and documents with equal scores are sorted by descending id, as
    in trec_eval. Therefore, all tools and processors agree on the ranking. `rank` uses this order.
    """
    return sorted(score_by_id, key=lambda name: (score_by_id[name], name), reverse=True)


def rank(
    query_ids: Sequence[str],
    scores: Iterable[NDArray[np.floating]],
    document_ids: Sequence[str],
    *,
    top_k: int,
) -> RankedRun:
    """Return the `top_k` documents of each query, best first (see `in_order`).

    Args:
        query_ids: Ids of the queries.
        scores: One array of shape (documents,) per query.
        document_ids: Ids of the documents.
        top_k: Number of documents per query.
    """
    tie_order = _tie_order(document_ids)
    run: RankedRun = {}
    for query_id, query_scores in zip(query_ids, scores, strict=True):
        indices = _top_k_candidates(query_scores, top_k)
        candidates = _Scored(query_scores[indices], indices)
        run[query_id] = _scores_by_id(_sort_best(candidates, tie_order, top_k), document_ids)
    return run


def rank_by_cosine(
    query_ids: Sequence[str],
    queries: Sequence[NDArray[np.float32]],
    document_ids: Sequence[str],
    documents: str | Path,
    rows: Sequence[int] | NDArray[np.intp],
    *,
    top_k: int,
) -> list[RankedRun]:
    """Rank documents by cosine similarity, for several arrays of query vectors at once.

    The runs equal those of `rank` and `cosine_scores`. The document vectors are read once, block by
    block, so memory holds the vectors of only one block at a time.

    Args:
        query_ids: Ids of the queries.
        queries: Arrays of query vectors, one per run.
        document_ids: Ids of the documents.
        documents: Path of an npy file with document vectors.
        rows: For each document, the row of its vector in the file.
        top_k: Number of documents per query.
    """
    tie_order = _tie_order(document_ids)
    no_documents = _Scored(np.empty(0, dtype=np.float32), np.empty(0, dtype=np.intp))
    best_of_runs = [[no_documents] * len(query_vectors) for query_vectors in queries]
    for start, block in _unit_blocks(documents, rows):
        for query_vectors, best_of_queries in zip(queries, best_of_runs, strict=True):
            for query_index, scores in enumerate(_scores_of_unit_vectors(query_vectors, block)):
                best_so_far = best_of_queries[query_index]
                best_of_queries[query_index] = _merge(best_so_far, scores, start, tie_order, top_k)
    runs: list[RankedRun] = []
    for best_of_queries in best_of_runs:
        scores_by_id = [_scores_by_id(best, document_ids) for best in best_of_queries]
        runs.append(dict(zip(query_ids, scores_by_id, strict=True)))
    return runs


def _merge(
    best: _Scored,
    block_scores: NDArray[np.floating],
    start: int,
    tie_order: NDArray[np.intp],
    top_k: int,
) -> _Scored:
    """Return the `top_k` best documents of the previous blocks and another block.

    Args:
        best: The best documents of the previous blocks, best first.
        block_scores: Scores of the block's documents.
        start: Index of the block's first document.
        tie_order: Result of `_tie_order` for all documents.
        top_k: Number of documents to return.
    """
    if len(best.scores) < top_k:
        in_block = _top_k_candidates(block_scores, top_k)
    else:
        worst_score = best.scores[-1]
        in_block = np.flatnonzero(block_scores >= worst_score)
    candidates = _Scored(
        np.concatenate([best.scores, block_scores[in_block]]),
        np.concatenate([best.indices, in_block + start]),
    )
    return _sort_best(candidates, tie_order, top_k)


def _unit_blocks(
    documents: str | Path, rows: Sequence[int] | NDArray[np.intp]
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield blocks of vectors of length 1, each with the position of the first vector in `rows`.

    Args:
        documents: Path of an npy file with vectors.
        rows: Rows of the file, in the order in which the vectors are yielded.
    """
    dimensions = np.load(documents, mmap_mode="r").shape[1]
    bytes_per_part = _FLOAT32_BYTES * dimensions * _ROWS_AT_ONCE
    parts_per_block = max(1, _BLOCK_BYTES // bytes_per_part)
    for start, end in _block_bounds(len(rows), parts_per_block * _ROWS_AT_ONCE):
        block = np.empty((end - start, dimensions), dtype=np.float32)
        for part_start in range(start, end, _ROWS_AT_ONCE):
            part_end = min(part_start + _ROWS_AT_ONCE, end)
            # Map the file again for each part; otherwise, all pages read count as process memory.
            vectors = np.load(documents, mmap_mode="r")[rows[part_start:part_end]]
            block[part_start - start : part_end - start] = _normalize(vectors)
        yield start, block


def _block_bounds(row_count: int, block_rows: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each block of `block_rows` rows; the last block may be longer.

    A remainder is added to the last block, because BLAS computes products with few vectors
    differently: the scores of a short block would depend on the size of the blocks.
    """
    full_blocks = max(1, row_count // block_rows)
    starts = [number * block_rows for number in range(full_blocks)]
    return pairwise([*starts, row_count])


def _tie_order(document_ids: Sequence[str]) -> NDArray[np.intp]:
    """Return the position of each document in the order that breaks ties: by descending id."""
    # As objects, because an array of strings uses the length of the longest id for every id.
    ascending = np.argsort(np.array(document_ids, dtype=object), kind="stable")
    positions = np.empty(len(document_ids), dtype=np.intp)
    positions[ascending[::-1]] = np.arange(len(positions))
    return positions


def _sort_best(candidates: _Scored, tie_order: NDArray[np.intp], top_k: int) -> _Scored:
    """Sort candidates, which may be in any order, and return the `top_k` best, best first."""
    # lexsort sorts by its last key first.
    order = np.lexsort((tie_order[candidates.indices], -candidates.scores))[:top_k]
    return _Scored(candidates.scores[order], candidates.indices[order])


def _scores_by_id(best: _Scored, document_ids: Sequence[str]) -> dict[str, float]:
    """Return scores by document id, in the order of `best`.

    float32 scores get the fewest digits that distinguish them, which makes runs a third smaller.
    """
    return {
        # `str` of a float32 has fewer digits than the number as a double.
        document_ids[index]: float(str(score))
        for score, index in zip(best.scores, best.indices, strict=True)
    }


def _top_k_candidates(scores: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """Return the ascending indices of all scores that are at least the k-th largest score."""
    if k >= len(scores):
        return np.arange(len(scores))
    k_th_largest = np.partition(scores, -k)[-k]
    return np.flatnonzero(scores >= k_th_largest)


def write_run(path: str | Path, run: RankedRun, *, tag: str) -> None:
    """Write a gzipped TREC run (`query Q0 document rank score tag`) with exact scores."""
    with open_gzip(path) as stream:
        for query_id, documents in run.items():
            lines = (
                f"{query_id} Q0 {document_id} {position} {score!r} {tag}\n"
                for position, (document_id, score) in enumerate(documents.items(), start=1)
            )
            # gzip takes 50% longer to write single lines.
            stream.write("".join(lines).encode())


def read_run(path: str | Path, *, top_k: int | None = None) -> RankedRun:
    """Read a TREC run, which is gzipped if its name ends in .gz.

    Args:
        path: Path of the run.
        top_k: Number of leading documents to read per query; None reads all.

    Raises:
        UserError: The file cannot be read, or a line does not have six fields with a numeric rank
            and a finite score.
    """
    run: RankedRun = {}
    for line in _read_lines(path, top_k):
        run.setdefault(line.query, {})[line.document] = line.score
    return run


def check_run(
    path: str | Path, run: RankedRun, query_ids: Sequence[str], document_ids: Collection[str]
) -> None:
    """Check that a run has exactly the queries of a dataset and only documents of the dataset.

    Raises:
        UserError: Queries or documents are unknown, queries are missing, or the documents of a
            query are not in the order of their scores.
    """
    # The run has no line numbers, so an error refers to line 1.
    check_ids(dict.fromkeys(run, 1), query_ids, "queries", where=path)
    ranked_documents = set(chain.from_iterable(run.values()))
    if unknown := ranked_documents.difference(document_ids):
        raise UserError(
            f"{pluralize(len(unknown), 'unknown document')}, such as {min(unknown)!r}",
            where=path,
            hint="rank the documents of the dataset",
        )
    for query_id, scores in run.items():
        if list(scores) != in_order(scores):
            raise UserError(
                f"the documents of {query_id!r} are not in the order of their scores",
                where=path,
                hint="create the run again",
            )


class TextLabels(NamedTuple):
    """PIEs, usages and subjects of the documents and queries of a dataset."""

    documents: Sequence[Meaning]
    queries: Sequence[Meaning]


def read_foreign_run(
    path: str | Path,
    query_ids: Sequence[str],
    document_ids: Collection[str],
    *,
    mode: str,
    top_k: int,
    file_format: str = "",
    texts: TextLabels | None = None,
) -> RankedRun:
    """Read an external run, check it, and return the `top_k` documents of each query.

    As in trec_eval, documents are ordered by score rather than by rank (see `in_order`).

    Args:
        path: Path of the run. The run's tag, file name or folder must state the query mode.
        query_ids: Query ids of the dataset.
        document_ids: Document ids of the dataset.
        mode: Expected query mode.
        top_k: Number of documents to keep per query.
        file_format: `mteb` for MTEB predictions; any other value stands for a TREC run.
        texts: Labels of the texts. They are used to detect runs that rank only a part of the
            documents, or whose rankings are shifted to the next or previous queries.

    Raises:
        UserError: The file cannot be read; queries are unknown or missing; documents are unknown,
            repeated or too few for `top_k`; the rankings belong to other queries; ranks contradict
            the scores; the scores of many queries are constant or rounded; no document of some
            usage or subject is ranked; or the query mode is unknown or differs.
    """
    rankings: dict[str, dict[str, RunLine]] = {query_id: {} for query_id in query_ids}
    first_line_of_query: dict[str, int] = {}
    first_line_of_document: dict[str, int] = {}
    tags: set[str] = set()
    run_lines = _read_mteb_lines(path) if file_format == "mteb" else _read_lines(path)
    for line in run_lines:
        first_line_of_query.setdefault(line.query, line.number)
        first_line_of_document.setdefault(line.document, line.number)
        tags.add(line.tag)
        _add_line(path, rankings.setdefault(line.query, {}), line)
    check_ids(first_line_of_query, query_ids, "queries", where=path)
    _check_documents(path, first_line_of_document, document_ids)
    _check_lengths(path, rankings, min(top_k, len(document_ids)))
    _check_mode(path, tags, mode)
    _check_scores(path, rankings, top_k)
    labels = texts or TextLabels((), ())
    _check_all_parts_ranked(path, first_line_of_document, labels.documents)
    run: RankedRun = {}
    for query_id, ranked in rankings.items():
        scores = {document_id: line.score for document_id, line in ranked.items()}
        best_ids = in_order(scores)[:top_k]
        run[query_id] = {document_id: scores[document_id] for document_id in best_ids}
    _check_not_shifted(path, run, labels.documents, labels.queries)
    return run


def _check_documents(
    path: str | Path, first_line_of_document: Mapping[str, int], document_ids: Collection[str]
) -> None:
    """Raise a `UserError` if a run ranks documents that are not in the dataset.

    Args:
        path: Path of the run.
        first_line_of_document: For each ranked document, the number of the first line that ranks
            it.
        document_ids: Document ids of the dataset.
    """
    unknown_ids = [
        document_id for document_id in first_line_of_document if document_id not in document_ids
    ]
    if unknown_ids:
        raise UserError(
            f"{pluralize(len(unknown_ids), 'unknown document')}, such as {unknown_ids[0]!r}",
            where=f"{path}:{first_line_of_document[unknown_ids[0]]}",
            hint="rank the documents of the dataset",
        )


def _check_lengths(path: str | Path, rankings: Mapping[str, Collection[str]], needed: int) -> None:
    """Raise a `UserError` if a query has fewer than `needed` documents."""
    too_short = [query_id for query_id, ranked in rankings.items() if len(ranked) < needed]
    if too_short:
        raise UserError(
            f"fewer than {needed} documents for {len(too_short)} of {len(rankings)} queries, such"
            f" as {too_short[0]!r}",
            where=path,
            hint=f"rank at least {needed} documents per query (idiolink.top_k)",
        )


def _check_not_shifted(
    path: str | Path, run: RankedRun, documents: Sequence[Meaning], queries: Sequence[Meaning]
) -> None:
    """Raise a `UserError` if the rankings fit the next or the previous queries clearly better.

    The fit of a ranking is the number of its first documents with the query's PIE and subject.
    """
    topics_by_id = {document.id: (document.pie, document.subject) for document in documents}
    ranked_topics = []
    for query in queries:
        best_ids = list(run[query.id])[:_NDCG_CUT]
        ranked_topics.append([topics_by_id[document_id] for document_id in best_ids])
    query_topics = [(query.pie, query.subject) for query in queries]
    fits = _count_topic(ranked_topics, query_topics)
    next_topics = query_topics[1:] + query_topics[:1]
    previous_topics = query_topics[-1:] + query_topics[:-1]
    for other, other_topics in (("next", next_topics), ("previous", previous_topics)):
        shifted_fits = _count_topic(ranked_topics, other_topics)
        if fits_better(shifted_fits, fits):
            raise UserError(
                f"the rankings fit the {other} queries: of the {_NDCG_CUT} best documents,"
                f" {sum(shifted_fits)} have their idiom and subject, but only {sum(fits)} those of"
                " their own query",
                where=path,
                hint="check the query ids",
            )


def _count_topic(
    ranked_topics: Sequence[Sequence[tuple[str, str]]], topics: Sequence[tuple[str, str]]
) -> list[int]:
    """Return how often each topic occurs in the ranking at the same index."""
    return [ranked.count(topic) for ranked, topic in zip(ranked_topics, topics, strict=True)]


def _check_all_parts_ranked(
    path: str | Path, ranked_ids: Collection[str], documents: Sequence[Meaning]
) -> None:
    """Raise a `UserError` if no query ranks any document of some usage or subject.

    In this case, not all documents were ranked, but for example only an index composition.
    """
    for field in ("usage", "subject"):
        count_by_value = Counter(getattr(document, field) for document in documents)
        ranked_values = {
            getattr(document, field) for document in documents if document.id in ranked_ids
        }
        unranked = {
            value: count for value, count in count_by_value.items() if value not in ranked_values
        }
        min_count = _MIN_PART * len(documents)
        large_parts = [value for value, count in unranked.items() if count >= min_count]
        if large_parts:
            raise UserError(
                f"no query ranks a document with {field} {' or '.join(map(repr, large_parts))}"
                f" ({sum(unranked.values())} of {len(documents)} documents)",
                where=path,
                hint="rank all documents of the split, not those of an index composition",
            )


def _check_mode(path: str | Path, tags: Iterable[str], mode: str) -> None:
    """Raise a `UserError` unless a run's tags, file name or folder state only the expected mode.

    The folder counts only if neither the tags nor the file name state a mode.
    """
    file_name, folder = Path(path).name, Path(path).parent.name
    named_modes = _named_modes(file_name)
    for tag in tags:
        named_modes |= _named_modes(tag)
    if not named_modes and folder in QUERY_MODES:
        named_modes = {folder}
    if not named_modes:
        raise UserError(
            "no query mode in the file name or tag",
            where=path,
            hint=f"rename it, such as mine-{mode}.run",
        )
    if named_modes != {mode}:
        raise UserError(
            f"the query mode is {' and '.join(map(repr, sorted(named_modes)))}, not {mode!r}",
            where=path,
            hint="correct `setting` in the model's files, or the tag and file name of the run",
        )


def _named_modes(text: str) -> set[str]:
    """Return the query modes in a tag or file name.

    A mode counts if it is the end of the text, or of a part of the text before a dot.
    """
    named_modes: set[str] = set()
    for part in re.sub(r"[-\s]", "_", text).split("."):
        matching_modes = [mode for mode in QUERY_MODES if f"_{part}".endswith(f"_{mode}")]
        if matching_modes:
            # "instruction_span" also ends with "span".
            named_modes.add(max(matching_modes, key=len))
    return named_modes


def _check_ranks(path: str | Path, ordered: Sequence["RunLine"]) -> None:
    """Raise a `UserError` if a document has a better rank than a document with a higher score.

    `ordered` contains the lines of one query, sorted by score, then by rank.
    """
    for higher, lower in pairwise(ordered):
        if lower.rank < higher.rank:
            raise UserError(
                f"document {lower.document!r} has rank {lower.rank:g} for query {lower.query!r},"
                " but not the highest score",
                where=f"{path}:{lower.number}",
                hint="better documents need higher scores; negate distances",
            )


def _ties_change_ranks(ordered: Sequence["RunLine"], top_k: int) -> bool:
    """Return whether equal scores change the order that the ranks state.

    `ordered` contains the lines of one query, sorted by score, then by rank.
    """
    has_equal_ranks = len({line.rank for line in ordered}) < len(ordered)
    if has_equal_ranks:
        return False
    ids_by_score = in_order({line.document: line.score for line in ordered})
    # Documents with the lowest score are often documents that the system did not score.
    lowest_score = ordered[-1].score
    scored_documents = sum(line.score > lowest_score for line in ordered)
    depth = min(top_k, max(_NDCG_CUT, scored_documents))
    ids_by_rank = [line.document for line in ordered[:depth]]
    return _is_reordered(ids_by_rank, ids_by_score[:depth])


def _is_reordered(ids_by_rank: Sequence[str], ids_by_score: Sequence[str]) -> bool:
    """Return whether two rankings of equal length differ in the best or in many documents."""
    is_moved = [
        by_rank != by_score for by_rank, by_score in zip(ids_by_rank, ids_by_score, strict=True)
    ]
    return any(is_moved[:_NDCG_CUT]) or is_moved.count(True) > _MAX_MOVED_SHARE * len(is_moved)


def _may_be_rounded(lines: Iterable["RunLine"]) -> bool:
    """Return whether no score has more than `_MOST_DIGITS` decimals."""
    return all(line.score == round(line.score, _MOST_DIGITS) for line in lines)


def _check_scores(
    path: str | Path, rankings: Mapping[str, Mapping[str, "RunLine"]], top_k: int
) -> None:
    """Raise a `UserError` if a run's scores contradict its ranks, are constant or are rounded.

    Equal ranks contradict no score, because BEIR writes rank 0 in every line.
    """
    ordered_by_query = {
        query: sorted(ranked.values(), key=lambda line: (-line.score, line.rank))
        for query, ranked in rankings.items()
        if len(ranked) > 1
    }
    number_of_queries = len(ordered_by_query)
    constant: list[str] = []
    tied: list[str] = []
    for query, ordered in ordered_by_query.items():
        _check_ranks(path, ordered)
        if _ties_change_ranks(ordered, top_k):
            tied.append(query)
        if ordered[0].score == ordered[-1].score:
            constant.append(query)
    if constant and len(constant) >= _MAX_CONSTANT_SHARE * number_of_queries:
        raise UserError(
            f"constant scores for {len(constant)} of {number_of_queries} queries, such as"
            f" {constant[0]!r}",
            where=path,
            hint="write the actual scores of the system",
        )
    many_are_tied = len(tied) > _MAX_TIED_SHARE * number_of_queries
    if many_are_tied and all(_may_be_rounded(ordered) for ordered in ordered_by_query.values()):
        raise UserError(
            f"scores are rounded: for {len(tied)} of {number_of_queries} queries, such as"
            f" {tied[0]!r}, ties change the order of the ranks",
            where=path,
            hint="write all digits of the scores",
        )


class RunLine(NamedTuple):
    """A line of a TREC run; `number` is the line number (from 1)."""

    number: int
    query: str
    document: str
    rank: float
    score: float
    tag: str


def _add_line(path: str | Path, ranked: dict[str, RunLine], line: RunLine) -> None:
    """Add a line to `ranked`, which contains the lines of one query by document.

    Raises:
        UserError: The query already ranks the document.
    """
    if line.document in ranked:
        raise UserError(
            f"query {line.query!r} ranks {line.document!r} twice",
            where=f"{path}:{line.number}",
            hint="rank each document once",
        )
    ranked[line.document] = line


def _read_mteb_lines(path: str | Path) -> Iterator[RunLine]:
    """Yield MTEB predictions as lines of a run, with ranks derived from the scores."""
    tag = task_of(path)
    for query, scores in mteb_scores(path).items():
        for rank, document in enumerate(in_order(scores), start=1):
            # MTEB writes the whole file as one line.
            yield RunLine(1, nfc(query), nfc(document), rank, scores[document], tag)


def _read_lines(path: str | Path, top_k: int | None = None) -> Iterator[RunLine]:
    """Yield all lines of a TREC run or, if `top_k` is set, the first `top_k` lines of each query.

    Raises:
        UserError: The file cannot be read, or a line is invalid.
    """
    line_count_by_query: Counter[str] = Counter()
    line_number = 0
    try:
        with _open_text(path) as stream:
            for line_number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                if top_k is not None:
                    query = line.split(maxsplit=1)[0]
                    line_count_by_query[query] += 1
                    if line_count_by_query[query] > top_k:
                        continue
                yield _parse_line(line, line_number, path)
    except UnicodeDecodeError:
        if _is_misnamed_gzip(path):
            raise UserError(
                "the file is gzipped", where=path, hint=f"rename it to {Path(path).name}.gz"
            ) from None
        # The loop did not receive the line that cannot be decoded.
        undecodable_line = line_number + 1
        raise UserError(
            "not a line of a TREC run: not UTF-8",
            where=f"{path}:{undecodable_line}",
            hint=_LINE_HINT,
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(
            f"cannot be read: {error}", where=path, hint="create the run again"
        ) from None


def _open_text(path: str | Path) -> TextIO:
    """Open a UTF-8 text file, which is gzipped if its name ends in .gz."""
    open_file = gzip.open if _is_named_gzip(path) else open
    return cast(TextIO, open_file(path, "rt", encoding="utf-8-sig"))


def _is_named_gzip(path: str | Path) -> bool:
    return str(path).lower().endswith(".gz")


def _is_misnamed_gzip(path: str | Path) -> bool:
    """Return whether a file is gzipped, although its name does not end in .gz."""
    with Path(path).open("rb") as stream:
        return not _is_named_gzip(path) and stream.read(len(GZIP_START)) == GZIP_START


def _parse_line(line: str, number: int, path: str | Path) -> RunLine:
    """Parse a line of a TREC run. Only the last field, the tag, may contain spaces.

    Raises:
        UserError: The line does not have six fields with a numeric rank and a finite score.
    """
    fields = line.split(maxsplit=len(_FIELDS) - 1)
    if problem := _find_problem(fields):
        raise UserError(
            f"not a line of a TREC run: {problem}", where=f"{path}:{number}", hint=_LINE_HINT
        )
    query_id, _, document_id, rank, score, tag = fields
    return RunLine(number, nfc(query_id), nfc(document_id), float(rank), float(score), tag.rstrip())


def _find_problem(fields: Sequence[str]) -> str | None:
    """Return what is wrong with the fields of a line; None if nothing is wrong."""
    if len(fields) != len(_FIELDS):
        return f"{pluralize(len(fields), 'field')} instead of {len(_FIELDS)}"
    for name, text in zip(_FIELDS, fields, strict=True):
        if name in ("rank", "score") and not _is_finite_number(text):
            return f"{name} {text!r} is not a number"
    return None


def _is_finite_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def _normalize(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors scaled to length 1; zero vectors stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = vectors / lengths
    return unit
