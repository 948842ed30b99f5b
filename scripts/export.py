"""Export the scores of all runs as one CSV."""

from pieline.core.jobs import job
from pieline.reporting.evidence import check_metrics
from pieline.results.export import write_export
from pieline.results.run_results import read_results

with job(snakemake) as j:
    check_metrics(snakemake.input.metrics, snakemake.params.asked, j.known)
    results = read_results(snakemake.input.cells)
    write_export(
        snakemake.output[0],
        snakemake.params.studies,
        results.cells,
        data=results.data,
        note=results.mark,
    )
