"""Export the scores of all runs as one CSV."""

from pieline.core.jobs import job
from pieline.reporting.evidence import check_metrics
from pieline.results.comparison import read_cells
from pieline.results.export import write_export

with job(snakemake) as j:
    check_metrics(snakemake.input.metrics, snakemake.params.asked, j.known)
    write_export(
        snakemake.output[0],
        snakemake.params.studies,
        read_cells(snakemake.input.tables),
        data=snakemake.params.data,
        note=snakemake.params.mark,
    )
