"""Join the cells of all tables, and judge every printed number and every claim of the papers."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.jobs import job
from pieline.results.cells import read_cells, write_comparison
from pieline.results.claims.claim import load_claims
from pieline.results.claims.judgement import judge_claims, write_claims
from pieline.results.claims.tables import load_catalogue, load_printed, match_cells
from pieline.results.numbers import (
    REAL_DATA,
    account_for,
    write_numbers,
    write_numbers_as_latex,
)
from pieline.results.run_results import RunResults

with job(snakemake):
    run = RunResults.model_validate_json(snakemake.params.results)
    published = Path(snakemake.input.catalogue).parent
    catalogue = load_catalogue(snakemake.input.catalogue)
    printed = load_printed(published, catalogue)
    cells = read_cells(snakemake.input.tables)
    ours = match_cells(cells, catalogue, printed, snakemake.params.names)
    numbers = (
        []
        if run.data == "own"
        else account_for(
            published,
            catalogue,
            ours,
            absent=snakemake.params.absent | snakemake.params.without_rows,
            models=snakemake.params.needs,
            labels=snakemake.params.labels,
            mark=run.mark,
            general_need=REAL_DATA if run.data == "sample" else "",
            options=run.options,
        )
    )
    claims = load_claims(published / "claims.yaml")
    judged = judge_claims(claims, catalogue, printed, ours, snakemake.params.without_rows)
    joined = {"cells": tuple(cells), "numbers": tuple(numbers), "claims": tuple(judged)}
    write_json(snakemake.output.cells, run.model_copy(update=joined).model_dump())
    write_comparison(snakemake.output.comparison_csv, cells)
    write_numbers(snakemake.output.numbers, numbers)
    write_numbers_as_latex(
        snakemake.output.comparison_tex,
        numbers,
        template=snakemake.input.comparison,
        papers=run.papers(),
        mark=run.mark,
    )
    write_claims(
        judged,
        papers=run.papers(),
        json=snakemake.output.claims_json,
        csv=snakemake.output.claims_csv,
        tex=snakemake.output.claims_tex,
        template=snakemake.input.claims,
        mark=run.mark,
    )
