"""Divide the PIEs into train, validation and test splits; choose the gold PIEs."""

from pieline.core.jobs import job
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.originals.pie_filter import PieVerdict
from pieline.studies.idiolink.originals.splits import (
    SplitSizes,
    draw_splits,
    released_splits,
)

with job(snakemake) as j:
    kept = [verdict.pie for verdict in load_jsonl(snakemake.input.pies, PieVerdict) if verdict.kept]
    if snakemake.input.released:
        splits = released_splits(kept, snakemake.input.released)
    else:
        splits = draw_splits(kept, SplitSizes.model_validate_json(snakemake.params.sizes))
    j.write(splits)
