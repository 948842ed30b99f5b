"""What a language is to the matching of PIEs and to the reading of answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property


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
        stop_words: function words that are never content: light words, prepositions, conjunctions,
            have and do, negation.
        particles: other function words. They are content unless a stop word follows: "back seat",
            "get over", but "out of the woods". Contractions that are also nouns belong here:
            without its apostrophe "she'll" is "shell".
        quantifiers: quantifiers and adverbs of time and degree ("every", "yet"): no content words,
            though PIEs may differ in one of them, so that matching keeps them.
        light_verbs: base forms of verbs that a partial PIE may lack ("back seat" for "take a back
            seat", "in Schach" for "in Schach halten").
        supporting: adverbs of degree and comparing words: as light verbs, what people leave out or
            exchange when they point at a PIE ("get cold feet", "have cold feet").
        bound_words: words used in one PIE only, so that each names it alone ("Holzweg").
        irregular: base forms by inflected form, where simplemma's dictionary misses them.
        endings: regular endings as regular expressions, and what stands in their place in the base
            form: the dictionary gives one lemma, and takes "sitting" for a noun only.
        prefixes: of verbs: a form after one of them has the base forms that it has alone
            ("aufgebunden": auf + binden).
        respelled: what `normalise` writes for a letter, and the letter.
        elides: whether an apostrophe ends a word ("d'occhio" is two words).
    """

    name: str
    label: str
    code: str
    light_words: frozenset[str]
    stop_words: frozenset[str]
    particles: frozenset[str] = frozenset()
    quantifiers: frozenset[str] = frozenset()
    light_verbs: frozenset[str] = frozenset()
    supporting: frozenset[str] = frozenset()
    bound_words: frozenset[str] = frozenset()
    irregular: Mapping[str, frozenset[str]] = field(default_factory=dict)
    endings: tuple[tuple[str, str], ...] = ()
    prefixes: frozenset[str] = frozenset()
    respelled: tuple[str, str] | None = None
    elides: bool = False

    @cached_property
    def function_words(self) -> frozenset[str]:
        """Stop words and particles."""
        return self.stop_words | self.particles


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerWords:
    """How answers in a language speak of idioms: one object, `ANSWERS`, in the language's module.

    All words are normalised; of multi-word terms ("modo di dire") the telling word counts.

    Attributes:
        idioms: idiom, and words that mean nothing else.
        expressions: what else an idiom is called.
        figurative, literal: what is said of its use.
        uses, meanings: what "figurative" and "literal" stand beside.
        rejected: words of labels, and whole texts, that say that something is no idiom.
        candidates: words for what could be an idiom.
        answers: words for the answer itself, or for what was chosen.
        sentences: words for the text that was asked about.
        negations: words that say no, each by itself.
        concord: words that say no, or strengthen a no before them ("non c'è nessun…").
        nothing: whole texts that name nothing, and are no sentence.
        yes, no: whole texts that say no more than yes or no.
        besides: all other words of sentences which say that there is none.
        contrast: words that take back what was said before.
        others: words for further idioms, of which to say that there is none says nothing.
        counts: what a key says that counts idioms.
        revises: what a sentence begins with that takes back an answer before it.
    """

    idioms: frozenset[str]
    expressions: frozenset[str]
    figurative: frozenset[str]
    literal: frozenset[str]
    uses: frozenset[str]
    meanings: frozenset[str]
    rejected: frozenset[str]
    candidates: frozenset[str]
    answers: frozenset[str]
    sentences: frozenset[str]
    negations: frozenset[str]
    concord: frozenset[str] = frozenset()
    nothing: frozenset[str]
    yes: frozenset[str]
    no: frozenset[str]
    besides: frozenset[str]
    contrast: frozenset[str]
    others: frozenset[str]
    counts: frozenset[str]
    revises: frozenset[str]


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.casefold().split())


def texts(text: str) -> frozenset[str]:
    """The texts of a list, separated by slashes."""
    return frozenset(text.casefold().split("/"))


def forms(text: str) -> dict[str, frozenset[str]]:
    """Base forms by form, of entries as "break/broke": a base form, then forms of it."""
    entries = [entry.split("/") for entry in text.casefold().split()]
    return {
        form: frozenset(base for base, *inflected in entries if form in inflected)
        for _, *own in entries
        for form in own
    }
