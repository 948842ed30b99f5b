"""Score predicted BIO tags by complete idiom and by token (ID10M-JAM, section 4.1)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pieline.core.records import Frozen
from pieline.studies.jam.bio import OUTSIDE, TAG_IDS, Span, Tag, spans_of, valid_tags


class TaggingScores(Frozen):
    """Tagging scores as fractions; an undefined score is 0.

    The `span_*` scores count complete idioms. The `token_*` scores count the tokens of idioms,
    without distinguishing B from I. `macro_f1` is the mean of the token F1 of B, I and O.
    """

    sentences: int
    span_precision: float
    span_recall: float
    span_f1: float
    token_precision: float
    token_recall: float
    token_f1: float
    macro_f1: float


class F1Scores(NamedTuple):
    """Precision, recall and F1 as fractions; an undefined score is 0."""

    precision: float
    recall: float
    f1: float


def span_scores(gold: Sequence[Sequence[Tag]], predicted: Sequence[Sequence[Tag]]) -> F1Scores:
    """Score the complete idioms in predicted tags, over all sentences, as seqeval does.

    A predicted idiom is correct only if a gold idiom has exactly the same tokens.
    """
    gold_idioms, predicted_idioms = _idiom_spans(gold), _idiom_spans(predicted)
    matches = len(gold_idioms & predicted_idioms)
    if not matches:
        return F1Scores(precision=0.0, recall=0.0, f1=0.0)
    precision = matches / len(predicted_idioms)
    recall = matches / len(gold_idioms)
    f1 = 2 * precision * recall / (precision + recall)
    return F1Scores(precision, recall, f1)


def _idiom_spans(tags: Sequence[Sequence[Tag]]) -> set[tuple[int, Span]]:
    """Return the sentence index and the span of each idiom that the tags of sentences mark."""
    return {
        (sentence_index, span)
        for sentence_index, tags_of_sentence in enumerate(tags)
        for span in spans_of(valid_tags(tags_of_sentence))
    }


def tagging_scores(
    gold: Sequence[Sequence[Tag]], predicted: Sequence[Sequence[Tag]]
) -> TaggingScores:
    """Score predicted tags by complete idiom and by token.

    `gold` and `predicted` contain the tags of the same sentences, in the same order.
    """
    span_level = span_scores(gold, predicted)
    gold_ids, predicted_ids = _tag_ids(gold), _tag_ids(predicted)
    outside = TAG_IDS[OUTSIDE]
    token_level = _token_scores(gold_ids != outside, predicted_ids != outside)
    f1_by_tag = [
        _token_scores(gold_ids == tag_id, predicted_ids == tag_id).f1 for tag_id in TAG_IDS.values()
    ]
    return TaggingScores(
        sentences=len(gold),
        span_precision=span_level.precision,
        span_recall=span_level.recall,
        span_f1=span_level.f1,
        token_precision=token_level.precision,
        token_recall=token_level.recall,
        token_f1=token_level.f1,
        macro_f1=float(np.mean(f1_by_tag)),
    )


def _tag_ids(tags: Sequence[Sequence[Tag]]) -> npt.NDArray[np.int64]:
    """Return the tag ids of all sentences as one array."""
    return np.array([TAG_IDS[tag] for tags_of_sentence in tags for tag in tags_of_sentence])


def _token_scores(gold: npt.NDArray[np.bool_], predicted: npt.NDArray[np.bool_]) -> F1Scores:
    """Score the tokens of one class.

    `gold` and `predicted` state whether each token belongs to the class.

    The scores equal those of scikit-learn, which is not used because it takes a second to import.
    """
    matches = int(np.sum(gold & predicted))
    gold_tokens, predicted_tokens = int(np.sum(gold)), int(np.sum(predicted))
    tokens_in_both_sums = gold_tokens + predicted_tokens
    precision = matches / predicted_tokens if predicted_tokens else 0.0
    recall = matches / gold_tokens if gold_tokens else 0.0
    f1 = 2 * matches / tokens_in_both_sums if tokens_in_both_sums else 0.0
    return F1Scores(precision, recall, f1)
