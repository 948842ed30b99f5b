"""Latent attention pooling: tokens attend to a trained dictionary of vectors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from pieline.core.errors import UserError
from pieline.core.files import files_below

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
