"""Prepare ID10M's train and dev splits for fine-tuning encoders."""

import random
from collections.abc import Sequence

from pieline.studies.jam.bio import BEGIN, INSIDE, Tag
from pieline.studies.jam.raw.id10m import TaggedSentence

SENTENCE_ENDS = frozenset(".!?")
"""Tokens at which the released code ends a training sentence."""
HELD_OUT = 10
"""Inverse of the share of sentences that are held out (one in ten)."""


def hold_out(
    sentences: Sequence[TaggedSentence], *, seed: int
) -> tuple[list[TaggedSentence], list[TaggedSentence]]:
    """Hold out a tenth of the sentences, stratified by whether they contain an idiom.

    This split is used if an encoder is trained on ID10M's dev split, which must then also provide
    the sentences that score each epoch.

    Returns:
        The training sentences and the held-out sentences.
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
    """Keep at most `per_idiom` sentences without an idiom per sentence with one, in input order.

    Four in five ID10M sentences have no idiom, so a model trained briefly on all of them predicts
    only O. If `per_idiom` is None, all sentences are kept, as in the paper.
    """
    empty = [number for number, item in enumerate(sentences) if not item.spans]
    if per_idiom is None:
        return list(sentences)
    limit = min(len(empty), round(per_idiom * (len(sentences) - len(empty))))
    chooser = random.Random(f"thin out {seed}")  # noqa: S311 - not for secrets
    selected = set(chooser.sample(empty, limit))
    return [item for number, item in enumerate(sentences) if item.spans or number in selected]


def cut_at_sentence_ends(sentences: Sequence[TaggedSentence]) -> list[TaggedSentence]:
    """Divide all tokens into sentences as the released code does.

    A sentence ends at a token of `SENTENCE_ENDS` and nowhere else, so a sentence without one is
    joined to the next. An idiom that is cut begins again in the next sentence.
    """
    pieces: list[TaggedSentence] = []
    tokens: list[str] = []
    tags: list[Tag] = []
    words = [pair for item in sentences for pair in zip(item.tokens, item.tags, strict=True)]
    for number, (token, tag) in enumerate(words, start=1):
        tokens.append(token)
        tags.append(BEGIN if tag == INSIDE and not tags else tag)
        if token.strip() in SENTENCE_ENDS or number == len(words):
            name = f"piece-{len(pieces) + 1}"
            pieces.append(TaggedSentence(name, tuple(tokens), tuple(tags)))
            tokens, tags = [], []
    return pieces
