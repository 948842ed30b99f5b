"""Test whether the query modes of one model differ, by a randomisation test over PIEs."""

from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.files import digests, write_json
from pieline.core.program import Options, program
from pieline.core.significance import sign_patterns
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.metrics.ranking import score_queries
from pieline.studies.idiolink.metrics.significance import ModeSignificance, compare_modes
from pieline.studies.idiolink.predictions.runs import read_run
from pieline.studies.idiolink.raw.released import meaning_qrels


@program(
    runs=(list[Path], "in folders by mode"), depth=(int, "documents ranked a query"), dataset=Path,
    model=str, seed=(int, "seed of the training and of the draws"),
    permutations=(int, "sign patterns at most"), resamples=int,
    conditions=Conditions, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    dataset = IdiolinkDataset.load(it.dataset)
    qrels = meaning_qrels(dataset.queries, dataset.documents)
    pies = {query.id: query.pie for query in dataset.queries}
    depth = it.depth if it.depth < len(dataset.documents) else None
    scores = {
        path.parent.name: score_queries(read_run(path), qrels, depth=depth) for path in it.runs
    }
    found = ModeSignificance(
        split=dataset.split,
        model=it.model,
        seed=it.seed,
        queries=len(pies),
        pies=(units := len(set(pies.values()))),
        patterns=sign_patterns(units, it.permutations),
        resamples=it.resamples,
        dataset_is_released=dataset.released,
        comparisons=compare_modes(
            scores, pies, permutations=it.permutations, resamples=it.resamples, seed=it.seed
        ),
        computed_from=digests([*it.runs, *dataset.files(it.dataset)]),
        conditions=it.conditions,
    )
    write_json(it.output, found.model_dump())
