"""Write one table of a study as LaTeX, CSV and HTML."""

from pathlib import Path

from pieline.core.imports import import_object
from pieline.core.jobs import job
from pieline.reporting.evidence import check_metrics
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.tables import make_table, write_table

with job(snakemake) as j:
    inputs = DisplayInputs.model_validate_json(snakemake.params.inputs)
    check_metrics(inputs.metrics, inputs.digests, j.known)
    layout = import_object(snakemake.params.maker)
    our_numbers = import_object(snakemake.params.numbers) if snakemake.params.numbers else None
    content, numbers = make_table(layout, our_numbers, inputs)
    write_table(
        snakemake.wildcards.table,
        content,
        numbers,
        templates=Path(snakemake.input.templates[0]).parent,
        tex=snakemake.output.tex,
        csv=snakemake.output.csv,
        html=snakemake.output.html,
    )
