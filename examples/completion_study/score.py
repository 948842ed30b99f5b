"""Write the metric file of a model."""

from statistics import fmean

from pieline.core.conditions import Conditions
from pieline.core.files import digests, write_json
from pieline.core.jobs import finish_job, start_log
from pieline.core.records import load_jsonl
from pieline.studies.completion.results import Completion, CompletionMetrics

start_log(snakemake.log[0])
metrics = CompletionMetrics(
    model=snakemake.wildcards.model,
    accuracy=fmean(row.is_correct() for row in load_jsonl(snakemake.input[0], Completion)),
    conditions=Conditions.model_validate_json(snakemake.params.conditions),
    computed_from=digests(snakemake.input),
)
write_json(snakemake.output[0], metrics.model_dump())
finish_job(snakemake)
