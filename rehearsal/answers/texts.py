"""Texts of answers in the forms that models use, each checked with the pipeline's parsers."""

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pieline.languages.matching import matches_pie
from pieline.llm.answers import Answer
from pieline.llm.idioms import parse_idioms
from pieline.studies.idiots.predictions import read_prediction
from pieline.studies.idiots.records import IdiotsSentence
from pieline.studies.idiots.verdicts import names_pie
from pieline.studies.jam.bio import Span, span_text, spans_of
from pieline.studies.jam.metrics.identification import tags_of_idioms
from pieline.studies.jam.records import JamSentence
from pieline.studies.jam.variants.validation import check_text

T = TypeVar("T")
Form = Callable[[Any], str]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _fenced(value: Any) -> str:
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=2)}\n```"


def _after_words(value: Any) -> str:
    return f"Here is my answer:\n{_json(value)}"


_LISTS: tuple[Form, ...] = (
    lambda idioms: _json({"idioms": idioms}),
    lambda idioms: _fenced({"idioms": idioms}),
    lambda idioms: f"idioms: [{', '.join(idioms)}]",
    lambda idioms: _json({"idiom": idioms[0] if idioms else None}),
    _json,
    lambda idioms: _after_words({"idioms": idioms}),
    lambda idioms: _json({"idioms": idioms}) if idioms else "There are no idioms in this sentence.",
)
"""Forms of a list of at most one idiom; the first follows the schema."""
_USED = {
    True: "used figuratively, its words together mean something else",
    False: "used literally, its words mean what they say",
}
"""Explanation of a candidate, by whether the candidate is chosen."""


def _candidates(pie: str, idioms: Sequence[str]) -> list[dict[str, str]]:
    return [{"expression": pie, "explanation": _USED[bool(idioms)]}]


_CHOICES: tuple[Callable[[str, Sequence[str]], str], ...] = (
    lambda pie, idioms: (
        f"candidates:\n- {pie}: {_USED[bool(idioms)]}\nidioms: [{', '.join(idioms)}]"
    ),
    lambda pie, idioms: _json(
        {"candidates": _candidates(pie, idioms), "idiom": idioms[0] if idioms else None}
    ),
    lambda pie, idioms: _fenced({"candidates": _candidates(pie, idioms), "idioms": [*idioms]}),
)
"""Forms of an answer with one candidate, which is chosen or not."""


_DETECTIONS: tuple[Form, ...] = (
    _json,
    str,
    _fenced,
    _after_words,
    lambda fields: _json(fields | {"hasIdiom": str(fields["hasIdiom"])}),
)
"""Forms of the four fields of IdioTS; the first follows the schema."""
_CONTEXTS = {
    "english": (
        "It had been a long week, and they were talking about it in the kitchen.",
        "My sister told me the rest of the story while we waited for the train.",
        "On Friday the two of them met again after work, as they always did.",
        "Nobody had expected any visitors that afternoon, least of all the neighbours.",
    ),
    "german": (
        "Es war eine lange Woche gewesen, und sie sprachen in der Küche darüber.",
        "Meine Schwester erzählte mir den Rest der Geschichte, während wir auf den Zug warteten.",
        "Am Freitag trafen sich die beiden nach der Arbeit wieder, wie sie es immer taten.",
        "An diesem Nachmittag hatte niemand Besuch erwartet, am wenigsten die Nachbarn.",
    ),
}
"""Neutral contexts that fit almost any sentence."""
_LONGEST = 12
"""Maximum number of tokens from the first to the last word of a PIE."""


def pie_span(sentence: JamSentence) -> Span | None:
    """Return the first span that scoring matches with the PIE, or None.

    Tagged spans come first, then literal occurrences; all other spans are tried only if the
    sentence is literal or has neither.
    """
    tokens = sentence.tokens
    spans = [*spans_of(sentence.tags), *spans_of(tags_of_idioms(tokens, sentence.pies))]
    if not sentence.is_figurative or not spans:
        # A variant ends with its original, so the last match is the PIE.
        spans += [
            Span(start, start + length)
            for length in range(1, _LONGEST + 1)
            for start in range(len(tokens) - length, -1, -1)
        ]
    return next((span for span in spans if _names_pie(span_text(tokens, span), sentence)), None)


def _names_pie(text: str, sentence: JamSentence) -> bool:
    return any(matches_pie(text, pie, language=sentence.language) for pie in sentence.pies)


def identification(
    sentence: JamSentence, *, named: bool, choice: int, explains: bool, schema: bool
) -> str:
    """Return an answer that names either the PIE of a sentence or no idiom.

    Args:
        sentence: Sentence of ID10M-JAM.
        named: Whether the answer names the PIE.
        choice: Integer that selects the form.
        explains: Whether the prompt asks for candidates.
        schema: Whether the provider enforces the schema.

    Raises:
        ValueError: No form is parsed as intended.
    """
    span = pie_span(sentence)
    pie = span_text(sentence.tokens, span) if span else sentence.pies[0]
    idioms = [pie] if named else []
    if explains:
        texts = [form(pie, idioms) for form in _CHOICES]
    else:
        texts = [form(idioms) for form in _LISTS]

    def is_read(text: str) -> bool:
        return parse_idioms(_answer(text)).value == idioms

    return _chosen(texts[:1] if schema else texts, choice, is_read)


def detection(
    sentence: IdiotsSentence, *, has_idiom: bool, is_pie: bool, choice: int, schema: bool
) -> str:
    """Return an answer to a sentence of IdioTS.

    Args:
        sentence: Sentence of the question.
        has_idiom: Whether the answer names an idiom.
        is_pie: Whether the idiom is the PIE.
        choice: Integer that selects the form.
        schema: Whether the provider enforces the schema.

    Raises:
        ValueError: No form is parsed as intended.
    """
    words = sentence.sentence.rstrip(".!?").split()
    pairs = [" ".join(words[place : place + 2]) for place in range(len(words) - 1)]
    idioms = [""]
    if has_idiom:
        idioms = [sentence.pie] if is_pie else pairs[choice % len(pairs) :] + pairs
    texts = [
        form(
            {
                "hasIdiom": has_idiom,
                "idiom": idiom,
                "meaning": "To do what one must." if has_idiom else "",
                "explanation": "The words mean something else together." if has_idiom else "",
            }
        )
        for idiom in idioms
        for form in rotated(_DETECTIONS[:1] if schema else _DETECTIONS, choice)
    ]

    def is_read(text: str) -> bool:
        prediction = read_prediction(sentence.id, _answer(text))
        return prediction.has_idiom == has_idiom and names_pie(sentence, prediction) == (
            has_idiom and is_pie
        )

    return _chosen(texts, 0, is_read)


def neutral_variant(original: JamSentence, choice: int) -> str:
    """Return an answer with one neutral variant of an original.

    Raises:
        ValueError: No variant passes all checks.
    """
    texts = [f"{context} {original.sentence}" for context in _CONTEXTS[original.language]]
    text = _chosen(texts, choice, lambda text: not check_text(original, text))
    return _json({"variants": [text]})


def rotated(items: Sequence[T], choice: int) -> list[T]:
    """Rotate the items so that item `choice` (modulo their number) is first."""
    place = choice % len(items)
    return [*items[place:], *items[:place]]


def _chosen(texts: Sequence[str], choice: int, fits: Callable[[str], bool]) -> str:
    """Return the chosen text, or the next one that fits.

    Raises:
        ValueError: No text fits.
    """
    for text in rotated(texts, choice):
        if fits(text):
            return text
    raise ValueError(f"no form of this answer is parsed as intended: {texts[0]}")


def _answer(text: str) -> Answer:
    return Answer(key="", text=text, finish_reason="stop")
