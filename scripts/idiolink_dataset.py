"""Validate one split of IdioLink; write its documents, queries, qrels and manifest."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.core.upstream import is_released, load_upstream
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.raw.released import read_texts
from pieline.studies.idiolink.records import Document, Query


@program(
    split=(str, "its name"), documents=(Path, "indexes.json"), queries=(Path, "queries.json"),
    upstream=Path, output=(Path, "folder to write"),
)  # fmt: skip
def main(it: Options) -> None:
    raw = {
        f"idiolink/{it.split}/indexes.json": it.documents,
        f"idiolink/{it.split}/queries.json": it.queries,
    }
    dataset = IdiolinkDataset(
        split=it.split,
        composition="full",
        released=is_released(raw, load_upstream(it.upstream)),
        documents=read_texts(it.documents, Document),
        queries=read_texts(it.queries, Query),
    )
    dataset.save(it.output)
