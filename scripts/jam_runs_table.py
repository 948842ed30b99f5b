"""Write every run of ID10M-JAM with its intervals, and McNemar's test of every two."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import report_parser
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.tables.runs import write_pairs, write_runs


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "metrics", "models")
    parser.add_argument("--template", type=Path, required=True, help="of the pairs")
    parser.add_argument("--runs-csv", type=Path, required=True)
    parser.add_argument("--pairs-csv", type=Path, required=True)
    parser.add_argument("--pairs-tex", type=Path, required=True)
    it = parser.parse_args()
    metrics, models = load_records(it.metrics, JamMetrics), it.models
    write_runs(metrics, it.runs_csv)
    write_pairs(metrics, models=models, template=it.template, tex=it.pairs_tex, csv=it.pairs_csv)


if __name__ == "__main__":
    run_command(main)
