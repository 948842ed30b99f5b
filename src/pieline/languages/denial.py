"""How a text says that something is no idiom, in whatever language it speaks."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Literal

from pieline.languages.language import AnswerWords
from pieline.languages.registry import answer_words
from pieline.languages.spelling import normalise

View = Literal["affirms", "denies", "doubts"]
"""What a text says of an expression: that it is used as an idiom; that it is not; or it speaks of
literal use in a way that only a reader of the whole text can weigh."""

Kind = Literal["candidates", "answer", "idioms", "expressions"]
"""What a key or label announces: what could be an idiom, the answer or choice, or idioms under that
name or a wider one."""

_BREAK = re.compile(r"([.!?;:,()\[\]\n…–—]| - )")
_QUOTE = re.compile(r"[\"“”„«»`]|(?<!\w)['‘’]|['’](?!\w)")


def names_nothing(text: str) -> bool:
    """Whether a text in the place of an idiom's name says that there is none.

    "None", "N/A", "-", "Keine Redewendung", "There are no idioms in this sentence.", and no text.
    """
    form = normalise(text)
    if not form or form in _all("nothing") | _all("no") or says_none(text):
        return True
    first, *rest = form.split()  # "nessuna espressione"
    return any(
        first in words.negations | words.concord
        and not words.expressions.isdisjoint(rest)
        and (_known(words) | words.candidates).issuperset(rest)
        for words in answer_words()
    )


def truth_of(text: str) -> bool | None:
    """Yes or no, where a text says no more than that; 1 or 0 are those too."""
    form = normalise(text)
    return True if form in _all("yes") | {"1"} else False if form in _all("no") | {"0"} else None


def says_none(prose: str) -> bool:
    """Whether prose says that there is no idiom, and nothing that takes it back.

    Some clause must deny it in words that the language's list has, all of them: "There are no
    idioms in this sentence", not "There are no idioms but one". No other clause may speak of
    expressions, unless it calls them literal. Quoted words are nothing that could be weighed, so
    they leave open what is meant, except the sentence itself ("the sentence '…' has no idioms").
    """
    own = set(normalise(prose).split())
    return any(
        own & (words.negations | words.concord)
        and own & (words.idioms | words.figurative)
        and _says_none(prose, words)
        for words in answer_words()
    )


def views(text: str) -> set[View]:
    """All that the clauses of a text say of the expression that it explains."""
    found: set[View] = set()
    clauses = list(_clauses(text))
    before = ""
    for clause, stop in clauses:
        said = _said(clause)
        own = set(clause)
        is_label = stop == ":" and (own & _all("meanings") or (before == "(" and len(clause) == 1))
        before = stop
        # "There are no other idioms", "die (literally: hit a pail)".
        if (own & _all("others") and not own & _all("literal")) or (
            is_label and own & _all("literal") and not own & _all("figurative")
        ):
            continue
        if said == {False} and (len(clause) > 1 or len(clauses) == 1) and _is_closed(clause):
            found.add("denies")
        elif False in said:
            found.add("doubts")
        if True in said:
            found.add("affirms")
    return found


def is_commented(name: str) -> bool:
    """Whether the name of an idiom has a comment that it is none: "in hot water (literal)"."""
    is_statement = bool(re.search(r"[(\[:–—]| - |idiom|modism|redewendung", name, re.IGNORECASE))
    is_literal = not _all("literal").isdisjoint(normalise(name).split())
    return (is_statement or is_literal) and not views(name.replace(":", " ")) <= {"affirms"}


def takes_back(after: str, *, named: bool) -> bool:
    """Whether the text after an answer, which `named` something or said no, takes it back.

    What was named is taken back by "None.", "My answer: none" and "Wait, ...", not by "Other
    idioms: none".
    """
    said = views(after)
    if not named:
        return said == {"affirms"}
    if said & {"denies", "doubts"}:
        return True
    before = ""
    for place, piece in enumerate(re.split(r"[\n.:,;!?]", after)):
        form = normalise(piece)
        own = set(form.split())
        if (place == 0 and own & _all("rejected")) or any(
            f"{form} ".startswith(f"{start} ") for start in _all("revises")
        ):
            return True
        is_of_others = announces_others(before) or _all("others") & set(before.split())
        if names_nothing(piece) and form and not (form.isdecimal() or is_of_others):
            return True
        before = form or before
    return False


def view_of(key: str, truth: bool) -> View | None:
    """What a key with yes or no says: `"is_idiom": false` denies, `"literal": false` affirms."""
    said = _said(normalise(_apart(key)).split())
    if len(said) == 1:
        return "affirms" if truth in said else "denies"
    # A no to something else ("valid", "used") may be one to the idiom.
    return None if truth else "doubts"


def view_behind(key: str, item: object) -> set[View] | None:
    """What a value says by its key; null if its own words decide.

    A literal meaning says nothing ("has_literal_meaning"), and no figurative one denies.
    """
    words = normalise(_apart(key)).split()
    own, said = set(words), _said(words)
    text = normalise(f"{item:g}" if isinstance(item, float) else str(item))
    is_nothing = text in _all("negations") or (text and names_nothing(text))
    if said == {False} and own & _all("literal") and own & (_all("meanings") | _all("candidates")):
        return set()
    if said == {True} and _is_closed(words) and is_nothing and truth_of(text) is None:
        return {"denies" if own & _all("figurative") else "doubts"}
    if text == "0" and any(f" {count} " in f" {' '.join(words)} " for count in _all("counts")):
        return {"doubts"}
    if text in ("0", "1") and not _is_closed(words):
        return set()  # a place: "start": 0
    if text in _all("rejected") and not own & _all("meanings"):
        return {"denies" if own & _all("uses") else "doubts"}
    return None


def kind_of(key: str) -> Kind | None:
    """What a key or a label announces, from its words: "Detected idioms", `idiom_2`, "Ausdrücke".

    Null if some of its words are others: `idiom_meaning`, "Sentence with an idiom".
    """
    form = {word for word in normalise(_apart(key)).split() if not word.isdigit()}
    for words in answer_words():
        named: tuple[tuple[Kind, frozenset[str]], ...] = (
            ("answer", words.answers),
            ("candidates", words.candidates),
            ("idioms", words.idioms),
            ("expressions", words.expressions),
        )
        about = words.figurative | words.sentences | words.besides
        if form <= about.union(*(own for _, own in named)):
            kind = next((kind for kind, own in named if form & own), None)
            return "idioms" if kind == "expressions" and form & words.figurative else kind
    return None


def joins(between: str) -> bool:
    """Whether no word stands between two answers, or only one like "or"."""
    return _all("besides").issuperset(normalise(between).split())


def announces_others(lead: str) -> bool:
    """Whether words before a list, or its key, say that it has candidates or what is no idiom."""
    words = normalise(_apart(lead)).split()
    is_of_others = False in _said(words) or not _all("rejected").isdisjoint(words)
    return is_of_others or announces_candidates(lead)


def announces_candidates(lead: str) -> bool:
    """Whether words before a list say that it has candidates."""
    return not _all("candidates").isdisjoint(normalise(_apart(lead)).split())


def is_sentence(key: str) -> bool:
    """Whether a key announces the text that was asked about."""
    form = set(normalise(_apart(key)).split())
    return bool(form & _all("sentences")) and form <= _all("sentences") | _all("besides")


def _apart(key: str) -> str:
    return re.sub(r"(?<=[a-zß-ÿ])(?=[A-Z])|_|(?<=\D)(?=\d)", " ", key)


def _says_none(prose: str, words: AnswerWords) -> bool:
    speaking = words.idioms | words.figurative
    about = speaking | words.expressions | words.candidates
    plain = _known(words)
    sentences = "|".join(map(re.escape, sorted(words.sentences)))
    prose = re.sub(
        rf"\b({sentences})\b[:,]?\s*(?:\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|'.*?'(?!\w))",
        r"\1",
        prose,
        flags=re.IGNORECASE,
    )
    # Words in bold are quoted, unless they are the statement's own.
    prose = re.sub(
        r"\*+([^*]+)\*+",
        lambda bold: bold[1] if plain.issuperset(normalise(bold[1]).split()) else '"',
        prose,
    )
    if _QUOTE.search(prose):
        return False
    denied, before = False, ""
    for clause, stop in _clauses(prose):
        own = set(clause)
        negations = sum(word in words.negations for word in clause) or bool(own & words.concord)
        is_literal = own & words.literal and own <= plain | words.literal and not negations
        # "no idioms, proverbs, or other figurative language"
        goes_on = before == "," and own <= plain and not negations and about & set(clause[:2])
        if own <= plain and own & speaking and stop != "?" and negations == 1:
            denied = True
        elif own & words.contrast or (own & about and not is_literal and not (denied and goes_on)):
            return False
        before = stop
    return denied


def _said(clause: list[str]) -> set[bool]:
    """Whether each word for figurative or literal use in a clause affirms the use as an idiom."""
    said: set[bool] = set()
    negated = False
    for word in clause:
        match _roles().get(word):
            case "negation":
                negated = True
            case "contrast":
                negated = False
            case "figurative":
                said.add(not negated)
            case "literal":
                said.add(negated)
    return said


def _is_closed(clause: list[str]) -> bool:
    """Whether a language's words for such statements are all that a clause is made of."""
    rest = clause[1:] if clause[0] in _all("contrast") else clause
    return any((_known(words) | words.literal).issuperset(rest) for words in answer_words())


def _clauses(text: str) -> Iterator[tuple[list[str], str]]:
    """The words of each clause, and the sign that ends it."""
    pieces = [*_BREAK.split(re.sub(r"(?i)\bnon-(?=\w)", "non", text)), ""]
    for piece, stop in zip(pieces[::2], pieces[1::2], strict=True):
        if words := normalise(piece).split():
            yield words, stop


@cache
def _known(words: AnswerWords) -> frozenset[str]:
    """The words of statements that there is no idiom."""
    return frozenset().union(
        words.idioms, words.expressions, words.figurative, words.uses, words.meanings,
        words.sentences, words.negations, words.concord, words.besides,
    )  # fmt: skip


@cache
def _roles() -> dict[str, str]:
    """What each word of any language does to what its clause says."""
    fields = {
        "contrast": ("contrast",), "literal": ("literal",), "figurative": ("idioms", "figurative"),
        "negation": ("negations", "concord"),
    }  # fmt: skip
    return {word: role for role, own in fields.items() for field in own for word in _all(field)}


@cache
def _all(field: str) -> frozenset[str]:
    """A list of words, of all languages together."""
    return frozenset(chain.from_iterable(getattr(words, field) for words in answer_words()))
