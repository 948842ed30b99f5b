"""Write a LaTeX document with all tables and figures."""

from pieline.core.evidence import check_evidence
from pieline.core.jobs import start_log
from pieline.results.displays import Displays
from pieline.results.paper import write_paper_source
from pieline.results.provenance import parse_models

start_log(snakemake.log[0])
check_evidence(snakemake.input)
write_paper_source(
    snakemake.output[0],
    template=snakemake.input.template,
    displays=Displays.model_validate_json(snakemake.params.displays),
    models=parse_models(snakemake.params.models),
    data=snakemake.params.data,
)
