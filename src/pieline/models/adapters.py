"""Merge LoRA adapters into the weights of a model."""

from math import sqrt
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from pieline.core.errors import UserError
from pieline.core.files import read_json

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PLAIN: dict[str, Any] = {
    "peft_type": "LORA",
    "bias": "none",
    **dict.fromkeys(("use_dora", "lora_bias", "fan_in_fan_out"), False),
    **dict.fromkeys(("rank_pattern", "alpha_pattern", "layer_replication"), None),
    **dict.fromkeys(("modules_to_save", "target_parameters", "trainable_token_indices"), None),
}
"""Configuration values of a supported adapter, which only adds low-rank products to weights."""


def merge_adapter(model: Any, folder: str | Path, where: str) -> None:
    """Add a LoRA adapter in peft's format to the weights of a transformers model.

    Args:
        model: Model whose linear layers are changed.
        folder: Folder with adapter_config.json and adapter_model.safetensors.
        where: Name of the model in error messages.

    Raises:
        UserError: A file is missing, the adapter has an unsupported configuration, or it does not
            fit the linear layers of the model.
    """
    place = Path(folder)
    for name in (_CONFIG, _WEIGHTS):
        if not (place / name).is_file():
            raise UserError(f"the adapter has no {name}", where=place, hint="check the path")
    config = read_json(place / _CONFIG)
    for name, usual in _PLAIN.items():
        if (config.get(name) or None) != (usual or None):
            raise UserError(
                f"the adapter has {name}: {config.get(name)}, which is not supported",
                where=place,
                hint="merge it with its base model, and use the folder of the merged model",
            )
    for name in ("r", "lora_alpha"):
        if not isinstance(config.get(name), int | float):
            raise UserError(
                f"{name} is missing or not a number", where=place / _CONFIG, hint="save it again"
            )
    rank, tensors = int(config["r"]), load_file(place / _WEIGHTS)
    scale = config["lora_alpha"] / (sqrt(rank) if config.get("use_rslora") else rank)
    downs = [name for name in tensors if name.endswith(".lora_A.weight")]
    modules = dict(model.named_modules())
    for down in downs:
        name = down.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        # The names in an adapter of a model with a head start with the name of the base model.
        module = modules.get(name) or modules.get(name.partition(".")[2])
        up = tensors.get(down.replace(".lora_A.", ".lora_B."))
        if up is None:
            raise _foreign(name, place, where)
        change = up.float() @ tensors[down].float()
        if (
            not isinstance(module, torch.nn.Linear)
            or module.weight.shape != change.shape
            or len(tensors[down]) != rank
        ):
            raise _foreign(name, place, where)
        weight = module.weight.data
        module.weight.data = (weight.float() + scale * change.to(weight.device)).to(weight.dtype)
    others = tensors.keys() - downs - {down.replace(".lora_A.", ".lora_B.") for down in downs}
    if others or not downs:
        raise _foreign(min(others, default="nothing"), place, where)


def _foreign(name: str, place: Path, where: str) -> UserError:
    return UserError(
        f"the adapter changes {name}, but {where} has no such linear layer of this size",
        where=place,
        hint="use the base model that it was trained from",
    )
