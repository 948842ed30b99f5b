"""Test by randomization over PIEs whether the scores of one model's query modes differ."""

from pathlib import Path

from pieline.core.jobs import job
from pieline.core.significance import sign_patterns
from pieline.studies.idiolink.datasets.dataset import Meanings, meaning_qrels
from pieline.studies.idiolink.metrics.scores import score_queries
from pieline.studies.idiolink.metrics.significance import ModeSignificance, compare_modes
from pieline.studies.idiolink.predictions.rankings import read_run

with job(snakemake) as j:
    folder = Path(snakemake.input.dataset[0]).parent
    dataset = Meanings.load_meanings(folder)
    seed = int(snakemake.wildcards.seed)
    qrels = meaning_qrels(dataset.queries, dataset.documents)
    pies = {query.id: query.pie for query in dataset.queries}
    number_of_pies = len(set(pies.values()))
    depth = snakemake.params.top_k if snakemake.params.top_k < len(dataset.documents) else None
    scores = {
        Path(path).parent.name: score_queries(read_run(path), qrels, depth=depth)
        for path in snakemake.input.runs
    }
    significance = ModeSignificance(
        split=dataset.split,
        model=snakemake.wildcards.model,
        seed=seed,
        queries=len(pies),
        pies=number_of_pies,
        patterns=sign_patterns(number_of_pies, snakemake.params.permutations),
        resamples=snakemake.params.resamples,
        dataset_is_released=dataset.released,
        comparisons=compare_modes(
            scores,
            pies,
            permutations=snakemake.params.permutations,
            resamples=snakemake.params.resamples,
            seed=seed,
        ),
        computed_from=j.digests(snakemake.input.runs, dataset.scoring_files(folder)),
        conditions=j.conditions,
    )
    j.write(significance)
