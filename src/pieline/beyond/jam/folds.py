"""Divide the PIEs of ID10M-JAM into folds, so that no encoder tags PIEs from its training data."""

from collections.abc import Mapping, Sequence
from itertools import product

from pieline.languages.matching import matches_pie
from pieline.studies.jam.raw.id10m import TaggedSentence
from pieline.studies.jam.records import JamSentence

FOLDS = 2
"""Number of folds if test sentences are added to the training data.

The encoder that tags a fold is trained on the sentences outside the fold.
"""


def assign_folds(sentences: Sequence[JamSentence], count: int) -> dict[str, int]:
    """Map the id of each original to its fold (from 0); originals with the same PIE share a fold.

    Args:
        sentences: Originals and variants.
        count: Number of folds.
    """
    groups_with_same_pie: list[list[JamSentence]] = []
    for sentence in sentences:
        if sentence.is_original:
            _add_to_group(sentence, groups_with_same_pie)
    fold_of_original = {}
    for number, group in enumerate(groups_with_same_pie):
        for original in group:
            fold_of_original[original.id] = number % count
    return fold_of_original


def _add_to_group(original: JamSentence, groups: list[list[JamSentence]]) -> None:
    """Add an original to the groups that share a PIE with it, which become one group.

    If no group shares a PIE with the original, a new group is added to `groups`.
    """
    sharing_groups = [
        group for group in groups if any(_share_pie(original, member) for member in group)
    ]
    if not sharing_groups:
        groups.append([original])
        return
    first, *others = sharing_groups
    for other in others:
        first += other
        groups.remove(other)
    first.append(original)


def _share_pie(original: JamSentence, other: JamSentence) -> bool:
    """Return whether a PIE of `original` and a PIE of `other` match, in either direction."""
    for pie, other_pie in product(original.pies, other.pies):
        if matches_pie(pie, other_pie, language=original.language):
            return True
        if matches_pie(other_pie, pie, language=original.language):
            return True
    return False


def texts_outside_fold(
    sentences: Sequence[JamSentence],
    fold_by_original: Mapping[str, int],
    fold: int,
    *,
    originals_only: bool,
) -> list[TaggedSentence]:
    """Return the sentences outside a fold as training data for the encoder of that fold.

    Args:
        sentences: Originals and variants.
        fold_by_original: Fold of each original, by id.
        fold: Fold to exclude.
        originals_only: Whether to exclude variants.
    """
    training_sentences = []
    for sentence in sentences:
        is_outside_fold = fold_by_original[sentence.original_id] != fold
        is_excluded_variant = originals_only and not sentence.is_original
        if is_outside_fold and not is_excluded_variant:
            training_sentences.append(TaggedSentence(sentence.id, sentence.tokens, sentence.tags))
    return training_sentences
