"""Compute nDCG@10 on the validation split, for early stopping and BM25 tuning.

The module is separate so that changes to other metrics do not cause models to be retrained.
"""

from collections.abc import Mapping
from statistics import fmean

import ir_measures
from ir_measures import nDCG
from ir_measures.measures import Measure

from pieline.studies.idiolink.predictions.rankings import in_order

Scores = Mapping[str, Mapping[str, float]]
"""Scores of a ranking, or relevance grades of qrels, by query id and document id."""


def ndcg_at_10(run: Scores, qrels: Scores) -> float:
    """Return the mean nDCG@10 (fraction); `run` has at least ten documents per query."""
    scores = calculate({"ndcg_at_10": nDCG @ 10}, run, qrels)
    return fmean(query_scores["ndcg_at_10"] for query_scores in scores.values())


def calculate(
    measures: Mapping[str, Measure], run: Scores, qrels: Scores
) -> dict[str, dict[str, float]]:
    """Return the value of each measure for each query; 0 for a query that the run does not rank.

    trec_eval reads scores as 32-bit floats, which turns close scores into ties. Therefore, it
    receives negative ranks (see `in_order`) instead of the scores.

    Args:
        measures: Measures of ir-measures, by the name that they have in the result.
        run: The ranking.
        qrels: Relevant documents of each query.

    Returns:
        The values by query id and name of the measure.
    """
    relevance = {
        query: {document: int(grade) for document, grade in documents.items()}
        for query, documents in qrels.items()
    }
    negative_ranks = {
        query: {
            document: float(-rank) for rank, document in enumerate(in_order(documents), start=1)
        }
        for query, documents in run.items()
    }
    name_by_measure = {str(measure): name for name, measure in measures.items()}
    results = {query: dict.fromkeys(measures, 0.0) for query in qrels}
    for result in ir_measures.iter_calc(list(measures.values()), relevance, negative_ranks):
        name = name_by_measure[str(result.measure)]
        results[result.query_id][name] = float(result.value)
    return results
