"""Make one table of any study as LaTeX, CSV and HTML."""

from pathlib import Path

from pieline.core.named import named
from pieline.core.program import Options, program
from pieline.reporting.given import Given
from pieline.reporting.tables import write_table


@program(
    name=(str, "of the table"), maker=(str, "module:function that makes its content"), given=Given,
    templates=(Path, "folder of the templates"), tex=Path, csv=Path, html=Path,
)  # fmt: skip
def main(it: Options) -> None:
    content = named(it.maker)(it.given)
    write_table(
        it.name,
        content,
        templates=it.templates,
        tex=it.tex,
        csv=it.csv,
        html=it.html,
        mark=it.given.mark,
    )
