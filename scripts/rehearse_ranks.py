"""Write a run of IdioLink with the printed scores: a rehearsal's stand-in, no result."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.rehearsal.ranks import printed_run
from pieline.studies.idiolink.predictions.runs import write_run
from pieline.studies.idiolink.records import Document, Query


@program(
    documents=Path, queries=Path, model=(str, "its name; of a fine-tuned one model+mode+loss"),
    printed_as=(str | None, "what the paper calls it"), query_mode=str,
    index=(str, "test, or test-composition"), seed=int, seeds=(list[int], "all of the model"),
    published=(Path, "folder of printed numbers"), top_k=int, tag=str, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    name, *training = it.model.split("+")
    train_mode, loss = training or (None, None)
    run = printed_run(
        load_jsonl(it.queries, Query),
        load_jsonl(it.documents, Document),
        model=it.printed_as or name,
        query_mode=it.query_mode,
        composition=it.index.partition("-")[2] or "full",
        train_mode=train_mode,
        loss=loss,
        seed=it.seed,
        seeds=it.seeds,
        published=it.published,
        top_k=it.top_k,
    )
    write_run(it.output, run, tag=it.tag)
