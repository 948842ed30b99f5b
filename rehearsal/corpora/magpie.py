"""A stand-in for MAGPIE."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

from pieline.core.files import atomic_path
from pieline.studies.idiolink.originals.pie_filter import FilterThresholds
from pieline.studies.idiolink.raw.magpie import TARGET
from rehearsal.corpora.prose import Expression, Prose, speech
from rehearsal.corpora.sizes import Size, scaled

ENGLISH = speech("english")

ROWS, PIES = 56622, 1756

_GENRES = ("W fict prose", "W newsp brdsht", "W misc", "W biography", "S conv")
_SPLITS = ("training", "development", "test")
_LEAST = FilterThresholds().min_occurrences
_AROUND = 4000
"""Sentences that stand around the targets, in turns."""

_Kind = Literal["candidate", "rare", "one_sided", "doubtful"]
"""How a PIE fares in the released filter of IdioLink: it passes, or fails a criterion."""

_IDIOMATIC: Mapping[_Kind, Sequence[float]] = {
    "candidate": (0.35, 0.5, 0.65),
    "rare": (0.2, 0.5, 0.8),
    "one_sided": (0.05, 0.95),
    "doubtful": (0.4, 0.6),
}
"""Shares of idiomatic occurrences."""


def write_magpie(path: Path, candidates: Sequence[str], size: Size, random: Random) -> None:
    """Write MAGPIE such that the PIEs which meet IdioLink's criteria are the candidates."""
    known = {pie.base: pie for pie in ENGLISH.pies}
    kinds: dict[Expression, _Kind] = {
        known.get(pie, Expression(pie, pie)): "candidate" for pie in candidates
    }
    others = [pie for pie in ENGLISH.pies if pie not in kinds]
    failing: tuple[_Kind, ...] = ("rare", "rare", "one_sided", "doubtful")
    for number, pie in enumerate(random.sample(others, scaled(PIES, size) - len(kinds))):
        kinds[pie] = failing[number % len(failing)]
    around = [_spaced(ENGLISH.grammar.sentence("PLAIN", random)) for _ in range(_AROUND)]
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as out:
        for number, row in enumerate(_rows(kinds, scaled(ROWS, size), random), start=1):
            context = random.choices(around, k=5)
            context[TARGET] = row.pop("target")
            row |= {
                "context": context,
                "document_id": f"R{random.randrange(1000):03d}",
                "genre": random.choice(_GENRES),
                "id": number,
                "sentence_no": str(random.randint(3, 2000)),
                "non_standard_usage_explanations": [],
            }
            out.write(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n")


def _rows(
    kinds: Mapping[Expression, _Kind], wanted: int, random: Random
) -> Iterator[dict[str, Any]]:
    """What is said of each occurrence, PIE by PIE; so many in all."""
    ranges = {"candidate": (_LEAST, _LEAST + 20), "rare": (2, _LEAST - 1)}
    counts = {pie: random.randint(*ranges[kind]) for pie, kind in kinds.items() if kind in ranges}
    rest = [pie for pie in kinds if pie not in counts]
    each, more = divmod(wanted - sum(counts.values()), len(rest))
    counts |= {pie: each + (place < more) for place, pie in enumerate(rest)}
    for pie in sorted(kinds):
        kind, split = kinds[pie], random.choice(_SPLITS)
        idiomatic = round(counts[pie] * random.choice(_IDIOMATIC[kind]))
        for place in range(counts[pie]):
            label = "i" if place < idiomatic else "l"
            # The last one is no usage of the PIE.
            if place == counts[pie] - 1:
                label = random.choice("fo?")
            # Few PIEs of MAGPIE have no doubtful annotation; a PIE falls if all are.
            is_doubtful = kind == "doubtful" or place % 5 == 0
            share = 0.75 if is_doubtful else 1.0
            shares = dict.fromkeys("?filo", 0.0) | {label: share}
            if share < 1:
                shares["l" if label == "i" else "i"] = 1 - share
            symbol = "FIGURATIVE" if label == "i" else "LITERAL"
            prose = ENGLISH.grammar.sentence(symbol, random, pie)
            yield {
                "idiom": pie.base,
                "label": label,
                "label_distribution": shares,
                "confidence": share,
                "judgment_count": 4,
                "split": split,
                "variant_type": "identical" if prose.span_text == pie.base else "inflection",
                "offsets": _offsets(prose),
                "target": _spaced(prose),
            }


def _spaced(prose: Prose) -> str:
    """The sentence with a space between all its words and marks."""
    return " ".join(prose.words)


def _offsets(prose: Prose) -> list[tuple[int, int]]:
    """First character and the one after the last of each word of the PIE, in the spaced text."""
    first, last = prose.span or (0, 0)
    found, start = [], sum(len(word) + 1 for word in prose.words[:first])
    for word in prose.words[first:last]:
        found.append((start, start + len(word)))
        start += len(word) + 1
    return found
