"""Compare all our numbers with the printed numbers, and judge every claim of the papers."""

from pathlib import Path

from pieline.core.jobs import job
from pieline.core.records import validated
from pieline.reporting.numbers import frame_of, write_numbers, write_parquet
from pieline.reporting.published import load_catalogue
from pieline.results.claims.claim import load_claims
from pieline.results.claims.judgement import judge_claims, write_claims
from pieline.results.claims.tables import load_printed
from pieline.results.numbers import (
    Requirements,
    TableNumbers,
    all_numbers,
    write_numbers_as_latex,
)
from pieline.results.run_results import RunResults

with job(snakemake):
    run = RunResults.model_validate_json(snakemake.params.results)
    published = Path(snakemake.input.catalogue).parent
    catalogue = load_catalogue(snakemake.input.catalogue)
    # Numbers on own data have no printed counterparts.
    printed_tables = [] if run.data == "own" else list(catalogue)
    numbers = all_numbers(
        validated(
            list[TableNumbers], snakemake.params.tables, where="tables", hint="", is_json=True
        ),
        {name: str(published / f"{name}.csv") for name in printed_tables},
        catalogue,
        snakemake.params.names,
        requirements=Requirements.model_validate_json(snakemake.params.requirements),
        options=run.options,
    )
    frame = frame_of(numbers)
    write_numbers(snakemake.output.csv, frame)
    write_parquet(snakemake.output.parquet, frame)
    write_numbers_as_latex(
        snakemake.output.comparison_tex,
        numbers,
        template=snakemake.input.comparison,
        papers=run.papers(),
        labels=run.labels,
        mark=run.mark,
    )
    claims = load_claims(published / "claims.yaml")
    write_claims(
        judge_claims(claims, catalogue, load_printed(published, catalogue), numbers),
        papers=run.papers(),
        json=snakemake.output.claims_json,
        csv=snakemake.output.claims_csv,
        tex=snakemake.output.claims_tex,
        template=snakemake.input.claims,
        mark=run.mark,
    )
