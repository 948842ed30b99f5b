"""Create a tiny BERT with its own vocabulary, and sentences in it."""

import random
from pathlib import Path

import torch
from transformers import BertConfig, BertModel, BertTokenizer

from pieline.models.entries import EncoderEntry
from pieline.studies.jam.bio import Tag
from pieline.studies.jam.raw.id10m import TaggedSentence

WORDS = [
    *("we", "they", "broke", "kicked", "spilled", "the", "ice", "bucket", "beans"),
    *("at", "noon", "quickly", "again", "old", "red"),
]
PIES = [("broke", "the", "ice"), ("kicked", "the", "bucket"), ("spilled", "the", "beans")]


def save_tiny_bert(folder: Path) -> EncoderEntry:
    """Save a random two-layer BERT in a folder for transformers, and return its entry."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "##s", "##ed", "walk", ".", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return EncoderEntry(
        kind="encoder",
        label="Tiny",
        licence="CC0-1.0",
        checkpoint="tiny",
        source="folder",
        path=str(folder),
        languages=["english"],
        max_length=16,
    )


def sentences(number: int, *, seed: int) -> list[TaggedSentence]:
    """Return random sentences; two of three contain an idiom."""
    draw = random.Random(seed)
    tagged = []
    for index in range(number):
        before = draw.choices(["we", "they", "old", "red"], k=draw.randint(1, 3))
        after = draw.choices(["at", "noon", "quickly", "again"], k=draw.randint(0, 4))
        idiom = draw.choice([*PIES, *PIES, ("the", "old", "bucket"), ("red", "beans", "at")])
        words = [*before, *idiom, *after]
        tags: list[Tag] = ["O"] * len(words)
        if idiom in PIES:
            tags[len(before) : len(before) + 3] = ["B-IDIOM", "I-IDIOM", "I-IDIOM"]
        tokens = (*(f"{word} " for word in words[:-1]), words[-1], ".")
        tagged.append(TaggedSentence(f"s-{index}", tokens, (*tags, "O")))
    return tagged
