"""Write a LaTeX document with all tables and figures in the papers' order."""

from pieline.core.jobs import job
from pieline.reporting.numbers import read_numbers
from pieline.results.paper import write_paper_source
from pieline.results.provenance import parse_models
from pieline.results.run_results import RunResults

with job(snakemake):
    write_paper_source(
        snakemake.output[0],
        template=snakemake.input.template,
        results=RunResults.model_validate_json(snakemake.params.results),
        models=parse_models(snakemake.params.models),
        numbers=read_numbers(snakemake.input.numbers),
    )
