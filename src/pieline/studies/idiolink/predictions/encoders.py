"""Loading of embedders as described in models.yaml."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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

LATENT_PREFIX = "latent_attention_model."
"""Prefix of the names of the latent attention layer's weights in a checkpoint."""


class LatentAttentionPooling(nn.Module):
    """Latent attention layer of NV-Embed (Lee et al., 2025), followed by mean pooling.

    Each token vector attends to `latents`, which are the same for all tokens, and passes through a
    gated feed-forward block. Both steps have residual connections. The mean is taken over the
    tokens in the attention mask.

    The layer is a sentence-transformers module. Its weights are named as in NV-Embed's checkpoint.
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
        """Return a layer with the given weights.

        Args:
            weights: Weights by name, without `LATENT_PREFIX`.
            heads: Number of attention heads.
        """
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
            name.removeprefix(LATENT_PREFIX): tensor
            for path in files_below(folder, ".safetensors")
            for name, tensor in load_file(path).items()
            if name.startswith(LATENT_PREFIX)
        }
        if not weights:
            raise UserError(
                f"no weights named {LATENT_PREFIX}*", where=folder, hint="set another `pooling`"
            )
        return cls.from_weights(weights)

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Add `sentence_embedding`, of shape (texts, dimensions), to the features of a batch."""
        attend, feed_forward = self.cross_attend_blocks
        vectors = features["token_embeddings"]
        vectors = attend(vectors, self.latents) + vectors
        vectors = feed_forward(vectors) + vectors
        mask = features["attention_mask"].unsqueeze(-1).to(vectors.dtype)
        features["sentence_embedding"] = (vectors * mask).sum(dim=1) / mask.sum(dim=1)
        return features

    def save(self, output_path: str, *_: object, **__: object) -> None:
        """Save the weights in `output_path`, the folder of this module in a saved model."""
        weights = {
            LATENT_PREFIX + name: tensor.contiguous() for name, tensor in self.state_dict().items()
        }
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
    """Check that a checkpoint's files define the pooling, so that the library does not guess.

    Raises:
        UserError: config.json or modules.json is missing.
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
    """Return the end token that tokenizer_config.json sets; None if it sets no end token.

    transformers 5 ignores the setting `add_eos_token` if there is a tokenizer.json.
    """
    path = Path(location, "tokenizer_config.json")
    if not path.exists():
        return None
    tokenizer_config = json.loads(path.read_text(encoding="utf-8"))
    if not tokenizer_config.get("add_eos_token") or not tokenizer.eos_token:
        return None
    return str(tokenizer.eos_token)


def end_inputs_with(tokenizer: Any, token: str, where: str) -> None:
    """Configure a fast tokenizer to end every input with a token, including truncated inputs.

    Raises:
        UserError: The token is not in the vocabulary, inputs end with another special token, or
            the tokenizer cannot be configured.
    """
    token_id = tokenizer.convert_tokens_to_ids(token)
    is_unknown = token_id == tokenizer.unk_token_id and token != tokenizer.unk_token
    if token_id is None or is_unknown:
        raise UserError(
            f"end token {token!r} is not in the vocabulary",
            where=where,
            hint="correct `end_token` in the model's entry",
        )
    current_end_id = last_special_token(tokenizer)
    if current_end_id == token_id:
        return
    if current_end_id is not None:
        raise UserError(
            f"the tokenizer ends inputs with {tokenizer.convert_ids_to_tokens(current_end_id)!r}, "
            f"not with {token!r}",
            where=where,
            hint="set `end_token` in the model's entry to the token used in training",
        )
    backend = tokenizer.backend_tokenizer
    post_processors = [backend.post_processor] if backend.post_processor else []
    # A prefix from an earlier post-processor arrives here as the first sequence of a pair.
    post_processors.append(
        processors.TemplateProcessing(
            single=f"$A {token}", pair=f"$A:0 $B:0 {token}:0", special_tokens=[(token, token_id)]
        )
    )
    backend.post_processor = processors.Sequence(post_processors)
    if last_special_token(tokenizer) != token_id:
        raise UserError(
            f"the tokenizer cannot be configured to end inputs with {token!r}",
            where=where,
            hint="use a checkpoint whose tokenizer.json adds it",
        )


def last_special_token(tokenizer: Any) -> int | None:
    """Return the id of the special token at the end of inputs, or None if there is none."""
    with_special_tokens = tokenizer("a")["input_ids"]
    without_special_tokens = tokenizer("a", add_special_tokens=False)["input_ids"]
    if with_special_tokens[-1:] == without_special_tokens[-1:]:
        return None
    return int(with_special_tokens[-1])


def require_bidirectional(model: SentenceTransformer, where: str) -> None:
    """Check that attention is bidirectional: later tokens must affect the first token's vector.

    Raises:
        UserError: Attention is causal.
    """
    backbone = model[0]
    tokens = model.tokenizer("one two three four five", return_tensors="pt").to(model.device)
    # Reverse all tokens after the first token.
    reordered_ids = tokens["input_ids"].clone()
    reordered_ids[0, 1:] = reordered_ids[0, 1:].flip(0)
    with torch.inference_mode():
        vectors = backbone(dict(tokens))["token_embeddings"]
        reordered_vectors = backbone(dict(tokens, input_ids=reordered_ids))["token_embeddings"]
    if torch.equal(vectors[0, 0], reordered_vectors[0, 0]):
        raise UserError(
            "attention is causal, although the model's entry sets `bidirectional`",
            where=where,
            hint="use a transformers version that supports the model's code, or the built-in class",
        )


def save_folder(model: SentenceTransformer, output: Path) -> None:
    """Save a model as a folder with safetensors files, atomically."""
    if model.tokenizer.is_fast:
        # The tokenizer keeps the truncation and padding of its last call, and would save them.
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
    """Load a model for evaluation, with the pooling, end token and attention of its training.

    Args:
        entry: Entry of the model in models.yaml.
        weights: Folder with unpacked or fine-tuned weights, which replace the entry's weights.
        device: torch device; None selects CUDA if available, otherwise the CPU.
        dtype: Precision; None selects the entry's precision.

    Raises:
        UserError: The device is missing, the weights are unavailable or incomplete, the pooling or
            the end token is undefined, the checkpoint's files contradict the entry, the tokenizer
            is unsuitable, or attention is causal although the entry declares it bidirectional.
    """
    device = _select_device(device)
    location = str(weights) if weights else weights_location(entry)
    where = f"{entry.checkpoint} ({entry.source})"
    check_lfs_pointers(location)
    with loading(entry):
        if entry.pooling == "checkpoint":
            require_pooling_in_files(location, where)
        settings = checkpoint_settings(entry, location, where)
        model = _assemble(entry, location, settings, device=device, dtype=dtype or entry.dtype)
        require_all_weights(backbone_of(model), location, where)
        # Fine-tuned weights already include the adapter.
        if entry.adapter and not weights:
            merge_adapter(backbone_of(model), entry, where)
        require_finite(model, where)
        require_tokenizer(model.tokenizer, backbone_of(model), location, where)
    _check_second_module(model, where)
    model.max_seq_length = entry.max_length
    _prepare_tokenizer(model, entry, where, end_token_in_files(model.tokenizer, location))
    model.eval()
    if entry.bidirectional:
        # from_pretrained silently drops `is_causal`, because no decoder's config declares it.
        backbone_of(model).config.is_causal = False
        require_bidirectional(model, where)
    if entry.source == "hub" and not weights:
        # The library sets the commit only for models loaded by name. The snapshot folder has the
        # name of the commit.
        commit = Path(location).name
        backbone_of(model).config._commit_hash = commit
        if not entry.revision:
            print(f"{where}: no revision pinned; loaded commit {commit}", file=sys.stderr)
    return model


def _check_second_module(model: SentenceTransformer, where: str) -> None:
    """Raise a `UserError` unless the second module of the model is the pooling."""
    if len(model) < 2 or not isinstance(model[1], Pooling | LatentAttentionPooling):
        raise UserError(
            "the second module is not a pooling module",
            where=where,
            hint="set `pooling` in the model's entry",
        )


def _select_device(device: str | None) -> str:
    """Return the torch device to use: `device` if set, otherwise CUDA or, without a GPU, the CPU.

    Raises:
        UserError: `device` is an Apple GPU that is not available.
    """
    if device == "mps" and not torch.backends.mps.is_available():
        raise UserError("no Apple GPU available", where="device: mps", hint="set device: null")
    if device:
        return device
    # The library would select an Apple GPU here.
    return "cuda" if torch.cuda.is_available() else "cpu"


def _assemble(
    entry: EmbedderEntry, location: str, settings: CheckpointSettings, *, device: str, dtype: str
) -> SentenceTransformer:
    """Load a checkpoint with the pooling that its entry states.

    The model has the prompts and the dimensions in `settings`, and keeps them when it is saved.
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
        return _load_all_modules(entry, location, settings, device, model_kwargs)
    return _combine_with_pooling(entry, location, settings, device, model_kwargs)


def _load_all_modules(
    entry: EmbedderEntry,
    location: str,
    settings: CheckpointSettings,
    device: str,
    model_kwargs: dict[str, Any],
) -> SentenceTransformer:
    """Load a checkpoint with all modules that it defines, including the pooling."""
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


def _combine_with_pooling(
    entry: EmbedderEntry,
    location: str,
    settings: CheckpointSettings,
    device: str,
    model_kwargs: dict[str, Any],
) -> SentenceTransformer:
    """Load a checkpoint's transformer, followed by the entry's pooling and a normalization."""
    check_version_requirements(settings.requirements, source=location)
    code_kwargs: dict[str, Any] = {"trust_remote_code": entry.trust_remote_code}
    if entry.code_revision:
        code_kwargs["code_revision"] = entry.code_revision
    # Unlike the constructor, `load` reads the settings file of sentence-transformers.
    backbone = Transformer.load(
        location,
        model_kwargs=model_kwargs | code_kwargs,
        processor_kwargs=code_kwargs,
        config_kwargs=code_kwargs,
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
    """Set the tokenizer's padding and end token as in the model's training.

    The end token is the entry's or, if the entry states none, `published_end_token`.

    Raises:
        UserError: The tokenizer is unsuitable, or the model pools an undefined end token.
    """
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
    is_end_token_known = entry.end_token is not None or last_special_token(tokenizer) is not None
    pools_last_token = getattr(model[1], "pooling_mode", "") == "lasttoken"
    if pools_last_token and not is_end_token_known:
        raise UserError(
            "the model pools the last token, but its end token is undefined",
            where=where,
            hint="set `end_token` in the model's entry ('' if inputs end with their last word)",
        )


def backbone_of(model: SentenceTransformer) -> Any:
    """Return the transformers model whose token vectors the model pools."""
    transformer: Any = model[0]
    return transformer.auto_model


def weights_digests(entry: EmbedderEntry, weights: str | Path | None = None) -> dict[str, str]:
    """Return the SHA-256 of the local files that `load_encoder` reads, by relative path.

    Paths of an adapter's files start with `adapter/`. Files from the Hugging Face Hub are not
    included, because the commit identifies them.

    Args:
        entry: Entry of the model.
        weights: Folder that replaces the entry's weights.
    """
    if weights:
        return _file_digests(Path(weights))
    digests = {}
    if entry.source != "hub":
        digests = _file_digests(Path(weights_location(entry)))
    if entry.adapter:
        for name, digest in _file_digests(Path(entry.adapter)).items():
            digests[f"adapter/{name}"] = digest
    return digests


def _file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each weights or settings file in a folder, by relative path."""
    return {
        path.relative_to(folder).as_posix(): sha256(path)
        for path in files_below(folder, ".json", ".safetensors", ".txt", ".model")
    }
