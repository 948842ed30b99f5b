"""Modeling code that the stand-ins of two checkpoints load as remote code."""

from typing import Any

import torch
import transformers
from torch import nn


class NomicBertConfig(transformers.NomicBertConfig):  # type: ignore[no-untyped-call]
    """Configuration of NomicBert with fields for a mixture of experts."""

    num_experts: int = 8
    moe_top_k: int = 2
    moe_every_n_layers: int = 2


class Experts(nn.Module):
    """Feed-forward block that routes each token to the experts with the highest weights."""

    def __init__(self, config: NomicBertConfig) -> None:
        super().__init__()
        shape = (config.num_experts, config.hidden_size, config.intermediate_size)
        self.router = nn.Linear(config.hidden_size, config.num_experts, bias=False)
        self.up = nn.Parameter(torch.zeros(shape))
        self.down = nn.Parameter(torch.zeros(shape))
        self.top_k = config.moe_top_k

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map a tensor of shape (batch, tokens, hidden size) to one of the same shape."""
        shares, experts = self.router(tokens).softmax(dim=-1).topk(self.top_k)
        weights = torch.zeros(*tokens.shape[:-1], len(self.up), dtype=tokens.dtype)
        weights = weights.to(tokens.device).scatter(-1, experts, shares)
        inner = nn.functional.gelu(torch.einsum("bth,ehi->beti", tokens, self.up))
        return torch.einsum("beti,ehi,bte->bth", inner, self.down, weights)


class NomicBertModel(transformers.NomicBertModel):  # type: ignore[no-untyped-call]
    """NomicBert with a mixture of experts in every second layer, which transformers lacks."""

    config_class = NomicBertConfig

    def __init__(self, config: NomicBertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        every = config.moe_every_n_layers
        for layer in self.layers[every - 1 :: every]:
            layer.mlp = Experts(config)


class LlamaBidirectionalConfig(transformers.LlamaConfig):  # type: ignore[no-untyped-call]
    """Configuration of Llama with another model type."""

    model_type = "llama_bidirec"


class LlamaBidirectionalModel(transformers.LlamaModel):  # type: ignore[no-untyped-call]
    """Llama with another configuration class.

    The public code overrides a method that transformers 5 never calls, so with this version the
    public model is causal too.
    """

    config_class = LlamaBidirectionalConfig
