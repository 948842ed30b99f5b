"""Data classes for the language-specific data that PIE matching and answer parsing need."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, eq=False, kw_only=True)
class Language:
    """Data for matching PIEs in one language, defined as `LANGUAGE` in the language's module.

    All words are casefolded and have no apostrophes (see `spelling.normalize`).

    Attributes:
        name: Name in the configuration and in file names.
        label: Display name in tables and figures.
        code: ISO 639-1 code, as used by simplemma and py3langid.
        light_words: Articles, pronouns, forms of "be" and modal verbs, which vary freely when a PIE
            is quoted.
        stop_words: Function words that are never content words: light words, prepositions,
            conjunctions, "have", "do" and negation.
        particles: Other function words, which are content words unless a stop word follows: "back"
            in "back seat", but not "out" in "out of the woods". Also contractions that look like
            nouns without their apostrophe ("she'll", "shell").
        quantifiers: Quantifiers and adverbs of time and degree ("every", "yet"). Matching treats
            them as content words, because some PIEs differ only in one of them.
        light_verbs: Base forms of verbs that a partial PIE may omit ("back seat" for "take a back
            seat", "in Schach" for "in Schach halten").
        supporting: Adverbs of degree and comparison words, which are often omitted or exchanged
            when a PIE is quoted.
        bound_words: Words that occur in only one PIE and therefore identify it ("Holzweg").
        irregular: Base forms by inflected form, for forms that simplemma's dictionary lacks.
        endings: Regular expressions for regular endings, each with its replacement in the base
            form. They supplement simplemma, which returns only one lemma per word and treats
            "sitting" only as a noun.
        prefixes: Separable verb prefixes. The base forms of a prefixed word include the prefix plus
            each base form of the rest ("aufgebunden": auf + binden).
        respelled: Spelling that `normalize` produces, and the original letter.
        elides: Whether an apostrophe ends a word ("d'occhio" is two words).
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
    """Vocabulary for parsing answers in a language, defined as `ANSWERS` in the language's module.

    All words are normalized. A multi-word term ("modo di dire") is represented by its most specific
    word.

    Attributes:
        idioms: Words that mean only "idiom".
        expressions: Broader words for idioms.
        figurative: Words for figurative use.
        literal: Words for literal use.
        uses: Nouns for "use" that "figurative" and "literal" modify.
        meanings: Nouns for "meaning" that "figurative" and "literal" modify.
        rejected: Words in labels, and complete texts, that mark an expression as not idiomatic.
        candidates: Words for potential idioms.
        answers: Words for the answer or for the chosen items.
        sentences: Words for the input sentence.
        negations: Words that negate on their own.
        concord: Words that negate, or reinforce a preceding negation ("non c'è nessun…").
        nothing: Complete texts that name no idiom and are not sentences.
        yes: Complete texts that mean yes.
        no: Complete texts that mean no.
        fillers: All other words of sentences that deny the presence of idioms.
        contrast: Words that introduce a contradiction of the preceding clause.
        others: Words that refer to further idioms; denying further idioms does not deny the first.
        counts: Texts in keys whose value is the number of idioms.
        revises: Beginnings of sentences that retract the preceding answer.
        clarifies: Beginnings of sentences that retract the preceding answer or only explain it.
        errors: Texts in clauses that call the answer wrong.
        corrects: Words that call an answer correct or required.
        general: Words of statements about possible or common use, not about the given sentence.
        actual: Words for real things, which suggest literal use.
        here: Words, besides `sentences`, that refer to the given sentence.
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
    fillers: frozenset[str]
    contrast: frozenset[str]
    others: frozenset[str]
    counts: frozenset[str]
    revises: frozenset[str]
    clarifies: frozenset[str] = frozenset()
    errors: frozenset[str]
    corrects: frozenset[str]
    general: frozenset[str]
    actual: frozenset[str]
    here: frozenset[str]


def words(text: str) -> frozenset[str]:
    """Split a word list at whitespace."""
    return frozenset(text.casefold().split())


def texts(text: str) -> frozenset[str]:
    """Split a list of texts at slashes."""
    return frozenset(text.casefold().split("/"))


def forms(text: str) -> dict[str, frozenset[str]]:
    """Map each inflected form to its base forms; an entry is "base/form/..." ("break/broke")."""
    entries = [entry.split("/") for entry in text.casefold().split()]
    return {
        form: frozenset(base for base, *inflected in entries if form in inflected)
        for _, *others in entries
        for form in others
    }
