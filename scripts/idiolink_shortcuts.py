"""Correlate word overlap with the nDCG@10 of one run's queries."""

from pathlib import Path

from pieline.beyond.idiolink.metrics import ShortcutMetrics, overlaps, shortcuts
from pieline.core.jobs import job
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset, meaning_qrels
from pieline.studies.idiolink.metrics.scores import score_queries
from pieline.studies.idiolink.predictions.rankings import read_run

with job(snakemake) as j:
    dataset = IdiolinkDataset.load(Path(snakemake.input.dataset[0]).parent)
    qrels = meaning_qrels(dataset.queries, dataset.documents)
    depth = snakemake.params.top_k if snakemake.params.top_k < len(dataset.documents) else None
    measured = shortcuts(
        dataset.queries,
        overlaps(dataset.queries, dataset.documents, qrels),
        score_queries(read_run(snakemake.input.run), qrels, depth=depth),
        resamples=snakemake.params.resamples,
    )
    metrics = ShortcutMetrics(
        **measured.model_dump(),
        model=snakemake.wildcards.model,
        query_mode=snakemake.wildcards.query_mode,
        seed=int(snakemake.wildcards.seed),
        dataset_is_released=dataset.released,
        computed_from=j.digests(snakemake.input.run, snakemake.input.dataset),
        conditions=j.conditions,
    )
    j.write(metrics)
