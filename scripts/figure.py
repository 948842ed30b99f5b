"""Draw one figure of any study as PDF and PNG."""

from pieline.core.jobs import start_log
from pieline.core.named import named
from pieline.reporting.evidence import check_metrics
from pieline.reporting.figures import save_figure, use_style
from pieline.reporting.given import Given

start_log(snakemake.log[0])
given = Given.model_validate_json(snakemake.params.given)
check_metrics(given.metrics, given.asked)
use_style(snakemake.input.style)
figure = named(snakemake.params.maker)(given)
save_figure(figure, pdf=snakemake.output.pdf, png=snakemake.output.png, mark=given.mark)
