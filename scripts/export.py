"""Export the scores of all runs as one CSV."""

from pieline.core.evidence import check_evidence
from pieline.core.jobs import start_log
from pieline.reporting.evidence import check_metrics
from pieline.results.comparison import read_cells
from pieline.results.export import write_export

start_log(snakemake.log[0])
check_evidence(snakemake.input.evidence)
check_metrics(snakemake.input.metrics, snakemake.params.asked)
write_export(
    snakemake.output[0],
    snakemake.params.studies,
    read_cells(snakemake.input.tables),
    data=snakemake.params.data,
    note=snakemake.params.mark,
)
