"""Define the data about a language that is needed to match PIEs and to parse answers."""

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
        particles: Other function words, which count as content words unless a stop word follows:
            "back" in "back seat", but not "out" in "out of the woods". Contractions that look like
            nouns without their apostrophe ("she'll", "shell") are also particles.
        quantifiers: Quantifiers and adverbs of time and degree ("every", "yet"). Matching treats
            them as content words, because some PIEs differ only in one of them.
        light_verbs: Base forms of verbs that a partial PIE may omit ("back seat" for "take a back
            seat", "in Schach" for "in Schach halten").
        supporting: Adverbs of degree and comparison words, which are often omitted or exchanged
            when a PIE is quoted.
        bound_words: Words that occur in only one PIE and therefore identify it ("Holzweg").
        irregular: Base forms of words that simplemma's dictionary lacks, by inflected form.
        endings: Regular expressions for regular endings, each with its replacement in the base
            form. They supplement simplemma, which returns only one lemma per word and treats
            "sitting" only as a noun.
        prefixes: Verb prefixes. The base forms of a word with a prefix include the prefix plus each
            base form of the word without the prefix ("aufgebunden": auf + binden).
        respelled: Letters that `normalize` puts in place of a letter, and that letter ("ss", "ß").
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
        uses: Nouns for "use", as in "figurative use" and "literal use".
        meanings: Nouns for "meaning", as in "figurative meaning" and "literal meaning".
        rejected: Words in labels, and complete texts, that mark an expression as not idiomatic.
        candidates: Words for potential idioms.
        answers: Words for the answer or for the chosen items.
        sentences: Words for the input sentence.
        negations: Words that negate on their own.
        concord: Words that negate on their own, but only reinforce a preceding negation ("nessun"
            in "non c'è nessun…").
        nothing: Complete texts that name no idiom and are not sentences.
        yes: Complete texts that mean yes.
        no: Complete texts that mean no.
        fillers: All other words that occur in denials that a sentence has an idiom.
        contrast: Words that introduce a contradiction of the preceding clause.
        others: Words that refer to further idioms. A denial of further idioms is not a denial of
            the first idiom.
        counts: Texts in keys whose value is the number of idioms.
        revises: Beginnings of sentences that retract the preceding answer.
        clarifies: Beginnings of sentences that either retract or explain the preceding answer.
        errors: Texts in clauses that call the answer wrong.
        corrects: Words that call an answer correct or required.
        general: Words of statements about possible or common use, not about the given sentence.
        actual: Words for real things, which suggest literal use.
        here: Words, in addition to `sentences`, that refer to the given sentence.
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
    """Casefold a text, split it at whitespace, and return the set of its words."""
    return frozenset(text.casefold().split())


def texts(text: str) -> frozenset[str]:
    """Casefold a text, split it at slashes, and return the set of its parts."""
    return frozenset(text.casefold().split("/"))


def parse_forms(text: str) -> dict[str, frozenset[str]]:
    """Map each inflected form to its base forms.

    Args:
        text: Entries that are separated by whitespace. Each entry is a base form and its inflected
            forms, separated by slashes: "break/broke/broken".
    """
    bases_by_form: dict[str, frozenset[str]] = {}
    for entry in text.casefold().split():
        base, *inflected_forms = entry.split("/")
        for form in inflected_forms:
            bases_by_form[form] = bases_by_form.get(form, frozenset()) | {base}
    return bases_by_form
