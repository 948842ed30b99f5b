"""Merge LoRA adapters into the weights of a model."""

import re
from collections.abc import Collection, Mapping
from math import sqrt
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError
from pieline.models.adapter_files import WEIGHTS, check_adapter
from pieline.models.embedder import EmbedderEntry

_UNUSED_LAYER = "pooler"
"""Layer that no embedder uses, so that training leaves its part of an adapter at zero."""
_MAX_ZERO_ROWS = 0.1
"""Maximum fraction of zero rows in a matrix of an adapter. A few units may die in training."""


def merge_adapter(model: Any, entry: EmbedderEntry, where: str) -> None:
    """Add a LoRA adapter in peft's format to the weights of a transformers model.

    Args:
        model: Model whose linear layers are changed.
        entry: Entry with the adapter's folder and the base model.
        where: Name of the model in error messages.

    Raises:
        UserError: The adapter is not supported (see `check_adapter`), does not fit the model's
            layers, or has weights for other layers than its configuration declares.
    """
    # Import lazily: these imports take seconds.
    import torch
    from safetensors.torch import load_file

    config = check_adapter(entry)
    folder = Path(str(entry.adapter))
    rank = int(config["r"])
    divisor = sqrt(rank) if config.get("use_rslora") else rank
    scale = config["lora_alpha"] / divisor
    matrix_pairs = _matrix_pairs(load_file(folder / WEIGHTS), folder, where)
    layers = dict(model.named_modules())
    linear_layers = {name for name, layer in layers.items() if isinstance(layer, torch.nn.Linear)}
    changed: set[str] = set()
    prefix = ""  # is the same for all layers
    for full_name, (down, up) in matrix_pairs.items():
        # If the adapter was trained on a model with a head, each name begins with the base model's.
        name = full_name if full_name in layers else full_name.partition(".")[2]
        prefix = full_name.removesuffix(name)
        change = up.float() @ down.float()
        fits_layer = name in linear_layers and layers[name].weight.shape == change.shape
        if not fits_layer or len(down) != rank:
            raise _misfit_error(full_name, folder, where)
        if _UNUSED_LAYER not in name:
            _require_trained(change, (down, up), full_name, folder)
        weight = layers[name].weight.data
        merged = weight.float() + scale * change.to(weight.device)
        layers[name].weight.data = merged.to(weight.dtype)
        changed.add(name)
    declared = _declared_layers(config["target_modules"], linear_layers, prefix)
    _require_declared(changed, declared, prefix, folder)


def _matrix_pairs(
    tensors: Mapping[str, Any], folder: Path, where: str
) -> dict[str, tuple[Any, Any]]:
    """Return the two matrices of each layer that an adapter changes, by the layer's full name.

    The first matrix projects down to the adapter's rank (`lora_A` in peft), and the second matrix
    projects up (`lora_B`). Their product is the change of the layer's weights.

    Raises:
        UserError: The adapter has no such pairs, or tensors that belong to no pair.
    """
    pairs = {}
    unpaired = set(tensors)
    for down_name in tensors:
        if not down_name.endswith(".lora_A.weight"):
            continue
        layer = down_name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        up_name = down_name.replace(".lora_A.", ".lora_B.")
        if up_name not in tensors:
            raise _misfit_error(layer, folder, where)
        pairs[layer] = tensors[down_name], tensors[up_name]
        unpaired -= {down_name, up_name}
    if unpaired or not pairs:
        raise _misfit_error(min(unpaired, default="nothing"), folder, where)
    return pairs


def _require_trained(change: Any, matrices: tuple[Any, Any], layer: str, folder: Path) -> None:
    """Raise a `UserError` if a layer's change is zero, or if many rows of its matrices are zero."""
    if not change.any():
        raise UserError(
            f"its weights for {layer} are zero, as before training",
            where=folder,
            hint="use the trained adapter",
        )
    for matrix in matrices:
        zero_rows = int((~matrix.any(dim=1)).sum())
        if zero_rows > len(matrix) * _MAX_ZERO_ROWS:
            raise UserError(
                f"{zero_rows:,} of the {len(matrix):,} rows of its weights for {layer} are zero",
                where=folder,
                hint="copy the adapter again from where it was trained",
            )


def _require_declared(changed: set[str], declared: set[str], prefix: str, folder: Path) -> None:
    """Raise a `UserError` if layers are changed but not declared, or declared but not changed."""
    for name in sorted(declared ^ changed):
        if _UNUSED_LAYER in name:
            continue
        if name in declared:
            problem = f"it has no weights for {prefix}{name}, which target_modules include"
        else:
            problem = f"it has weights for {prefix}{name}, which target_modules do not include"
        raise UserError(
            problem,
            where=folder,
            hint="copy both files of the adapter again from the machine that trained the adapter",
        )


def _declared_layers(
    target_modules: str | list[str], linear_layers: Collection[str], prefix: str
) -> set[str]:
    """Return the linear layers that an adapter's `target_modules` selects by peft's rules.

    Args:
        target_modules: `all-linear`, a regular expression for full names, or a list of full names
            or of their last parts.
        linear_layers: Names of the model's linear layers.
        prefix: Start of the full names, which the names in `linear_layers` lack.
    """
    if target_modules == "all-linear":
        return set(linear_layers)
    if isinstance(target_modules, str):
        return {name for name in linear_layers if re.fullmatch(target_modules, prefix + name)}
    endings = tuple(f".{target}" for target in target_modules)
    return {name for name in linear_layers if f".{prefix}{name}".endswith(endings)}


def _misfit_error(layer: str, folder: Path, where: str) -> UserError:
    """Return an error for an adapter that does not fit the model, because of a layer it changes."""
    return UserError(
        f"the adapter changes {layer}, but {where} has no such linear layer of this size",
        where=folder,
        hint="use the base model that the adapter was trained from",
    )
