"""Judge the papers' claims on the printed numbers and on ours; write JSON, CSV and LaTeX."""

from pathlib import Path

from pieline.core.jobs import job
from pieline.results.claims.claim import load_claims
from pieline.results.claims.judgement import judge_claims, write_claims
from pieline.results.claims.tables import load_catalogue, load_ours, load_printed

with job(snakemake):
    published = Path(snakemake.input.catalogue).parent
    catalogue = load_catalogue(published / "tables.yaml")
    printed = load_printed(published, catalogue)
    ours = load_ours(snakemake.input.tables, catalogue, printed, snakemake.params.names)
    claims = load_claims(published / "claims.yaml")
    write_claims(
        judge_claims(claims, catalogue, printed, ours, snakemake.params.without_rows),
        papers=snakemake.params.papers,
        json=snakemake.output.json,
        csv=snakemake.output.csv,
        tex=snakemake.output.tex,
        template=snakemake.input.template,
        mark=snakemake.params.mark,
    )
