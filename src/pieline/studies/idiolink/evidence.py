"""Rankings behind a metric file: the best documents of each query."""

from pieline.core.records import load_jsonl
from pieline.reporting.evidence import Json, MetricFile, Pool, input_of
from pieline.studies.idiolink.predictions.runs import read_run
from pieline.studies.idiolink.raw.released import meaning_qrels
from pieline.studies.idiolink.records import Document, Query


def evidence(metric: MetricFile, pool: Pool, depth: int) -> Json | None:
    """The ranking behind a metric file, or None where there are several or none."""
    runs = metric.predictions(".run.gz")
    if len(runs) != 1:
        return None
    (run_path,) = runs
    documents_path = input_of(metric, "/documents.jsonl")
    queries_path = input_of(metric, "/queries.jsonl")
    documents = pool.read(documents_path, _load_documents)
    queries = pool.read(queries_path, _load_queries)
    qrels = pool.read(queries_path, lambda _: meaning_qrels(queries, list(documents.values())))
    run = read_run(run_path, top_k=depth)
    rows = []
    for query in queries:
        best = run.get(query.id, {}).items()
        relevant = qrels[query.id]
        pool.add(queries_path, query.id, _text_of(query))
        for name, _ in best:
            pool.add(documents_path, name, _text_of(documents[name]))
        rows.append(
            {
                "query": query.id,
                "best": [[name, round(score, 4), int(name in relevant)] for name, score in best],
            }
        )
    return {
        "kind": "ranking",
        "predictions": run_path,
        "queries": queries_path,
        "documents": documents_path,
        "rows": rows,
    }


def _load_documents(path: str) -> dict[str, Document]:
    return {item.id: item for item in load_jsonl(path, Document)}


def _load_queries(path: str) -> list[Query]:
    return load_jsonl(path, Query)


def _text_of(item: Document | Query) -> Json:
    return {
        "parts": list(item.sentence.partition(item.span)),
        "usage": item.usage,
        "pie": item.pie,
        "subject": item.subject,
    }
