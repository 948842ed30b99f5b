"""Choose BM25's k1 and b by nDCG@10 on a validation index, or take the first without one."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.program import Options, program
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.metrics.validation import ndcg_at_10
from pieline.studies.idiolink.predictions.bm25 import tune
from pieline.studies.idiolink.predictions.bm25_tuning import Bm25Parameters, Tuning
from pieline.studies.idiolink.raw.released import meaning_qrels


@program(
    dataset=Path | None, query_mode=["sentence", "span"],
    k1=(list[float], "values to try"), b=(list[float], "values to try"), output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    if it.dataset is None:
        chosen = Bm25Parameters(k1=it.k1[0], b=it.b[0])
        untuned = Tuning(query_mode=it.query_mode, composition="full", chosen=chosen, grid=[])
        write_json(it.output, untuned.model_dump())
        return
    dataset = IdiolinkDataset.load(it.dataset)
    qrels = meaning_qrels(dataset.queries, dataset.documents)
    tuning = tune(
        dataset.documents,
        dataset.queries,
        query_mode=it.query_mode,
        composition=dataset.composition,
        k1=it.k1,
        b=it.b,
        ndcg_at_10=lambda run: ndcg_at_10(run, qrels),
    )
    write_json(it.output, tuning.model_dump())
