"""Write every run of ID10M-JAM with its intervals, and McNemar's test of every two."""

import argparse
from pathlib import Path

from pieline.errors import run_command
from pieline.metrics.jam import load_jam_metrics
from pieline.report.jam_runs import write_pairs, write_runs
from pieline.report.models import load_descriptions


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, nargs="+", required=True)
    parser.add_argument("--models", required=True, help="descriptions, as JSON")
    parser.add_argument("--template", type=Path, required=True, help="of the pairs")
    parser.add_argument("--runs-csv", type=Path, required=True)
    parser.add_argument("--pairs-csv", type=Path, required=True)
    parser.add_argument("--pairs-tex", type=Path, required=True)
    it = parser.parse_args()
    metrics, models = load_jam_metrics(it.metrics), load_descriptions(it.models)
    write_runs(metrics, it.runs_csv)
    write_pairs(metrics, models=models, template=it.template, tex=it.pairs_tex, csv=it.pairs_csv)


if __name__ == "__main__":
    run_command(main)
