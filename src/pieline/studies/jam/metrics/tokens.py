"""Compute F1 of BIO tags by complete idiom and by token (ID10M-JAM, section 4.1)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pieline.core.records import Frozen
from pieline.studies.jam.bio import OUTSIDE, TAG_IDS, Span, Tag, spans_of, valid_tags


class TaggingScores(Frozen):
    """Tagging scores as fractions; undefined scores are 0.

    The `span_*` scores count exactly matching idioms, the `token_*` scores count idiom tokens
    (B and I alike), and `macro_f1` is the mean token F1 of the three tags.
    """

    sentences: int
    span_precision: float
    span_recall: float
    span_f1: float
    token_precision: float
    token_recall: float
    token_f1: float
    macro_f1: float


class SpanScores(Frozen):
    """Precision, recall and F1 of exactly matching idioms, as in seqeval (0 if undefined)."""

    precision: float
    recall: float
    f1: float


def span_scores(gold: Sequence[Sequence[Tag]], predicted: Sequence[Sequence[Tag]]) -> SpanScores:
    """Score predicted idioms against gold idioms, over all sentences."""
    wanted, found = _idioms(gold), _idioms(predicted)
    matches = len(wanted & found)
    if not matches:
        return SpanScores(precision=0, recall=0, f1=0)
    precision, recall = matches / len(found), matches / len(wanted)
    f1 = 2 * precision * recall / (precision + recall)
    return SpanScores(precision=precision, recall=recall, f1=f1)


def _idioms(tags: Sequence[Sequence[Tag]]) -> set[tuple[int, Span]]:
    """Return the idioms' spans, with the number of the sentence."""
    return {
        (number, span)
        for number, sentence in enumerate(tags)
        for span in spans_of(valid_tags(sentence))
    }


def tagging_scores(
    gold: Sequence[Sequence[Tag]], predicted: Sequence[Sequence[Tag]]
) -> TaggingScores:
    """Score predicted tags against gold tags."""
    idioms = span_scores(gold, predicted)
    gold_ids, predicted_ids = (
        np.array([TAG_IDS[tag] for tags in each for tag in tags]) for each in (gold, predicted)
    )
    outside = TAG_IDS[OUTSIDE]
    precision, recall, f1 = _token_scores(gold_ids != outside, predicted_ids != outside)
    of_tags = [_token_scores(gold_ids == tag, predicted_ids == tag)[2] for tag in TAG_IDS.values()]
    return TaggingScores(
        sentences=len(gold),
        span_precision=idioms.precision,
        span_recall=idioms.recall,
        span_f1=idioms.f1,
        token_precision=precision,
        token_recall=recall,
        token_f1=f1,
        macro_f1=float(np.mean(of_tags)),
    )


def _token_scores(
    wanted: npt.NDArray[np.bool_], found: npt.NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Return precision, recall and F1 of one class as fractions; undefined scores are 0.

    As in scikit-learn, which takes a second to import.
    """
    both, of_wanted, of_found = (int(np.sum(each)) for each in (wanted & found, wanted, found))
    precision = both / of_found if of_found else 0.0
    recall = both / of_wanted if of_wanted else 0.0
    f1 = 2 * both / (of_wanted + of_found) if of_wanted + of_found else 0.0
    return precision, recall, f1
