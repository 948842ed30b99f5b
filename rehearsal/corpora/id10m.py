"""Stand-ins for ID10M, and for the originals and hard variants of ID10M-JAM."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from pieline.core.files import write_text
from pieline.studies.jam.bio import TAG_IDS
from pieline.studies.jam.originals import apply_decisions, derive_decisions
from pieline.studies.jam.raw.id10m import TaggedSentence, read_id10m, write_id10m
from pieline.studies.jam.raw.released import read_released_originals
from pieline.studies.jam.records import Original
from pieline.studies.jam.variants.validation import check_text, make_variant
from rehearsal.corpora.prose import Expression, Prose, language_material
from rehearsal.corpora.sizes import Size, scaled, some

LENGTHS: dict[tuple[str, str], tuple[int, int]] = {
    ("test", "english"): (200, 159),
    ("test", "german"): (200, 181),
    ("dev", "english"): (3724, 735),
    ("dev", "german"): (2673, 835),
    ("train", "english"): (37919, 10102),
    ("train", "german"): (24126, 7436),
}
"""Numbers of sentences and of sentences with an idiom, by ID10M's split and language."""

VARIANTS = 3
"""Number of hard variants per original."""


class Filtering(NamedTuple):
    """Numbers of originals, literal originals and PIEs of a language (sections 3.2 and 3.4)."""

    originals: int
    literal: int
    pies: int


FILTERING = {"english": Filtering(178, 20, 153), "german": Filtering(137, 8, 92)}


def write_language(mirror: Path, language: str, size: Size, random: Random) -> None:
    """Write stand-ins for a language's splits of ID10M, and originals and variants of ID10M-JAM."""
    used: set[str] = set()
    test = mirror / f"id10m/test_{language}.tsv"
    released = mirror / f"id10m-jam/{language}.json"
    _write_test_and_originals(test, released, language, size=size, random=random, used=used)
    _write_variants(mirror / f"id10m-jam/variants/{language}.json", test, released, random)
    grammar, pies, _ = language_material(language)
    for split in ("dev", "train"):
        count, idiomatic = _length(split, language, size)
        literal = (count - idiomatic) // 2
        kinds = ["FIGURATIVE"] * idiomatic + ["LITERAL"] * literal
        kinds += ["PLAIN"] * (count - len(kinds))
        random.shuffle(kinds)
        sentences = []
        for kind in kinds:
            pie = random.choice(some(pies, size))
            prose = grammar.new_sentence(kind, random, used, pie)
            sentences.append(_tagged(prose, is_figurative=kind == "FIGURATIVE"))
        write_text(mirror / f"id10m/{split}_{language}.tsv", write_id10m(sentences))


def _length(split: str, language: str, size: Size) -> tuple[int, int]:
    count, idiomatic = LENGTHS[split, language]
    of_train = split == "train"
    return scaled(count, size, of_train=of_train), scaled(idiomatic, size, of_train=of_train)


def _write_test_and_originals(
    test: Path, originals: Path, language: str, *, size: Size, random: Random, used: set[str]
) -> None:
    grammar, pies, _ = language_material(language)
    filtering = Filtering(*(scaled(count, size) for count in FILTERING[language]))
    count, idiomatic = _length("test", language, size)
    figurative = filtering.originals - filtering.literal
    dropped = range(count - filtering.originals)
    # Whether a sentence is kept, and whether it is figurative.
    cases = [(True, True)] * figurative + [(True, False)] * filtering.literal
    cases += [(False, number < idiomatic - figurative) for number in dropped]
    pies = random.sample(some(pies, size), len(some(pies, size)))
    kept_pies, others = pies[: filtering.pies], pies[filtering.pies :]
    repeated = random.choices(kept_pies, k=filtering.originals - filtering.pies)
    of_kept = random.sample([*kept_pies, *repeated], filtering.originals)
    random.shuffle(cases)
    forms: dict[Expression, str] = {}
    raw: list[TaggedSentence] = []
    rows: list[dict[str, Any]] = []
    for kept, is_figurative in cases:
        pie = of_kept[len(rows)] if kept else random.choice(others)
        kind = "FIGURATIVE" if is_figurative else "LITERAL"
        prose = grammar.new_sentence(kind, random, used, pie)
        # Use one form per PIE, because two forms would count as two PIEs.
        while forms.setdefault(pie, prose.span_text) != prose.span_text:
            prose = grammar.new_sentence(kind, random, used, pie)
        raw.append(_tagged(prose, is_figurative=is_figurative))
        if kept:
            rows.append(
                {
                    "sentence": prose.text,
                    "PIE": [prose.span_text],
                    "true_idioms": [prose.span_text] * is_figurative,
                    "is_figurative": is_figurative,
                    "tokens": prose.tokens,
                    "tags": raw[-1].tags,
                    "tag_ids": [TAG_IDS[tag] for tag in raw[-1].tags],
                    "was_fixed": False,
                }
            )
    write_text(test, write_id10m(raw))
    _write_rows(originals, rows)


def _write_variants(path: Path, test: Path, released: Path, random: Random) -> None:
    """Write three hard variants per original; each passes the pipeline's checks."""
    sentences = read_id10m(test, split="test")
    decisions = derive_decisions(sentences, read_released_originals(released), where=released)
    originals = apply_decisions(sentences, decisions, language=path.stem, where=released)
    pies = sorted({pie for item in originals for pie in item.pies})
    rows = []
    for original in originals:
        siblings: list[str] = []
        for number in range(1, VARIANTS + 1):
            siblings.append(_hard_text(original, siblings, pies, random))
            variant = make_variant(
                original, siblings[-1], number=number, source="released", verdict="valid"
            )
            rows.append(
                {
                    "sentence": original.sentence,
                    "PIE": original.pies,
                    "is_figurative": original.is_figurative,
                    "variant_number": number,
                    "variant_sentence": variant.sentence,
                    "tokens": variant.tokens,
                    "tags": variant.tags,
                    "tag_ids": [TAG_IDS[tag] for tag in variant.tags],
                    "true_idioms": variant.true_idioms,
                }
            )
    _write_rows(path, rows)


def _hard_text(
    original: Original, siblings: Sequence[str], pies: Sequence[str], random: Random
) -> str:
    """Return a valid hard variant: a sentence that hints at the other reading, and the original."""
    hint = "HINT_LITERAL" if original.is_figurative else "HINT_FIGURATIVE"
    grammar = language_material(original.language).grammar
    while True:
        text = f"{grammar.sentence(hint, random).text} {original.sentence}"
        if not check_text(original, text, siblings=siblings, known_pies=pies):
            return text


def _tagged(prose: Prose, *, is_figurative: bool) -> TaggedSentence:
    tags = prose.tags if is_figurative else Prose(prose.words).tags
    return TaggedSentence("", prose.tokens, tuple(tags))


def _write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    write_text(path, json.dumps(list(rows), ensure_ascii=False, indent=1) + "\n")
