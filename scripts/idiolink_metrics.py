"""Score one run on IdioLink; write the mean scores and the scores of each query."""

from pathlib import Path

from pieline.core.conditions import RunIdentity
from pieline.core.files import read_json, write_json
from pieline.core.jobs import job, optional
from pieline.studies.idiolink.datasets.dataset import Meanings
from pieline.studies.idiolink.metrics.scores import idiolink_metrics, save_query_scores
from pieline.studies.idiolink.predictions.rankings import check_run, read_run
from pieline.studies.idiolink.records import Tuning

with job(snakemake) as j:
    folder = Path(snakemake.input.manifest).parent
    dataset = Meanings.load_meanings(folder)
    run = read_run(snakemake.input.run)
    queries = [query.id for query in dataset.queries]
    documents = [document.id for document in dataset.documents]
    check_run(snakemake.input.run, run, queries, documents)
    tuning = optional(snakemake.input.tuning)
    metrics, scores = idiolink_metrics(
        run,
        dataset,
        RunIdentity(
            model=snakemake.wildcards.model,
            setting=snakemake.wildcards.query_mode,
            seed=int(snakemake.wildcards.seed),
        ),
        j.evidence(snakemake.input.run, dataset.scoring_files(folder)),
        depth=snakemake.params.top_k,
        resamples=snakemake.params.resamples,
        tuning=Tuning.model_validate(read_json(tuning)) if tuning else None,
    )
    write_json(snakemake.output.metrics, metrics.model_dump())
    save_query_scores(snakemake.output.queries, metrics, scores, dataset.queries)
