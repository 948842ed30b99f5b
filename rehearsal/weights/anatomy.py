"""Properties of the public checkpoints that determine how they are loaded.

The properties are classes, tokenizers, special tokens, modules, files and flags, but not sizes:
stand-ins are as small as the properties allow.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import transformers

from rehearsal.weights import remote_code


@dataclass(frozen=True)
class Family:
    """Properties of checkpoints with the same model class and tokenizer.

    Attributes:
        model: Name of the model class.
        code: Module that defines the model class and its configuration class.
        tokenizer: Name of the tokenizer class.
        template: Template that the tokenizer applies to a text (`$A`).
        specials: Special tokens by role; those not at the start of the vocabulary are appended.
        sizes: Configuration values in addition to those of all families.
        head: Suffix that replaces `Model` in the name of the class with a language-model head.
    """

    model: str
    tokenizer: str
    template: str
    specials: dict[str, str]
    sizes: dict[str, Any] = field(default_factory=dict)
    code: Any = transformers
    head: str = "ForCausalLM"

    @property
    def config(self) -> Any:
        """The configuration class."""
        named = self.model.removesuffix("EncoderModel").removesuffix("Model")
        return getattr(self.code, f"{named}Config")


SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
DECODER = {"num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 1024}
WIDE_HEADS = DECODER | {"head_dim": 16}
WORD_PIECES = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
XLM_R = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
XLM_R |= {"cls": "<s>", "sep": "</s>"}
SENTENCE_PIECES = {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "pad": "</s>"}
QWEN = {"eos": "<|endoftext|>", "pad": "<|endoftext|>"}
LLAMA = ("PreTrainedTokenizerFast", "<|begin_of_text|> $A")
LLAMA_3 = {"bos": "<|begin_of_text|>", "eos": "<|end_of_text|>"}
GEMMA = {"pad": "<pad>", "eos": "<eos>", "bos": "<bos>", "unk": "<unk>", "mask": "<mask>"}
T5 = {"d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}

FAMILIES = {
    "bert": Family(
        "BertModel", "BertTokenizer", "[CLS] $A [SEP]", WORD_PIECES, head="ForMaskedLM"
    ),
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
    # Inputs do not end with eos_token but with another token.
    "qwen3": Family(
        "Qwen3Model", "Qwen2Tokenizer", "$A <|endoftext|>", QWEN | {"eos": "<|im_end|>"}, WIDE_HEADS
    ),
    "mistral": Family(
        "MistralModel", "LlamaTokenizer", "<s> $A", SENTENCE_PIECES, DECODER
    ),
    "llama": Family("LlamaModel", *LLAMA, LLAMA_3, DECODER),
    "llama-2": Family("LlamaModel", "LlamaTokenizer", "<s> $A", SENTENCE_PIECES, DECODER),
    "nemotron": Family("LlamaBidirectionalModel", *LLAMA, LLAMA_3, DECODER, remote_code),
    "gemma2": Family("Gemma2Model", "GemmaTokenizer", "<bos> $A <eos>", GEMMA, WIDE_HEADS),
}  # fmt: skip


@dataclass(frozen=True)
class Anatomy:
    """Properties that a tiny checkpoint shares with a public one.

    Attributes:
        family: Key of `FAMILIES`.
        pooling: Pooling in the sentence-transformers files; None if these files do not exist.
        dense: Number of outputs of the Dense head after the pooling, and whether the head has a
            bias; None if there is no head.
        normalize: Whether the last module is Normalize.
        hidden: Hidden size; with a Dense head, its ratio to the outputs is as in the public model.
        template: Template of the tokenizer; None for that of the family.
        trained: Template that the model was trained with; None for that of the tokenizer.
        sees_ahead: Whether a decoder was trained with bidirectional attention, which no flag in the
            files states.
        left: Whether the tokenizer pads on the left.
        max_length: Maximum input length in the files, in tokens.
        prompts: Prompts in the sentence-transformers files, which must not be applied.
        repo_code: Classes by role in config.json and tokenizer_config.json. The library implements
            them as well, so the stand-in does not include their files.
        code_in: Repository of the modeling code; empty if it is that of the weights.
        tokenizer_flags: Additional fields of tokenizer_config.json.
        with_head: Whether the weights include the head of a language model.
        vocabulary_only: Whether there is a vocab.txt instead of a tokenizer.json.
        cased: Whether word pieces are case-sensitive.
        dtype: Data type of the stored weights.
        sizes: Configuration values that replace the family's.
    """

    family: str
    pooling: str | None = None
    dense: tuple[int, bool] | None = None
    normalize: bool = True
    hidden: int = 16
    template: str | None = None
    trained: str | None = None
    sees_ahead: bool = False
    left: bool = False
    max_length: int = 512
    prompts: dict[str, str] = field(default_factory=dict)
    repo_code: dict[str, str] = field(default_factory=dict)
    code_in: str = ""
    tokenizer_flags: dict[str, Any] = field(default_factory=dict)
    with_head: bool = False
    vocabulary_only: bool = False
    cased: bool = False
    dtype: str = "float32"
    sizes: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> Family:
        """The family of the checkpoint."""
        return FAMILIES[self.family]

    @property
    def written(self) -> str:
        """Template that the tokenizer applies to a text (`$A`)."""
        return self.template or self.kind.template


ASK = "Instruct: Find what the query means.\nQuery:"
ENDED = "$A <|endoftext|>"
# Fine-tuned models are trained more than sixty times, and dropout takes a quarter of the time.
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
BERT = Anatomy("bert", "mean", sizes=NO_DROPOUT)
INSTRUCTOR = Anatomy("t5", "mean", (12, False))
QWEN3 = Anatomy(
    "qwen3", "lasttoken", left=True, max_length=32768, prompts={"query": ASK, "document": ""},
    dtype="bfloat16",
)  # fmt: skip
REPO_QWEN = {"AutoModel": "modeling_qwen.Qwen2Model"}
REPO_QWEN |= {"AutoTokenizer": "tokenization_qwen.Qwen2TokenizerFast"}
GTE = Anatomy(
    "qwen2", "lasttoken", trained=ENDED, sees_ahead=True, left=True, max_length=32768,
    prompts={"query": f"{ASK} "}, repo_code=REPO_QWEN, with_head=True,
)  # fmt: skip
LINQ = Anatomy(
    "mistral", "lasttoken", normalize=False, template="<s> $A </s>", left=True, max_length=32768,
    dtype="float16",
)  # fmt: skip
FLAGGED = replace(
    LINQ, template=None, trained="<s> $A </s>", max_length=4096,
    tokenizer_flags={"add_bos_token": True, "add_eos_token": True},
)  # fmt: skip
PROMPTED = ("web_search_query", "sts_query", "summarization_query", "bitext_query")
ENCODER = Anatomy(
    "bert", cased=True, with_head=True, tokenizer_flags={"do_lower_case": False},
    sizes=NO_DROPOUT | {"num_hidden_layers": 1, "num_attention_heads": 1},
)  # fmt: skip
CHAT = Anatomy(
    "llama-2", with_head=True, max_length=4096, dtype="float16",
    tokenizer_flags={
        "chat_template": "{{ bos_token }}{% for turn in messages %}[{{ turn.role }}]"
        " {{ turn.content }}{{ eos_token if turn.role == 'assistant' }}{% endfor %}"
    },
)  # fmt: skip

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
        "qwen2", "mean", (16, True), normalize=False, hidden=24, trained=ENDED, sees_ahead=True,
        left=True, prompts={"s2p_query": f"{ASK} ", "s2s_query": f"{ASK} "}, repo_code=REPO_QWEN,
    ),
    "tart-contriever": Anatomy("bert", vocabulary_only=True),
    "bge-base-en-v1.5": Anatomy("bert", "cls"),
    "instructor-base": replace(INSTRUCTOR, hidden=12),
    "nomic-v2-moe": Anatomy(
        "nomic", "mean", prompts={"query": "search_query: ", "passage": "search_document: "},
        code_in="nomic-ai/nomic-bert-2048",
    ),
    "bge-m3": Anatomy("xlm-roberta", "cls", max_length=8192, sizes=NO_DROPOUT),
    "multilingual-e5-large-instruct": Anatomy(
        "xlm-roberta", "mean", max_length=514, dtype="float16"
    ),
    "qwen3-embedding-0.6b": QWEN3,
    "instructor-xl": INSTRUCTOR,
    # The public model's end token and its mechanism are unknown; the stand-in uses a flag.
    "lychee-embed": Anatomy(
        "qwen2", "lasttoken", trained=ENDED, left=True, max_length=32768,
        tokenizer_flags={"add_eos_token": True}, dtype="bfloat16",
    ),
    "gte-qwen2-1.5b": GTE,
    "qwen3-embedding-4b": QWEN3,
    "linq-embed-mistral": LINQ,
    "sfr-embedding-mistral": FLAGGED,
    "e5-mistral": replace(FLAGGED, normalize=True, prompts=dict.fromkeys(PROMPTED, f"{ASK} ")),
    "gritlm-7b": Anatomy(
        "mistral", sees_ahead=True, with_head=True, dtype="bfloat16",
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
"""Properties of IdioLink's embedders, by name in models.yaml. Unknown properties are copied from
the most similar checkpoint."""

OTHERS = {
    "minilm-tagger": ANATOMY["sbert"],
    "mbert": ENCODER,
    "bert": replace(ENCODER, cased=False, tokenizer_flags={}),
    "gbert": replace(ENCODER, vocabulary_only=True),
    "llama-3.2-3b": Anatomy(
        "llama", with_head=True, max_length=131072, dtype="bfloat16",
        sizes={"tie_word_embeddings": True},
    ),
    "llama-2-7b-chat": CHAT,
    "mistral-7b-instruct": replace(CHAT, family="mistral", dtype="bfloat16"),
    # The checkpoint has no chat template.
    "vicuna-7b": replace(CHAT, tokenizer_flags={}),
}  # fmt: skip
"""Properties of encoders, of the model for the attention analysis, and of served models."""

USUAL = {
    "embedder": ANATOMY["sbert"],
    "encoder": OTHERS["mbert"],
    "causal_lm": OTHERS["llama-3.2-3b"],
    "llm": CHAT,
}
"""Properties of all other checkpoints, by kind of entry in models.yaml."""
