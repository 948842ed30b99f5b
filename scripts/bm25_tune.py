"""Choose BM25's k1 and b on the validation split by nDCG@10."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.metrics.ranking import ndcg_at_10
from pieline.studies.idiolink.predictions.bm25 import tune
from pieline.studies.idiolink.raw.released import meaning_qrels
from pieline.studies.idiolink.records import Document, Query


@program(
    documents=Path, queries=Path, query_mode=["sentence", "span"],
    k1=(list[float], "values to try"), b=(list[float], "values to try"), top_k=int, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    documents = load_jsonl(it.documents, Document)
    queries = load_jsonl(it.queries, Query)
    qrels = meaning_qrels(queries, documents)
    tuning = tune(
        documents,
        queries,
        query_mode=it.query_mode,
        k1=it.k1,
        b=it.b,
        top_k=it.top_k,
        ndcg_at_10=lambda run: ndcg_at_10(run, qrels),
    )
    write_json(it.output, tuning.model_dump())
