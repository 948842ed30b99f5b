"""Write the metric file of a model."""

from statistics import fmean

from pieline.core.jobs import job
from pieline.core.records import load_jsonl
from pieline.studies.completion.questions import Completion
from pieline.studies.completion.results import CompletionMetrics

with job(snakemake) as j:
    answers = load_jsonl(snakemake.input[0], Completion)
    metrics = CompletionMetrics(
        model=snakemake.wildcards.model,
        accuracy=fmean(row.is_correct() for row in answers),
        conditions=j.conditions,
        computed_from=j.digests(snakemake.input),
    )
    j.write(metrics)
