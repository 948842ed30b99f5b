"""Export the scores of all runs as one CSV."""

from pieline.core.jobs import job
from pieline.reporting.evidence import check_metrics
from pieline.reporting.numbers import read_numbers
from pieline.results.export import write_export
from pieline.results.run_results import RunResults

with job(snakemake) as j:
    check_metrics(snakemake.input.metrics, snakemake.params.asked, j.known)
    results = RunResults.model_validate_json(snakemake.params.results)
    write_export(
        snakemake.output[0],
        snakemake.params.studies,
        read_numbers(snakemake.input.numbers),
        data=results.data,
        note=results.mark,
    )
