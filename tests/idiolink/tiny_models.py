"""Tiny randomly initialised models of each architecture family, with vocabularies built here."""

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    AutoModel,
    BertConfig,
    Gemma2Config,
    LlamaConfig,
    MistralConfig,
    MPNetConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
    T5Config,
    T5EncoderModel,
    XLMRobertaConfig,
)

from pieline.models.embedder import EmbedderEntry

WORDS = ["they", "broke", "the", "ice", "with", "a", "joke", "and", "then", "it", "melted"]
WORDS += ["in", "warm", "water", "query", ":", "instruct"]
SENTENCES = [
    "They broke the ice with a joke.",
    "It melted.",
    "And then the warm water broke the ice in it, they joke with a query.",
]
SIZES: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 48, "max_position_embeddings": 300}
DECODER = SIZES | {"num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0}

CONFIGS: dict[str, tuple[type[PreTrainedConfig], dict[str, Any]]] = {
    "bert": (BertConfig, SIZES),
    "mpnet": (MPNetConfig, SIZES),
    "xlm-roberta": (XLMRobertaConfig, SIZES | {"pad_token_id": 1}),
    "t5": (T5Config, {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}),
    "qwen2": (Qwen2Config, DECODER),
    "qwen3": (Qwen3Config, DECODER),
    "mistral": (MistralConfig, DECODER),
    "llama": (LlamaConfig, DECODER),
    "gemma2": (Gemma2Config, DECODER),
}
SPECIALS = {
    # beginning, end, padding, unknown, as the family's tokenizers have them
    "bert": ("[CLS]", "[SEP]", "[PAD]", "[UNK]"),
    "mpnet": ("<s>", "</s>", "<pad>", "[UNK]"),
    "xlm-roberta": ("<s>", "</s>", "<pad>", "<unk>"),
    "t5": (None, "</s>", "<pad>", "<unk>"),
    "qwen2": (None, "<|endoftext|>", "<|endoftext|>", None),
    "qwen3": (None, "<|endoftext|>", "<|endoftext|>", None),
    "mistral": ("<s>", "</s>", None, "<unk>"),
    "llama": ("<|begin_of_text|>", "<|end_of_text|>", None, None),
    "gemma2": ("<bos>", "<eos>", "<pad>", "<unk>"),
}
DECODERS = ("qwen2", "qwen3", "mistral", "llama", "gemma2")


def tokenizer_of(family: str) -> PreTrainedTokenizerFast:
    """A tokenizer of the family's kind: word pieces, unigram pieces, or byte-level pairs."""
    begin, end, pad, unknown = SPECIALS[family]
    specials = list(dict.fromkeys(name for name in (begin, pad, end, unknown) if name))
    if family in {"bert", "mpnet"}:
        letters = sorted({letter for word in WORDS for letter in word} | set(".,'/()[]<>|\n"))
        pieces = [*specials, *letters, *(f"##{letter}" for letter in letters), *WORDS]
        vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    elif family in {"xlm-roberta", "t5"}:
        letters = [chr(code) for code in range(33, 127)]
        scored = [(name, 0.0) for name in specials] + [("▁", -3.0)]
        scored += [(f"▁{word}", -2.0) for word in WORDS] + [(letter, -6.0) for letter in letters]
        tokenizer = Tokenizer(models.Unigram(scored, unk_id=specials.index(str(unknown))))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
    else:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=320,
            special_tokens=specials,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator([*SENTENCES, *(f" {word}" for word in WORDS)] * 3, trainer)
    # Mistral and Llama begin with a token and end with none, Qwen's embedders the other way round.
    parts = [name for name in (begin, "$A", end) if name]
    if family in {"mistral", "llama"}:
        parts = [str(begin), "$A"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=" ".join(parts),
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in parts if name != "$A"],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=begin,
        eos_token=end,
        pad_token=pad,
        unk_token=unknown,
        model_max_length=256,
    )


def save_tiny(family: str, folder: Path, *, st_pooling: str | None = None) -> Path:
    """Write a tiny model of a family; with `st_pooling` as a sentence-transformers folder."""
    tokenizer = tokenizer_of(family)
    kind, sizes = CONFIGS[family]
    config = kind(vocab_size=len(tokenizer), **sizes)
    config.architectures = [kind.__name__.replace("Config", "Model")]
    torch.manual_seed(7)
    model = T5EncoderModel(config) if family == "t5" else AutoModel.from_config(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if st_pooling:
        modules = [("0", "", "Transformer"), ("1", "1_Pooling", "Pooling")]
        modules.append(("2", "2_Normalize", "Normalize"))
        rows = [
            {"idx": int(name), "name": name, "path": path}
            | {"type": f"sentence_transformers.models.{module}"}
            for name, path, module in modules
        ]
        (folder / "modules.json").write_text(json.dumps(rows))
        (folder / "1_Pooling").mkdir()
        pooling = {"word_embedding_dimension": 32, f"pooling_mode_{st_pooling}": True}
        pooling |= {"pooling_mode_mean_tokens": st_pooling == "mean_tokens"}
        (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    return folder


def tiny_entry(folder: Path, **fields: Any) -> EmbedderEntry:
    """An entry of models.yaml for a folder."""
    shared = {"label": "tiny", "licence": "CC0-1.0", "checkpoint": "tiny", "kind": "embedder"}
    shared |= {"source": "folder", "path": str(folder), "trained_with_instructions": False}
    shared |= {"instruction_format": "instruct_query", "max_length": 128, "batch_size": 4}
    return EmbedderEntry.model_validate(shared | fields)
