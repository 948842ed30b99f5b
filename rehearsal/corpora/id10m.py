"""Stand-ins for ID10M and for the originals and hard variants of ID10M-JAM."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

from pieline.core.errors import UserError
from pieline.core.files import write_text
from pieline.studies.jam.bio import TAG_IDS
from pieline.studies.jam.originals import apply_decisions, derive_decisions
from pieline.studies.jam.raw.id10m import TaggedSentence, read_id10m, write_id10m
from pieline.studies.jam.raw.released import read_released_originals
from pieline.studies.jam.records import Original
from pieline.studies.jam.variants.validation import check_text, make_variant
from rehearsal.corpora.prose import Expression, Prose, speech
from rehearsal.corpora.sizes import Size, scaled, some

LANGUAGES = ("english", "german", "italian", "spanish")

LENGTHS: dict[tuple[str, str], tuple[int, int]] = {
    ("test", "english"): (200, 159),
    ("test", "german"): (200, 181),
    ("test", "italian"): (200, 152),
    ("test", "spanish"): (200, 133),
    ("dev", "english"): (3724, 735),
    ("dev", "german"): (2673, 835),
    ("dev", "italian"): (2902, 866),
    ("dev", "spanish"): (2771, 853),
    ("train", "english"): (37919, 10102),
    ("train", "german"): (24126, 7436),
    ("train", "italian"): (29523, 8768),
    ("train", "spanish"): (28647, 9994),
}
"""Sentences of ID10M by split and language, and those of them with an idiom."""

VARIANTS = 3
"""Hard variants of each original."""


class Filtering(NamedTuple):
    """What ID10M-JAM keeps of a test split (section 3.2 and 3.4).

    Attributes:
        originals, literal, pies: as printed.
        fixed: originals that were corrected, as in the release; also what follows.
        untagged: figurative originals whose tags are all O.
        doubled: PIEs with two spaces between their words.
    """

    originals: int
    literal: int
    pies: int
    fixed: int
    untagged: int
    doubled: int

    def scaled(self, size: Size) -> "Filtering":
        """The same for a size."""
        return Filtering(*(scaled(count, size, least=0) for count in self))


FILTERING = {
    "english": Filtering(178, 20, 153, fixed=8, untagged=4, doubled=0),
    "german": Filtering(137, 8, 92, fixed=9, untagged=0, doubled=57),
}

_ATTEMPTS = 100
_Fix = Literal["", "typo", "translation", "label"]


class _Case(NamedTuple):
    """What a test sentence is to be: kept or not, its reading, its raw tags, its correction."""

    kept: bool
    figurative: bool
    tagged: bool
    fix: _Fix = ""


def write_split(
    path: Path, split: str, language: str, *, size: Size, random: Random, taken: set[str]
) -> None:
    """Write a split of ID10M: sentences with an idiom, with a literal PIE, and without a PIE."""
    count, idiomatic = (
        scaled(number, size, of_train=split == "train") for number in LENGTHS[split, language]
    )
    literal = (count - idiomatic) // 2
    plain = count - idiomatic - literal
    kinds = ["FIGURATIVE"] * idiomatic + ["LITERAL"] * literal + ["PLAIN"] * plain
    random.shuffle(kinds)
    grammar, pies, _ = speech(language)
    pies = [*some(pies, size)]
    sentences = []
    for kind in kinds:
        found = grammar.new_sentence(kind, random, taken, random.choice(pies))
        sentences.append(_tagged(found, tagged=kind == "FIGURATIVE"))
    write_text(path, write_id10m(sentences))


def write_test_and_originals(
    test: Path, originals: Path, language: str, *, size: Size, random: Random, taken: set[str]
) -> None:
    """Write a test split of ID10M, and the originals that ID10M-JAM keeps of it."""
    filtering, (grammar, pies, _) = FILTERING[language].scaled(size), speech(language)
    pies = [*some(pies, size)]
    random.shuffle(pies)
    kept_pies, others = pies[: filtering.pies], pies[filtering.pies :]
    cases = _cases(language, size, filtering)
    repeated = random.choices(kept_pies, k=filtering.originals - filtering.pies)
    of_kept = random.sample([*kept_pies, *repeated], filtering.originals)
    random.shuffle(cases)
    forms: dict[Expression, str] = {}
    raw: list[TaggedSentence] = []
    released: list[dict[str, Any]] = []
    for case in cases:
        pie = of_kept[len(released)] if case.kept else random.choice(others)
        kind = "FIGURATIVE" if case.figurative else "LITERAL"
        found = grammar.new_sentence(kind, random, taken, pie)
        # One form of each PIE, or two would be counted.
        while forms.setdefault(pie, found.span_text) != found.span_text:
            found = grammar.new_sentence(kind, random, taken, pie)
        raw.append(_tagged(_spoilt(found, case.fix, random, taken), tagged=case.tagged))
        if case.kept:
            doubled = len(released) < filtering.doubled
            released.append(_released_row(found, case, doubled=doubled))
    write_text(test, write_id10m(raw))
    _write_rows(originals, released)


def write_variants(path: Path, test: Path, released: Path, language: str, random: Random) -> None:
    """Write three hard variants of each original, which pass the checks of the pipeline.

    Raises:
        UserError: the originals are not those of the test split.
    """
    sentences = read_id10m(test, split="test")
    decisions = derive_decisions(sentences, read_released_originals(released), where=released)
    originals = apply_decisions(sentences, decisions, language=language, where=released)
    pies = sorted({pie for item in originals for pie in item.pies})
    rows = []
    for original in originals:
        siblings: list[str] = []
        for number in range(1, VARIANTS + 1):
            siblings.append(_hard_text(original, siblings, pies, random))
            variant = make_variant(
                original, siblings[-1], number=number, source="released", verdict="valid"
            )
            idioms = list(variant.true_idioms)
            rows.append(
                {
                    "sentence": original.sentence,
                    "PIE": list(original.pies),
                    "is_figurative": original.is_figurative,
                    "variant_number": number,
                    "variant_sentence": variant.sentence,
                    "tokens": list(variant.tokens),
                    "tags": list(variant.tags),
                    "tag_ids": [TAG_IDS[tag] for tag in variant.tags],
                    # The German file of the release has them as Python writes a list.
                    "true_idioms": repr(idioms) if language == "german" else idioms,
                }
            )
    _write_rows(path, rows)


def _hard_text(
    original: Original, siblings: Sequence[str], pies: Sequence[str], random: Random
) -> str:
    """The original after a sentence that hints at the other reading, such that no check minds."""
    hint = "HINT_LITERAL" if original.is_figurative else "HINT_FIGURATIVE"
    grammar = speech(original.language).grammar
    for _ in range(_ATTEMPTS):
        text = f"{grammar.sentence(hint, random).text} {original.sentence}"
        if not check_text(original, text, siblings=siblings, known_pies=pies):
            return text
    raise UserError(
        "no context passes the checks", where=original.sentence, mend="take it out of the mirror"
    )


def _cases(language: str, size: Size, filtering: Filtering) -> list[_Case]:
    """What the sentences of a test split are, of each kind as many as there are to be."""
    count, tagged = (scaled(number, size) for number in LENGTHS["test", language])
    figurative = filtering.originals - filtering.literal
    labels = min(filtering.fixed // 3, filtering.literal)
    fixes: list[_Fix] = ["typo", "translation"] * filtering.fixed
    cases = [_Case(True, True, number >= filtering.untagged) for number in range(figurative)]
    for number in range(filtering.fixed - labels):
        cases[-1 - number] = cases[-1 - number]._replace(fix=fixes[number])
    cases += [
        _Case(True, False, number < labels, "label" if number < labels else "")
        for number in range(filtering.literal)
    ]
    tagged -= sum(case.tagged for case in cases)
    dropped = range(count - filtering.originals)
    return cases + [_Case(False, number < tagged, number < tagged) for number in dropped]


def _tagged(prose: Prose, *, tagged: bool) -> TaggedSentence:
    tags = prose.tags if tagged else Prose(prose.words).tags
    return TaggedSentence("", prose.tokens, tuple(tags))


def _spoilt(prose: Prose, fix: _Fix, random: Random, taken: set[str]) -> Prose:
    """The sentence as it was before its correction."""
    words = list(prose.words)
    if fix == "translation":
        note = speech("english").grammar.new_sentence("PLAIN", random, taken)
        words += ["(", *note.words, ")"]
    if fix == "typo":
        places = range(len(words))
        inside = range(*prose.span) if prose.span else ()
        place = next(
            place for place in places if place not in inside and len(set(words[place][1:3])) == 2
        )
        first, second, third, rest = *words[place][:3], words[place][3:]
        words[place] = first + third + second + rest
    return Prose(tuple(words), prose.span)


def _released_row(prose: Prose, case: _Case, *, doubled: bool) -> dict[str, Any]:
    """A row of the released originals."""
    tags = prose.tags if case.tagged and case.figurative else Prose(prose.words).tags
    pie = prose.span_text
    return {
        "sentence": prose.text,
        "PIE": [pie.replace(" ", "  ") if doubled else pie],
        "true_idioms": [pie] if case.figurative else [],
        "is_figurative": case.figurative,
        "tokens": list(prose.tokens),
        "tags": tags,
        "tag_ids": [TAG_IDS[tag] for tag in tags],
        "was_fixed": bool(case.fix),
    }


def _write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    write_text(path, json.dumps(list(rows), ensure_ascii=False, indent=1) + "\n")
