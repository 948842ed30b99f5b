"""Detect statements that no idiom is present, in every supported language."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
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
_QUOTED = re.compile(
    r"\"[^\"\n]+\"|“[^”\n]+”|„[^“”\n]+[“”]|«[^»\n]+»|`[^`\n]+`|(?<!\w)['‘][^\n]+?['’](?!\w)"
    r"|\*+[^*\n:]+\*+(?!:)"
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s|\n")
_HEADING = re.compile(r"#.*|[*_]+[^.!?]*[*_]+|.*:\W*")
_NAMED, _OTHER = "thenamedidiom", "anotherphrase"
"""Words that replace named idioms and other quoted phrases in an explanation."""
_LONGEST_ERROR = 6
"""Maximum number of words in a clause such as "my answer was wrong"."""
_BEFORE_MEANING = {":", "(", " - ", "–", "—"}
"""Punctuation before the meaning of an idiom."""


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
    for (clause, stop), (following, _) in pairwise([*clauses, ([""], "")]):
        affirmations = _affirmations(clause)
        tokens = set(clause)
        # In "literally, it would mean to hit a pail" and "the literal meaning is a pail, but here".
        is_compared = (tokens & _all("meanings") and following[0] in _all("contrast")) or (
            len(clause) == 1 and not _all("general").isdisjoint(following)
        )
        is_label = stop == ":" and (
            tokens & _all("meanings") or (before == "(" and len(clause) == 1)
        )
        before = stop
        # Skip "There are no other idioms", "die (literally: hit a pail)" and "literally, it would".
        if (tokens & _all("others") and not tokens & _all("literal")) or (
            (is_label or is_compared or tokens & _all("general"))
            and tokens & _all("literal")
            and not tokens & _all("figurative")
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
            # "It literally means to hit a pail, but figuratively to die" leaves nothing open.
            views = views - {"doubts"} | {"affirms"}
    return views


def has_denying_comment(name: str) -> bool:
    """Return whether a name has a comment that denies idiomatic use: "in hot water (literal)"."""
    is_statement = bool(re.search(r"[(\[:–—]| - |idiom|modism|redewendung", name, re.IGNORECASE))
    is_literal = not _all("literal").isdisjoint(normalize(name).split())
    return (is_statement or is_literal) and not find_views(name.replace(":", " ")) <= {"affirms"}


def is_retracted(after: str, named: Collection[str]) -> bool:
    """Return whether the text after an answer retracts it or names another answer.

    An explanation does not retract the answer, even if it calls other phrases literal or mentions
    that a phrase is an idiom in general. Only these statements do:

    - The answer was wrong ("Wait, that is wrong."), or another answer is correct.
    - There is no idiom ("My answer: none"), or a named idiom is literal.
    - The sentence does have an idiom, although the answer names none. This statement must be about
      the sentence ("is an idiom here") or begin with a word such as "wait", and nothing may suggest
      literal use.

    Args:
        after: Text after the answer.
        named: Idioms that the answer names; empty if it names none.
    """
    sentences = [
        sentence
        for sentence in _SENTENCE_END.split(_mark_phrases(after, named))
        if normalize(sentence)
    ]
    return (
        any(_calls_wrong(sentence) or _names_another(sentence, named) for sentence in sentences)
        or bool(named and _deny_named(sentences))
        or bool(not named and _affirm_any(sentences))
    )


def views_about(text: str, named: Collection[str]) -> set[View]:
    """Return the views that an explanation expresses about the named idioms (see `find_views`).

    Sentences that quote only other phrases are ignored.
    """
    sentences = _SENTENCE_END.split(_mark_phrases(text, named))
    return find_views("\n".join(one for one in sentences if not _is_of_others(one)))


def _mark_phrases(text: str, named: Collection[str]) -> str:
    """Replace named idioms by `_NAMED`, and other quoted or bold phrases by `_OTHER`.

    Parts of a named idiom and words such as "literal" are not replaced.
    """
    names = [f" {form} " for form in map(normalize, named) if form]

    def mark(quoted: re.Match[str]) -> str:
        form = f" {normalize(quoted[0])} "
        if any(name in form for name in names):
            return f" {_NAMED} "
        is_plain = any(form in name for name in names) or _everything().issuperset(form.split())
        return quoted[0] if is_plain else f" {_OTHER} "

    text = _QUOTED.sub(mark, text)
    for name in filter(normalize, named):
        if name.lower() in text.lower():
            phrase = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
            text = phrase.sub(f" {_NAMED} ", text)
    return text


def _is_of_others(sentence: str) -> bool:
    return _OTHER in sentence and _NAMED not in sentence


def _revises(sentence: str, *fields: str) -> bool:
    """Return whether a clause starts with a text in one of these fields of `AnswerWords`.

    The default fields are `revises` and `clarifies`.
    """
    starts = [f"{text} " for field in fields or ("revises", "clarifies") for text in _all(field)]
    return any(f"{' '.join(clause)} ".startswith(tuple(starts)) for clause, _ in _clauses(sentence))


def _calls_wrong(sentence: str) -> bool:
    """Return whether a sentence states that the answer is wrong: "I was wrong"."""
    stop_before = ""
    for clause, stop in _clauses(sentence):
        text = f" {' '.join(clause)} "
        if (
            any(f" {error} " in text for error in _all("errors"))
            and (_all("negations") | _all("literal") | {_NAMED, _OTHER}).isdisjoint(clause)
            and (3 if stop == ":" else 2) <= len(clause) <= _LONGEST_ERROR
            and stop_before not in _BEFORE_MEANING
        ):
            return True
        stop_before = stop
    return False


def _names_another(sentence: str, named: Collection[str]) -> bool:
    """Return whether a sentence states an answer other than the given one."""
    tokens = set(normalize(sentence).split())
    if _NAMED in tokens:
        return False
    nothing = _all("nothing") | _all("no")
    known = _everything() | _all("answers") | _all("corrects") | nothing | _all("yes")
    if tokens & _all("corrects") and (tokens & _all("answers") or tokens - {_OTHER} <= known):
        is_denied = tokens & (_all("negations") - _all("corrects"))
        contrary = nothing if named else _all("yes")
        if tokens & contrary or (_OTHER in tokens and not is_denied):
            return True
    (label, stop), *rest = _clauses(sentence)
    content = {word for clause, _ in rest for word in clause}
    return (
        stop == ":"
        and not _all("answers").isdisjoint(label)
        and known.issuperset(label)
        and not content <= known
        and not content & _all("negations")
        and not find_views(sentence)
    )


def _deny_named(sentences: Iterable[str]) -> bool:
    """Return whether an explanation of an answer that names idioms denies them."""
    literal = affirmed = is_asked = about_others = False
    for sentence in sentences:
        views, revises = find_views(sentence), _revises(sentence)
        if _is_of_others(sentence):
            if revises and "affirms" in views:
                return True
            about_others = True
            is_asked = sentence.rstrip().endswith("?")
            continue
        about_others = about_others and _NAMED not in sentence
        affirmed |= "affirms" in views
        is_revised = _revises(sentence, "revises") or (revises and views)
        if (is_revised and "affirms" not in views) or (not is_asked and _says_none(sentence)):
            return True
        if not _HEADING.fullmatch(sentence.strip()):
            literal |= _calls_literal(sentence, about_others=about_others)
        is_asked = sentence.rstrip().endswith("?")
    return literal and not affirmed


def _says_none(sentence: str) -> bool:
    """Return whether a clause of a sentence is an answer that there is no idiom."""
    before, stop_before = list[str](), ""
    for clause, stop in _clauses(sentence):
        is_of_answer = not before or (
            kind_of(" ".join(before)) in ("answer", "idioms")
            or not _all("answers").isdisjoint(before)
        )
        if (
            is_none_answer(" ".join(clause))
            and _all("others").isdisjoint(clause)
            and not clause[0].isdecimal()
            and stop != "?"
            and (is_of_answer if stop_before == ":" else _all("others").isdisjoint(before))
        ):
            return True
        before, stop_before = clause, stop
    return False


def _calls_literal(sentence: str, *, about_others: bool) -> bool:
    """Return whether a sentence states that the named idioms are literal.

    The statement must name an idiom, or begin the sentence ("It is used literally here.").
    """
    begins = not about_others
    clauses = list(_clauses(sentence))
    for clause, stop in clauses:
        body = [word for word in clause if word != _NAMED]
        if (
            (begins or _NAMED in clause)
            and len(clause) >= min(2, len(clauses))
            and body
            and stop not in (":", "?")
            # "The literal meaning (hitting a pail) does not fit."
            and not (stop in _BEFORE_MEANING and _all("meanings").intersection(body))
            and _affirmations(body) == {False}
            and _all("others").isdisjoint(body)
            and _all("general").isdisjoint(body)
            and _is_closed(body)
        ):
            return True
        begins = begins and (
            _all("contrast") | _all("fillers") | _all("revises") | _all("clarifies")
        ).difference(_all("others")).issuperset(clause)
    return False


def _affirm_any(sentences: Sequence[str]) -> bool:
    """Return whether an explanation of an answer that names no idiom affirms one."""
    clauses = [clause for sentence in sentences for clause, _ in _clauses(sentence)]
    # "However, it is an idiom."
    is_about_sentence = 0 < len(clauses) <= 2 and clauses[0][0] in _all("contrast")
    words = [word for clause in clauses for word in clause][is_about_sentence:]
    # "doch" is no contrast in "Moment, das ist doch eine Redewendung".
    is_revised = any(map(_revises, sentences))
    contrasts = {clause[0] for clause in clauses} if is_revised else set(words)
    if (
        contrasts & _all("contrast")
        or not (_all("general") | _all("actual")).isdisjoint(words)
        or find_views("\n".join(sentences)) != {"affirms"}
    ):
        return False
    if not is_revised and any(map(_ends_in_negation, clauses)):
        return False  # "the idiom is not used here", "although it is an idiom, it is not one here"
    for sentence in sentences:
        is_about_sentence |= _revises(sentence)
        is_here = False
        for clause, stop in _clauses(sentence):
            is_here |= not (_all("here") | _all("sentences")).isdisjoint(clause)
            if (is_here or is_about_sentence) and stop != "?" and _affirmations(clause) == {True}:
                return True
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


def is_count(key: str) -> bool:
    """Return whether a number under a key is a number of idioms ("idiom_count", "idioms_found")."""
    words = normalize(_split_words(key)).split()
    is_of_idioms = set(words) & (_all("idioms") | _all("expressions") | _all("figurative"))
    counts = any(f" {count} " in f" {' '.join(words)} " for count in _all("counts"))
    return kind_of(key) in ("idioms", "expressions") or bool(is_of_idioms and counts)


def views_of_value(key: str, item: object) -> set[View] | None:
    """Return the views that a value expresses under its key.

    A literal meaning ("has_literal_meaning") expresses no view; the absence of a figurative meaning
    is a denial. Returns None if the key does not determine how to interpret the value.
    """
    words = normalize(_split_words(key)).split()
    tokens, affirmations = set(words), _affirmations(words)
    text = normalize(f"{item:g}" if isinstance(item, float) else str(item))
    # "has_literal_meaning": true, "literal_candidates": []
    is_about_literal = affirmations == {False} and tokens & _all("literal")
    if is_about_literal and tokens & (_all("meanings") | _all("candidates")):
        return set()
    # "figurative_meaning": "none" denies; "is_idiom": "n/a" only doubts.
    is_nothing = text in _all("negations") or bool(text and is_none_answer(text))
    if is_nothing and affirmations == {True} and _is_closed(words) and parse_boolean(text) is None:
        return {"denies" if tokens & _all("figurative") else "doubts"}
    # "number_of_idioms": 0
    if text == "0" and any(f" {count} " in f" {' '.join(words)} " for count in _all("counts")):
        return {"doubts"}
    # "start": 0 is an offset.
    if text in ("0", "1") and not _is_closed(words):
        return set()
    # "usage": "compositional" denies; "status": "rejected" only doubts.
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


def may_list_idioms(key: str) -> bool:
    """Return whether a list under a key without a kind is a list of idioms ("figurative")."""
    form = set(normalize(_split_words(key)).split())
    related = _all("figurative") | _all("fillers")
    return bool(form & related) and form <= related | _all("uses")


def is_decision(key: str) -> bool:
    """Return whether a true value of a key can only mean that there is an idiom ("is_idiom")."""
    words = normalize(_split_words(key)).split()
    return kind_of(key) == "answer" or (_affirmations(words) == {True} and _is_closed(words))


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
    """Return whether prose denies in one language that there is an idiom, and names none.

    Quotes of the sentence are ignored. Another quote may name an idiom, so the prose denies none.
    """
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


def _ends_in_negation(clause: list[str]) -> bool:
    """Return whether no word about figurative or literal use follows a negation in a clause."""
    roles = [role for role in map(_roles().get, clause) if role]
    return len(clause) > 1 and bool(roles) and roles[-1] == "negation"


def _is_closed(clause: list[str]) -> bool:
    """Return whether all words of a clause can occur in one language's denials, or mean literal.

    Other characters than letters and digits, such as those of the key "_", are no clause.
    """
    if not clause:
        return False
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
def _everything() -> frozenset[str]:
    """Return all words that can occur in statements about figurative and literal use."""
    return frozenset().union(*(_known(words) | words.literal for words in answer_words()))


@cache
def _roles() -> dict[str, str]:
    """Map each word of any language to its role in a clause."""
    fields_of = {
        "contrast": ("contrast",), "literal": ("literal",), "figurative": ("idioms", "figurative"),
        "negation": ("negations", "concord"),
    }  # fmt: skip
    roles: dict[str, str] = {}
    for role, fields in fields_of.items():
        for field in fields:
            roles |= dict.fromkeys(_all(field), role)
    return roles


@cache
def _all(field: str) -> frozenset[str]:
    """Return the union, over all languages, of one field of `AnswerWords`."""
    return frozenset(chain.from_iterable(getattr(words, field) for words in answer_words()))
