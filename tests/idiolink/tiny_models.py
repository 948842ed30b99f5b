"""Tiny random checkpoints: of each architecture family, and of the anatomy of the paper's models.

Nothing in them is trained, and the vocabularies are made here. What they share with the public
checkpoints is what decides how one has to read them: classes, tokenizers, special tokens, modules,
files and flags.
"""

import json
import shutil
import string
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import remote_code
import torch
import transformers
from safetensors.torch import save_file
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

from pieline.models.embedder import EmbedderEntry
from pieline.studies.idiolink.predictions.query_texts import INSTRUCTION

SENTENCES = [
    "They broke the ice with a joke.",
    "It melted.",
    "And then the warm water broke the ice in it, they joke with a query.",
]
LETTERS = [chr(code) for code in range(33, 127)]
WORDS = [word.strip(string.punctuation) for word in f"{' '.join(SENTENCES)} {INSTRUCTION}".split()]
WORDS = list(dict.fromkeys([word.lower() for word in WORDS] + ["instruct", "idiomatic"]))


@dataclass(frozen=True)
class Family:
    """Models of one class with one tokenizer.

    Attributes:
        model: name of the class.
        code: the module that has it and its configuration.
        tokenizer: name of the tokenizer's class.
        template: what the tokenizer puts around a text.
        specials: special tokens by role; those not in the vocabulary's head are added behind it.
        sizes: of the configuration, besides those of all families.
    """

    model: str
    tokenizer: str
    template: str
    specials: dict[str, str]
    sizes: dict[str, Any] = field(default_factory=dict)
    code: Any = transformers

    @property
    def config(self) -> Any:
        """The configuration's class."""
        named = self.model.removesuffix("EncoderModel").removesuffix("Model")
        return getattr(self.code, f"{named}Config")


SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
DECODER = {"num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 1024}
WIDE_HEADS = DECODER | {"head_dim": 16}
WORD_PIECES = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
XLM_R = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
XLM_R |= {"cls": "<s>", "sep": "</s>"}
QWEN = {"eos": "<|endoftext|>", "pad": "<|endoftext|>"}
LLAMA = ("PreTrainedTokenizerFast", "<|begin_of_text|> $A")
LLAMA_3 = {"bos": "<|begin_of_text|>", "eos": "<|end_of_text|>"}
GEMMA = {"pad": "<pad>", "eos": "<eos>", "bos": "<bos>", "unk": "<unk>", "mask": "<mask>"}
T5 = {"d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}

FAMILIES = {
    "bert": Family("BertModel", "BertTokenizer", "[CLS] $A [SEP]", WORD_PIECES),
    "mpnet": Family("MPNetModel", "MPNetTokenizer", "<s> $A </s>", XLM_R | {"unk": "[UNK]"}),
    "xlm-roberta": Family(
        "XLMRobertaModel", "XLMRobertaTokenizer", "<s> $A </s>", XLM_R,
        {"max_position_embeddings": 514},
    ),
    "nomic": Family(
        "NomicBertModel", "XLMRobertaTokenizer", "<s> $A </s>", XLM_R, code=remote_code
    ),
    "t5": Family(
        "T5EncoderModel", "T5Tokenizer", "$A </s>",
        {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"}, T5,
    ),
    "qwen2": Family("Qwen2Model", "Qwen2Tokenizer", "$A", QWEN, DECODER),
    # The token that ends an input is not the one called eos_token.
    "qwen3": Family(
        "Qwen3Model", "Qwen2Tokenizer", "$A <|endoftext|>", QWEN | {"eos": "<|im_end|>"}, WIDE_HEADS
    ),
    "mistral": Family(
        "MistralModel", "LlamaTokenizer", "<s> $A",
        {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "pad": "</s>"}, DECODER,
    ),
    "llama": Family("LlamaModel", *LLAMA, LLAMA_3, DECODER),
    "nemotron": Family("LlamaBidirectionalModel", *LLAMA, LLAMA_3, DECODER, remote_code),
    "gemma2": Family("Gemma2Model", "GemmaTokenizer", "<bos> $A <eos>", GEMMA, WIDE_HEADS),
}  # fmt: skip
DECODERS = ("qwen2", "qwen3", "mistral", "llama", "gemma2")


@dataclass(frozen=True)
class Anatomy:
    """What a tiny checkpoint shares with a public one.

    Attributes:
        family: key of `FAMILIES`.
        pooling: what its sentence-transformers files say; None where it has no such files.
        dense: outputs of the Dense head behind the pooling, and whether it has a bias.
        normalize: whether a Normalize module ends the chain.
        hidden: hidden size; that of models with a Dense head is to it as theirs.
        template: what its tokenizer puts around a text, where the family's puts something else.
        trained: what stood around a text when the model was trained, where its tokenizer puts
            something else.
        sees_ahead: whether a decoder was trained with bidirectional attention; no flag says so.
        left: whether the tokenizer pads on the left.
        max_length: longest input that its files name.
        prompts: those of its sentence-transformers files, to be applied by no one.
        repo_code: classes that config.json and tokenizer_config.json name by role, although the
            library has its own; their files are not even there.
        tokenizer_flags: more of tokenizer_config.json.
        with_head: whether the weights include the head of a language model.
        vocabulary_only: whether there is a vocab.txt instead of a tokenizer.json.
    """

    family: str
    pooling: str | None = None
    dense: tuple[int, bool] | None = None
    normalize: bool = True
    hidden: int = 32
    template: str | None = None
    trained: str | None = None
    sees_ahead: bool = False
    left: bool = False
    max_length: int = 512
    prompts: dict[str, str] = field(default_factory=dict)
    repo_code: dict[str, str] = field(default_factory=dict)
    tokenizer_flags: dict[str, Any] = field(default_factory=dict)
    with_head: bool = False
    vocabulary_only: bool = False

    @property
    def kind(self) -> Family:
        """Its family."""
        return FAMILIES[self.family]

    @property
    def written(self) -> str:
        """What its tokenizer puts around a text, `$A`."""
        return self.template or self.kind.template

    @property
    def reads(self) -> str:
        """What has to stand around a text, `$A`, as when the model was trained."""
        return self.trained or self.written


ASK = "Instruct: Find what the query means.\nQuery:"
ENDED = "$A <|endoftext|>"
BERT = Anatomy("bert", "mean")
INSTRUCTOR = Anatomy("t5", "mean", (24, False))
QWEN3 = Anatomy(
    "qwen3", "lasttoken", left=True, max_length=32768, prompts={"query": ASK, "document": ""}
)
REPO_QWEN = {"AutoModel": "modeling_qwen.Qwen2Model"}
REPO_QWEN |= {"AutoTokenizer": "tokenization_qwen.Qwen2TokenizerFast"}
GTE = Anatomy(
    "qwen2", "lasttoken", trained=ENDED, sees_ahead=True, left=True, max_length=32768,
    prompts={"query": f"{ASK} "}, repo_code=REPO_QWEN, with_head=True,
)  # fmt: skip
LINQ = Anatomy(
    "mistral", "lasttoken", normalize=False, template="<s> $A </s>", left=True, max_length=32768
)
FLAGGED = replace(
    LINQ, template=None, trained="<s> $A </s>", max_length=4096,
    tokenizer_flags={"add_bos_token": True, "add_eos_token": True},
)  # fmt: skip
PROMPTED = ("web_search_query", "sts_query", "summarization_query", "bitext_query")

ANATOMY = {
    "sbert": replace(BERT, max_length=256),
    "contriever": Anatomy("bert"),
    "e5-base-v2": BERT,
    "drama-1b": Anatomy(
        "llama", "mean", template="<|begin_of_text|> $A <|end_of_text|>", sees_ahead=True,
        max_length=131072, prompts={"query": "Query: "},
        repo_code={"AutoModel": "modeling_drama.DramaModel"},
    ),
    "stella-1.5b-v5": Anatomy(
        "qwen2", "mean", (32, True), normalize=False, hidden=48, trained=ENDED, sees_ahead=True,
        left=True, prompts={"s2p_query": f"{ASK} ", "s2s_query": f"{ASK} "}, repo_code=REPO_QWEN,
    ),
    "tart-contriever": Anatomy("bert", vocabulary_only=True),
    "bge-base-en-v1.5": Anatomy("bert", "cls"),
    "instructor-base": replace(INSTRUCTOR, hidden=24),
    "nomic-v2-moe": Anatomy(
        "nomic", "mean", prompts={"query": "search_query: ", "passage": "search_document: "}
    ),
    "bge-m3": Anatomy("xlm-roberta", "cls", max_length=8192),
    "multilingual-e5-large-instruct": Anatomy("xlm-roberta", "mean", max_length=514),
    "qwen3-embedding-0.6b": QWEN3,
    "instructor-xl": INSTRUCTOR,
    # What ends its inputs is not known, nor how: here it is a flag.
    "lychee-embed": Anatomy(
        "qwen2", "lasttoken", trained=ENDED, left=True, max_length=32768,
        tokenizer_flags={"add_eos_token": True},
    ),
    "gte-qwen2-1.5b": GTE,
    "qwen3-embedding-4b": QWEN3,
    "linq-embed-mistral": LINQ,
    "sfr-embedding-mistral": FLAGGED,
    "e5-mistral": replace(FLAGGED, normalize=True, prompts=dict.fromkeys(PROMPTED, f"{ASK} ")),
    "gritlm-7b": Anatomy(
        "mistral", sees_ahead=True, with_head=True,
        repo_code={"AutoModelForCausalLM": "modeling_gritlm7b.MistralForCausalLM"},
    ),
    "gte-qwen2-7b": GTE,
    "qwen3-embedding-8b": QWEN3,
    "llama-embed-nemotron-8b": Anatomy("nemotron", sees_ahead=True, left=True),
    "bge-multilingual-gemma2": Anatomy(
        "gemma2", "lasttoken", left=True, max_length=8192,
        prompts={"web_search_query": "<instruct>Find what it means.\n<query>"},
    ),
}  # fmt: skip
"""By the name in models.yaml. What is not known of a public checkpoint is taken from the most
similar one."""


def tokenizer_of(anatomy: Anatomy) -> Tokenizer:
    """Its tokenizer as tokenizer.json has it: word, unigram, byte-level or SentencePiece pieces."""
    family = anatomy.kind
    specials = list(dict.fromkeys(family.specials.values()))
    if family.tokenizer in {"BertTokenizer", "MPNetTokenizer"}:
        tokenizer = _word_pieces(specials, family.specials["unk"])
    elif family.tokenizer in {"T5Tokenizer", "XLMRobertaTokenizer"}:
        tokenizer = _unigram_pieces(specials)
    elif family.tokenizer in {"LlamaTokenizer", "GemmaTokenizer"}:
        tokenizer = _fallback_pairs(specials, prefixed=family.tokenizer == "LlamaTokenizer")
    else:
        tokenizer = _byte_pairs()
    tokenizer.add_special_tokens(specials)
    around = anatomy.written.split()
    around.remove("$A")
    ids = [(name, tokenizer.token_to_id(name)) for name in around]
    steps = [processors.TemplateProcessing(single=anatomy.written, special_tokens=ids)] * bool(ids)
    if isinstance(tokenizer.decoder, decoders.ByteLevel):
        steps = [processors.ByteLevel(trim_offsets=False), *steps]
    tokenizer.post_processor = steps[0] if len(steps) == 1 else processors.Sequence(steps)
    return tokenizer


def _word_pieces(specials: Sequence[str], unknown: str) -> Tokenizer:
    letters = sorted({letter.lower() for letter in LETTERS})
    pieces = [*specials, *letters, *(f"##{letter}" for letter in letters), *WORDS]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _unigram_pieces(specials: Sequence[str]) -> Tokenizer:
    first = [name for name in specials if name != "<mask>"]
    scored = [(name, 0.0) for name in first] + [("▁", -3.0)]
    scored += [(f"▁{word}", -2.0) for word in WORDS] + [(letter, -6.0) for letter in LETTERS]
    if "<s>" not in first:
        scored += [(f"<extra_id_{number}>", 0.0) for number in range(99, -1, -1)]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=first.index("<unk>")))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def _byte_pairs() -> Tokenizer:
    vocabulary, merges = _pairs(byte_level=True)
    tokenizer = Tokenizer(models.BPE(dict(vocabulary), list(merges)))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _fallback_pairs(specials: Sequence[str], *, prefixed: bool) -> Tokenizer:
    pieces, merges = _pairs(byte_level=False)
    names = [*specials, *(f"<0x{code:02X}>" for code in range(256)), *pieces]
    vocabulary = {name: index for index, name in enumerate(names)}
    tokenizer = Tokenizer(
        models.BPE(vocabulary, list(merges), unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    replaced = normalizers.Replace(" ", "▁")
    tokenizer.normalizer = (
        normalizers.Sequence([normalizers.Prepend("▁"), replaced]) if prefixed else replaced
    )
    return tokenizer


@cache
def _pairs(*, byte_level: bool) -> tuple[dict[str, int], tuple[tuple[str, str], ...]]:
    """Vocabulary and merges that make a piece of each known word."""
    tokenizer = Tokenizer(models.BPE())
    if byte_level:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        alphabet = ["▁", *LETTERS]
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=sorted(alphabet), show_progress=False
    )
    tokenizer.train_from_iterator([*SENTENCES, *(f" {word}" for word in WORDS)] * 3, trainer)
    trained = json.loads(tokenizer.to_str())["model"]
    return trained["vocab"], tuple((left, right) for left, right in trained["merges"])


def save_checkpoint(anatomy: Anatomy, folder: Path) -> Path:
    """Write a tiny checkpoint of this anatomy; always the same weights."""
    tokenizer = tokenizer_of(anatomy)
    _save_model(anatomy, folder, tokenizer)
    _save_tokenizer(anatomy, folder, tokenizer)
    if anatomy.pooling:
        _save_modules(anatomy, folder)
    return folder


def save_tiny(family: str, folder: Path, *, pooling: str | None = None) -> Path:
    """Write a tiny model of a family; with `pooling` as a sentence-transformers folder."""
    return save_checkpoint(Anatomy(family, pooling), folder)


def _save_model(anatomy: Anatomy, folder: Path, tokenizer: Tokenizer) -> None:
    family = anatomy.kind
    sizes = family.sizes if anatomy.family == "t5" else SIZES | family.sizes
    width = "d_model" if anatomy.family == "t5" else "hidden_size"
    config = family.config(
        **sizes | {width: anatomy.hidden},
        vocab_size=tokenizer.get_vocab_size(),
        pad_token_id=tokenizer.token_to_id(family.specials.get("pad", "")),
    )
    torch.manual_seed(7)
    name = family.model.replace("Model", "ForCausalLM") if anatomy.with_head else family.model
    model = getattr(family.code, name)(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    classes = {role: named for role, named in anatomy.repo_code.items() if role != "AutoTokenizer"}
    if family.code is remote_code:
        # The weights of one repository, the code of another, as Nomic's.
        code = folder if anatomy.family == "nemotron" else folder.with_name(f"{folder.name}-code")
        code.mkdir(exist_ok=True)
        shutil.copy(str(remote_code.__file__), code)
        where = "" if code == folder else f"{code}--"
        classes = {"AutoConfig": f"{where}remote_code.{family.config.__name__}"}
        classes |= {"AutoModel": f"{where}remote_code.{family.model}"}
    _amend(folder / "config.json", {"auto_map": classes} if classes else {})


def _save_tokenizer(anatomy: Anatomy, folder: Path, tokenizer: Tokenizer) -> None:
    family = anatomy.kind
    if anatomy.vocabulary_only:
        ranked = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece, _ in ranked))
    else:
        tokenizer.save(str(folder / "tokenizer.json"))
    config = {f"{role}_token": name for role, name in family.specials.items()}
    config |= {"tokenizer_class": family.tokenizer, "model_max_length": anatomy.max_length}
    config |= {"padding_side": "left"} if anatomy.left else {}
    if "AutoTokenizer" in anatomy.repo_code:
        config["auto_map"] = {"AutoTokenizer": [None, anatomy.repo_code["AutoTokenizer"]]}
    _amend(folder / "tokenizer_config.json", config | anatomy.tokenizer_flags)


def _save_modules(anatomy: Anatomy, folder: Path) -> None:
    """The files of sentence-transformers."""
    chain = ["Transformer", "Pooling"]
    chain += ["Dense"] * bool(anatomy.dense) + ["Normalize"] * anatomy.normalize
    paths = [f"{place}_{module}" if place else "" for place, module in enumerate(chain)]
    rows = [
        {"idx": place, "name": str(place), "path": path}
        | {"type": f"sentence_transformers.models.{module}"}
        for place, (path, module) in enumerate(zip(paths, chain, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(rows))
    modes = {"mean": "mean_tokens", "cls": "cls_token", "lasttoken": "lasttoken"}
    pooling = {f"pooling_mode_{mode}": name == anatomy.pooling for name, mode in modes.items()}
    _amend(folder / "1_Pooling/config.json", {"word_embedding_dimension": anatomy.hidden} | pooling)
    _amend(
        folder / "sentence_bert_config.json",
        {"max_seq_length": anatomy.max_length, "do_lower_case": False},
    )
    _amend(
        folder / "config_sentence_transformers.json",
        {"prompts": anatomy.prompts, "default_prompt_name": None},
    )
    if anatomy.dense:
        outputs, has_bias = anatomy.dense
        dense = {"in_features": anatomy.hidden, "out_features": outputs, "bias": has_bias}
        dense |= {"activation_function": "torch.nn.modules.linear.Identity"}
        _amend(folder / "2_Dense/config.json", dense)
        weights = {"linear.weight": torch.randn(outputs, anatomy.hidden)}
        weights |= {"linear.bias": torch.randn(outputs)} if has_bias else {}
        save_file(weights, folder / "2_Dense/model.safetensors")


def _amend(path: Path, fields: dict[str, Any]) -> None:
    """Write a JSON object, or more fields into one."""
    path.parent.mkdir(exist_ok=True)
    present = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(present | fields))


def tiny_entry(folder: Path, **fields: Any) -> EmbedderEntry:
    """An entry of models.yaml for a folder."""
    shared = {"label": "tiny", "licence": "CC0-1.0", "checkpoint": "tiny", "kind": "embedder"}
    shared |= {"source": "folder", "path": str(folder), "trained_with_instructions": False}
    shared |= {"instruction_format": "instruct_query", "max_length": 128, "batch_size": 4}
    return EmbedderEntry.model_validate(shared | fields)
