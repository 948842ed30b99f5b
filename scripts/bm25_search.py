"""Rank the documents for each query by BM25."""

from pathlib import Path

from pieline.core.files import read_json
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.predictions.bm25 import build_index, search
from pieline.studies.idiolink.predictions.bm25_tuning import Tuning
from pieline.studies.idiolink.predictions.runs import write_run
from pieline.studies.idiolink.records import Document, Query


@program(
    documents=Path, queries=Path, tuning=Path, query_mode=["sentence", "span"], top_k=int, tag=str,
    output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    documents = load_jsonl(it.documents, Document)
    run = search(
        build_index(documents, Tuning.model_validate(read_json(it.tuning)).chosen),
        documents,
        load_jsonl(it.queries, Query),
        query_mode=it.query_mode,
        top_k=it.top_k,
    )
    write_run(it.output, run, tag=it.tag)
