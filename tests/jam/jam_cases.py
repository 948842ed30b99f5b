"""Shared helpers of the ID10M-JAM data tests."""

from pathlib import Path
from typing import Any

from support import ROOT

from pieline.studies.jam.bio import Span, Tag, tags_of
from pieline.studies.jam.originals import apply_decisions, load_decisions
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.records import JamSentence, Original, Variant, as_sentence
from pieline.studies.jam.variants.projection import tokenize
from pieline.studies.jam.variants.released import read_variants
from pieline.studies.jam.variants.validation import check_variants, make_variant

SAMPLE = ROOT / "data" / "sample" / "id10m"


def sample_originals(language: str) -> list[Original]:
    """Return the originals of the sample."""
    decisions = SAMPLE / "decisions" / f"{language}.tsv"
    raw = read_id10m(SAMPLE / f"test_{language}.tsv", split="test")
    return apply_decisions(raw, load_decisions(decisions), language=language, where=decisions)


def sample_variants(language: str) -> list[Variant]:
    """Return the checked variants of the sample."""
    originals = sample_originals(language)
    path = SAMPLE / "variants" / f"{language}.json"
    return check_variants(originals, read_variants(path, originals, source="sample"))


def original(sentence: str, pie: str, *, figurative: bool = True, **fields: Any) -> Original:
    """Return an original; the PIE must occur once in the sentence, in complete tokens."""
    tokens = tokenize(sentence)
    start = len(tokenize(sentence[: sentence.index(pie)]))
    spans = [Span(start, start + len(tokenize(pie)))] if figurative else []
    tags: tuple[Tag, ...] = tuple(tags_of(spans, len(tokens)))
    values = {"id": "test-0001", "language": "english", "was_fixed": False, **fields}
    return Original(
        sentence=sentence,
        tokens=tuple(tokens),
        tags=tags,
        pies=(pie,),
        true_idioms=(pie,) if figurative else (),
        is_figurative=figurative,
        **values,
    )


def sentences_of(item: Original, *contexts: str) -> list[JamSentence]:
    """Return an original and its variants with these contexts, as sentences to be predicted."""
    texts = [f"{context} {item.sentence}" for context in contexts]
    variants = [
        make_variant(item, text, number=number, source="sample")
        for number, text in enumerate(texts, start=1)
    ]
    return [as_sentence(item), *map(as_sentence, variants)]


def write(path: Path, text: str) -> Path:
    """Write a file and return its path."""
    path.write_text(text, encoding="utf-8")
    return path
