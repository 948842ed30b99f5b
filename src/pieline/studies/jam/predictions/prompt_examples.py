"""Choose few-shot examples from ID10M's train split (ID10M-JAM, section 4.2)."""

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pieline.core.errors import UserError
from pieline.languages.inflection import base_forms
from pieline.languages.matching import contains_pie, shortest_match, words_of
from pieline.languages.registry import get_language
from pieline.studies.jam.predictions.prompt_settings import Examples
from pieline.studies.jam.raw.id10m import TaggedSentence

_MOST_BETWEEN = 3
"""Maximum total number of other tokens, such as punctuation marks, between a PIE's words."""


class Example(NamedTuple):
    """A sentence that is shown in a prompt together with the expected answer.

    Attributes:
        sentence: Sentence of the train split.
        literal_pie: In a contrastive example without an idiom, the words of a PIE that is tagged as
            an idiom in another sentence of the split; None in other examples.
    """

    sentence: TaggedSentence
    literal_pie: str | None = None

    @property
    def lacks_candidate(self) -> bool:
        """Return whether the answer has neither an idiom nor a candidate to reject."""
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
    """Choose examples with and without an idiom, in random order (section 4.2).

    `random` replicates the released code, which calls pandas' `sample` for each kind with the run's
    seed; on ID10M's train split, this method selects the paper's examples. `contrastive` prefers
    sentences that use a PIE literally as examples without an idiom, so that the answer has a
    candidate to reject; if there are too few of them, other sentences are added.

    Raises:
        UserError: There are too few sentences with or without an idiom.
    """
    groups: list[list[TaggedSentence]] = []
    for count, has_idiom in ((idiomatic, True), (literal, False)):
        group = [item for item in sentences if bool(item.spans) == has_idiom]
        if len(group) < count:
            kind = "with" if has_idiom else "without"
            raise UserError(
                f"only {len(group)} sentences {kind} an idiom ({count} examples requested)",
                where="train split",
                hint="reduce the number of examples",
            )
        groups.append(group)
    if examples == "random":
        shuffler = random.Random(seed)  # noqa: S311 - not for secrets
        selected = [Example(item) for item in _sample(groups[0], idiomatic, seed)]
        selected += [Example(item) for item in _sample(groups[1], literal, seed)]
    else:
        shuffler = random.Random(f"examples {seed}")  # noqa: S311 - not for secrets
        groups = [shuffler.sample(group, len(group)) for group in groups]
        selected = [Example(item) for item in groups[0][:idiomatic]]
        selected += _with_literal_pies(groups[1], literal, _Pies(sentences, language))
    shuffler.shuffle(selected)
    return selected


def _sample(group: Sequence[TaggedSentence], count: int, seed: int) -> list[TaggedSentence]:
    """Replicate `DataFrame.sample(count, random_state=seed)`."""
    import numpy as np

    draw = np.random.RandomState(seed)  # used by pandas; its sequence never changes
    return [group[number] for number in draw.choice(len(group), count, replace=False)]


def _with_literal_pies(group: Sequence[TaggedSentence], count: int, pies: "_Pies") -> list[Example]:
    """Return `count` examples: the first sentences with a PIE, then others if there are too few."""
    with_pie: list[Example] = []
    others: list[Example] = []
    for item in group:
        if len(with_pie) == count:
            break
        pie = pies.used_in(item)
        (others if pie is None else with_pie).append(Example(item, pie))
    return (with_pie + others)[:count]


class _Pies:
    """Index of a split's PIEs with two or more content words; single words are too frequent."""

    def __init__(self, sentences: Iterable[TaggedSentence], language: str) -> None:
        self._language = language
        function_words = get_language(language).function_words
        self._by_first_word: dict[str, set[str]] = {}
        for words in {tuple(words_of(pie, language)) for item in sentences for pie in item.idioms}:
            if len(set(words) - function_words) > 1:
                for form in base_forms(words[0], language):
                    self._by_first_word.setdefault(form, set()).add(" ".join(words))

    def used_in(self, sentence: TaggedSentence) -> str | None:
        """Return the text of the longest PIE in a sentence.

        Returns None if no PIE is found, or if the words of the longest PIE are too far apart.
        """
        candidates = {
            pie
            for word in words_of(sentence.text, self._language)
            for form in base_forms(word, self._language)
            for pie in self._by_first_word.get(form, ())
        }
        for pie in sorted(candidates, key=lambda pie: (-len(pie), pie)):
            if contains_pie(sentence.text, pie, language=self._language):
                longest = len(pie.split()) + _MOST_BETWEEN
                return shortest_match(
                    sentence.tokens, pie, language=self._language, longest=longest
                )
        return None
