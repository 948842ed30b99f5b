"""Merge LoRA adapters into the weights of a model."""

import re
from collections.abc import Collection
from math import sqrt
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError
from pieline.models.adapter_files import WEIGHTS, check_adapter
from pieline.models.embedder import EmbedderEntry

_UNUSED = "pooler"
"""Layer that no embedder uses, so that training leaves its part of an adapter at zero."""


def merge_adapter(model: Any, entry: EmbedderEntry, where: str) -> None:
    """Add a LoRA adapter in peft's format to the weights of a transformers model.

    Args:
        model: Model whose linear layers are changed.
        entry: Entry with the adapter's folder and the base model.
        where: Name of the model in error messages.

    Raises:
        UserError: The adapter is not supported (see `check_adapter`), has no weights for a layer
            that it declares or for which it is not declared, or does not fit the model's layers.
    """
    # The imports take seconds.
    import torch
    from safetensors.torch import load_file

    config = check_adapter(entry)
    place = Path(str(entry.adapter))
    rank, tensors = int(config["r"]), load_file(place / WEIGHTS)
    scale = config["lora_alpha"] / (sqrt(rank) if config.get("use_rslora") else rank)
    downs = [name for name in tensors if name.endswith(".lora_A.weight")]
    modules = dict(model.named_modules())
    changed, prefix = set(), ""
    for down in downs:
        full_name = down.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        # The names in an adapter of a model with a head start with the name of the base model.
        name = full_name if full_name in modules else full_name.partition(".")[2]
        prefix = full_name.removesuffix(name)
        module = modules.get(name)
        up = tensors.get(down.replace(".lora_A.", ".lora_B."))
        if up is None:
            raise _foreign(full_name, place, where)
        change = up.float() @ tensors[down].float()
        if (
            not isinstance(module, torch.nn.Linear)
            or module.weight.shape != change.shape
            or len(tensors[down]) != rank
        ):
            raise _foreign(full_name, place, where)
        if _UNUSED not in name:
            _require_trained(change, (tensors[down], up), full_name, place)
        weight = module.weight.data
        module.weight.data = (weight.float() + scale * change.to(weight.device)).to(weight.dtype)
        changed.add(name)
    others = tensors.keys() - downs - {down.replace(".lora_A.", ".lora_B.") for down in downs}
    if others or not downs:
        raise _foreign(min(others, default="nothing"), place, where)
    linear = {name for name, each in modules.items() if isinstance(each, torch.nn.Linear)}
    declared = _targets(config["target_modules"], linear, prefix)
    _require_declared(changed, declared, prefix, place)


def _require_trained(change: Any, matrices: tuple[Any, Any], name: str, place: Path) -> None:
    """Raise a `UserError` if a layer's change is zero, or if many rows of its matrices are zero."""
    if not change.any():
        raise UserError(
            f"its weights for {name} are zero, as before training",
            where=place,
            hint="use the trained adapter",
        )
    for matrix in matrices:
        zeros = int((~matrix.any(dim=1)).sum())
        # A dead unit of a network has a row of zeros.
        if zeros > len(matrix) / 10:
            raise UserError(
                f"{zeros:,} of the {len(matrix):,} rows of its weights for {name} are zero",
                where=place,
                hint="copy the adapter again from where it was trained",
            )


def _require_declared(changed: set[str], declared: set[str], prefix: str, place: Path) -> None:
    """Raise a `UserError` if layers are changed but not declared, or declared but not changed."""
    for name in sorted(name for name in declared ^ changed if _UNUSED not in name):
        has = "has no weights for" if name in declared else "has weights for"
        raise UserError(
            f"it {has} {prefix}{name}, which target_modules"
            f" {'include' if name in declared else 'do not include'}",
            where=place,
            hint="copy both files of the adapter again from the machine that trained the adapter",
        )


def _targets(declared: str | list[str], names: Collection[str], prefix: str) -> set[str]:
    """Return the layers that `target_modules` declares, as peft reads it.

    Args:
        declared: Pattern of complete names, or list of names or of their ends.
        names: Names of the model's linear layers.
        prefix: Start of complete names that `names` lack.
    """
    if declared == "all-linear":
        return set(names)
    if isinstance(declared, str):
        return {name for name in names if re.fullmatch(declared, prefix + name)}
    return {
        name for name in names if any(f".{prefix}{name}".endswith(f".{end}") for end in declared)
    }


def _foreign(name: str, place: Path, where: str) -> UserError:
    return UserError(
        f"the adapter changes {name}, but {where} has no such linear layer of this size",
        where=place,
        hint="use the base model that the adapter was trained from",
    )
