"""What encoders learn from: ID10M's train and dev."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pieline.studies.jam.bio import BEGIN, INSIDE, OUTSIDE, white_space_words
from pieline.studies.jam.raw.id10m import TaggedSentence

HELD_OUT = 10
"""One of so many sentences is held out for the choice of the epoch where there is no dev split."""


class TrainingSplits(NamedTuple):
    """Sentences to learn from, and those to choose the epoch on."""

    train: list[TaggedSentence]
    dev: list[TaggedSentence]


def hold_out(sentences: Sequence[TaggedSentence], *, seed: int) -> TrainingSplits:
    """Cut one split in two, so that train has nine of ten sentences with an idiom and without.

    For a mirror that lacks ID10M's train split: dev must then serve for both.
    """
    chooser = random.Random(f"hold out {seed}")  # noqa: S311 - not for secrets
    kinds = [
        [number for number, item in enumerate(sentences) if bool(item.spans) == idiomatic]
        for idiomatic in (True, False)
    ]
    held = {number for kind in kinds for number in chooser.sample(kind, len(kind) // HELD_OUT)}
    return TrainingSplits(
        [item for number, item in enumerate(sentences) if number not in held],
        [item for number, item in enumerate(sentences) if number in held],
    )


def thin_out(
    sentences: Sequence[TaggedSentence], *, per_idiom: float | None, seed: int
) -> list[TaggedSentence]:
    """Keep only so many sentences without an idiom for each one with an idiom, in their order.

    In ID10M four of five sentences have none, and a short training then learns to tag nothing.
    None keeps all, as the paper does.
    """
    empty = [number for number, item in enumerate(sentences) if not item.spans]
    if per_idiom is None:
        return list(sentences)
    wanted = min(len(empty), round(per_idiom * (len(sentences) - len(empty))))
    chooser = random.Random(f"thin out {seed}")  # noqa: S311 - not for secrets
    kept = set(chooser.sample(empty, wanted))
    return [item for number, item in enumerate(sentences) if item.spans or number in kept]


def by_white_space(sentence: TaggedSentence) -> TaggedSentence:
    """The same sentence with the words between white space as its tokens.

    A word in which an idiom begins gets its B, another with a part of one an I.
    """
    words = white_space_words(sentence.tokens)
    tags = tuple(
        next(tag for tag in (BEGIN, INSIDE, OUTSIDE) if tag in sentence.tags[start:end])
        for start, end in words
    )
    texts = tuple("".join(sentence.tokens[start:end]) for start, end in words)
    return replace(sentence, tokens=texts, tags=tags)
