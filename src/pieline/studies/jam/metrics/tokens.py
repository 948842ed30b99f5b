"""Compute F1 of BIO tags by complete idiom and by token (ID10M-JAM, section 4.1)."""

from collections.abc import Sequence
from itertools import chain

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
    gold_idioms, predicted_idioms = _idioms(gold), _idioms(predicted)
    matches = len(gold_idioms & predicted_idioms)
    if not matches:
        return SpanScores(precision=0, recall=0, f1=0)
    precision, recall = matches / len(predicted_idioms), matches / len(gold_idioms)
    f1 = 2 * precision * recall / (precision + recall)
    return SpanScores(precision=precision, recall=recall, f1=f1)


def _idioms(tags: Sequence[Sequence[Tag]]) -> set[tuple[int, Span]]:
    """Return the span of each idiom, with the number of its sentence."""
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
    gold_ids, predicted_ids = _tag_ids(gold), _tag_ids(predicted)
    outside = TAG_IDS[OUTSIDE]
    precision, recall, f1 = _token_scores(gold_ids != outside, predicted_ids != outside)
    f1_by_tag = []
    for tag_id in TAG_IDS.values():
        _, _, f1_of_tag = _token_scores(gold_ids == tag_id, predicted_ids == tag_id)
        f1_by_tag.append(f1_of_tag)
    return TaggingScores(
        sentences=len(gold),
        span_precision=idioms.precision,
        span_recall=idioms.recall,
        span_f1=idioms.f1,
        token_precision=precision,
        token_recall=recall,
        token_f1=f1,
        macro_f1=float(np.mean(f1_by_tag)),
    )


def _tag_ids(tags: Sequence[Sequence[Tag]]) -> npt.NDArray[np.int64]:
    return np.array([TAG_IDS[tag] for tag in chain.from_iterable(tags)])


def _token_scores(
    gold: npt.NDArray[np.bool_], predicted: npt.NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Return precision, recall and F1 of one class as fractions; undefined scores are 0.

    The results equal those of scikit-learn, which takes a second to import.
    """
    matches = int(np.sum(gold & predicted))
    in_gold, in_predicted = int(np.sum(gold)), int(np.sum(predicted))
    precision = matches / in_predicted if in_predicted else 0.0
    recall = matches / in_gold if in_gold else 0.0
    f1 = 2 * matches / (in_gold + in_predicted) if in_gold + in_predicted else 0.0
    return precision, recall, f1
