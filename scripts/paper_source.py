"""Write a LaTeX document with all tables and figures in the papers' order."""

from pieline.core.jobs import job
from pieline.results.displays import Displays
from pieline.results.paper import write_paper_source
from pieline.results.provenance import parse_models

with job(snakemake):
    write_paper_source(
        snakemake.output[0],
        template=snakemake.input.template,
        displays=Displays.model_validate_json(snakemake.params.displays),
        models=parse_models(snakemake.params.models),
        data=snakemake.params.data,
    )
