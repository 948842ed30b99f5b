"""Score one IdioLink run."""

import argparse
from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.errors import run_command
from pieline.core.files import digests, read_json, write_json
from pieline.core.records import parse_record
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.metrics.scores import idiolink_metrics
from pieline.studies.idiolink.predictions.bm25_tuning import Tuning
from pieline.studies.idiolink.predictions.runs import read_run


def main() -> None:
    """Parse the command line and score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the dataset")
    parser.add_argument("--tuning", type=Path, nargs="?", help="what bm25_tune chose")
    parser.add_argument("--model", required=True)
    parser.add_argument("--query-mode", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--depth", type=int, required=True, help="documents ranked a query")
    parser.add_argument("--conditions", required=True, help="settings and weights, as JSON")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()

    dataset = IdiolinkDataset.load(arguments.dataset)
    metrics = idiolink_metrics(
        read_run(arguments.run),
        dataset,
        model=arguments.model,
        query_mode=arguments.query_mode,
        seed=arguments.seed,
        depth=arguments.depth,
        tuning=Tuning.model_validate(read_json(arguments.tuning)) if arguments.tuning else None,
        computed_from=digests([arguments.run, *dataset.files(arguments.dataset)]),
        conditions=parse_record(arguments.conditions, Conditions, option="--conditions"),
    )
    write_json(arguments.output, metrics.model_dump())


if __name__ == "__main__":
    run_command(main)
