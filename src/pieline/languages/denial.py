"""Detect statements that no idiom is present, in every supported language."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Literal

from pieline.languages.language import AnswerWords
from pieline.languages.registry import answer_words
from pieline.languages.spelling import normalize

View = Literal["affirms", "denies", "doubts"]
"""View that a text expresses about an expression: it is idiomatic, it is not, or its literal use is
mentioned in a way that leaves this open."""

Kind = Literal["candidates", "answer", "idioms", "expressions"]
"""Kind of content that a key or label announces: candidates, the answer or choice, idioms, or
idioms under a broader term such as "expression"."""

_BREAK = re.compile(r"([.!?;:,()\[\]\n…–—]| - )")
_QUOTE = re.compile(r"[\"“”„«»`]|(?<!\w)['‘’]|['’](?!\w)")


def is_none_answer(text: str) -> bool:
    """Return whether a text in place of an idiom states that there is none.

    True for "None", "N/A", "-", "Keine Redewendung", "There are no idioms in this sentence." and
    empty texts.
    """
    form = normalize(text)
    if not form or form in _all("nothing") | _all("no") or denies_idioms(text):
        return True
    first, *rest = form.split()  # "nessuna espressione"
    return any(
        first in words.negations | words.concord
        and not words.expressions.isdisjoint(rest)
        and (_known(words) | words.candidates).issuperset(rest)
        for words in answer_words()
    )


def parse_boolean(text: str) -> bool | None:
    """Parse a text that is only "yes", "no" (in any language), 1 or 0; return None otherwise."""
    form = normalize(text)
    return True if form in _all("yes") | {"1"} else False if form in _all("no") | {"0"} else None


def denies_idioms(prose: str) -> bool:
    """Return whether prose states, without contradicting itself, that there is no idiom.

    At least one clause must consist entirely of one language's known words for denials: "There are
    no idioms in this sentence", but not "There are no idioms but one". No other clause may mention
    expressions, unless it calls them literal or continues the denial. Prose with quoted words
    counts as undecided (False), unless they are the sentence ("the sentence '…' has no idioms").
    """
    tokens = set(normalize(prose).split())
    return any(
        tokens & (words.negations | words.concord)
        and tokens & (words.idioms | words.figurative)
        and _denies_idioms(prose, words)
        for words in answer_words()
    )


def find_views(text: str) -> set[View]:
    """Return the views that the clauses of an explanation express about the explained text."""
    views: set[View] = set()
    clauses = list(_clauses(text))
    before = ""
    for clause, stop in clauses:
        affirmations = _affirmations(clause)
        tokens = set(clause)
        is_label = stop == ":" and (
            tokens & _all("meanings") or (before == "(" and len(clause) == 1)
        )
        before = stop
        # Skip "There are no other idioms" and "die (literally: hit a pail)".
        if (tokens & _all("others") and not tokens & _all("literal")) or (
            is_label and tokens & _all("literal") and not tokens & _all("figurative")
        ):
            continue
        if (
            affirmations == {False}
            and (len(clause) > 1 or len(clauses) == 1)
            and _is_closed(clause)
        ):
            views.add("denies")
        elif False in affirmations:
            views.add("doubts")
        if True in affirmations:
            views.add("affirms")
    return views


def has_denying_comment(name: str) -> bool:
    """Return whether a name has a comment that denies idiomatic use: "in hot water (literal)"."""
    is_statement = bool(re.search(r"[(\[:–—]| - |idiom|modism|redewendung", name, re.IGNORECASE))
    is_literal = not _all("literal").isdisjoint(normalize(name).split())
    return (is_statement or is_literal) and not find_views(name.replace(":", " ")) <= {"affirms"}


def is_retracted(after: str, *, has_idiom: bool) -> bool:
    """Return whether the text after an answer retracts the answer.

    An answer that names an idiom (`has_idiom`) is retracted by texts such as "None.", "My answer:
    none" and "Wait, ...", but not by "Other idioms: none". An answer without an idiom is retracted
    only by an affirmation.
    """
    views = find_views(after)
    if not has_idiom:
        return views == {"affirms"}
    if views & {"denies", "doubts"}:
        return True
    before = ""
    for place, piece in enumerate(re.split(r"[\n.:,;!?]", after)):
        form = normalize(piece)
        tokens = set(form.split())
        if (place == 0 and tokens & _all("rejected")) or any(
            f"{form} ".startswith(f"{start} ") for start in _all("revises")
        ):
            return True
        is_of_others = announces_others(before) or _all("others") & set(before.split())
        if is_none_answer(piece) and form and not (form.isdecimal() or is_of_others):
            return True
        before = form or before
    return False


def view_of_flag(key: str, truth: bool) -> View | None:
    """Return the view that a boolean value expresses under its key, or None if it expresses none.

    `"is_idiom": false` denies; `"literal": false` affirms.
    """
    affirmations = _affirmations(normalize(_split_words(key)).split())
    if len(affirmations) == 1:
        return "affirms" if truth in affirmations else "denies"
    # A false value of another key ("valid", "used") may still refer to the idiom.
    return None if truth else "doubts"


def views_of_value(key: str, item: object) -> set[View] | None:
    """Return the views that a value expresses under its key.

    A literal meaning ("has_literal_meaning") expresses no view; the absence of a figurative meaning
    is a denial. Returns None if the key does not determine how to interpret the value.
    """
    words = normalize(_split_words(key)).split()
    tokens, affirmations = set(words), _affirmations(words)
    text = normalize(f"{item:g}" if isinstance(item, float) else str(item))
    is_nothing = text in _all("negations") or (text and is_none_answer(text))
    if (
        affirmations == {False}
        and tokens & _all("literal")
        and tokens & (_all("meanings") | _all("candidates"))
    ):
        return set()
    if affirmations == {True} and _is_closed(words) and is_nothing and parse_boolean(text) is None:
        return {"denies" if tokens & _all("figurative") else "doubts"}
    if text == "0" and any(f" {count} " in f" {' '.join(words)} " for count in _all("counts")):
        return {"doubts"}
    if text in ("0", "1") and not _is_closed(words):
        return set()  # an offset, as in "start": 0
    if text in _all("rejected") and not tokens & _all("meanings"):
        return {"denies" if tokens & _all("uses") else "doubts"}
    return None


def kind_of(key: str) -> Kind | None:
    """Return the kind of a key or label: "idioms" for "Detected idioms" or `idiom_2`.

    Returns None if the key names no kind of content or has unrelated words (`idiom_meaning`).
    """
    form = {word for word in normalize(_split_words(key)).split() if not word.isdigit()}
    for words in answer_words():
        vocabularies: tuple[tuple[Kind, frozenset[str]], ...] = (
            ("answer", words.answers),
            ("candidates", words.candidates),
            ("idioms", words.idioms),
            ("expressions", words.expressions),
        )
        related = words.figurative | words.sentences | words.fillers
        if form <= related.union(*(vocabulary for _, vocabulary in vocabularies)):
            kind = next((kind for kind, vocabulary in vocabularies if form & vocabulary), None)
            return "idioms" if kind == "expressions" and form & words.figurative else kind
    return None


def is_conjunction(between: str) -> bool:
    """Return whether the text between two answers contains only fillers ("or") or no words."""
    return _all("fillers").issuperset(normalize(between).split())


def announces_others(lead: str) -> bool:
    """Return whether a lead-in or key announces candidates or expressions that are not idioms."""
    words = normalize(_split_words(lead)).split()
    is_of_others = False in _affirmations(words) or not _all("rejected").isdisjoint(words)
    return is_of_others or announces_candidates(lead)


def announces_candidates(lead: str) -> bool:
    """Return whether a lead-in or key announces candidates."""
    return not _all("candidates").isdisjoint(normalize(_split_words(lead)).split())


def is_sentence_key(key: str) -> bool:
    """Return whether a key refers to the input sentence."""
    form = set(normalize(_split_words(key)).split())
    return bool(form & _all("sentences")) and form <= _all("sentences") | _all("fillers")


def _split_words(key: str) -> str:
    return re.sub(r"(?<=[a-zß-ÿ])(?=[A-Z])|_|(?<=\D)(?=\d)", " ", key)


def _denies_idioms(prose: str, words: AnswerWords) -> bool:
    idiom_words = words.idioms | words.figurative
    related = idiom_words | words.expressions | words.candidates
    known_words = _known(words)
    sentences = "|".join(map(re.escape, sorted(words.sentences)))
    prose = re.sub(
        rf"\b({sentences})\b[:,]?\s*(?:\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|'.*?'(?!\w))",
        r"\1",
        prose,
        flags=re.IGNORECASE,
    )
    # Treat bold text as quoted unless it consists only of denial words.
    prose = re.sub(
        r"\*+([^*]+)\*+",
        lambda bold: bold[1] if known_words.issuperset(normalize(bold[1]).split()) else '"',
        prose,
    )
    if _QUOTE.search(prose):
        return False
    denied, before = False, ""
    for clause, stop in _clauses(prose):
        tokens = set(clause)
        negations = sum(word in words.negations for word in clause) or bool(tokens & words.concord)
        is_literal = (
            tokens & words.literal and tokens <= known_words | words.literal and not negations
        )
        # Accept continuations such as "no idioms, proverbs, or other figurative language".
        continues = (
            before == "," and tokens <= known_words and not negations and related & set(clause[:2])
        )
        if tokens <= known_words and tokens & idiom_words and stop != "?" and negations == 1:
            denied = True
        elif tokens & words.contrast or (
            tokens & related and not is_literal and not (denied and continues)
        ):
            return False
        before = stop
    return denied


def _affirmations(clause: list[str]) -> set[bool]:
    """Return a set with True if a word affirms idiomatic use, and False if a word denies it."""
    affirmations: set[bool] = set()
    negated = False
    for word in clause:
        match _roles().get(word):
            case "negation":
                negated = True
            case "contrast":
                negated = False
            case "figurative":
                affirmations.add(not negated)
            case "literal":
                affirmations.add(negated)
    return affirmations


def _is_closed(clause: list[str]) -> bool:
    """Return whether all words of a clause can occur in one language's denials, or mean literal."""
    rest = clause[1:] if clause[0] in _all("contrast") else clause
    return any((_known(words) | words.literal).issuperset(rest) for words in answer_words())


def _clauses(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the words of each clause and the punctuation that closes it."""
    pieces = [*_BREAK.split(re.sub(r"(?i)\bnon-(?=\w)", "non", text)), ""]
    for piece, stop in zip(pieces[::2], pieces[1::2], strict=True):
        if words := normalize(piece).split():
            yield words, stop


@cache
def _known(words: AnswerWords) -> frozenset[str]:
    """Return all words that can occur in a denial in one language."""
    return frozenset().union(
        words.idioms, words.expressions, words.figurative, words.uses, words.meanings,
        words.sentences, words.negations, words.concord, words.fillers,
    )  # fmt: skip


@cache
def _roles() -> dict[str, str]:
    """Map each word of any language to its role in a clause."""
    fields = {
        "contrast": ("contrast",), "literal": ("literal",), "figurative": ("idioms", "figurative"),
        "negation": ("negations", "concord"),
    }  # fmt: skip
    return {word: role for role, names in fields.items() for field in names for word in _all(field)}


@cache
def _all(field: str) -> frozenset[str]:
    """Return the union, over all languages, of one field of `AnswerWords`."""
    return frozenset(chain.from_iterable(getattr(words, field) for words in answer_words()))
