"""Judge the papers' claims on the printed numbers and on ours: JSON, CSV and LaTeX."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.reporting.arguments import TABLE, report_parser
from pieline.results.claims.claim import load_claims
from pieline.results.claims.judgement import judge_claims, write_claims
from pieline.results.claims.tables import load_catalogue, load_ours, load_printed


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "models", *TABLE)
    parser.add_argument("--published", type=Path, required=True, help="folder of printed numbers")
    parser.add_argument("--tables", type=Path, nargs="*", default=[], help="our CSVs")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    catalogue = load_catalogue(arguments.published / "tables.yaml")
    printed = load_printed(arguments.published, catalogue)
    names = {each.name: each.published_as for each in arguments.models if each.published_as}
    ours = load_ours(arguments.tables, catalogue, printed, names)
    claims = load_claims(arguments.published / "claims.yaml")
    write_claims(
        judge_claims(claims, catalogue, printed, ours),
        json=arguments.json,
        csv=arguments.csv,
        tex=arguments.tex,
        template=arguments.template,
    )


if __name__ == "__main__":
    run_command(main)
