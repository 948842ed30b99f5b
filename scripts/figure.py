"""Draw one figure of a study as PDF and PNG."""

from pieline.core.imports import import_object
from pieline.core.jobs import job
from pieline.reporting.evidence import check_metrics
from pieline.reporting.figures import save_figure, use_style
from pieline.reporting.inputs import DisplayInputs

with job(snakemake) as j:
    inputs = DisplayInputs.model_validate_json(snakemake.params.inputs)
    check_metrics(inputs.metrics, inputs.digests, j.known)
    use_style(snakemake.input.style)
    figure = import_object(snakemake.params.maker)(inputs)
    save_figure(figure, pdf=snakemake.output.pdf, png=snakemake.output.png, mark=inputs.mark)
