"""Compare every cell with the printed one, and list the verdict on every printed number."""

from pathlib import Path

from pieline.core.jobs import job
from pieline.results.claims.tables import load_catalogue, load_ours, load_printed
from pieline.results.comparison import read_cells, write_comparison
from pieline.results.numbers import (
    REAL_DATA,
    account_for,
    summarize,
    write_numbers,
    write_numbers_as_latex,
)

with job(snakemake):
    tables = snakemake.input.tables
    published = Path(snakemake.input.catalogue).parent
    catalogue = load_catalogue(published / "tables.yaml")
    numbers = (
        []
        if snakemake.params.data == "own"
        else account_for(
            published,
            catalogue,
            load_ours(
                tables, catalogue, load_printed(published, catalogue), snakemake.params.names
            ),
            absent=snakemake.params.absent,
            models=snakemake.params.needs,
            labels=snakemake.params.labels,
            mark=snakemake.params.mark,
            general_need=REAL_DATA if snakemake.params.data == "sample" else "",
            configuration=snakemake.params.configuration,
        )
    )
    write_numbers(snakemake.output.numbers, numbers)
    write_comparison(snakemake.output.csv, read_cells(tables))
    write_numbers_as_latex(
        snakemake.output.tex,
        numbers,
        template=snakemake.input.template,
        papers=snakemake.params.papers,
        mark=snakemake.params.mark,
    )
    is_sample = snakemake.params.data == "sample"
    print("sample data: compared with no printed number" if is_sample else summarize(numbers))
