"""Test the attention analysis on a toy model, with subtokens, cues and pairs."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from jam_experiments.test_drift import judged
from jam_experiments.tiny import WORDS
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from pieline.models.entries import CheckpointEntry
from pieline.studies.jam.metrics.attention import (
    CandidatePair,
    CausalModel,
    analyze,
    attention_to_words,
    cue_indices,
    cue_shares,
    load_causal_model,
    mean_share,
    pie_indices,
    select_pairs,
)
from pieline.studies.jam.metrics.drift import JudgedOriginal
from pieline.studies.jam.records import JamSentence


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {word: number for number, word in enumerate(["[UNK]", ".", *WORDS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")


def tiny_llama(*, layers: int, heads: int, hidden: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(WORDS) + 2,
        hidden_size=hidden,
        intermediate_size=8,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=64,
        attn_implementation="eager",
    )
    return LlamaForCausalLM(config).eval()


def test_two_tokens_by_hand() -> None:
    """Check one layer and one two-dimensional head; queries and keys equal normalized inputs."""
    model = tiny_llama(layers=1, heads=1, hidden=2)
    first, second = np.array([3.0, 4.0]), np.array([1.0, -2.0])
    tokenizer = tiny_tokenizer()
    with torch.no_grad():
        table = model.model.embed_tokens.weight
        table[tokenizer.convert_tokens_to_ids("the")] = torch.tensor(first, dtype=torch.float32)
        table[tokenizer.convert_tokens_to_ids("ice")] = torch.tensor(second, dtype=torch.float32)
        for name in ("q_proj", "k_proj"):
            getattr(model.model.layers[0].self_attn, name).weight.copy_(torch.eye(2))
    attention = attention_to_words(CausalModel(model, tokenizer), ["the ", "ice"], {1})

    def normalised(vector: np.ndarray) -> np.ndarray:  # RMSNorm
        return vector / math.sqrt(float(np.mean(vector**2)) + 1e-6)

    # The rotary embedding rotates a two-dimensional head by one radian per position.
    turn = np.array([[math.cos(1), -math.sin(1)], [math.sin(1), math.cos(1)]])
    query = turn @ normalised(second)
    scores = np.array([query @ normalised(first), query @ turn @ normalised(second)]) / math.sqrt(2)
    weights = np.exp(scores) / np.exp(scores).sum()
    assert attention.shape == (1, 1, 2)
    assert attention[0, 0] == pytest.approx(weights, abs=1e-5)
    assert 0.01 < weights[0] < 0.99


def test_queries_are_averaged_and_keys_summed() -> None:
    model = tiny_llama(layers=2, heads=2, hidden=8)
    tokenizer = tiny_tokenizer()
    # "red." is one word with two subtokens.
    tokens = ["they ", "broke ", "red. ", "ice"]
    encoding = tokenizer("".join(tokens), return_tensors="pt")
    assert encoding["input_ids"].shape == (1, 5)
    with torch.inference_mode():
        raw = model(encoding["input_ids"], output_attentions=True).attentions
    layers = torch.stack([layer[0] for layer in raw]).double().numpy()
    attention = attention_to_words(CausalModel(model, tokenizer), tokens, {2, 3})
    rows = layers[:, :, 2:, :].mean(axis=2)
    expected = np.stack([rows[..., 0], rows[..., 1], rows[..., 2] + rows[..., 3], rows[..., 4]], -1)
    assert attention == pytest.approx(expected)
    assert attention.sum(axis=-1) == pytest.approx(np.ones((2, 2)))


def test_no_attending_word_is_an_error() -> None:
    causal = CausalModel(tiny_llama(layers=1, heads=1, hidden=2), tiny_tokenizer())
    with pytest.raises(ValueError, match="attending"):
        attention_to_words(causal, ["the ", "ice"], set())


def test_share_leaves_out_the_first_word_and_the_pie() -> None:
    # Words as seen from the PIE: sink, cue, other, PIE, other (after it).
    attention = np.array([[[0.5, 0.1, 0.2, 0.2, 0.0]]])
    assert cue_shares(attention, cues={0, 1}, pie={3})[0, 0] == pytest.approx(0.1 / 0.3)
    nothing = np.array([[[0.5, 0.0, 0.0, 0.5, 0.0]]])
    assert cue_shares(nothing, cues={1}, pie={3})[0, 0] == 0


def jam_sentence(number: int, context: str, *, figurative: bool = True) -> JamSentence:
    own = ["they ", "broke ", "the ", "ice", "."]
    tokens = [f"{word} " for word in context.split()] + own
    inside = "B-IDIOM", "I-IDIOM", "I-IDIOM"
    tags = ["O"] * (len(tokens) - 4) + [*(inside if figurative else ["O"] * 3), "O"]
    return JamSentence.model_validate(
        {
            "language": "english",
            "sentence": "".join(tokens),
            "tokens": tuple(tokens),
            "tags": tuple(tags),
            "pies": ("broke the ice",),
            "true_idioms": ("broke the ice",) if figurative else (),
            "is_figurative": figurative,
            "id": f"o-v{number}" if number else "o",
            "original_id": "o",
            "variant_number": number,
        }
    )


def test_cues_are_content_words_of_the_added_context() -> None:
    variant = jam_sentence(1, "at noon the red bucket .")
    assert cue_indices(jam_sentence(0, ""), variant) == [1, 3, 4]
    assert cue_indices(jam_sentence(0, ""), jam_sentence(1, "yet every bucket , all frozen .")) == [
        2,
        5,
    ]
    assert pie_indices(variant) == [7, 8, 9]
    assert pie_indices(jam_sentence(1, "at noon", figurative=False)) == [3, 4, 5]


def idiomatic(name: str, correct: bool, *right: bool) -> JudgedOriginal:
    return judged(name, True, correct, right)


def test_pairs_have_a_misleading_variant_and_one_that_all_runs_resolved() -> None:
    one = [
        idiomatic("a", True, False, True, True),
        idiomatic("b", True, False, False, False),  # none resolved
        idiomatic("c", True, True, True, True),  # none misleads
        idiomatic("d", False, False, True, True),  # no run is right about the original
        idiomatic("e", True, True, False, True),
        idiomatic("f", True, False, True, False),
    ]
    other = [
        idiomatic("a", True, False, False, True),
        idiomatic("b", True, False, False, False),
        idiomatic("c", True, True, True, True),
        idiomatic("d", False, True, True, True),
        # If the original is wrong, its variants do not mislead, but they are not resolved, either.
        idiomatic("e", False, False, False, True),
        # It misleads no run, but a run that is wrong about the original does not resolve it.
        idiomatic("f", False, False, False, False),
    ]
    assert select_pairs([one, other]) == [("a", "a-v1", "a-v3"), ("e", "e-v2", "e-v3")]
    # Runs that were right about no original are ignored.
    helpless = [idiomatic(name, False, False, False, False) for name in "abcdef"]
    assert select_pairs([one, other, helpless]) == [("a", "a-v1", "a-v3"), ("e", "e-v2", "e-v3")]


@pytest.fixture
def causal(tmp_path: Path) -> CausalModel:
    tiny_llama(layers=2, heads=2, hidden=8).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    return load_causal_model(
        CheckpointEntry(label="x", licence="x", checkpoint="x", source="folder", path=str(tmp_path))
    )


GROUP = {
    item.id: item
    for item in (
        jam_sentence(0, ""),
        jam_sentence(1, "at noon the red bucket ."),
        jam_sentence(2, "we red ."),
        jam_sentence(3, "at"),
    )
}


def test_analysis_from_files(causal: CausalModel) -> None:
    (pair,) = analyze(causal, GROUP, [CandidatePair("o", "o-v1", "o-v2")], limit=10)
    misleading = pair.misleading
    assert (misleading.id, pair.resolved.id) == ("o-v1", "o-v2")
    assert misleading.words == [
        "at",
        "noon",
        "the",
        "red",
        "bucket",
        ".",
        "they",
        "broke",
        "the",
        "ice",
    ]
    assert (misleading.pie_words, misleading.cue_words) == ([7, 8, 9], [1, 3, 4])
    assert np.array(misleading.by_layer).shape == (2, 10)
    assert np.array(misleading.cue_share).shape == (2, 2)
    assert misleading.share == pytest.approx(np.mean(misleading.cue_share), abs=1e-4)


def test_pairs_without_cues_take_no_place(causal: CausalModel) -> None:
    # "at" is not a cue word, so pairs with the third variant are skipped.
    pairs = [(1, 3), (1, 2), (3, 2), (2, 1), (1, 2)]
    candidates = [CandidatePair("o", f"o-v{one}", f"o-v{other}") for one, other in pairs]
    analyzed = analyze(causal, GROUP, candidates, limit=2)
    assert [(pair.misleading.id, pair.resolved.id) for pair in analyzed] == [
        ("o-v1", "o-v2"),
        ("o-v2", "o-v1"),
    ]


def test_mean_share_over_pairs() -> None:
    share = mean_share([0.2, 0.4, 0.6], resamples=500)
    assert share.mean == pytest.approx(0.4)
    assert share.interval is not None
    assert 0.2 <= share.interval.low < 0.4 < share.interval.high <= 0.6
    assert mean_share([], resamples=10).mean is None
