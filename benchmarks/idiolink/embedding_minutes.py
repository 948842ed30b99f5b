"""Measure the CPU minutes that embedders need for a split of IdioLink in all four query modes.

The models have random weights and the shapes of MiniLM, BERT-base, XLM-R-large and Qwen3-0.6B.
Their vocabulary, which costs no time, is small. The time of a sample of texts is multiplied.

    python benchmarks/idiolink/embedding_minutes.py FOLDER/idiolink/test
"""

import argparse
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    Qwen3Config,
    Qwen3Model,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from pieline.core.errors import run_command
from pieline.models.embedder import EmbedderEntry
from pieline.models.registry import load_registry
from pieline.models.weights import weights_location
from pieline.studies.idiolink.predictions.query_texts import instructed_text
from pieline.studies.idiolink.raw import read_texts
from pieline.studies.idiolink.records import Document, Query

VOCABULARY = 2000
BATCH = 32
SHAPES: Mapping[str, Callable[[], Any]] = {
    "MiniLM": lambda: BertModel(
        BertConfig(
            vocab_size=VOCABULARY, hidden_size=384, num_hidden_layers=6, intermediate_size=1536
        )
    ),
    "BERT-base": lambda: BertModel(BertConfig(vocab_size=VOCABULARY)),
    "XLM-R-large": lambda: XLMRobertaModel(
        XLMRobertaConfig(
            vocab_size=VOCABULARY, hidden_size=1024, intermediate_size=4096, num_hidden_layers=24,
            num_attention_heads=16,
        )
    ),
    "Qwen3-0.6B": lambda: Qwen3Model(
        Qwen3Config(
            vocab_size=VOCABULARY, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28,
            num_attention_heads=16, num_key_value_heads=8, head_dim=128,
        )
    ),
}  # fmt: skip


def seconds(model: Any, tokenizer: Any, texts: Sequence[str], sample: int) -> float:
    """Return the CPU time of all texts, from that of a sample, sorted by length as in a run."""
    chosen = random.Random(0).sample(texts, sample)
    chosen.sort(key=len)
    before = time.process_time()
    with torch.inference_mode():
        for start in range(0, sample, BATCH):
            batch = tokenizer(chosen[start : start + BATCH], padding=True, return_tensors="pt")
            ids = batch["input_ids"] % VOCABULARY
            model(input_ids=ids, attention_mask=batch["attention_mask"])
    return (time.process_time() - before) * len(texts) / sample


def main() -> None:
    """Print the minutes per shape."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--sample", type=int, default=96, help="number of texts (default: 96)")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=[*SHAPES])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sbert = load_registry("models.yaml")["sbert"]
    assert isinstance(sbert, EmbedderEntry)
    tokenizer = AutoTokenizer.from_pretrained(weights_location(sbert))
    queries = read_texts(arguments.data / "queries.json", Query)
    plain = [text.sentence for text in read_texts(arguments.data / "indexes.json", Document)]
    # Queries are embedded twice without and twice with an instruction.
    plain += [query.sentence for query in queries] * 2
    form = sbert.instruction_format
    instructed = [instructed_text(query, instruction_format=form).text for query in queries] * 2
    for name in arguments.shapes:
        model = SHAPES[name]().eval()
        seconds(model, tokenizer, plain, BATCH)
        total = sum(
            seconds(model, tokenizer, texts, arguments.sample) for texts in (plain, instructed)
        )
        print(f"{name}: {total / 60:.0f} minutes")


if __name__ == "__main__":
    run_command(main)
