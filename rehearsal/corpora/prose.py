"""Sentences generated from grammars, as stand-ins for the corpora's prose.

The sentences are grammatical but meaningless, and vary in vocabulary. Most contain a PIE with words
that fit one of its readings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

from pieline.core.yamls import read_yaml
from pieline.studies.jam.bio import Span, Tag, span_text, tags_of

_CLOSING = frozenset(".,")


class Expression(NamedTuple):
    """Base form and past tense of a PIE or a paraphrase."""

    base: str
    past: str


@dataclass(frozen=True)
class Prose:
    """Sentence as words and punctuation marks, with the span of its expression, if any."""

    words: tuple[str, ...]
    span: Span | None = None

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The words, each with the space that follows it, as in ID10M."""
        after = (*self.words[1:], ".")
        return tuple(
            word if follower in _CLOSING else f"{word} "
            for word, follower in zip(self.words, after, strict=True)
        )

    @cached_property
    def text(self) -> str:
        """The text of the sentence."""
        return "".join(self.tokens)

    @property
    def span_text(self) -> str:
        """The expression in the form used in the sentence; empty if there is no expression."""
        return span_text(self.tokens, self.span) if self.span else ""

    def with_expression(self, other: Expression, own: Expression) -> "Prose":
        """Return the sentence with its expression `own` replaced by `other` in the same form.

        A sentence without an expression is returned unchanged.
        """
        if self.span is None:
            return self
        start, end = self.span
        new = (other.past if self.span_text == own.past else other.base).split()
        return Prose((*self.words[:start], *new, *self.words[end:]), Span(start, start + len(new)))

    @property
    def tags(self) -> list[Tag]:
        """Tags of the words, with the expression tagged as an idiom."""
        return tags_of([self.span] if self.span else [], len(self.words))


class Grammar:
    """Context-free grammar of a language's sentences.

    In `CLAUSE | WHEN CLAUSE`, alternatives are separated by bars; in `= Monday Tuesday`, each word
    is an alternative. Symbols are in capitals. `BASE` and `PAST` are forms of an expression;
    `TOPIC` is a word that the caller chooses.

    Each language has `PLAIN` sentences without a PIE, sentences with a PIE in either reading
    (`FIGURATIVE`, `LITERAL`), and sentences without a PIE that hint at either reading
    (`HINT_FIGURATIVE`, `HINT_LITERAL`).

    Args:
        rules: Rules by symbol.
    """

    def __init__(self, rules: Mapping[str, str]) -> None:
        self._rules: dict[str, list[tuple[str, ...]]] = {}
        for symbol, rest in rules.items():
            alternatives = rest.split()[1:] if rest.startswith("= ") else rest.split(" | ")
            # Reversed, because symbols are expanded from a stack.
            self._rules[symbol] = [tuple(item.split()[::-1]) for item in alternatives]

    def sentence(
        self, symbol: str, random: Random, expression: Expression | None = None, topic: str = ""
    ) -> Prose:
        """Generate a sentence from a symbol; the rules may use the expression and the topic."""
        forms = dict(zip(("BASE", "PAST"), expression or (), strict=False))
        words: list[str] = []
        span = None
        waiting = [symbol]
        while waiting:
            symbol_or_word = waiting.pop()
            if rules := self._rules.get(symbol_or_word):
                waiting += rules[int(random.random() * len(rules))]
            elif symbol_or_word in forms:
                start = len(words)
                words += forms[symbol_or_word].split()
                span = Span(start, len(words))
            else:
                words.append(topic if symbol_or_word == "TOPIC" else symbol_or_word)
        words[0] = words[0][0].upper() + words[0][1:]
        return Prose(tuple(words), span)

    def new_sentence(
        self,
        symbol: str,
        random: Random,
        used: set[str],
        expression: Expression | None = None,
        topic: str = "",
    ) -> Prose:
        """Generate a sentence whose text is not in `used`, and add the text to `used`."""
        while True:
            prose = self.sentence(symbol, random, expression, topic)
            if prose.text not in used:
                used.add(prose.text)
                return prose


class LanguageMaterial(NamedTuple):
    """Material for the sentences of a language: a grammar, PIEs, and paraphrases as meanings."""

    grammar: Grammar
    pies: list[Expression]
    meanings: list[Expression]


@cache
def language_material(language: str) -> LanguageMaterial:
    """Load the material of a language from its YAML file."""
    content = read_yaml(Path(__file__).with_name(f"{language}.yaml"))
    lists = [_expressions(**content[name]) for name in ("pies", "meanings")]
    return LanguageMaterial(Grammar(content["grammar"]), *lists)


def _expressions(
    verbs: str, nouns: Mapping[str, str], *, verb_last: bool = False
) -> list[Expression]:
    """Return every combination of a verb and a noun.

    Args:
        verbs: Verbs as `base` or `base/past`, separated by spaces.
        nouns: Nouns by article, separated by spaces.
        verb_last: Whether the verb follows its object.
    """
    objects = [f"{article} {noun}" for article, words in nouns.items() for noun in words.split()]
    expressions = []
    for verb, item in product(verbs.split(), objects):
        base, _, past = verb.partition("/")
        forms = (base, past or base)
        expressions.append(
            Expression(*(f"{item} {form}" if verb_last else f"{form} {item}" for form in forms))
        )
    return expressions
