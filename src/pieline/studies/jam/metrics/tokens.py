"""Compute F1 of BIO tags by complete idiom and by token (ID10M-JAM, section 4.1)."""

from collections.abc import Sequence

import numpy as np

from pieline.core.records import Frozen
from pieline.studies.jam.bio import OUTSIDE, TAG_IDS, Tag


class TaggingScores(Frozen):
    """Tagging scores as fractions; undefined scores are 0.

    The `span_*` scores count exactly matching idioms (seqeval), the `token_*` scores count idiom
    tokens (B and I alike), and `macro_f1` is the mean token F1 of the three tags.
    """

    sentences: int
    span_precision: float
    span_recall: float
    span_f1: float
    token_precision: float
    token_recall: float
    token_f1: float
    macro_f1: float


def span_f1(gold: Sequence[Sequence[Tag]], predicted: Sequence[Sequence[Tag]]) -> float:
    """Return seqeval's F1 of exactly matching idioms (fraction)."""
    from seqeval.metrics import f1_score

    value = f1_score(_lists(gold), _lists(predicted), zero_division=0)
    return float(value)


def tagging_scores(
    gold: Sequence[Sequence[Tag]], predicted: Sequence[Sequence[Tag]]
) -> TaggingScores:
    """Score predicted tags against gold tags."""
    import sklearn.metrics
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

    exact = precision_recall_fscore_support(
        _lists(gold), _lists(predicted), average="micro", zero_division=0
    )
    # Use integers because sklearn is slow on strings.
    gold_ids, predicted_ids = (
        np.array([TAG_IDS[tag] for tags in each for tag in tags]) for each in (gold, predicted)
    )
    precision, recall, f1, _ = sklearn.metrics.precision_recall_fscore_support(
        gold_ids != TAG_IDS[OUTSIDE],
        predicted_ids != TAG_IDS[OUTSIDE],
        average="binary",
        zero_division=0,
    )
    macro = sklearn.metrics.f1_score(
        gold_ids, predicted_ids, labels=list(TAG_IDS.values()), average="macro", zero_division=0
    )
    return TaggingScores(
        sentences=len(gold),
        span_precision=float(exact[0]),
        span_recall=float(exact[1]),
        span_f1=float(exact[2]),
        token_precision=float(precision),
        token_recall=float(recall),
        token_f1=float(f1),
        macro_f1=float(macro),
    )


def _lists(tags: Sequence[Sequence[Tag]]) -> list[list[Tag]]:
    # seqeval accepts only lists.
    return [list(sentence) for sentence in tags]
