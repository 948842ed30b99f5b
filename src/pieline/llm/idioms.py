"""Parse the idioms that an answer names, in any format that models use when asked for JSON.

A phrase never counts as an idiom if the answer rejects the phrase. The outcome for an ambiguous
answer is `unparseable`.
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

_KEYS_IN_ITEMS = frozenset({"text", "name", "term", "value", "span", "surface", "form"})
"""Keys under which an object in a list of idioms may contain the idiom."""

_KEYS_OF_ONLY_LISTS = frozenset(
    {"spans", "entities", "matches", "hits", "items", "mwes", "extracted", "identified"}
)
"""Keys of a list of idioms, if the list is the only field of an object."""

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


_NO_IDIOM = re.compile(r"""\s*["']?\s*[\[{]|[^"]*[^"\s(]"\s*\S""")
"""JSON in place of an idiom, or two idioms in one string, with the quotes between them: `a b" and
"c d`."""

_RANKS: tuple[Kind | Literal["items"], ...] = ("answer", "idioms", "expressions", "items")
"""Kinds of keys whose values name idioms; an earlier kind takes precedence."""
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
        overrules: Whether a reading without idioms may override an earlier answer with idioms.
    """

    idioms: list[str]
    rule: str
    outcome: Outcome = Outcome.OK
    overrules: bool = True


class AmbiguousError(Exception):
    """Error raised for a text that is ambiguous or has an unknown format."""


class CandidatesError(AmbiguousError):
    """Error raised for a text that names candidates or literal expressions, and chooses none."""


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
    """Parse the idioms that an answer names; the list is empty if the answer denies idioms.

    The parser reads the last JSON value of the answer or the last labeled list, such as `idioms:
    [piss off, lose face]` (the format of the examples in ID10M-JAM's Figure 4), whichever comes
    later. Without a JSON value or a labeled list, the answer must be prose that denies idioms. Keys
    and words may be in any language that has `ANSWERS`.

    - A list contains strings or objects. An object has a key like `idiom`, `detected_idioms` or
      `Redewendungen`, whose value is a string, a list or null.
    - Keys for a choice ("answer", "selected idiom") take precedence over keys like "idiom", and
      keys like "idiom" take precedence over keys like "expression". Candidates are not idioms.
    - An object that denies that its phrase is an idiom (`"is_idiom": false`,
      `"usage": "literal"`) names no idiom.
    - "None", "N/A", "-" or "" in place of an idiom names no idiom.

    The outcome is `unparseable` if the text contains no answer, if two adjacent answers differ, if
    the last value is truncated, contradictory or in an unknown format, or if the text after the
    answer retracts the answer.
    """
    text, unreadable = answer_text(answer)
    if unreadable:
        return unreadable
    try:
        reading = _read_text(text)
    except AmbiguousError as problem:
        return Parsed(Outcome.UNPARSEABLE, reason=str(problem))
    return Parsed(reading.outcome, reading.idioms, rule=reading.rule)


def _read_text(text: str) -> Reading:
    """Read the text of an answer, without its reasoning.

    Raises:
        AmbiguousError: The text contains no clear answer.
    """
    text = _TAGS.sub("", text)
    reading_of_all = _read_bare_answer(re.sub(r"```\w*", "", text).strip())
    if reading_of_all:
        return reading_of_all
    pieces = list(_find_pieces(text))
    if not pieces:
        raise AmbiguousError("no JSON, no list, and not the words that there is no idiom")
    answers = _without_candidates(pieces, text)
    _check_adjacent_answers(answers, text)
    last = answers[-1]
    if isinstance(last.result, AmbiguousError):
        raise last.result
    any_names_idioms = any(_idiom_forms(piece.result) for piece in answers)
    if any_names_idioms and not last.result.idioms and not last.result.overrules:
        raise AmbiguousError("idioms, and then an empty list of something else")
    if is_retracted(_text_after(last, pieces, text), last.result.idioms):
        raise AmbiguousError("the text after the answer takes it back")
    return last.result


def _read_bare_answer(plain: str) -> Reading | None:
    """Read a text that contains an answer and nothing else; return None for any other text.

    Args:
        plain: Text without the marks of code blocks.
    """
    looks_like_json = plain.startswith(("[", "{", '"'))
    # `is_none_answer` is also true for texts without words, of which only dashes state "none".
    has_words = bool(normalize(plain))
    is_dashes = plain != "" and set(plain) <= set("-–—/")
    states_none = is_none_answer(plain) and (has_words or is_dashes)
    if states_none and not looks_like_json:
        return Reading([], "null" if plain == "null" else "says that there is none")
    value = json_or_none(plain)
    if isinstance(value, str):
        return Reading(_read_choice(value), "text")
    if isinstance(value, dict) and value.keys() == _ENFORCED_FIELDS:
        # Ignore the explanation, which discusses every candidate.
        idioms, _ = read_value(value["idioms"])
        return Reading(idioms, "enforced form")
    bare_list = _BARE_LIST.fullmatch(plain)
    if bare_list and re.match(r"\s*[^\W\d]", bare_list[1]):  # the list starts with a letter
        return Reading(_split_bare_list(bare_list[1]), "list without quotes", Outcome.REPAIRED)
    return None


def _without_candidates(pieces: Sequence[Piece], text: str) -> list[Piece]:
    """Return the pieces with neither candidates nor literal phrases; all pieces if none remain."""
    answers = []
    for index, piece in enumerate(pieces):
        if _has_candidates(piece.result) or _is_called_literal(piece, pieces[:index], text):
            continue
        answers.append(piece)
    return answers or list(pieces)


def _check_adjacent_answers(answers: Sequence[Piece], text: str) -> None:
    """Check that answers next to the last answer name the same idioms as the last answer.

    Answers are next to each other if there are no words between them, except conjunctions. Without
    words, a later answer does not revise an earlier answer.

    Raises:
        AmbiguousError: The answers name different idioms.
    """
    last_forms = _idiom_forms(answers[-1].result)
    for later, earlier in pairwise(reversed(answers)):
        between = re.sub(r"```\w*", "", text[earlier.end : later.start])
        if not is_conjunction(between):
            return
        earlier_forms = _idiom_forms(earlier.result)
        if earlier_forms is not None and earlier_forms != last_forms:
            raise AmbiguousError("two answers side by side")


def _text_after(answer: Piece, pieces: Sequence[Piece], text: str) -> str:
    """Return the text after an answer, without later pieces and the lines that announce them."""
    after, position = "", answer.end
    later_pieces = pieces[pieces.index(answer) + 1 :]
    for later in later_pieces:
        start_of_line = text.rfind("\n", 0, later.start)
        if start_of_line > position:
            after += text[position:start_of_line]
        position = later.end
    return after + text[position:]


def _find_pieces(text: str) -> Iterator[Piece]:
    """Yield all JSON values and labeled values of a text, in order."""
    position = end_of_last_piece = 0
    value = next(json_values(text), None)
    while True:
        # The value of a label may have reached beyond the start of the next JSON value.
        if value and value.start < position:
            value = next(json_values(text, position), None)
        label = _LABEL.search(text, position)
        if label and (value is None or label.start() <= value.start):
            position, result = _read_label(text, label)
            if result is not None:
                end_of_last_piece = position
                yield Piece(label.end(), position, result)
        elif value:
            lead = text[end_of_last_piece : value.start]
            yield Piece(value.start, value.end, _read_json(value, lead))
            position = end_of_last_piece = value.end
        else:
            return


def _read_label(text: str, label: re.Match[str]) -> tuple[int, Result | None]:
    """Read the value after a label.

    Returns:
        The end of the value in the text, and the result. The result is None if the value is not an
        answer, for example because the label is not a label for idioms.
    """
    kind, start = kind_of(label["label"]), label.end()
    if kind is None:
        return start, None
    space = _SPACE.match(text, start)
    assert space  # the pattern also matches an empty text
    value_start = space.end()
    if not text.startswith(("{", "["), value_start):
        return _read_label_text(text, start, kind, label["label"])
    value = json_at(text, value_start)
    bare_list = _BARE_LIST.match(text, value_start)
    if bare_list and value.outcome is not Outcome.OK and "{" not in bare_list[0]:
        result = _result_of(lambda: _list_reading(_split_bare_list(bare_list[1]), kind, Outcome.OK))
        return bare_list.end(), result
    return value.end, _read_json(value, label["label"], kind)


def _read_label_text(text: str, start: int, kind: Kind, label: str) -> tuple[int, Result | None]:
    """Read an unbracketed value after a label: the rest of the line, or bullets below the label.

    Returns the same as `_read_label`.
    """
    announces_idioms = kind == "idioms" and len(label.split()) <= _LONGEST_LABEL
    bullets = _BULLETS.match(text, start)
    if bullets:
        lines = [re.sub(_BULLET, "", line.strip(), count=1) for line in bullets[1].splitlines()]
        result = _result_of(lambda: _list_reading(_read_bullets(lines), kind))
        return bullets.end(), result if announces_idioms else None
    line = text[start:].split("\n", 1)[0]
    line_end = start + len(line)
    value = line.strip(" \t`}*")
    if value and is_none_answer(value):
        return line_end, _list_reading([], kind)
    if not announces_idioms:
        return start, None
    return line_end, _result_of(lambda: _list_reading(_read_line(value), kind))


def _list_reading(idioms: list[str], kind: Kind, outcome: Outcome = Outcome.REPAIRED) -> Reading:
    """Return the reading of a labeled list; `kind` is the kind of the label.

    Raises:
        CandidatesError: The list names candidates.
    """
    if kind == "candidates":
        if idioms:
            raise CandidatesError("candidates and no choice")
        return Reading([], _NO_CANDIDATES, outcome)
    rule = "labeled list" if outcome is Outcome.OK else _LABELED_TEXT
    return Reading(idioms, rule, outcome, overrules=kind != "expressions")


def _read_json(value: Json, lead: str, kind: Kind | None = None) -> Result:
    """Read the idioms that a JSON value in the text names.

    Args:
        value: JSON value.
        lead: Text before the value, or its label.
        kind: Kind of the label; None if the value has no label.
    """
    if value.outcome is Outcome.TRUNCATED:
        return AmbiguousError("the last value is truncated")
    if value.outcome is Outcome.UNPARSEABLE:
        return AmbiguousError("braces that hold no JSON")
    # After a complete sentence, the last clause is empty.
    clauses = re.split(r"[.!?]$|[.,;!?]\s|\n", re.sub(r"```\w*", "", lead).strip())
    last_clause = clauses[-1]
    return _result_of(lambda: _read_announced_json(value, last_clause, kind))


def _read_announced_json(value: Json, clause: str, kind: Kind | None) -> Reading:
    """Read a JSON value after a clause that may announce idioms or candidates.

    If the value has a label, the clause is the end of the label, and `kind` is the label's kind.

    Raises:
        AmbiguousError: The value is ambiguous or has an unknown format.
        CandidatesError: The clause announces candidates or literal expressions.
    """
    idioms, rule = read_value(value.value)
    is_list_or_empty = isinstance(value.value, list) or not value.value
    is_empty_list = is_list_or_empty and not idioms
    may_list_none = is_empty_list and kind != "candidates" and not denies_idioms(clause)
    if (idioms or may_list_none) and announces_others(clause):
        if idioms or not announces_candidates(clause):
            raise CandidatesError("a list of candidates, or of what is literal")
        # Without candidates, there is no idiom.
        return Reading([], _NO_CANDIDATES, value.outcome)
    if kind == "candidates":
        rule = _NO_CANDIDATES
    elif kind:
        rule = f"labeled {rule}"
    # An empty list without a label for idioms may list something else.
    overrules = not is_list_or_empty or kind in ("answer", "idioms")
    return Reading(idioms, rule, value.outcome, overrules)


def _result_of(read: Callable[[], Reading]) -> Result:
    """Return the reading that `read` returns, or the `AmbiguousError` that it raises."""
    try:
        return read()
    except AmbiguousError as problem:
        return problem


def _has_candidates(result: Result) -> bool:
    """Return whether a result names only candidates, or states that there are no candidates."""
    if isinstance(result, Reading):
        return result.rule == _NO_CANDIDATES
    return isinstance(result, CandidatesError)


def _is_called_literal(piece: Piece, earlier_pieces: Iterable[Piece], text: str) -> bool:
    """Return whether a piece is labeled text after JSON, and the later text calls it literal."""
    reading = piece.result
    if not isinstance(reading, Reading) or reading.rule != _LABELED_TEXT or not reading.idioms:
        return False
    earlier_answers = [earlier for earlier in earlier_pieces if isinstance(earlier.result, Reading)]
    follows_json = any(text[earlier.end - 1] in "]}" for earlier in earlier_answers)
    if not follows_json:
        return False
    later_views = find_views(text[piece.end :])
    return bool(later_views) and "affirms" not in later_views


def _idiom_forms(result: Result) -> set[str] | None:
    """Return the normalized idioms of a result; None if the result is an error."""
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
        return _validate_idioms(value), "list of texts" if value else "empty list"
    if all(item is None or isinstance(item, dict) for item in value):
        return _read_items(value, is_item=is_item), "list of objects"
    raise AmbiguousError("a list of neither texts nor objects")


def _read_items(items: Iterable[Any], *, is_item: bool) -> list[str]:
    """Return the idioms that the items of a list name (see `read_value`)."""
    return [idiom for item in items for idiom in read_value(item, is_item=is_item)[0]]


class _ObjectFields(NamedTuple):
    """Fields of an object, grouped by what they state about idioms.

    Attributes:
        by_kind: Fields whose values name phrases, by kind of key and by key.
        views: Views on the phrases that all other fields express.
        is_affirmed: Whether a field states that there is an idiom ("idiom": true).
        rejected: Normalized strings under keys for candidates or literal expressions.
    """

    by_kind: dict[str, dict[str, Any]]
    views: set[View]
    is_affirmed: bool
    rejected: set[str]


def _group_fields(value: dict[str, Any], *, is_item: bool) -> _ObjectFields:
    """Group the fields of an object by what they state about idioms.

    Raises:
        AmbiguousError: A key occurs twice, with different values.
    """
    by_kind: dict[str, dict[str, Any]] = {}
    views: set[View] = set()
    is_affirmed = False
    other_fields: dict[str, Any] = {}
    for key, item in value.items():
        if item is DUPLICATE:
            raise AmbiguousError("a key twice, with different values")
        kind = _kind_of_field(key, item, is_item=is_item, is_only_field=len(value) == 1)
        truth = _to_boolean(item)
        is_number = type(item) in (int, float)
        if is_number and is_count(key):  # for example "number_of_idioms": 0
            is_affirmed = is_affirmed or item > 0
            views |= {"affirms"} if item > 0 else {"denies", "doubts"}
        elif kind is None:
            other_fields[key] = item
        elif truth is None or (not truth and kind in ("answer", "candidates", "items")):
            # The field names phrases, or states that there are none ("answer": "no").
            by_kind.setdefault(kind, {})[key] = item
        else:  # for example "idiom": true
            is_affirmed = is_affirmed or truth
            views.add("affirms" if truth else "denies")
    named = _texts_in([by_kind[kind] for kind in _RANKS if kind in by_kind])
    rejected: set[str] = set()
    for key, item in other_fields.items():
        views |= _views_in(key, item, named)
        if announces_others(key):
            rejected |= _forms(_texts_in(item))
    return _ObjectFields(by_kind, views, is_affirmed, rejected)


def _kind_of_field(key: str, item: Any, *, is_item: bool, is_only_field: bool) -> str | None:
    """Return the kind of a field's key; None if the field names neither idioms nor candidates."""
    kind = kind_of(key)
    if kind is not None:
        return kind
    if is_item and key.lower() in _KEYS_IN_ITEMS:
        return "items"
    if isinstance(item, list):
        is_only_list = is_only_field and key.lower() in _KEYS_OF_ONLY_LISTS
        if may_list_idioms(key) or is_only_list:
            return "expressions"
    return None


def _read_object(value: dict[str, Any], *, is_item: bool) -> tuple[list[str], str]:
    """Return the idioms that an object names, and the format of the object.

    Raises:
        AmbiguousError: The format is unknown, or the fields contradict each other.
    """
    if not value:
        return [], "empty object"
    items = _items_under_keys(value) if is_item else []
    if items:
        return _read_items(items, is_item=True), "object"
    fields = _group_fields(value, is_item=is_item)
    kinds_by_rank = [kind for kind in _RANKS if kind in fields.by_kind]
    if not kinds_by_rank:
        return [], _rule_without_idioms(fields)
    best_kind = kinds_by_rank[0]
    item_by_key = fields.by_kind[best_kind]
    idioms = _agreed_idioms(item_by_key, best_kind)
    if best_kind == "answer":
        _check_choice(idioms, fields)
    first_key = next(iter(item_by_key))
    return _without_denied(idioms, fields), f'object with "{first_key}"'


def _check_choice(choice: Iterable[str], fields: _ObjectFields) -> None:
    """Check that the choice of an object is among the idioms that the same object lists.

    Raises:
        AmbiguousError: The object lists idioms, but not the choice.
    """
    kinds_of_lists = fields.by_kind.keys() & {"idioms", "expressions"}
    if not kinds_of_lists:
        return
    listed: list[str] = []
    for kind in kinds_of_lists:
        listed += _agreed_idioms(fields.by_kind[kind], kind)
    if not _forms(choice) <= _forms(listed):
        raise AmbiguousError("the choice is none of the idioms")


def _without_denied(idioms: list[str], fields: _ObjectFields) -> list[str]:
    """Return the idioms of an object, or an empty list if other fields deny the only idiom.

    Raises:
        AmbiguousError: The other fields contradict the idioms.
    """
    if not idioms:
        if fields.is_affirmed:
            raise AmbiguousError("says yes and names none")
        return []
    if fields.views == {"denies"} and len(idioms) == 1:
        return []
    names_rejected = not _forms(idioms).isdisjoint(fields.rejected)
    if names_rejected or "denies" in fields.views or "doubts" in fields.views:
        raise AmbiguousError("named, and called literal")
    return idioms


def _items_under_keys(value: dict[str, Any]) -> list[Any]:
    """Return the items of an object that replaces a list of idioms; empty for other objects.

    The keys of such an object are numbers, or phrases of several words. Under a phrase, the value
    is an object, or states whether the phrase is an idiom.
    """
    keys_are_numbers = all(key.isdigit() for key in value)
    if keys_are_numbers:
        return [{"idiom": item} if isinstance(item, str) else item for item in value.values()]
    keys_are_phrases = all(" " in key.strip() and kind_of(key) is None for key in value)
    if not keys_are_phrases:
        return []
    types = {type(item) for item in value.values()}
    if types == {dict}:
        return [{**item, "idiom": key} for key, item in value.items()]
    if types == {bool}:
        return [{"idiom": key, "is_idiom": item} for key, item in value.items()]
    return []


def _rule_without_idioms(fields: _ObjectFields) -> str:
    """Return the format (see `Reading.rule`) of an object without a key for idioms.

    Raises:
        AmbiguousError: The object neither denies idioms nor states that there are no candidates.
    """
    if "denies" in fields.views and "affirms" not in fields.views:
        return "object that says no"
    candidates = fields.by_kind.get("candidates", {})
    if not candidates:
        raise AmbiguousError("no key for idioms")
    names_candidates = bool(_forms(_texts_in(list(candidates.values()))))
    if names_candidates or fields.views:
        raise CandidatesError("candidates and no choice")
    return _NO_CANDIDATES


def _agreed_idioms(fields: dict[str, Any], kind: str) -> list[str]:
    """Return the idioms in fields whose keys have the same kind.

    If the keys differ only in digits ("idiom1", "idiom2"), the idioms of all fields are returned.

    Raises:
        AmbiguousError: The keys differ otherwise, and their values name different idioms.
    """
    idioms_by_field = [_read_field(item, kind) for item in fields.values()]
    keys_without_digits = {re.sub(r"\d", "", key) for key in fields}
    if len(keys_without_digits) == 1:
        return [idiom for idioms in idioms_by_field for idiom in idioms]
    first_idioms = idioms_by_field[0]
    if any(_forms(idioms) != _forms(first_idioms) for idioms in idioms_by_field):
        raise AmbiguousError("keys that disagree")
    return first_idioms


def _read_field(item: Any, kind: str) -> list[str]:
    """Return the idioms that the value of a field names; `kind` is the kind of the field's key."""
    # Some answers have a list as a string: "idioms": "['a b']".
    if isinstance(item, str) and item.lstrip().startswith("["):
        item = json_at(item.strip(), 0).value
    if isinstance(item, str):
        return _read_choice(item) if kind == "answer" else _validate_idioms([item])
    idioms, _ = read_value(item, is_item=True)
    return idioms


def _views_in(key: str, item: Any, named: Collection[str]) -> set[View]:
    """Return the views on the phrases `named` that texts and truth values in a field express."""
    views: set[View] = set()
    if isinstance(item, dict):
        for inner_key, inner_item in item.items():
            views |= _views_in(inner_key, inner_item, named)
        return views
    if isinstance(item, list):
        for element in item:
            views |= _views_in(key, element, named)
        return views
    views_by_key = views_of_value(key, item)
    if views_by_key is not None:
        return views_by_key
    truth = _to_boolean(item)
    if truth is not None:
        view = view_of_flag(key, truth)
        return {view} if view else set()
    is_comment = isinstance(item, str) and not is_sentence_key(key)
    return views_about(item, named) if is_comment else set()


def _to_boolean(item: Any) -> bool | None:
    """Convert true, false, 0, 1 or a word such as "yes" to a boolean; None for other values."""
    if isinstance(item, str):
        return parse_boolean(item)
    return bool(item) if isinstance(item, int | float) and item in (0, 1) else None


def _texts_in(item: Any) -> list[str]:
    """Return all strings in a JSON value, except words such as "none"."""
    if isinstance(item, dict):
        item = list(item.values())
    if isinstance(item, list):
        return [text for element in item for text in _texts_in(element)]
    return [item] if isinstance(item, str) and not is_none_answer(item) else []


def _validate_idioms(texts: Iterable[str | None]) -> list[str]:
    """Return the strings that name an idiom, without null and blank values.

    Raises:
        AmbiguousError: Only some strings name an idiom, or a string affirms or denies an idiom.
    """
    present = [text for text in texts if text and normalize(text)]
    idioms = [text for text in present if not is_none_answer(text)]
    if idioms and len(idioms) < len(present):
        raise AmbiguousError("a list with idioms and with none")
    for idiom in idioms:
        if parse_boolean(idiom) or has_denying_comment(idiom):
            raise AmbiguousError("a name that says yes, or what is literal")
        if _NO_IDIOM.match(idiom):
            raise AmbiguousError("a name that contains JSON, or two texts")
    return idioms


def _read_choice(text: str) -> list[str]:
    """Return a list with the idiom in a string; empty if the string names no idiom.

    Raises:
        AmbiguousError: The string is ambiguous or is a sentence.
    """
    names = _validate_idioms([text])
    if names and re.search(r"[.!?:][\"'”’]?$", text.strip()):
        raise AmbiguousError("a sentence")
    return names


def _split_bare_list(content: str) -> list[str]:
    """Return the idioms in the text between a list's brackets, split at commas outside quotes."""
    elements = re.findall(r"""\s*("[^"]*"|'(?:[^']|'(?!\s*(?:,|$)))*'|[^,]+)\s*(?:,|$)""", content)
    return _validate_idioms(_unquote(element) for element in elements)


def _read_bullets(lines: Iterable[str]) -> list[str]:
    """Return the idioms in the lines of a list; a line may explain its idiom after a separator."""
    items = []
    for line in lines:
        # The list `explanation` has at most one element.
        idiom, *explanation = _EXPLANATION.split(line, maxsplit=1)
        items.append({"idiom": _unquote(idiom), "explanation": "".join(explanation)})
    return _read_items(items, is_item=True)


def _read_line(text: str) -> list[str]:
    """Return the idioms in a line of text after a label.

    Raises:
        AmbiguousError: The line names no idiom or is ambiguous.
    """
    # The list `explanation` has at most one element.
    named, *explanation = _EXPLANATION.split(text, maxsplit=1)
    affirms_idiom = "affirms" in find_views("".join(explanation))
    if named and is_none_answer(named) and not affirms_idiom:
        return []
    idioms = _split_bare_list(named.rstrip(" .,"))
    if find_views(text) & {"denies", "doubts"}:
        raise CandidatesError("a label, and no idiom after it")
    contains_question = re.search(r"\?\s*\w", text)
    if not idioms or contains_question:
        raise AmbiguousError("a label, and no idiom after it")
    return idioms


def _unquote(text: str) -> str:
    """Return a text without the quotes, asterisks and spaces around it."""
    text = text.strip().strip('"“”*').strip()
    return re.sub(r"^'(.*)'$", r"\1", text).strip()


def _forms(names: Iterable[str]) -> set[str]:
    """Return the normalized forms of idioms, in which the idioms are compared."""
    return {normalize(name) for name in names}
