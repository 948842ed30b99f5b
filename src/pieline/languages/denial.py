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
"""View of an expression in a text: idiomatic use, no idiomatic use, or a mention of literal use
that can only be judged in the context of the full text."""

Kind = Literal["candidates", "answer", "idioms", "expressions"]
"""Kind of content that a key or label announces: candidate idioms, the answer or choice, idioms
named as such, or idioms under a broader name such as "expression"."""

_BREAK = re.compile(r"([.!?;:,()\[\]\n…–—]| - )")
_QUOTE = re.compile(r"[\"“”„«»`]|(?<!\w)['‘’]|['’](?!\w)")


def is_none_answer(text: str) -> bool:
    """Return whether a text in the place of an idiom states that there is none.

    True for "None", "N/A", "-", "Keine Redewendung", "There are no idioms in this sentence." and
    empty text.
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
    """Parse a text that consists only of yes or no (or 1 or 0); return None for other texts."""
    form = normalize(text)
    return True if form in _all("yes") | {"1"} else False if form in _all("no") | {"0"} else None


def denies_idioms(prose: str) -> bool:
    """Return whether prose states that there is no idiom and does not contradict it.

    At least one clause must consist entirely of the language's known words for such a denial:
    "There are no idioms in this sentence", but not "There are no idioms but one". No other clause
    may mention expressions unless it calls them literal. Text with quoted words is undecided and
    returns False, unless the quotation is the sentence itself ("the sentence '…' has no idioms").
    """
    tokens = set(normalize(prose).split())
    return any(
        tokens & (words.negations | words.concord)
        and tokens & (words.idioms | words.figurative)
        and _denies_idioms(prose, words)
        for words in answer_words()
    )


def find_views(text: str) -> set[View]:
    """Return every view that the clauses of an explanation express about its expression."""
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
    """Return whether a comment after an idiom denies that it is one: "in hot water (literal)"."""
    is_statement = bool(re.search(r"[(\[:–—]| - |idiom|modism|redewendung", name, re.IGNORECASE))
    is_literal = not _all("literal").isdisjoint(normalize(name).split())
    return (is_statement or is_literal) and not find_views(name.replace(":", " ")) <= {"affirms"}


def is_retracted(after: str, *, has_idiom: bool) -> bool:
    """Return whether the text after an answer retracts it.

    If the answer names an idiom (`has_idiom`), "None.", "My answer: none" and "Wait, ..." retract
    it, but "Other idioms: none" does not. If the answer was no, only an affirmation retracts it.
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
    """Interpret a boolean value by its key.

    `"is_idiom": false` denies, `"literal": false` affirms.
    """
    affirmations = _affirmations(normalize(_split_words(key)).split())
    if len(affirmations) == 1:
        return "affirms" if truth in affirmations else "denies"
    # A false value of another key ("valid", "used") may still refer to the idiom.
    return None if truth else "doubts"


def views_of_value(key: str, item: object) -> set[View] | None:
    """Interpret a value by its key; return None if only the words of the value decide.

    A literal meaning is neutral ("has_literal_meaning"); the absence of a figurative meaning is a
    denial.
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
    """Classify a key or label by its words: "Detected idioms", `idiom_2`, "Ausdrücke".

    Returns None if it contains unrelated words: `idiom_meaning`, "Sentence with an idiom".
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
    """Return whether only filler words such as "or", if any, separate two answers."""
    return _all("fillers").issuperset(normalize(between).split())


def announces_others(lead: str) -> bool:
    """Return whether a lead-in or key announces candidates or rejected expressions."""
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
    """Return, for each figurative or literal word, whether it affirms idiomatic use."""
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
    """Return whether all words of a clause are one language's words for denying an idiom."""
    rest = clause[1:] if clause[0] in _all("contrast") else clause
    return any((_known(words) | words.literal).issuperset(rest) for words in answer_words())


def _clauses(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the words of each clause and its closing punctuation."""
    pieces = [*_BREAK.split(re.sub(r"(?i)\bnon-(?=\w)", "non", text)), ""]
    for piece, stop in zip(pieces[::2], pieces[1::2], strict=True):
        if words := normalize(piece).split():
            yield words, stop


@cache
def _known(words: AnswerWords) -> frozenset[str]:
    """Return all words that can occur in a denial."""
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
    """Return the union of one word list over all languages."""
    return frozenset(chain.from_iterable(getattr(words, field) for words in answer_words()))
