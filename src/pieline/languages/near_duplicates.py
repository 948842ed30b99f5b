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
_SHINGLE_WORDS = 3
_SHARED_SHINGLES = 0.4
"""Minimum share of the shorter text's word triples that a candidate pair has in common."""


def near_duplicates(texts: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """Yield the positions and the similarity of pairs of texts that are similar but not equal."""
    plain = [normalize(text) for text in texts]
    shingles = [_shingles(text) for text in plain]
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, triples in enumerate(shingles):
        for triple in triples:
            holders[triple].append(place)
    shared: Counter[tuple[int, int]] = Counter()
    for places in holders.values():
        shared.update(combinations(places, 2))
    needed = [_SHARED_SHINGLES * len(triples) for triples in shingles]
    # Filter before sorting, because few pairs share that many triples.
    near = (
        (one, other)
        for (one, other), count in shared.items()
        if count >= needed[one] or count >= needed[other]
    )
    for one, other in sorted(near):
        if plain[one] == plain[other]:
            continue
        similarity = fuzz.ratio(plain[one], plain[other])
        if similarity >= NEAR_DUPLICATE:
            yield one, other, similarity


def warn_of_near_duplicates(texts: Sequence[tuple[str, str, Hashable]], where: str | Path) -> None:
    """Print a warning if texts of the same kind are near-duplicates, with one example.

    The papers' texts of the same PIE and usage have none; texts of different usages may differ only
    in the PIE.

    Args:
        texts: Id, text and kind of each text.
        where: Path of the file.
    """
    pairs = [
        (one, other)
        for one, other, _ in near_duplicates([text for _, text, _ in texts])
        if texts[one][2] == texts[other][2]
    ]
    if pairs:
        number = len({place for pair in pairs for place in pair})
        (first, text, _), (second, _, _) = (texts[place] for place in pairs[0])
        print(
            f"warning: {where}: {number} of {len(texts)} texts are nearly equal to another one of"
            f" the same label, such as {first} and {second} ({text[:60]!r}); each counts",
            file=sys.stderr,
        )


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {
        tuple(words[start : start + _SHINGLE_WORDS])
        for start in range(max(1, len(words) - _SHINGLE_WORDS + 1))
    }
