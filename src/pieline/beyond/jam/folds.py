"""Divide the PIEs of ID10M-JAM into folds, so that no encoder is trained on PIEs that it tags."""

from collections.abc import Mapping, Sequence
from itertools import product

from pieline.languages.matching import matches_pie
from pieline.studies.jam.raw.id10m import TaggedSentence
from pieline.studies.jam.records import JamSentence

FOLDS = 2
"""Number of folds, each tagged by its own encoder, if test sentences are added to training."""


def assign_folds(sentences: Sequence[JamSentence], count: int) -> dict[str, int]:
    """Return the fold (from 0) of each original by id; originals with the same PIE share a fold."""
    groups: list[list[JamSentence]] = []
    for item in sentences:
        if item.is_original:
            group = next((group for group in groups if _share_pie(item, group)), None)
            if group is None:
                groups.append(group := [])
            group.append(item)
    return {item.id: number % count for number, group in enumerate(groups) for item in group}


def _share_pie(original: JamSentence, group: Sequence[JamSentence]) -> bool:
    """Return whether a PIE of the original matches one of the group, in either direction."""
    for one, item in product(original.pies, group):
        for other in item.pies:
            if matches_pie(one, other, language=original.language) or matches_pie(
                other, one, language=original.language
            ):
                return True
    return False


def texts_outside_fold(
    sentences: Sequence[JamSentence],
    folds: Mapping[str, int],
    fold: int,
    *,
    originals_only: bool,
) -> list[TaggedSentence]:
    """Return the sentences outside a fold as training data for the encoder of that fold.

    Args:
        sentences: Originals and variants.
        folds: Fold of each original by id.
        fold: Fold to exclude.
        originals_only: Whether to exclude variants.
    """
    return [
        TaggedSentence(item.id, item.tokens, item.tags)
        for item in sentences
        if folds[item.original_id] != fold and (item.is_original or not originals_only)
    ]
