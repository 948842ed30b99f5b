"""Draw one training tuple per query of a split, or read the released ones."""

from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.idiolink.datasets.tuples import read_released_tuples, sample_tuples
from pieline.studies.idiolink.records import Document, Query


@program(
    documents=Path, queries=Path, seed=(int | None, "draw by this seed"),
    released=(Path | None, "file of released tuples to take over instead"),
    hard=(int, "hard negatives of a tuple"), soft=(int, "soft negatives"), output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    if (it.seed is None) == (it.released is None):
        raise UserError("both or neither given", where="--seed and --released", mend="give one")
    queries, documents = load_jsonl(it.queries, Query), load_jsonl(it.documents, Document)
    numbers = {"hard": it.hard, "soft": it.soft}
    if it.released:
        tuples = read_released_tuples(it.released, queries, documents, **numbers)
    else:
        tuples = sample_tuples(queries, documents, seed=it.seed, **numbers)
    save_jsonl(it.output, tuples)
