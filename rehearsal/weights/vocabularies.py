"""Tokenizers of the stand-ins: the kinds of the public checkpoints, with small vocabularies.

They can encode any text in the studies' languages. The pieces are letters and the passed words.
"""

import json
from collections.abc import Sequence
from typing import Any

from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from rehearsal.weights.anatomy import Anatomy

LETTERS = [*map(chr, range(33, 127)), *"ÀÈÉÌÒÙÁÍÓÚÑÄÖÜàèéìòùáíóúñäöüß¿¡«»„“”‘’–—…°€"]


def tokenizer_of(anatomy: Anatomy, words: tuple[str, ...] = ()) -> Tokenizer:
    """Return the tokenizer of a checkpoint: WordPiece, Unigram, byte-level BPE or fallback BPE.

    `words` are pieces in addition to the letters.
    """
    family = anatomy.kind
    specials = list(dict.fromkeys(family.specials.values()))
    if family.tokenizer in {"BertTokenizer", "MPNetTokenizer"}:
        tokenizer = _word_pieces(specials, family.specials["unk"], words, cased=anatomy.cased)
    elif family.tokenizer in {"T5Tokenizer", "XLMRobertaTokenizer"}:
        tokenizer = _unigram_pieces(specials, words)
    elif family.tokenizer in {"LlamaTokenizer", "GemmaTokenizer"}:
        prefixed = family.tokenizer == "LlamaTokenizer"
        tokenizer = _fallback_pairs(specials, family.specials["unk"], words, prefixed=prefixed)
    else:
        tokenizer = _byte_pairs(words)
    tokenizer.add_special_tokens(specials)
    around = anatomy.written.split()
    around.remove("$A")
    ids = [(name, tokenizer.token_to_id(name)) for name in around]
    steps: list[Any] = [
        processors.TemplateProcessing(single=anatomy.written, special_tokens=ids)
    ] * bool(ids)
    if isinstance(tokenizer.decoder, decoders.ByteLevel):
        steps = [processors.ByteLevel(trim_offsets=False), *steps]
    tokenizer.post_processor = steps[0] if len(steps) == 1 else processors.Sequence(steps)
    return tokenizer


def _word_pieces(
    specials: Sequence[str], unknown: str, words: Sequence[str], *, cased: bool
) -> Tokenizer:
    pieces = [*LETTERS, *words, *(f"##{letter}" for letter in LETTERS)]
    known = dict.fromkeys([*specials, *(pieces if cased else map(str.lower, pieces))])
    vocabulary = {piece: index for index, piece in enumerate(known)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _unigram_pieces(specials: Sequence[str], words: Sequence[str]) -> Tokenizer:
    first = [name for name in specials if name != "<mask>"]
    scores = dict.fromkeys(first, 0.0) | {"▁": -3.0}
    scores |= {f"▁{word}": -2.0 for word in words} | dict.fromkeys(LETTERS, -6.0)
    if "<s>" not in first:
        scores |= {f"<extra_id_{number}>": 0.0 for number in range(99, -1, -1)}
    tokenizer = Tokenizer(models.Unigram([*scores.items()], unk_id=first.index("<unk>")))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def _byte_pairs(words: Sequence[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    _train(tokenizer, words, pre_tokenizers.ByteLevel.alphabet())
    return tokenizer


def _fallback_pairs(
    specials: Sequence[str], unknown: str, words: Sequence[str], *, prefixed: bool
) -> Tokenizer:
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    _train(trained, words, ["▁", *LETTERS])
    model = json.loads(trained.to_str())["model"]
    names = [*specials, *(f"<0x{code:02X}>" for code in range(256)), *model["vocab"]]
    vocabulary = {name: index for index, name in enumerate(names)}
    merges = [tuple(pair) for pair in model["merges"]]
    tokenizer = Tokenizer(
        models.BPE(vocabulary, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    )
    replaced = normalizers.Replace(" ", "▁")
    tokenizer.normalizer = (
        normalizers.Sequence([normalizers.Prepend("▁"), replaced]) if prefixed else replaced
    )
    return tokenizer


def _train(tokenizer: Tokenizer, words: Sequence[str], alphabet: Sequence[str]) -> None:
    """Train a BPE tokenizer on the words, starting from the letters of the alphabet."""
    trainer = trainers.BpeTrainer(
        vocab_size=4000 + 2 * len(words), initial_alphabet=sorted(alphabet), show_progress=False
    )
    tokenizer.train_from_iterator([f" {word}" for word in words], trainer)
