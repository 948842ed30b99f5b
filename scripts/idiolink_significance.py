"""Test whether the query modes of one model differ, by a randomisation test over queries."""

import argparse
from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.errors import run_command
from pieline.core.files import digests, write_json
from pieline.core.records import parse_record
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.metrics.ranking import score_queries
from pieline.studies.idiolink.metrics.significance import ModeSignificance, compare_modes
from pieline.studies.idiolink.predictions.runs import read_run
from pieline.studies.idiolink.raw.released import meaning_qrels


def main() -> None:
    """Parse the command line and test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="in folders by mode")
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the dataset")
    parser.add_argument("--model", required=True)
    parser.add_argument("--seed", type=int, required=True, help="of the training and of the test")
    parser.add_argument("--permutations", type=int, required=True)
    parser.add_argument("--conditions", required=True, help="settings and weights, as JSON")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()

    dataset = IdiolinkDataset.load(arguments.dataset)
    qrels = meaning_qrels(dataset.queries, dataset.documents)
    scores = {path.parent.name: score_queries(read_run(path), qrels) for path in arguments.runs}
    found = ModeSignificance(
        split=dataset.split,
        model=arguments.model,
        seed=arguments.seed,
        permutations=arguments.permutations,
        dataset_is_released=dataset.released,
        comparisons=compare_modes(scores, permutations=arguments.permutations, seed=arguments.seed),
        computed_from=digests([*arguments.runs, *dataset.files(arguments.dataset)]),
        conditions=parse_record(arguments.conditions, Conditions, option="--conditions"),
    )
    write_json(arguments.output, found.model_dump())


if __name__ == "__main__":
    run_command(main)
