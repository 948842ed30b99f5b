"""Loading of embedders as their entries in models.yaml describe, and as they were trained."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer
from sentence_transformers.util.environment import check_version_requirements
from tokenizers import processors
from torch import nn
from transformers import PreTrainedTokenizerBase

from pieline.core.errors import UserError
from pieline.core.files import atomic_folder, check_lfs_pointers, files_below, sha256
from pieline.models.adapters import merge_adapter
from pieline.models.checkpoint_settings import CheckpointSettings, checkpoint_settings
from pieline.models.embedder import EmbedderEntry
from pieline.models.loading import loading, require_all_weights, require_finite, require_tokenizer
from pieline.models.weights import weights_location

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PREFIX = "latent_attention_model."
"""Prefix of the layer's weight names in a checkpoint."""


class LatentAttentionPooling(nn.Module):
    """Latent attention layer of NV-Embed (Lee et al., 2025), followed by mean pooling.

    Each token vector attends to the same `latents` and passes through a gated feed-forward block;
    both steps have residual connections. The mean is taken over the tokens in the attention mask.
    The layer is a sentence-transformers module whose weights have the names in the published
    checkpoint.
    """

    def __init__(self, *, latents: int, dimensions: int, inner: int, heads: int) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.zeros(latents, dimensions))
        self.cross_attend_blocks = nn.ModuleList(
            [_AttentionBlock(dimensions, inner, heads), _FeedForwardBlock(dimensions)]
        )

    @classmethod
    def from_weights(
        cls, weights: Mapping[str, torch.Tensor], *, heads: int = 8
    ) -> "LatentAttentionPooling":
        """Return a layer with these weights, whose names have no prefix."""
        latents, dimensions = weights["latents"].shape
        inner = weights["cross_attend_blocks.0.fn.to_q.weight"].shape[0]
        layer = cls(latents=latents, dimensions=dimensions, inner=inner, heads=heads)
        layer.load_state_dict(dict(weights))
        return layer.to(weights["latents"].dtype)

    @classmethod
    def from_folder(cls, folder: str | Path) -> "LatentAttentionPooling":
        """Load the layer from the safetensors files in a folder.

        Raises:
            UserError: The folder does not contain the layer's weights.
        """
        weights = {
            name.removeprefix(PREFIX): tensor
            for path in files_below(folder, ".safetensors")
            for name, tensor in load_file(path).items()
            if name.startswith(PREFIX)
        }
        if not weights:
            raise UserError(
                f"no weights named {PREFIX}*", where=folder, hint="set another `pooling`"
            )
        return cls.from_weights(weights)

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Return the features with `sentence_embedding`, of shape (texts, dimensions), added."""
        attend, feed_forward = self.cross_attend_blocks
        tokens = features["token_embeddings"]
        tokens = attend(tokens, self.latents) + tokens
        tokens = feed_forward(tokens) + tokens
        mask = features["attention_mask"].unsqueeze(-1).to(tokens.dtype)
        features["sentence_embedding"] = (tokens * mask).sum(dim=1) / mask.sum(dim=1)
        return features

    def save(self, output_path: str, *_: object, **__: object) -> None:
        """Save the weights in a sentence-transformers module folder."""
        weights = {PREFIX + name: tensor.contiguous() for name, tensor in self.state_dict().items()}
        save_file(weights, Path(output_path) / "latent_attention.safetensors")


class _AttentionBlock(nn.Module):
    def __init__(self, dimensions: int, inner: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dimensions)
        self.norm_context = nn.LayerNorm(dimensions)
        self.fn = _CrossAttention(dimensions, inner, heads)

    def forward(self, tokens: torch.Tensor, latents: torch.Tensor) -> torch.Tensor:
        attended: torch.Tensor = self.fn(self.norm(tokens), self.norm_context(latents))
        return attended


class _CrossAttention(nn.Module):
    def __init__(self, dimensions: int, inner: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dimensions, inner, bias=False)
        self.to_kv = nn.Linear(dimensions, 2 * inner, bias=False)
        self.to_out = nn.Linear(inner, dimensions, bias=False)

    def forward(self, tokens: torch.Tensor, latents: torch.Tensor) -> torch.Tensor:
        keys, values = self.to_kv(latents).expand(len(tokens), -1, -1).chunk(2, dim=-1)
        attended = nn.functional.scaled_dot_product_attention(
            self._by_head(self.to_q(tokens)), self._by_head(keys), self._by_head(values)
        )
        projected: torch.Tensor = self.to_out(attended.transpose(1, 2).flatten(2))
        return projected

    def _by_head(self, vectors: torch.Tensor) -> torch.Tensor:
        """Reshape (texts, tokens, heads x dimensions) to (texts, heads, tokens, dimensions)."""
        texts, tokens, inner = vectors.shape
        return vectors.reshape(texts, tokens, self.heads, inner // self.heads).transpose(1, 2)


class _FeedForwardBlock(nn.Module):
    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dimensions)
        self.fn = nn.Module()
        self.fn.net = nn.Sequential(
            nn.Linear(dimensions, 8 * dimensions),
            _GatedGelu(),
            nn.Linear(4 * dimensions, dimensions),
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        fed: torch.Tensor = self.fn.net(self.norm(tokens))  # type: ignore[operator]
        return fed


class _GatedGelu(nn.Module):
    def forward(self, doubled: torch.Tensor) -> torch.Tensor:
        values, gates = doubled.chunk(2, dim=-1)
        return values * nn.functional.gelu(gates)


def require_pooling_in_files(location: str, where: str) -> None:
    """Check that a checkpoint defines its pooling; otherwise the library guesses it.

    Raises:
        UserError: modules.json is missing.
    """
    if not any(Path(location, name).exists() for name in ("modules.json", "config.json")):
        raise UserError(
            "config.json is missing", where=where, hint="use the folder that contains it"
        )
    if not Path(location, "modules.json").exists():
        raise UserError(
            "modules.json is missing, so the pooling is undefined",
            where=where,
            hint="set `pooling` in the model's entry",
        )


def end_token_in_files(tokenizer: PreTrainedTokenizerBase, location: str) -> str | None:
    """Return the end-of-sequence token if the tokenizer's files enable it, otherwise None.

    transformers 5 ignores `add_eos_token` if there is a tokenizer.json.
    """
    config = Path(location, "tokenizer_config.json")
    if not config.exists():
        return None
    adds_end_token = json.loads(config.read_text(encoding="utf-8")).get("add_eos_token")
    return str(tokenizer.eos_token) if adds_end_token and tokenizer.eos_token else None


def end_inputs_with(tokenizer: Any, token: str, where: str) -> None:
    """Make a fast tokenizer end every input with a token, including truncated inputs.

    Raises:
        UserError: The token is not in the vocabulary, inputs end with another special token, or
            the tokenizer cannot be configured.
    """
    number = tokenizer.convert_tokens_to_ids(token)
    if number is None or (number == tokenizer.unk_token_id and token != tokenizer.unk_token):
        raise UserError(
            f"end token {token!r} is not in the vocabulary",
            where=where,
            hint="correct `end_token` in the model's entry",
        )
    present = last_token(tokenizer)
    if present == number:
        return
    if present is not None:
        raise UserError(
            f"the tokenizer ends inputs with {tokenizer.convert_ids_to_tokens(present)!r}, "
            f"not with {token!r}",
            where=where,
            hint="set `end_token` in the model's entry to the token used in training",
        )
    inner = tokenizer.backend_tokenizer
    steps = []
    if inner.post_processor:
        steps.append(inner.post_processor)
    # A prefix added by a previous step arrives here as the first sequence of a pair.
    steps.append(
        processors.TemplateProcessing(
            single=f"$A {token}", pair=f"$A:0 $B:0 {token}:0", special_tokens=[(token, number)]
        )
    )
    inner.post_processor = processors.Sequence(steps)
    if last_token(tokenizer) != number:
        raise UserError(
            f"the tokenizer cannot be configured to end inputs with {token!r}",
            where=where,
            hint="use a checkpoint whose tokenizer.json adds it",
        )


def last_token(tokenizer: Any) -> int | None:
    """Return the id of the special token that ends inputs, or None if there is none."""
    with_specials = tokenizer("a")["input_ids"]
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    return int(with_specials[-1]) if with_specials[-1:] != bare[-1:] else None


def require_bidirectional(model: "SentenceTransformer", where: str) -> None:
    """Check that attention is bidirectional: the first token's vector depends on later tokens.

    Raises:
        UserError: Attention is causal.
    """
    tokens = model.tokenizer("one two three four five", return_tensors="pt").to(model.device)
    reordered = tokens["input_ids"].clone()
    reordered[0, 1:] = reordered[0, 1:].flip(0)
    with torch.inference_mode():
        vectors = model[0](dict(tokens))["token_embeddings"]
        changed_vectors = model[0](dict(tokens, input_ids=reordered))["token_embeddings"]
    if torch.equal(vectors[0, 0], changed_vectors[0, 0]):
        raise UserError(
            "attention is causal, although the model's entry sets `bidirectional`",
            where=where,
            hint="use a transformers version that supports the model's code, or the built-in class",
        )


def save_folder(model: SentenceTransformer, output: Path) -> None:
    """Save a model as a safetensors folder, atomically."""
    if model.tokenizer.is_fast:
        # Each call leaves its truncation and padding, which would be saved, too.
        model.tokenizer.backend_tokenizer.no_truncation()
        model.tokenizer.backend_tokenizer.no_padding()
    with atomic_folder(output) as folder:
        model.save(str(folder), create_model_card=False)


def load_encoder(
    entry: EmbedderEntry,
    *,
    weights: str | Path | None = None,
    device: str | None = None,
    dtype: str | None = None,
) -> SentenceTransformer:
    """Load a model for evaluation, as it was trained.

    Args:
        entry: Entry in models.yaml.
        weights: Folder with unpacked or fine-tuned weights that replace those of the entry.
        device: torch device; None selects CUDA if available, otherwise the CPU.
        dtype: Precision; None selects the entry's.

    Raises:
        UserError: The device is missing, the weights are unavailable or incomplete, the pooling or
            the end token is undefined, the checkpoint's files contradict the entry, the tokenizer
            is unsuitable, or attention is causal although the entry declares it bidirectional.
    """
    if device == "mps" and not torch.backends.mps.is_available():
        raise UserError("no Apple GPU available", where="device: mps", hint="set device: null")
    # Without an explicit device, the library would select an Apple GPU.
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    location = str(weights) if weights else weights_location(entry)
    where = f"{entry.checkpoint} ({entry.source})"
    check_lfs_pointers(location)
    with loading(entry):
        if entry.pooling == "checkpoint":
            require_pooling_in_files(location, where)
        settings = checkpoint_settings(entry, location, where)
        model = _assembled(entry, location, settings, device=device, dtype=dtype or entry.dtype)
        require_all_weights(backbone_of(model), location, where)
        # Fine-tuned weights already include the adapter.
        if entry.adapter and not weights:
            merge_adapter(backbone_of(model), entry, where)
        require_finite(model, where)
        require_tokenizer(model.tokenizer, backbone_of(model), location, where)
    if len(model) < 2 or not isinstance(model[1], Pooling | LatentAttentionPooling):
        raise UserError(
            "the second module is not a pooling module",
            where=where,
            hint="set `pooling` in the model's entry",
        )
    model.max_seq_length = entry.max_length
    _prepare_tokenizer(model, entry, where, end_token_in_files(model.tokenizer, location))
    model.eval()
    if entry.bidirectional:
        # from_pretrained silently drops `is_causal`, because no decoder's config declares it.
        backbone_of(model).config.is_causal = False
        require_bidirectional(model, where)
    if entry.source == "hub" and not weights:
        # The library sets the commit only for models loaded by name; snapshot folders are named
        # after the commit.
        commit = backbone_of(model).config._commit_hash = Path(location).name
        if not entry.revision:
            print(f"{where}: no revision pinned; loaded commit {commit}", file=sys.stderr)
    return model


def _assembled(
    entry: EmbedderEntry,
    location: str,
    settings: CheckpointSettings,
    *,
    device: str | None,
    dtype: str,
) -> SentenceTransformer:
    """Return the checkpoint as published, or its transformer with the pooling in the entry.

    The model gets the prompts and dimensions in `settings`, which a saved model keeps.
    """
    model_kwargs: dict[str, Any] = {
        "dtype": getattr(torch, dtype),
        "use_safetensors": True,
        # `require_all_weights` reports mismatches by name.
        "ignore_mismatched_sizes": True,
    }
    if entry.attention:
        model_kwargs["attn_implementation"] = entry.attention
    if entry.pooling == "checkpoint":
        model = SentenceTransformer(
            location,
            device=device,
            trust_remote_code=entry.trust_remote_code,
            model_kwargs=model_kwargs,
        )
        model.prompts = {name: settings.prompts.get(name, "") for name in ("query", "document")}
        model.default_prompt_name = None
        model.truncate_dim = settings.truncate_dim
        if settings.include_prompt and len(model) > 1 and isinstance(model[1], Pooling):
            model[1].include_prompt = True
        return model
    check_version_requirements(settings.requirements, source=location)
    shared: dict[str, Any] = {"trust_remote_code": entry.trust_remote_code}
    if entry.code_revision:
        shared["code_revision"] = entry.code_revision
    # Unlike the constructor, this follows the transformer's file of sentence-transformers.
    backbone = Transformer.load(
        location,
        model_kwargs=model_kwargs | shared,
        processor_kwargs=shared,
        config_kwargs=shared,
    )
    pooling: torch.nn.Module
    if entry.pooling == "latent":
        pooling = LatentAttentionPooling.from_folder(location).to(model_kwargs["dtype"])
    else:
        pooling = Pooling(
            backbone.get_embedding_dimension(),
            pooling_mode=entry.pooling,
            include_prompt=settings.include_prompt,
        )
    return SentenceTransformer(
        modules=[backbone, pooling, Normalize()],
        device=device,
        prompts=dict(settings.prompts),
        truncate_dim=settings.truncate_dim,
    )


def _prepare_tokenizer(
    model: SentenceTransformer, entry: EmbedderEntry, where: str, published_end_token: str | None
) -> None:
    """Set padding and the end token as in training; an entry's end token takes precedence."""
    tokenizer = model.tokenizer
    if not tokenizer.is_fast:
        raise UserError(
            "the tokenizer does not provide character offsets",
            where=where,
            hint="use a checkpoint with a tokenizer.json",
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if entry.pooling == "lasttoken":
        tokenizer.padding_side = "left"
    end_token = published_end_token if entry.end_token is None else entry.end_token
    if end_token:
        end_inputs_with(tokenizer, end_token, where)
    is_known = entry.end_token is not None or last_token(tokenizer) is not None
    if not is_known and getattr(model[1], "pooling_mode", "") == "lasttoken":
        raise UserError(
            "the model pools the last token, but its end token is undefined",
            where=where,
            hint="set `end_token` in the model's entry ('' if inputs end with their last word)",
        )


def backbone_of(model: SentenceTransformer) -> Any:
    """Return the transformers model beneath the pooling layer."""
    first: Any = model[0]
    return first.auto_model


def weights_digests(entry: EmbedderEntry, weights: str | Path | None = None) -> dict[str, str]:
    """Return the SHA-256 of the files that `load_encoder` reads, by name.

    Weights from the Hugging Face Hub have no digests, because the commit identifies them.

    Args:
        entry: Entry of the model.
        weights: Folder that replaces the entry's weights.
    """
    digests = {}
    if entry.source != "hub" or weights:
        digests = _digests(Path(weights or weights_location(entry)))
    if entry.adapter and not weights:
        digests |= {f"adapter/{name}": sha for name, sha in _digests(Path(entry.adapter)).items()}
    return digests


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): sha256(path)
        for path in files_below(folder, ".json", ".safetensors", ".txt", ".model")
    }
