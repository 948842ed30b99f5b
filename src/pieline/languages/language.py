"""What a language is to the matching of PIEs."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False, kw_only=True)
class Language:
    """A language: one object, `LANGUAGE`, in a module of this package that is named like it.

    All words are casefolded and without apostrophes, as `spelling.normalise` leaves them.

    Attributes:
        name: in the configuration and in file names.
        label: in tables and figures.
        code: ISO 639-1; simplemma and py3langid know the language by it.
        light_words: articles, pronouns, forms of be and modal verbs: what people vary freely when
            they name a PIE.
        stop_words: all function words: light words, prepositions, particles, conjunctions, have
            and do, negation.
        irregular: base forms by inflected form, where simplemma's dictionary misses them.
        endings: regular endings as regular expressions, and what stands in their place in the base
            form: the dictionary gives one lemma, and takes "sitting" for a noun only.
        prefixes: of verbs: a form after one of them has the base forms that it has alone
            ("aufgebunden": auf + binden).
        respelled: what `normalise` writes for a letter, and the letter.
    """

    name: str
    label: str
    code: str
    light_words: frozenset[str]
    stop_words: frozenset[str]
    irregular: Mapping[str, frozenset[str]] = field(default_factory=dict)
    endings: tuple[tuple[str, str], ...] = ()
    prefixes: frozenset[str] = frozenset()
    respelled: tuple[str, str] | None = None


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.casefold().split())


def forms(text: str) -> dict[str, frozenset[str]]:
    """Base forms by form, of entries as "break/broke": a base form, then forms of it."""
    table: dict[str, frozenset[str]] = {}
    for entry in text.casefold().split():
        base, *inflected = entry.split("/")
        for form in inflected:
            table[form] = table.get(form, frozenset()) | {base}
    return table
