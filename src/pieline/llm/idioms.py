"""Parse the idioms that an answer names, in any format that models use when asked for JSON.

A phrase that the answer rejects never counts as an idiom, and an ambiguous answer is `unparseable`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from pieline.languages.denial import (
    Kind,
    View,
    announces_candidates,
    announces_others,
    denies_idioms,
    find_views,
    has_denying_comment,
    is_conjunction,
    is_count,
    is_none_answer,
    is_retracted,
    is_sentence_key,
    kind_of,
    may_list_idioms,
    parse_boolean,
    view_of_flag,
    views_about,
    views_of_value,
)
from pieline.languages.spelling import normalize
from pieline.llm.answers import Answer
from pieline.llm.parsing import (
    DUPLICATE,
    Json,
    Outcome,
    Parsed,
    answer_text,
    json_at,
    json_or_none,
    json_values,
)

_NAMES_OF_ITEMS = frozenset({"text", "name", "term", "value", "span", "surface", "form"})
"""Keys under which an object in a list of idioms may contain the idiom."""

_LISTS = frozenset(
    {"spans", "entities", "matches", "hits", "items", "mwes", "extracted", "identified"}
)
"""Keys of a list of idioms if it is all that an object has."""

_ENFORCED_FIELDS = {"sentence", "potential_idioms", "explanation", "idioms"}
"""Fields of the answer format that ID10M-JAM's authors enforce in few-shot settings."""

_BULLET = r"(?:[-*•>]|\d+[.)])[ \t]+"
_LABEL = re.compile(
    rf"(?:^[ \t]*(?:{_BULLET})?|(?<=[:.!?;] ))[*_`\"']*(?P<label>[^\W\d_][\w ()/-]{{0,40}}?)"
    r"[*_`\"']*[ \t]*[:=](?!//)[*_`]*(?:</\w+>)?[ \t]*",
    re.MULTILINE,
)
_SPACE = re.compile(r"\s*(?:```\w*\s*)?")
_BULLETS = re.compile(rf"[ \t]*\n\s*?((?:^[ \t]*{_BULLET}.*\n?)+)", re.MULTILINE)
_BARE_LIST = re.compile(r"\[([^\[\]]*)\]")
_TAGS = re.compile(r"\A(?:\s*<[a-zA-Z_]+>)+|(?:\s*</[a-zA-Z_]+>)+\s*\Z")
"""Tags around an answer, such as `<answer>`."""
_EXPLANATION = re.compile(r"[:.] | [-–—] |\s*\(")
"""Separator between an idiom and its explanation."""


_NO_NAME = re.compile(r"""\s*["']?\s*[\[{]|[^"]*[^"\s(]"\s*\S""")
"""JSON in place of a name, and two names whose quotes were not read: `a b" and "c d`."""

_RANKS: tuple[Kind | Literal["items"], ...] = ("answer", "idioms", "expressions", "items")
_NO_CANDIDATES = "no candidates"
_LABELED_TEXT = "labeled text"
_LONGEST_LABEL = 3
"""Maximum number of words in a label; a longer text before a colon is prose."""


class Reading(NamedTuple):
    """Idioms read from a text.

    Attributes:
        idioms: Idioms that the text names.
        rule: Description of the format of the text.
        outcome: `ok` or `repaired`.
        overrules: Whether the reading, if it has no idioms, may override an earlier answer.
    """

    idioms: list[str]
    rule: str
    outcome: Outcome = Outcome.OK
    overrules: bool = True


class AmbiguousError(Exception):
    """The text is ambiguous or has an unknown format."""


class CandidatesError(AmbiguousError):
    """The text names candidates or literal expressions without choosing one."""


Result = Reading | AmbiguousError


class Piece(NamedTuple):
    """A part of a text that may be the answer.

    Attributes:
        start, end: Position in the text.
        result: Reading of the part, or the error that explains why there is none.
    """

    start: int
    end: int
    result: Result


def parse_idioms(answer: Answer) -> Parsed[list[str]]:
    """Parse the idioms that an answer names: an empty list if it states that there are none.

    The parser reads the last JSON value of the answer or the last labeled list, such as `idioms:
    [piss off, lose face]` (the format of the examples in ID10M-JAM's Figure 4), whichever comes
    later. If there is neither, it accepts prose that denies idioms. Keys and words may be in any
    language that has `ANSWERS`.

    - A list contains strings or objects. An object has a key like `idiom`, `detected_idioms` or
      `Redewendungen`, whose value is a string, a list or null.
    - A choice ("answer", "selected idiom") takes precedence over "idiom", which takes precedence
      over "expression". Candidates do not count as idioms.
    - An object that denies that its phrase is an idiom (`"is_idiom": false`,
      `"usage": "literal"`) names none.
    - "None", "N/A", "-" or "" in place of an idiom names none.

    The outcome is `unparseable` if the text contains no answer, if two adjacent answers differ, if
    the last value is truncated, contradictory or in an unknown format, or if the text after the
    answer retracts it.
    """
    text, unreadable = answer_text(answer)
    if unreadable:
        return unreadable
    try:
        reading = _read(text)
    except AmbiguousError as problem:
        return Parsed(Outcome.UNPARSEABLE, reason=str(problem))
    return Parsed(reading.outcome, reading.idioms, rule=reading.rule)


def _read(text: str) -> Reading:
    """Read the text of an answer, without its reasoning.

    Raises:
        AmbiguousError: The text contains no clear answer.
    """
    text = _TAGS.sub("", text)
    whole = _read_whole(re.sub(r"```\w*", "", text).strip())
    if whole:
        return whole
    pieces = list(_pieces(text))
    if not pieces:
        raise AmbiguousError("no JSON, no list, and not the words that there is no idiom")
    answers = _without_candidates(pieces, text)
    _check_neighbors(answers, text)
    last = answers[-1]
    if isinstance(last.result, AmbiguousError):
        raise last.result
    names_others = any(_forms_of(piece.result) for piece in answers)
    if names_others and not (last.result.idioms or last.result.overrules):
        raise AmbiguousError("idioms, and then an empty list of something else")
    if is_retracted(_text_after(last, pieces, text), last.result.idioms):
        raise AmbiguousError("the text after the answer takes it back")
    return last.result


def _read_whole(plain: str) -> Reading | None:
    """Read a text that is only an answer; None if it is not."""
    is_text = not plain.startswith(("[", "{", '"'))
    if is_text and is_none_answer(plain) and (normalize(plain) or set(plain) <= set("-–—/")):
        return Reading([], "null" if plain == "null" else "says that there is none")
    value = json_or_none(plain)
    if isinstance(value, str):
        return Reading(_read_choice(value), "text")
    if isinstance(value, dict) and value.keys() == _ENFORCED_FIELDS:
        # Ignore the explanation, which discusses every candidate.
        return Reading(read_value(value["idioms"])[0], "enforced form")
    if (bare := _BARE_LIST.fullmatch(plain)) and re.match(r"\s*[^\W\d]", bare[1]):
        return Reading(_split_bare_list(bare[1]), "list without quotes", Outcome.REPAIRED)
    return None


def _without_candidates(pieces: Sequence[Piece], text: str) -> list[Piece]:
    """Return the pieces without candidates, or all if there is no choice anywhere in the text."""
    answers = []
    for place, piece in enumerate(pieces):
        if not (_is_of_candidates(piece.result) or _is_discussed(piece, pieces[:place], text)):
            answers.append(piece)
    return answers or list(pieces)


def _check_neighbors(answers: Sequence[Piece], text: str) -> None:
    """Check the answers that stand beside the last one, without a word between them.

    Without a word, the later one does not revise the earlier.

    Raises:
        AmbiguousError: They name other idioms than the last one.
    """
    expected = _forms_of(answers[-1].result)
    for later, earlier in pairwise(reversed(answers)):
        if not is_conjunction(re.sub(r"```\w*", "", text[earlier.end : later.start])):
            return
        if _forms_of(earlier.result) not in (None, expected):
            raise AmbiguousError("two answers side by side")


def _text_after(answer: Piece, pieces: Sequence[Piece], text: str) -> str:
    """Return the text after an answer, without later candidates and their announcements."""
    after, end = "", answer.end
    for later in pieces[pieces.index(answer) + 1 :]:
        after += text[end : max(end, text.rfind("\n", 0, later.start))]
        end = later.end
    return after + text[end:]


def _pieces(text: str) -> Iterator[Piece]:
    """Yield all JSON values and labeled values of a text, in order."""
    position = done = 0
    value = next(json_values(text), None)
    while True:
        if value and value.start < position:
            value = next(json_values(text, position), None)
        label = _LABEL.search(text, position)
        if label and (value is None or label.start() <= value.start):
            position, result = _read_label(text, label)
            if result is not None:
                done = position
                yield Piece(label.end(), done, result)
        elif value:
            yield Piece(value.start, value.end, _read_json(value, text[done : value.start]))
            position = done = value.end
        else:
            return


def _read_label(text: str, label: re.Match[str]) -> tuple[int, Result | None]:
    """Return the end of the value after a label, and its result, or None if it is not an answer."""
    kind, start = kind_of(label["label"]), label.end()
    if kind is None:
        return start, None
    place = _SPACE.match(text, start).end()  # type: ignore[union-attr]  # it matches nothing too
    if text[place : place + 1] not in ("{", "["):
        return _read_label_text(text, start, kind, label["label"])
    value = json_at(text, place)
    bare = _BARE_LIST.match(text, place)
    if bare and value.outcome is not Outcome.OK and "{" not in bare[0]:
        return bare.end(), _attempt(
            lambda: _list_reading(_split_bare_list(bare[1]), kind, Outcome.OK)
        )
    return value.end, _read_json(value, label["label"], kind)


def _read_label_text(text: str, start: int, kind: Kind, label: str) -> tuple[int, Result | None]:
    """Read an unbracketed value after a label: the rest of the line, or the bullets below it.

    Returns the same as `_read_label`.
    """
    is_name = kind == "idioms" and len(label.split()) <= _LONGEST_LABEL
    if bullets := _BULLETS.match(text, start):
        lines = [re.sub(_BULLET, "", line.strip(), count=1) for line in bullets[1].splitlines()]
        result = _attempt(lambda: _list_reading(_read_bullets(lines), kind))
        return bullets.end(), result if is_name else None
    line = text[start:].split("\n", 1)[0]
    named, end = line.strip(" \t`}*"), start + len(line)
    if named and is_none_answer(named):
        return end, _list_reading([], kind)
    if not is_name:
        return start, None
    return end, _attempt(lambda: _list_reading(_read_line(named), kind))


def _list_reading(idioms: list[str], kind: Kind, outcome: Outcome = Outcome.REPAIRED) -> Reading:
    if kind == "candidates":
        if idioms:
            raise CandidatesError("candidates and no choice")
        return Reading([], _NO_CANDIDATES, outcome)
    rule = "labeled list" if outcome is Outcome.OK else _LABELED_TEXT
    return Reading(idioms, rule, outcome, kind != "expressions")


def _read_json(value: Json, lead: str, kind: Kind | None = None) -> Result:
    """Read a JSON value; `lead` is the text before the value."""
    if value.outcome is Outcome.TRUNCATED:
        return AmbiguousError("the last value is truncated")
    if value.outcome is Outcome.UNPARSEABLE:
        return AmbiguousError("braces that hold no JSON")
    clause = re.split(r"[.!?]$|[.,;!?]\s|\n", re.sub(r"```\w*", "", lead).strip())[-1]

    def read() -> Reading:
        idioms, rule = read_value(value.value)
        is_list = isinstance(value.value, list) or not value.value
        is_empty = is_list and not idioms and kind != "candidates" and not denies_idioms(clause)
        if (idioms or is_empty) and announces_others(clause):
            if idioms or not announces_candidates(clause):
                raise CandidatesError("a list of candidates, or of what is literal")
            return Reading([], _NO_CANDIDATES, value.outcome)
        if kind:
            rule = _NO_CANDIDATES if kind == "candidates" else f"labeled {rule}"
        return Reading(idioms, rule, value.outcome, not is_list or kind in ("answer", "idioms"))

    return _attempt(read)


def _attempt(read: Callable[[], Reading]) -> Result:
    try:
        return read()
    except AmbiguousError as problem:
        return problem


def _is_of_candidates(result: Result) -> bool:
    return isinstance(result, CandidatesError) or (
        isinstance(result, Reading) and result.rule == _NO_CANDIDATES
    )


def _is_discussed(piece: Piece, earlier: Iterable[Piece], text: str) -> bool:
    """Return whether a labeled text after JSON names a phrase that is then called literal."""
    return (
        isinstance(piece.result, Reading)
        and piece.result.rule == _LABELED_TEXT
        and bool(piece.result.idioms)
        and any(isinstance(one.result, Reading) and text[one.end - 1] in "]}" for one in earlier)
        and "affirms" not in (views := find_views(text[piece.end :]))
        and bool(views)
    )


def _forms_of(result: Result) -> set[str] | None:
    return None if isinstance(result, AmbiguousError) else _forms(result.idioms)


def read_value(value: Any, *, is_item: bool = False) -> tuple[list[str], str]:
    """Return the idioms that a JSON value names, and the format of the value.

    Args:
        value: Any JSON value except a string.
        is_item: Whether the value is in a list of idioms or under a key for idioms.

    Raises:
        AmbiguousError: The format is unknown or ambiguous.
    """
    if value is None:
        return [], "null"
    if isinstance(value, dict):
        return _read_object(value, is_item=is_item)
    if not isinstance(value, list):
        raise AmbiguousError("neither a list nor an object")
    if all(item is None or isinstance(item, str) for item in value):
        return _names(value), "list of texts" if value else "empty list"
    if all(item is None or isinstance(item, dict) for item in value):
        items = [name for item in value for name in read_value(item, is_item=is_item)[0]]
        return items, "list of objects"
    raise AmbiguousError("a list of neither texts nor objects")


def _parts(
    value: dict[str, Any], *, is_item: bool
) -> tuple[dict[str, dict[str, Any]], set[View], bool, set[str]]:
    """Group the fields of an object by the kind of their keys.

    Returns:
        The fields by kind of key; the views that all other fields express; whether a key for
        content has a true value ("idiom": true); and the normalized strings under keys for
        candidates or literal expressions.

    Raises:
        AmbiguousError: A key occurs twice, with different values.
    """
    groups: dict[str, dict[str, Any]] = {}
    expressed: set[View] = set()
    affirmed = False
    rejected: set[str] = set()
    others: dict[str, Any] = {}
    for key, item in value.items():
        if item is DUPLICATE:
            raise AmbiguousError("a key twice, with different values")
        kind: str | None = kind_of(key)
        if kind is None and is_item and key.lower() in _NAMES_OF_ITEMS:
            kind = "items"
        elif (
            kind is None
            and isinstance(item, list)
            and (may_list_idioms(key) or (len(value) == 1 and key.lower() in _LISTS))
        ):
            kind = "expressions"
        truth = _truth(item)
        if type(item) in (int, float) and is_count(key):
            affirmed |= item > 0
            expressed |= {"affirms"} if item > 0 else {"denies", "doubts"}
        elif kind is None:
            others[key] = item
        elif truth is None or (not truth and kind in ("answer", "candidates", "items")):
            groups.setdefault(kind, {})[key] = item
        else:
            expressed.add("affirms" if truth else "denies")
            affirmed |= truth
    named = list(_texts_in([groups[kind] for kind in _RANKS if kind in groups]))
    for key, item in others.items():
        expressed |= _views_in(key, item, named)
        rejected |= _forms(_texts_in(item)) if announces_others(key) else set()
    return groups, expressed, affirmed, rejected


def _read_object(value: dict[str, Any], *, is_item: bool) -> tuple[list[str], str]:
    """Return the idioms that an object names, and the format of the object.

    Raises:
        AmbiguousError: The format is unknown, or the fields contradict each other.
    """
    if not value:
        return [], "empty object"
    if is_item and (items := _items_by_key(value)):
        return [name for item in items for name in read_value(item, is_item=True)[0]], "object"
    groups, expressed, affirmed, rejected = _parts(value, is_item=is_item)
    kind = next((kind for kind in _RANKS if kind in groups), None)
    if kind is None:
        return [], _rule_without_name(groups.get("candidates", {}), expressed)
    idioms = _agreed_idioms(groups[kind], kind)
    if kind == "answer" and (others := groups.keys() & {"idioms", "expressions"}):
        listed = [name for other in others for name in _agreed_idioms(groups[other], other)]
        if not _forms(idioms) <= _forms(listed):
            raise AmbiguousError("the choice is none of the idioms")
    if idioms and expressed == {"denies"} and len(idioms) == 1:
        idioms = []
    elif idioms and (expressed & {"denies", "doubts"} or _forms(idioms) & rejected):
        raise AmbiguousError("named, and called literal")
    elif affirmed and not idioms:
        raise AmbiguousError("says yes and names none")
    return idioms, f'object with "{next(iter(groups[kind]))}"'


def _items_by_key(value: dict[str, Any]) -> list[Any]:
    """Return the items of an object that stands for a list of idioms; empty if it does not.

    Its keys are numbers, or idioms of several words whose values are objects or true/false.
    """
    if all(key.isdigit() for key in value):
        return [{"idiom": item} if isinstance(item, str) else item for item in value.values()]
    if all(" " in key.strip() and kind_of(key) is None for key in value):
        kinds = {type(item) for item in value.values()}
        if kinds == {dict}:
            return [{**item, "idiom": key} for key, item in value.items()]
        if kinds == {bool}:
            return [{"idiom": key, "is_idiom": item} for key, item in value.items()]
    return []


def _rule_without_name(candidates: dict[str, Any], expressed: set[View]) -> str:
    """Return the rule for an object without a key for idioms that denies idioms or lists none.

    Raises:
        AmbiguousError: The object does neither.
    """
    if "denies" in expressed and "affirms" not in expressed:
        return "object that says no"
    if candidates and not expressed and not _forms(_texts_in(list(candidates.values()))):
        return _NO_CANDIDATES
    if candidates:
        raise CandidatesError("candidates and no choice")
    raise AmbiguousError("no key for idioms")


def _agreed_idioms(group: dict[str, Any], kind: str) -> list[str]:
    """Return the idioms under keys of one kind.

    Combines the values of keys that differ only in digits.

    Raises:
        AmbiguousError: The values of other keys differ.
    """
    read = [_read_field(item, kind) for item in group.values()]
    if len({re.sub(r"\d", "", key) for key in group}) == 1:
        return [name for names in read for name in names]
    if any(_forms(names) != _forms(read[0]) for names in read):
        raise AmbiguousError("keys that disagree")
    return read[0]


def _read_field(item: Any, kind: str) -> list[str]:
    if isinstance(item, str) and item.lstrip().startswith("["):
        item = json_at(item.strip(), 0).value
    if isinstance(item, str):
        return _read_choice(item) if kind == "answer" else _names([item])
    return read_value(item, is_item=True)[0]


def _views_in(key: str, item: Any, named: Collection[str]) -> set[View]:
    """Return the views that all strings and truth values under a key express about `named`."""
    if isinstance(item, dict):
        return set().union(*(_views_in(inner, value, named) for inner, value in item.items()))
    if isinstance(item, list):
        return set().union(*(_views_in(key, value, named) for value in item))
    if (expressed := views_of_value(key, item)) is not None:
        return expressed
    truth = _truth(item)
    if truth is not None:
        view = view_of_flag(key, truth)
        return {view} if view else set()
    return views_about(item, named) if isinstance(item, str) and not is_sentence_key(key) else set()


def _truth(item: Any) -> bool | None:
    """Convert a boolean, a number or a string to a boolean; return None for other values."""
    if isinstance(item, str):
        return parse_boolean(item)
    return bool(item) if isinstance(item, int | float) and item in (0, 1) else None


def _texts_in(item: Any) -> list[str]:
    if isinstance(item, dict):
        item = list(item.values())
    if isinstance(item, list):
        return [text for value in item for text in _texts_in(value)]
    return [item] if isinstance(item, str) and not is_none_answer(item) else []


def _names(texts: Iterable[str | None]) -> list[str]:
    """Return the strings that name an idiom, without null and blank values.

    Raises:
        AmbiguousError: Only some strings name an idiom, or a string affirms or denies one.
    """
    present = [text for text in texts if text and normalize(text)]
    named = [text for text in present if not is_none_answer(text)]
    if named and len(named) < len(present):
        raise AmbiguousError("a list with idioms and with none")
    for text in named:
        if parse_boolean(text) or has_denying_comment(text):
            raise AmbiguousError("a name that says yes, or what is literal")
        if _NO_NAME.match(text):
            raise AmbiguousError("a name that contains JSON, or two texts")
    return named


def _read_choice(text: str) -> list[str]:
    """Return the idiom in a string, as a list that is empty if the string names none.

    Raises:
        AmbiguousError: The string is ambiguous or is a sentence.
    """
    names = _names([text])
    if names and re.search(r"[.!?:][\"'”’]?$", text.strip()):
        raise AmbiguousError("a sentence")
    return names


def _split_bare_list(inside: str) -> list[str]:
    """Return the idioms in the content of a list, split at commas outside quotes."""
    pieces = re.findall(r"""\s*("[^"]*"|'(?:[^']|'(?!\s*(?:,|$)))*'|[^,]+)\s*(?:,|$)""", inside)
    return _names(_unquoted(piece) for piece in pieces)


def _read_bullets(lines: Iterable[str]) -> list[str]:
    """Return the idioms in lines, each of which may have an explanation after a separator."""
    items = []
    for line in lines:
        name, *explanation = _EXPLANATION.split(line, maxsplit=1)
        items.append({"idiom": _unquoted(name), "explanation": "".join(explanation)})
    return read_value(items, is_item=True)[0]


def _read_line(text: str) -> list[str]:
    """Return the idioms in a line of text after a label.

    Raises:
        AmbiguousError: The line names no idiom or is ambiguous.
    """
    name, *explanation = _EXPLANATION.split(text, maxsplit=1)
    if is_none_answer(name) and name and "affirms" not in find_views("".join(explanation)):
        return []
    names = _split_bare_list(name.rstrip(" .,"))
    if find_views(text) & {"denies", "doubts"}:
        raise CandidatesError("a label, and no idiom after it")
    if not names or re.search(r"\?\s*\w", text):
        raise AmbiguousError("a label, and no idiom after it")
    return names


def _unquoted(text: str) -> str:
    text = text.strip().strip('"“”*').strip()
    return re.sub(r"^'(.*)'$", r"\1", text).strip()


def _forms(names: Iterable[str]) -> set[str]:
    return {normalize(name) for name in names}
