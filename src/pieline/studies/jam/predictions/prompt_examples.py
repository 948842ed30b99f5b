"""The examples of few-shot prompts, from ID10M's train split (ID10M-JAM, section 4.2)."""

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pieline.core.errors import UserError
from pieline.languages.inflection import base_forms
from pieline.languages.matching import contains_pie, words_of
from pieline.languages.registry import find
from pieline.studies.jam.bio import Span, span_text
from pieline.studies.jam.predictions.prompt_settings import Examples
from pieline.studies.jam.raw.id10m import TaggedSentence

_BETWEEN = 4
"""Punctuation marks and the like that may stand as tokens between a PIE's words."""


class Example(NamedTuple):
    """A sentence that a prompt shows with its answer.

    Attributes:
        sentence: of the train split.
        literal_pie: of a contrastive sentence without an idiom: a PIE in it, word by word, which is
            an idiom elsewhere in the split; null where it has none.
    """

    sentence: TaggedSentence
    literal_pie: str | None = None

    @property
    def lacks_candidate(self) -> bool:
        """Whether the answer has nothing to weigh."""
        return not self.sentence.spans and self.literal_pie is None


def choose_examples(
    sentences: Sequence[TaggedSentence],
    *,
    idiomatic: int,
    literal: int,
    seed: int,
    language: str,
    examples: Examples = "random",
) -> list[Example]:
    """Examples for a prompt: so many with an idiom and without, in random order (section 4.2).

    `random` draws as the released code does, which takes pandas' `sample` of either kind with the
    run's seed; of ID10M's train split these are the examples of the paper. `contrastive` prefers
    sentences without an idiom in which a PIE is used literally, so that the answer has a candidate
    to reject; where the split has too few, others fill up.

    Raises:
        UserError: there are too few sentences of either kind.
    """
    groups: list[list[TaggedSentence]] = []
    for wanted, has_idiom in ((idiomatic, True), (literal, False)):
        group = [item for item in sentences if bool(item.spans) == has_idiom]
        if len(group) < wanted:
            kind = "with" if has_idiom else "without"
            raise UserError(
                f"{len(group)} sentences {kind} an idiom, {wanted} wanted",
                where="train split",
                hint="ask for fewer examples",
            )
        groups.append(group)
    if examples == "random":
        shuffler = random.Random(seed)  # noqa: S311 - not for secrets
        chosen = [Example(item) for item in _sample(groups[0], idiomatic, seed)]
        chosen += [Example(item) for item in _sample(groups[1], literal, seed)]
    else:
        shuffler = random.Random(f"examples {seed}")  # noqa: S311 - not for secrets
        groups = [shuffler.sample(group, len(group)) for group in groups]
        chosen = [Example(item) for item in groups[0][:idiomatic]]
        chosen += _with_literal_pies(groups[1], literal, _Pies(sentences, language))
    shuffler.shuffle(chosen)
    return chosen


def _sample(group: Sequence[TaggedSentence], wanted: int, seed: int) -> list[TaggedSentence]:
    """What `DataFrame.sample(wanted, random_state=seed)` draws of a frame with these rows."""
    import numpy as np

    draw = np.random.RandomState(seed)  # pandas draws with it, and its numbers never change
    return [group[number] for number in draw.choice(len(group), wanted, replace=False)]


def _with_literal_pies(
    group: Sequence[TaggedSentence], wanted: int, pies: "_Pies"
) -> list[Example]:
    """The first sentences that hold a PIE, and the first others where these are too few."""
    holding: list[Example] = []
    others: list[Example] = []
    for item in group:
        if len(holding) == wanted:
            break
        pie = pies.used_in(item)
        (others if pie is None else holding).append(Example(item, pie))
    return (holding + others)[:wanted]


class _Pies:
    """The PIEs that a split tags, of at least two content words: one alone is in many sentences."""

    def __init__(self, sentences: Iterable[TaggedSentence], language: str) -> None:
        self._language = language
        function_words = find(language).function_words
        self._by_first_word: dict[str, set[str]] = {}
        for words in {tuple(words_of(pie, language)) for item in sentences for pie in item.idioms}:
            if len(set(words) - function_words) > 1:
                for form in base_forms(words[0], language):
                    self._by_first_word.setdefault(form, set()).add(" ".join(words))

    def used_in(self, sentence: TaggedSentence) -> str | None:
        """The words of a sentence that are one of the PIEs, the longest; null if none is."""
        begun = {
            pie
            for word in words_of(sentence.text, self._language)
            for form in base_forms(word, self._language)
            for pie in self._by_first_word.get(form, ())
        }
        for pie in sorted(begun, key=lambda pie: (-len(pie), pie)):
            if contains_pie(sentence.text, pie, language=self._language):
                return self._shortest(sentence.tokens, pie)
        return None

    def _shortest(self, tokens: Sequence[str], pie: str) -> str | None:
        """The fewest tokens that hold the PIE."""
        for length in range(1, len(pie.split()) + _BETWEEN):
            for start in range(len(tokens) - length + 1):
                text = span_text(tokens, Span(start, start + length))
                if contains_pie(text, pie, language=self._language):
                    return text
        return None
