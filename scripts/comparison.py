"""Write every cell beside the printed one, and say how many comparable cells are reproduced."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.results.comparison import read_cells, summary, write_comparison


@program(
    tables=list[Path] | None, template=Path, tex=Path, csv=Path,
    mark=(str, "what stands over it, if anything"),
)  # fmt: skip
def main(it: Options) -> None:
    cells = read_cells(it.tables)
    write_comparison(cells, csv=it.csv, tex=it.tex, template=it.template, mark=it.mark)
    print(summary(cell.verdict for cell in cells))
