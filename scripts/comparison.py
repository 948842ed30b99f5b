"""Write every cell beside the printed one, and say how many comparable cells are reproduced."""

from pieline.core.evidence import check_evidence
from pieline.core.jobs import start_log
from pieline.results.comparison import read_cells, summary, write_comparison

start_log(snakemake.log[0])
check_evidence(snakemake.input)
cells = read_cells(snakemake.input.tables)
write_comparison(
    cells,
    csv=snakemake.output.csv,
    tex=snakemake.output.tex,
    template=snakemake.input.template,
    mark=snakemake.params.mark,
)
print(summary(cell.verdict for cell in cells))
