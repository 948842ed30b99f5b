"""Ranking, reading and validation of TREC runs, with ties broken as in trec_eval."""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from math import isfinite
from pathlib import Path
from typing import NamedTuple

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
_LINE_HINT = f"write `{' '.join(_FIELDS)}` in each line"
_QUERIES_AT_ONCE = 256
_ROWS_AT_ONCE = 4096
_BLOCK_BYTES = 1 << 26
"""Size of a block of document vectors; the papers' corpora fit into one block."""
_NDCG_CUT = 10
"""Cutoff of nDCG@10."""
_MAX_CONSTANT_SHARE = 0.05
"""A run is rejected if at least this share of queries have constant scores."""
_MIN_PART = 0.05
"""A run is rejected if it ranks no document of a usage or subject with at least this share of the
index."""
_MOST_DIGITS = 6
"""Maximum number of decimals of scores that may have been rounded."""
_MAX_TIED_SHARE = 0.5
"""A run is rejected if rounding of scores changed the rankings of more than this share of
queries."""
_MAX_MOVED_SHARE = 0.1
"""Rounding changed a ranking if it moved more than this share of the documents."""


def cosine_scores(
    queries: NDArray[np.float32], documents: NDArray[np.float32]
) -> Iterator[NDArray[np.float32]]:
    """Yield the cosine similarities of each query with all documents, of shape (documents,)."""
    return _scores(queries, _normalize(documents))


def _scores(
    queries: NDArray[np.float32], unit_documents: NDArray[np.float32]
) -> Iterator[NDArray[np.float32]]:
    """Yield cosine similarities of queries with documents that are already normalized."""
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        yield from _normalize(queries[start : start + _QUERIES_AT_ONCE]) @ unit_documents.T


def in_order(documents: Mapping[str, float]) -> list[str]:
    """Return the documents of a query from best to worst.

    Scores are compared as doubles, and equal scores are ordered by descending id, as in trec_eval,
    so that all tools and processors agree on the ranking. `rank` has the same order.
    """
    return sorted(documents, key=lambda name: (documents[name], name), reverse=True)


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
        scores: One array of shape (documents,) per query. float32 scores are stored with the
            fewest digits that distinguish them, to make runs a third smaller.
        document_ids: Ids of the documents.
        top_k: Number of documents per query.
    """
    places = _places(document_ids)
    run: RankedRun = {}
    for query_id, row in zip(query_ids, scores, strict=True):
        near = _top_k_candidates(row, top_k)
        run[query_id] = _ranking(document_ids, *_best(row[near], near, places, top_k))
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
    """Return the run that `rank` makes from `cosine_scores`, for each array of query vectors.

    The vectors of documents are read once, in blocks, so that memory depends on the number of
    documents only by their ids.

    Args:
        query_ids: Ids of the queries.
        queries: Arrays of query vectors, one per run.
        document_ids: Ids of the documents.
        documents: Path of an npy file with vectors.
        rows: Rows of the file that belong to the documents.
        top_k: Number of documents per query.
    """
    places = _places(document_ids)
    none = np.empty(0, dtype=np.float32), np.empty(0, dtype=np.intp)
    best = [[none] * len(vectors) for vectors in queries]
    for start, unit in _unit_blocks(documents, rows):
        for vectors, ranked in zip(queries, best, strict=True):
            for number, row in enumerate(_scores(vectors, unit)):
                ranked[number] = _merged(ranked[number], row, start, places, top_k)
    runs = []
    for ranked in best:
        run: RankedRun = {}
        for query_id, (scores, found) in zip(query_ids, ranked, strict=True):
            run[query_id] = _ranking(document_ids, scores, found)
        runs.append(run)
    return runs


def _merged(
    best: tuple[NDArray[np.floating], NDArray[np.intp]],
    row: NDArray[np.floating],
    start: int,
    places: NDArray[np.intp],
    top_k: int,
) -> tuple[NDArray[np.floating], NDArray[np.intp]]:
    """Return the `top_k` best of the documents found so far and those of a block.

    Args:
        best: Scores and indices of the best documents so far.
        row: Scores of the block's documents.
        start: Index of the block's first document.
        places: Places of all documents among equal scores.
        top_k: Number of documents.
    """
    scores, found = best
    if len(scores) < top_k:
        near = _top_k_candidates(row, top_k)
    else:
        near = np.flatnonzero(row >= scores[-1])
    return _best(
        np.concatenate([scores, row[near]]), np.concatenate([found, near + start]), places, top_k
    )


def _unit_blocks(
    documents: str | Path, rows: Sequence[int] | NDArray[np.intp]
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield blocks of normalized rows of an npy file, each with the number of its first row.

    The last block has up to twice as many rows as the others. BLAS computes products with few rows
    in another way, so with a short last block, scores would depend on the size of the blocks.
    """
    dimensions = np.load(documents, mmap_mode="r").shape[1]
    size = max(1, _BLOCK_BYTES // (4 * dimensions * _ROWS_AT_ONCE)) * _ROWS_AT_ONCE
    bounds = list(range(0, max(1, len(rows) - size + 1), size))
    bounds.append(len(rows))
    for start, end in pairwise(bounds):
        unit = np.empty((end - start, dimensions), dtype=np.float32)
        for first in range(start, end, _ROWS_AT_ONCE):
            part = rows[first : min(first + _ROWS_AT_ONCE, end)]
            # Map the file again for each part; otherwise, all pages read count as process memory.
            unit[first - start :][: len(part)] = _normalize(np.load(documents, mmap_mode="r")[part])
        yield start, unit


def _places(document_ids: Sequence[str]) -> NDArray[np.intp]:
    """Return the place of each document among equal scores, which is by descending id."""
    places = np.empty(len(document_ids), dtype=np.intp)
    # As objects, because an array of strings has the length of the longest id for each one.
    order = np.argsort(np.array(document_ids, dtype=object), kind="stable")
    places[order[::-1]] = np.arange(len(places))
    return places


def _best(
    scores: NDArray[np.floating], found: NDArray[np.intp], places: NDArray[np.intp], top_k: int
) -> tuple[NDArray[np.floating], NDArray[np.intp]]:
    """Return the scores and indices of the `top_k` best of the documents `found`, best first."""
    order = np.lexsort((places[found], -scores))[:top_k]
    return scores[order], found[order]


def _ranking(
    document_ids: Sequence[str], scores: NDArray[np.floating], found: NDArray[np.intp]
) -> dict[str, float]:
    """Map the id of each document in `found` to its score."""
    # `str` of a float32 has fewer digits than the number as a double.
    return {
        document_ids[index]: float(str(score)) for score, index in zip(scores, found, strict=True)
    }


def _top_k_candidates(scores: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """Return the ascending indices of all scores that are at least the k-th largest."""
    if k >= len(scores):
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, -k)[-k])


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
    """Read a TREC run, gzipped if its name ends in .gz.

    Args:
        path: Path of the run.
        top_k: Number of leading documents to read per query; None reads all.

    Raises:
        UserError: The file cannot be read, or a line does not have six fields with a numeric rank
            and a finite score.
    """
    run: RankedRun = {}
    for line in _lines(path, top_k):
        run.setdefault(line.query, {})[line.document] = line.score
    return run


def check_run(
    path: str | Path, run: RankedRun, query_ids: Sequence[str], document_ids: Collection[str]
) -> None:
    """Check that a run has exactly the queries of a dataset, and only its documents, in order.

    Raises:
        UserError: Queries or documents are unknown, queries are missing, or the documents of a
            query are not in the order of their scores.
    """
    check_ids(dict.fromkeys(run, 1), query_ids, "queries", where=path)
    ranked_documents = set(chain.from_iterable(run.values()))
    if unknown := ranked_documents.difference(document_ids):
        raise UserError(
            f"{pluralize(len(unknown), 'unknown document')}, such as {min(unknown)!r}",
            where=path,
            hint="rank the documents of the dataset",
        )
    if unordered := [query for query, ranked in run.items() if list(ranked) != in_order(ranked)]:
        raise UserError(
            f"the documents of {unordered[0]!r} are not in the order of their scores",
            where=path,
            hint="create the run again",
        )


class TextLabels(NamedTuple):
    """PIEs, usages and subjects of documents and queries."""

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
    """Return the `top_k` documents of each query from an external run.

    As in trec_eval, documents are ordered by score rather than by rank (see `in_order`).

    Args:
        path: Path of the run, whose tag, file name or folder must state the query mode.
        query_ids: Query ids of the dataset.
        document_ids: Document ids of the dataset.
        mode: Expected query mode.
        top_k: Number of documents to keep per query.
        file_format: `mteb` for MTEB predictions; any other value stands for a TREC run.
        texts: Labels of the texts, to detect rankings of only a part of the documents, or under
            the ids of the next queries.

    Raises:
        UserError: The file cannot be read; queries are unknown or missing; documents are unknown,
            repeated or too few for `top_k`; the rankings belong to other queries; ranks contradict
            the scores; the scores of many queries are constant or rounded; no document of some
            usage or subject is ranked; or the query mode is unknown or differs.
    """
    lines: dict[str, dict[str, RunLine]] = {query_id: {} for query_id in query_ids}
    queries: dict[str, int] = {}
    documents: dict[str, int] = {}
    tags: set[str] = set()
    for line in _mteb_lines(path) if file_format == "mteb" else _lines(path):
        queries.setdefault(line.query, line.number)
        documents.setdefault(line.document, line.number)
        tags.add(line.tag)
        _add_line(path, lines.setdefault(line.query, {}), line)
    check_ids(queries, query_ids, "queries", where=path)
    if unknown := [name for name in documents if name not in document_ids]:
        raise UserError(
            f"{pluralize(len(unknown), 'unknown document')}, such as {unknown[0]!r}",
            where=f"{path}:{documents[unknown[0]]}",
            hint="rank the documents of the dataset",
        )
    _check_lengths(path, lines, min(top_k, len(document_ids)))
    _check_mode(path, tags, mode)
    _check_scores(path, lines, top_k)
    labels = texts or TextLabels((), ())
    _check_index(path, documents, labels.documents)
    run: RankedRun = {}
    for query_id, ranked in lines.items():
        scores = {name: line.score for name, line in ranked.items()}
        run[query_id] = {name: scores[name] for name in in_order(scores)[:top_k]}
    _check_queries(path, run, labels.documents, labels.queries)
    return run


def _check_lengths(path: str | Path, lines: Mapping[str, Collection[str]], needed: int) -> None:
    """Raise a `UserError` if a query has fewer than `needed` documents."""
    if short := [query_id for query_id, ranked in lines.items() if len(ranked) < needed]:
        raise UserError(
            f"fewer than {needed} documents for {len(short)} of {len(lines)} queries, such as"
            f" {short[0]!r}",
            where=path,
            hint=f"rank at least {needed} documents per query (idiolink.top_k)",
        )


def _check_queries(
    path: str | Path, run: RankedRun, documents: Sequence[Meaning], queries: Sequence[Meaning]
) -> None:
    """Raise a `UserError` if rankings fit the next or previous queries clearly better.

    The fit of a ranking is the number of its first documents with the query's PIE and subject.
    """
    topics = {document.id: (document.pie, document.subject) for document in documents}
    expected = [(query.pie, query.subject) for query in queries]
    ranked_topics = []
    for query in queries:
        best = list(run[query.id])[:_NDCG_CUT]
        ranked_topics.append([topics[name] for name in best])
    fits = [ranked.count(topic) for ranked, topic in zip(ranked_topics, expected, strict=True)]
    for other, distance in (("next", 1), ("previous", -1)):
        moved = expected[distance:] + expected[:distance]
        shifted = [ranked.count(topic) for ranked, topic in zip(ranked_topics, moved, strict=True)]
        if fits_better(shifted, fits):
            raise UserError(
                f"the rankings fit the {other} queries: of the {_NDCG_CUT} best documents,"
                f" {sum(shifted)} have their idiom and subject, but only {sum(fits)} those of their"
                " own query",
                where=path,
                hint="check the query ids",
            )


def _check_index(path: str | Path, ranked: Collection[str], documents: Sequence[Meaning]) -> None:
    """Raise a `UserError` if no query ranks any document of some usage or subject.

    In this case, another index was ranked, such as an index composition.
    """
    for field in ("usage", "subject"):
        parts = Counter(getattr(document, field) for document in documents)
        for document in documents:
            if document.id in ranked:
                parts.pop(getattr(document, field), None)
        if large := [part for part, size in parts.items() if size >= _MIN_PART * len(documents)]:
            raise UserError(
                f"no query ranks a document with {field} {' or '.join(map(repr, large))}"
                f" ({sum(parts.values())} of {len(documents)} documents)",
                where=path,
                hint="rank all documents of the split, not those of an index composition",
            )


def _check_mode(path: str | Path, tags: Iterable[str], mode: str) -> None:
    """Raise a `UserError` unless a run's tag, name or folder states only the expected mode."""
    name, folder = Path(path).name, Path(path).parent.name
    named_modes = _named_modes(name).union(*map(_named_modes, tags))
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
    """Return the query modes with which the parts of a tag or file name end."""
    modes: set[str] = set()
    for part in re.sub(r"[-\s]", "_", text).split("."):
        ends = [mode for mode in QUERY_MODES if f"_{part}".endswith(f"_{mode}")]
        if ends:
            # "instruction_span" also ends with "span".
            modes.add(max(ends, key=len))
    return modes


def _check_ranks(path: str | Path, ordered: Sequence["RunLine"]) -> None:
    """Raise a `UserError` if a document has a better rank than one with a higher score."""
    for better, worse in pairwise(ordered):
        if worse.rank < better.rank:
            raise UserError(
                f"document {worse.document!r} has rank {worse.rank:g} for query {worse.query!r},"
                " but not the highest score",
                where=f"{path}:{worse.number}",
                hint="better documents need higher scores; negate distances",
            )


def _ties_change_ranks(ordered: Sequence["RunLine"], top_k: int) -> bool:
    """Return whether the ranks of a query's documents differ from their order by score alone.

    `ordered` is sorted by score, then by rank.
    """
    if len({line.rank for line in ordered}) < len(ordered):
        return False
    by_score = in_order({line.document: line.score for line in ordered})
    # Documents with the lowest score are often those that the system did not score.
    scored = sum(line.score > ordered[-1].score for line in ordered)
    depth = min(top_k, max(_NDCG_CUT, scored))
    return _is_reordered([line.document for line in ordered[:depth]], by_score)


def _are_rounded(ranked: Mapping[str, "RunLine"]) -> bool:
    return all(line.score == round(line.score, _MOST_DIGITS) for line in ranked.values())


def _is_reordered(by_rank: Sequence[str], by_score: Sequence[str]) -> bool:
    """Return whether ties change the best documents, or move many of the others."""
    moved = [one != other for one, other in zip(by_rank, by_score, strict=False)]
    return any(moved[:_NDCG_CUT]) or sum(moved) > _MAX_MOVED_SHARE * len(moved)


def _check_scores(
    path: str | Path, lines: Mapping[str, Mapping[str, "RunLine"]], top_k: int
) -> None:
    """Raise a `UserError` for contradictory, constant or rounded scores.

    Equal ranks contradict no score: BEIR writes rank 0 in every line.
    """
    several = {query: ranked for query, ranked in lines.items() if len(ranked) > 1}
    constant, tied = [], []
    for query, ranked in several.items():
        ordered = sorted(ranked.values(), key=lambda line: (-line.score, line.rank))
        _check_ranks(path, ordered)
        if _ties_change_ranks(ordered, top_k):
            tied.append(query)
        if ordered[0].score == ordered[-1].score:
            constant.append(query)
    if constant and len(constant) >= _MAX_CONSTANT_SHARE * len(several):
        raise UserError(
            f"constant scores for {len(constant)} of {len(several)} queries, such as"
            f" {constant[0]!r}",
            where=path,
            hint="write the actual scores of the system",
        )
    if len(tied) > _MAX_TIED_SHARE * len(several) and all(map(_are_rounded, several.values())):
        raise UserError(
            f"scores are rounded: for {len(tied)} of {len(several)} queries, such as"
            f" {tied[0]!r}, ties change the order of the ranks",
            where=path,
            hint="write all digits of the scores",
        )


class RunLine(NamedTuple):
    """A line of a TREC run, with its line number."""

    number: int
    query: str
    document: str
    rank: float
    score: float
    tag: str


def _add_line(path: str | Path, ranked: dict[str, RunLine], line: RunLine) -> None:
    """Add a line to those of its query; raise a `UserError` if they rank its document."""
    if line.document in ranked:
        raise UserError(
            f"query {line.query!r} ranks {line.document!r} twice",
            where=f"{path}:{line.number}",
            hint="rank each document once",
        )
    ranked[line.document] = line


def _mteb_lines(path: str | Path) -> Iterator[RunLine]:
    """Yield MTEB predictions as run lines, with ranks derived from the scores."""
    tag = task_of(path)
    for query, scores in mteb_scores(path).items():
        for rank, document in enumerate(in_order(scores), start=1):
            yield RunLine(1, nfc(query), nfc(document), rank, scores[document], tag)


def _lines(path: str | Path, top_k: int | None = None) -> Iterator[RunLine]:
    """Yield all lines, or the first `top_k` lines of each query.

    Raises:
        UserError: The file cannot be read, or a line is invalid.
    """
    seen: Counter[str] = Counter()
    open_file = gzip.open if str(path).lower().endswith(".gz") else open
    number = 0
    try:
        with open_file(path, "rt", encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, start=1):
                if top_k is not None and (start := line.split(maxsplit=1)):
                    seen[start[0]] += 1
                    if seen[start[0]] > top_k:
                        continue
                if fields := line.split(maxsplit=len(_FIELDS) - 1):
                    yield _line(fields, number, path)
    except UnicodeDecodeError:
        with Path(path).open("rb") as raw:
            if open_file is open and raw.read(2) == GZIP_START:
                raise UserError(
                    "the file is gzipped", where=path, hint=f"rename it to {Path(path).name}.gz"
                ) from None
        raise UserError(
            "not a line of a TREC run: not UTF-8", where=f"{path}:{number + 1}", hint=_LINE_HINT
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(
            f"cannot be read: {error}", where=path, hint="create the run again"
        ) from None


def _line(fields: Sequence[str], number: int, path: str | Path) -> RunLine:
    """Return a line; only the last of its fields, the tag, may contain spaces."""
    problem = ""
    if len(fields) != len(_FIELDS):
        problem = f"{pluralize(len(fields), 'field')} instead of {len(_FIELDS)}"
    for name, text in zip(_FIELDS, fields, strict=False):
        if name in ("rank", "score") and not problem:
            try:
                if isfinite(float(text)):
                    continue
            except ValueError:
                pass
            problem = f"{name} {text!r} is not a number"
    if problem:
        raise UserError(
            f"not a line of a TREC run: {problem}", where=f"{path}:{number}", hint=_LINE_HINT
        )
    query_id, _, document_id, rank, score, tag = fields
    return RunLine(number, nfc(query_id), nfc(document_id), float(rank), float(score), tag.rstrip())


def _normalize(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Normalize rows to length 1; zero rows stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = vectors / lengths
    return unit
