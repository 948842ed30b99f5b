"""Take one IdioLink run that was made elsewhere."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.predictions.runs import read_foreign_run, write_run
from pieline.studies.idiolink.records import Document, Query


@program(
    file=(Path, "TREC run"), documents=Path, queries=Path, top_k=int, tag=str, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    run = read_foreign_run(
        it.file,
        [query.id for query in load_jsonl(it.queries, Query)],
        {document.id for document in load_jsonl(it.documents, Document)},
        top_k=it.top_k,
    )
    write_run(it.output, run, tag=it.tag)
