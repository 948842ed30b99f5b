"""Prepare ID10M's train and dev splits for fine-tuning encoders."""

import random
from collections.abc import Sequence
from dataclasses import replace

from pieline.studies.jam.bio import BEGIN, INSIDE, OUTSIDE, white_space_words
from pieline.studies.jam.raw.id10m import TaggedSentence

HELD_OUT = 10
"""Without a dev split, one in this many sentences is held out for choosing the epoch."""


def hold_out(
    sentences: Sequence[TaggedSentence], *, seed: int
) -> tuple[list[TaggedSentence], list[TaggedSentence]]:
    """Split sentences nine to one, stratified by whether they contain an idiom.

    Used if the mirror lacks ID10M's train split, in which case dev must serve as both. Returns the
    training sentences, and the sentences used to choose the epoch.
    """
    chooser = random.Random(f"hold out {seed}")  # noqa: S311 - not for secrets
    kinds = [
        [number for number, item in enumerate(sentences) if bool(item.spans) == idiomatic]
        for idiomatic in (True, False)
    ]
    held_out = {number for kind in kinds for number in chooser.sample(kind, len(kind) // HELD_OUT)}
    train = [item for number, item in enumerate(sentences) if number not in held_out]
    return train, [item for number, item in enumerate(sentences) if number in held_out]


def thin_out(
    sentences: Sequence[TaggedSentence], *, per_idiom: float | None, seed: int
) -> list[TaggedSentence]:
    """Keep `per_idiom` sentences without an idiom for each one with an idiom, in order.

    Four in five ID10M sentences have no idiom, so a model trained briefly on all of them predicts
    only O. None keeps all sentences, as in the paper.
    """
    empty = [number for number, item in enumerate(sentences) if not item.spans]
    if per_idiom is None:
        return list(sentences)
    limit = min(len(empty), round(per_idiom * (len(sentences) - len(empty))))
    chooser = random.Random(f"thin out {seed}")  # noqa: S311 - not for secrets
    selected = set(chooser.sample(empty, limit))
    return [item for number, item in enumerate(sentences) if item.spans or number in selected]


def by_white_space(sentence: TaggedSentence) -> TaggedSentence:
    """Retokenize a sentence into whitespace-separated words.

    A word gets B if an idiom begins in it, or I if it contains a later part of one.
    """
    words = white_space_words(sentence.tokens)
    tags = tuple(
        next(tag for tag in (BEGIN, INSIDE, OUTSIDE) if tag in sentence.tags[start:end])
        for start, end in words
    )
    texts = tuple("".join(sentence.tokens[start:end]) for start, end in words)
    return replace(sentence, tokens=texts, tags=tags)
