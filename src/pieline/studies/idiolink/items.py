"""Build IdioLink's item rows, one per query and run, and the rankings for the results page."""

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
from pieline.reporting.items import Item, metrics_and_columns
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
            run contains no such document.
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
        """Yield one row per run and query; the queries of a run are in dataset order."""
        for metric, run_values in metrics_and_columns(inputs):
            query_scores = read_text(query_scores_file(metric.path))
            for row in csv.DictReader(StringIO(query_scores)):
                # The column of a custom metric is kept only if this class has a field for it. An
                # empty cell stands for an unknown value.
                query_values = {
                    column: row[column] or None for column in row if column in cls.model_fields
                }
                yield cls.model_validate({**query_values, **run_values, "language": "english"})

    @classmethod
    def evidence(cls, metric: MetricFile, pool: Pool, depth: int) -> Json | None:
        """Return the top `depth` documents of each query, and add the shown texts to `pool`.

        The result is None unless the metric file is based on exactly one ranking.
        """
        ranking_paths = metric.predictions(".run.gz")
        if len(ranking_paths) != 1:
            return None
        ranking = read_run(ranking_paths[0], top_k=depth)
        meanings_path = Path(input_of(metric, "/meanings.jsonl"))
        documents_path = str(meanings_path.with_name("documents.jsonl"))
        queries_path = str(meanings_path.with_name("queries.jsonl"))
        documents = pool.read(documents_path, _load_documents)
        queries = pool.read(queries_path, _load_queries)
        # The pool keeps the qrels for the next runs on the same queries.
        qrels = pool.read(queries_path, lambda _: meaning_qrels(queries, list(documents.values())))
        rows = []
        for query in queries:
            pool.add(queries_path, query.id, partial(_page_text, query))
            top_documents = []
            for document_id, score in ranking.get(query.id, {}).items():
                pool.add(documents_path, document_id, partial(_page_text, documents[document_id]))
                is_relevant = int(document_id in qrels[query.id])
                top_documents.append([document_id, round(score, 4), is_relevant])
            rows.append({"query": query.id, "best": top_documents})
        return {
            "kind": "ranking",
            "predictions": ranking_paths[0],
            "queries": queries_path,
            "documents": documents_path,
            "rows": rows,
        }


def _load_documents(path: str) -> dict[str, Meaning]:
    return {document.id: document for document in _load_texts_or_meanings(path, Document)}


def _load_queries(path: str) -> list[Meaning]:
    return _load_texts_or_meanings(path, Query)


def _load_texts_or_meanings(path: str, text_class: type[PieText]) -> list[Meaning]:
    """Return the texts in a file; if the file is missing, return the meanings of the texts.

    The meanings omit the wording, and are in another file of the same folder.
    """
    if Path(path).exists():
        return list(load_jsonl(path, text_class))
    meanings = Meanings.load_meanings(Path(path).parent)
    return list(meanings.documents if text_class is Document else meanings.queries)


def _page_text(text: Meaning) -> Json:
    """Return a text for the results page, split into the parts before, in and after the span."""
    if isinstance(text, PieText):
        parts = list(text.sentence.partition(text.span))
    else:
        parts = [_NO_TEXT, "", ""]
    return {
        "parts": parts,
        "usage": text.usage,
        "pie": text.pie,
        "subject": text.subject,
    }
