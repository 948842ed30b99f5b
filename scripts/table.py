"""Make one table of any study as LaTeX, CSV and HTML."""

from pathlib import Path

from pieline.core.evidence import write_evidence
from pieline.core.jobs import start_log
from pieline.reporting.evidence import check_metrics
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.tables import make_table, write_table

start_log(snakemake.log[0])
inputs = DisplayInputs.model_validate_json(snakemake.params.inputs)
check_metrics(inputs.metrics, inputs.asked)
write_table(
    snakemake.wildcards.table,
    make_table(snakemake.params.maker, inputs),
    templates=Path(snakemake.input.templates[0]).parent,
    tex=snakemake.output.tex,
    csv=snakemake.output.csv,
    html=snakemake.output.html,
    mark=inputs.mark,
    archived=inputs.archived,
)
made = [snakemake.output.csv, snakemake.output.html, snakemake.output.tex]
write_evidence(snakemake.output.evidence, files=made, made_from=inputs.inputs())
