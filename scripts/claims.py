"""Judge the papers' claims on the printed numbers and on ours: JSON, CSV and LaTeX."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.reporting.models import load_descriptions
from pieline.results.claims.claim import load_claims
from pieline.results.claims.judgement import judge_claims, write_claims
from pieline.results.claims.tables import load_catalogue, load_ours, load_printed


@program(
    models=(load_descriptions, "descriptions of the models, as JSON"), template=Path, tex=Path,
    csv=Path, json=Path, published=(Path, "folder of printed numbers"), tables=list[Path] | None,
    papers=(list[str], "study=title of each paper"), mark=(str, "what stands over it, if anything"),
)  # fmt: skip
def main(it: Options) -> None:
    catalogue = load_catalogue(it.published / "tables.yaml")
    printed = load_printed(it.published, catalogue)
    names = {each.name: each.published_as for each in it.models if each.published_as}
    ours = load_ours(it.tables, catalogue, printed, names)
    claims = load_claims(it.published / "claims.yaml")
    write_claims(
        judge_claims(claims, catalogue, printed, ours),
        papers=dict(paper.split("=", maxsplit=1) for paper in it.papers),
        json=it.json,
        csv=it.csv,
        tex=it.tex,
        template=it.template,
        mark=it.mark,
    )
