"""Tune BM25's k1 and b on the validation split; without this split, take the first values."""

from pathlib import Path

from pieline.core.jobs import job
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset, meaning_qrels
from pieline.studies.idiolink.metrics.validation import ndcg_at_10
from pieline.studies.idiolink.predictions.bm25 import tune
from pieline.studies.idiolink.records import Bm25Parameters, Tuning

with job(snakemake) as j:
    query_mode = snakemake.wildcards.query_mode
    k1_values, b_values = snakemake.params.k1, snakemake.params.b
    if snakemake.input.dataset:
        dataset = IdiolinkDataset.load(Path(snakemake.input.dataset[0]).parent)
        qrels = meaning_qrels(dataset.queries, dataset.documents)
        tuning = tune(
            dataset.documents,
            dataset.queries,
            query_mode=query_mode,
            composition=dataset.composition,
            k1=k1_values,
            b=b_values,
            ndcg_at_10=lambda run: ndcg_at_10(run, qrels),
        )
    else:
        chosen = Bm25Parameters(k1=k1_values[0], b=b_values[0])
        tuning = Tuning(query_mode=query_mode, composition="full", chosen=chosen, grid=[])
    j.write(tuning)
