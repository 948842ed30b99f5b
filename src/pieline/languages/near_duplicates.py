"""Find near-duplicate texts, which would count twice."""

import sys
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

from rapidfuzz import fuzz

from pieline.languages.spelling import normalize

NEAR_DUPLICATE = 90.0
"""Minimum similarity of near-duplicates (0 to 100, from `rapidfuzz.fuzz.ratio`)."""
_TRIPLE = 3
_SHARED_TRIPLES = 0.4
"""Minimum share of its word triples that one of two near-duplicates has in common with the other.

Only pairs with this share are compared by character, because that comparison is slow.
"""


def near_duplicates(texts: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """Yield pairs of texts that are similar but not equal.

    Yields:
        The positions of the two texts, and their similarity (0 to 100).
    """
    plain_texts = [normalize(text) for text in texts]
    for first, second in _pairs_with_shared_triples(plain_texts):
        if plain_texts[first] == plain_texts[second]:
            continue
        similarity = fuzz.ratio(plain_texts[first], plain_texts[second])
        if similarity >= NEAR_DUPLICATE:
            yield first, second, similarity


def _pairs_with_shared_triples(plain_texts: Sequence[str]) -> list[tuple[int, int]]:
    """Return, sorted, the positions of each pair of texts that share enough word triples."""
    triples_by_text = [_word_triples(text) for text in plain_texts]
    positions_by_triple: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for position, triples in enumerate(triples_by_text):
        for triple in triples:
            positions_by_triple[triple].append(position)
    shared_triples: Counter[tuple[int, int]] = Counter()
    for positions in positions_by_triple.values():
        shared_triples.update(combinations(positions, 2))
    needed_counts = [_SHARED_TRIPLES * len(triples) for triples in triples_by_text]
    # Filter before sorting, because few pairs share that many triples.
    pairs = []
    for (first, second), count in shared_triples.items():
        if count >= min(needed_counts[first], needed_counts[second]):
            pairs.append((first, second))
    return sorted(pairs)


def warn_of_near_duplicates(texts: Sequence[tuple[str, str, Hashable]], where: str | Path) -> None:
    """Print a warning if texts of the same kind are near-duplicates, with one example.

    The papers' texts of the same PIE and usage include no near-duplicates. Texts of different
    usages may differ only in the PIE.

    Args:
        texts: Id, content and kind of each text.
        where: Path of the file that contains the texts.
    """
    contents = [content for _, content, _ in texts]
    kinds = [kind for _, _, kind in texts]
    pairs = [
        (one, other) for one, other, _ in near_duplicates(contents) if kinds[one] == kinds[other]
    ]
    if pairs:
        affected = {position for pair in pairs for position in pair}
        first, second = pairs[0]
        first_id, first_content, _ = texts[first]
        second_id, _, _ = texts[second]
        print(
            f"warning: {where}: {len(affected)} of {len(texts)} texts are nearly equal to another"
            f" one of the same label, such as {first_id} and {second_id}"
            f" ({first_content[:60]!r}); each counts",
            file=sys.stderr,
        )


def _word_triples(text: str) -> set[tuple[str, ...]]:
    """Return the sequences of three words in a text; a text with fewer words is one sequence."""
    words = text.split()
    starts = range(max(1, len(words) - _TRIPLE + 1))
    return {tuple(words[start : start + _TRIPLE]) for start in starts}
