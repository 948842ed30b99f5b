"""Convert words to subtokens and back; the first subtoken of each word carries its tag."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pieline.studies.jam.bio import OUTSIDE, TAG_IDS, TAGS, Tag, valid_tags
from pieline.studies.jam.training.settings import Batching

IGNORED = -100
"""Label that the loss ignores."""


@dataclass(frozen=True)
class EncodedSentence:
    """Subtokens of one sentence.

    Attributes:
        input_ids: Token ids, including special tokens.
        firsts: Position of the first subtoken by word index; words that are truncated or have no
            subtoken are missing.
        words: Number of words.
    """

    input_ids: tuple[int, ...]
    firsts: dict[int, int]
    words: int

    def __len__(self) -> int:
        return len(self.input_ids)


def encode(
    tokenizer: Any, sentences: Sequence[Sequence[str]], *, max_length: int
) -> list[EncodedSentence]:
    """Encode sentences, each given as a list of words; surrounding spaces of words are ignored.

    Input beyond `max_length` subtokens is truncated.
    """
    if not sentences:
        return []
    encoding = tokenizer(
        [[word.strip() for word in words] for words in sentences],
        is_split_into_words=True,
        truncation=True,
        max_length=max_length,
    )
    encoded = []
    for number, words in enumerate(sentences):
        firsts: dict[int, int] = {}
        for place, word in enumerate(encoding.word_ids(number)):
            if word is not None:
                firsts.setdefault(word, place)
        encoded.append(EncodedSentence(tuple(encoding["input_ids"][number]), firsts, len(words)))
    return encoded


def collate(
    sentences: Sequence[EncodedSentence],
    tags: Sequence[Sequence[Tag]] | None,
    *,
    pad_id: int,
    device: torch.device | str,
) -> dict[str, torch.Tensor]:
    """Build a batch, padded to its longest sentence; `tags` is None for prediction.

    Returns:
        `input_ids`, `attention_mask` and, unless `tags` is None, `labels`, each of shape (batch,
        longest).
    """
    longest = max(map(len, sentences))
    paddings = [longest - len(sentence) for sentence in sentences]
    # Build lists first, because setting tensor elements one by one is about 1,000 times slower.
    batch = {
        "input_ids": [
            [*sentence.input_ids, *[pad_id] * padding]
            for sentence, padding in zip(sentences, paddings, strict=True)
        ],
        "attention_mask": [[1] * (longest - padding) + [0] * padding for padding in paddings],
    }
    if tags is not None:
        batch["labels"] = [[IGNORED] * longest for _ in sentences]
        for labels, sentence, row in zip(batch["labels"], sentences, tags, strict=True):
            for word, place in sentence.firsts.items():
                labels[place] = TAG_IDS[row[word]]
    return {name: torch.tensor(rows).to(device) for name, rows in batch.items()}


def decode(
    sentence: EncodedSentence, numbers: Sequence[int], *, drop_unbegun: bool = False
) -> list[Tag]:
    """Return valid BIO tags of a sentence's words, given the tag id of each subtoken.

    Words without subtokens get O. For `drop_unbegun`, see `valid_tags`.
    """
    tags: list[Tag] = [OUTSIDE] * sentence.words
    for word, place in sentence.firsts.items():
        tags[word] = TAGS[numbers[place]]
    return valid_tags(tags, drop_unbegun=drop_unbegun)


def random_batches(
    lengths: Sequence[int], batch_size: int, batching: Batching, generator: torch.Generator
) -> list[list[int]]:
    """Return shuffled batches of sentence indices that contain each sentence once.

    `random` shuffles the sentences. `by_length` also sorts the shuffled sentences by length within
    chunks of 50 batches, and then shuffles the batches. These batches need little padding, but
    contain sentences of similar length.
    """
    order = torch.randperm(len(lengths), generator=generator).tolist()
    if batching == "random":
        return _cut(order, batch_size)
    batches = [
        batch
        for stretch in _cut(order, 50 * batch_size)
        for batch in _cut(sorted(stretch, key=lambda number: -lengths[number]), batch_size)
    ]
    return [batches[number] for number in torch.randperm(len(batches), generator=generator)]


def _cut(numbers: list[int], size: int) -> list[list[int]]:
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]
