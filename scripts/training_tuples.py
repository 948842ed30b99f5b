"""Draw one training tuple a query of a split, or take over the released ones."""

from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.idiolink.datasets.tuples import read_released_tuples, sample_tuples
from pieline.studies.idiolink.records import Document, Query


@program(
    documents=Path, queries=Path, seed=(int | None, "draw by this seed"),
    released=(Path | None, "file of released tuples to take over instead"), output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    if (it.seed is None) == (it.released is None):
        raise UserError("both or neither given", where="--seed and --released", mend="give one")
    queries, documents = load_jsonl(it.queries, Query), load_jsonl(it.documents, Document)
    if it.released:
        tuples = read_released_tuples(it.released, queries, documents)
    else:
        tuples = sample_tuples(queries, documents, seed=it.seed)
    save_jsonl(it.output, tuples)
