"""Score one IdioLink run: means, and each query."""

from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.files import digests, read_json, write_json
from pieline.core.program import Options, program
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.metrics.scores import idiolink_metrics, save_query_scores
from pieline.studies.idiolink.predictions.bm25_tuning import Tuning
from pieline.studies.idiolink.predictions.runs import read_run


@program(
    run=(Path, "ranked documents"), dataset=Path, tuning=Path | None, model=str, query_mode=str,
    seed=int, depth=(int, "documents ranked a query"), resamples=int,
    conditions=Conditions, output=Path, queries=(Path, "scores by query to write, CSV"),
)  # fmt: skip
def main(it: Options) -> None:
    dataset = IdiolinkDataset.load(it.dataset)
    metrics, scores = idiolink_metrics(
        read_run(it.run),
        dataset,
        model=it.model,
        query_mode=it.query_mode,
        seed=it.seed,
        depth=it.depth,
        resamples=it.resamples,
        tuning=Tuning.model_validate(read_json(it.tuning)) if it.tuning else None,
        computed_from=digests([it.run, *dataset.files(it.dataset)]),
        conditions=it.conditions,
    )
    write_json(it.output, metrics.model_dump())
    save_query_scores(it.queries, metrics, scores, dataset.queries)
