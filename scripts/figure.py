"""Draw one figure of any study as PDF and PNG."""

from pathlib import Path

from pieline.core.named import named
from pieline.core.program import Options, program
from pieline.reporting.figures import save_figure, use_style
from pieline.reporting.given import Given


@program(
    maker=(str, "module:function that draws it"), given=Given, style=(Path, "matplotlib style"),
    pdf=Path, png=Path,
)  # fmt: skip
def main(it: Options) -> None:
    use_style(it.style)
    figure = named(it.maker)(it.given)
    save_figure(figure, pdf=it.pdf, png=it.png, mark=it.given.mark)
