"""Validate one split of IdioLink, and write the documents, queries, qrels and manifest."""

from pathlib import Path

from pieline.core.jobs import job
from pieline.core.upstream import is_released, load_upstream
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.datasets.reading import read_split

with job(snakemake):
    split = snakemake.wildcards.split
    raw = {
        f"idiolink/{split}/indexes.json": snakemake.input.documents,
        f"idiolink/{split}/queries.json": snakemake.input.queries,
    }
    documents, queries = read_split(snakemake.input.documents, snakemake.input.queries)
    dataset = IdiolinkDataset(
        split=split,
        composition="full",
        released=is_released(raw, load_upstream(snakemake.input.upstream)),
        documents=documents,
        queries=queries[: snakemake.params.limit],
    )
    dataset.save(Path(snakemake.output.manifest).parent)
