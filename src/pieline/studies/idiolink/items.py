"""Items of IdioLink (one row per query and run), and evidence for the results page."""

import csv
from collections.abc import Iterator
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Self

from pieline.core.files import read_text
from pieline.core.records import load_jsonl
from pieline.reporting.evidence import Json, MetricFile, Pool, input_of
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.items import Item, runs
from pieline.studies.idiolink.datasets.dataset import Meanings, meaning_qrels
from pieline.studies.idiolink.predictions.rankings import read_run
from pieline.studies.idiolink.records import (
    Document,
    Meaning,
    PieText,
    Query,
    QueryUsage,
    query_scores_file,
)

_NO_TEXT = "(text not shipped)"


class IdiolinkItem(Item):
    """Scores of one query in one run.

    Attributes:
        query: Id of the query.
        subject: Domain of the query.
        composition: Index composition of the run.
        r_precision, ndcg_at_10: Scores in [0, 1]; null if unknown (see `RankingScores`).
        first_relevant: Rank (from 1) of the first document with the query's meaning; null if the
            run contains none.
    """

    query: str
    pie: str
    usage: QueryUsage
    subject: str
    composition: str
    query_mode: str
    r_precision: float | None
    ndcg_at_10: float | None
    first_relevant: int | None

    @classmethod
    def of(cls, inputs: DisplayInputs) -> Iterator[Self]:
        """Yield the rows of all runs, with queries in dataset order."""
        for metric, shared in runs(inputs):
            for row in csv.DictReader(StringIO(read_text(query_scores_file(metric.path)))):
                # The column of a custom metric is kept only if this class has a field for it.
                values = {name: row[name] or None for name in row if name in cls.model_fields}
                yield cls.model_validate(values | shared | {"language": "english"})

    @classmethod
    def evidence(cls, metric: MetricFile, pool: Pool, depth: int) -> Json | None:
        """Return the top `depth` documents of each query, and add their texts to `pool`.

        The result is None unless the metric file is based on exactly one run.
        """
        run_paths = metric.predictions(".run.gz")
        if len(run_paths) != 1:
            return None
        run_path = run_paths[0]
        meanings = Path(input_of(metric, "/meanings.jsonl"))
        documents_path = str(meanings.with_name("documents.jsonl"))
        queries_path = str(meanings.with_name("queries.jsonl"))
        documents = pool.read(documents_path, _load_documents)
        queries = pool.read(queries_path, _load_queries)
        qrels = pool.read(queries_path, lambda _: meaning_qrels(queries, list(documents.values())))
        run = read_run(run_path, top_k=depth)
        rows = []
        for query in queries:
            best = run.get(query.id, {}).items()
            relevant = qrels[query.id]
            pool.add(queries_path, query.id, partial(_page_text, query))
            for name, _ in best:
                pool.add(documents_path, name, partial(_page_text, documents[name]))
            rows.append(
                {
                    "query": query.id,
                    "best": [
                        [name, round(score, 4), int(name in relevant)] for name, score in best
                    ],
                }
            )
        return {
            "kind": "ranking",
            "predictions": run_path,
            "queries": queries_path,
            "documents": documents_path,
            "rows": rows,
        }


def _load_documents(path: str) -> dict[str, Meaning]:
    return {item.id: item for item in _load(path, Document)}


def _load_queries(path: str) -> list[Meaning]:
    return _load(path, Query)


def _load(path: str, kind: type[PieText]) -> list[Meaning]:
    """Return the texts in a file, or the meanings next to it if the file does not exist."""
    if Path(path).exists():
        return list(load_jsonl(path, kind))
    meanings = Meanings.load_meanings(Path(path).parent)
    return list(meanings.documents if kind is Document else meanings.queries)


def _page_text(item: Meaning) -> Json:
    parts = (_NO_TEXT, "", "")
    if isinstance(item, PieText):
        parts = item.sentence.partition(item.span)
    return {
        "parts": list(parts),
        "usage": item.usage,
        "pie": item.pie,
        "subject": item.subject,
    }
