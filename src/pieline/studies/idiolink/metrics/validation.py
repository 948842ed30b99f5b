"""nDCG@10 on the validation split, for early stopping and BM25 tuning.

The module is separate so that changes to other metrics do not cause models to be retrained.
"""

from collections.abc import Mapping
from statistics import fmean

import ir_measures
from ir_measures import nDCG
from ir_measures.measures import Measure

from pieline.studies.idiolink.predictions.rankings import in_order

Scores = Mapping[str, Mapping[str, float]]
"""Score (of a run) or relevance (in qrels) by query id and document id."""


def ndcg_at_10(run: Scores, qrels: Scores) -> float:
    """Return the mean nDCG@10 over queries (fraction) of a run with ten documents per query."""
    scores = calculate({"ndcg_at_10": nDCG @ 10}, run, qrels)
    return fmean(values["ndcg_at_10"] for values in scores.values())


def calculate(
    measures: Mapping[str, Measure], run: Scores, qrels: Scores
) -> dict[str, dict[str, float]]:
    """Return the value of each measure, by query in the qrels; 0 for queries not in the run.

    trec_eval receives integers in the order of the documents (see `in_order`), because it reads
    scores as 32-bit floats, which turns close scores into ties.
    """
    relevance = {
        query: {document: int(grade) for document, grade in documents.items()}
        for query, documents in qrels.items()
    }
    scores = {
        query: {name: float(-rank) for rank, name in enumerate(in_order(documents), start=1)}
        for query, documents in run.items()
    }
    names = {str(measure): name for name, measure in measures.items()}
    result = {query: dict.fromkeys(measures, 0.0) for query in qrels}
    for value in ir_measures.iter_calc(list(measures.values()), relevance, scores):
        result[value.query_id][names[str(value.measure)]] = float(value.value)
    return result
