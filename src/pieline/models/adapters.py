"""Merge LoRA adapters into the weights of a model."""

import re
from collections.abc import Collection, Mapping
from math import sqrt
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError
from pieline.core.files import check_lfs_pointers, read_json, sha256
from pieline.models.embedder import EmbedderEntry

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_DESCRIPTIVE = {
    *("auto_mapping", "inference_mode", "lora_dropout", "peft_version", "runtime_config"),
    *("task_type", "megatron_core", "qalora_group_size"),
}
"""Fields that change nothing in a supported adapter."""
_READ = {
    *("r", "lora_alpha", "use_rslora", "target_modules", "base_model_name_or_path", "revision"),
    *("peft_type", "bias", "init_lora_weights"),
}
"""Fields that are read; any other field must be null, false or empty."""
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
    rank, tensors = int(config["r"]), load_file(place / _WEIGHTS)
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
        if _UNUSED not in name and not change.any():
            raise UserError(
                f"its weights for {full_name} are zero, as before training",
                where=place,
                hint="use the trained adapter",
            )
        for matrix in () if _UNUSED in name else (tensors[down], up):
            zeros = int((~matrix.any(dim=1)).sum())
            # A dead unit of a network has a row of zeros.
            if zeros > len(matrix) / 10:
                raise UserError(
                    f"{zeros:,} of the {len(matrix):,} rows of its weights for {full_name} are"
                    " zero",
                    where=place,
                    hint="copy the adapter again from where it was trained",
                )
        weight = module.weight.data
        module.weight.data = (weight.float() + scale * change.to(weight.device)).to(weight.dtype)
        changed.add(name)
    others = tensors.keys() - downs - {down.replace(".lora_A.", ".lora_B.") for down in downs}
    if others or not downs:
        raise _foreign(min(others, default="nothing"), place, where)
    linear = {name for name, each in modules.items() if isinstance(each, torch.nn.Linear)}
    declared = _targets(config["target_modules"], linear, prefix)
    for name in sorted(name for name in declared ^ changed if _UNUSED not in name):
        has = "has no weights for" if name in declared else "has weights for"
        raise UserError(
            f"it {has} {prefix}{name}, which target_modules"
            f" {'include' if name in declared else 'do not include'}",
            where=place,
            hint="copy both files of the adapter from where it was trained",
        )


def check_adapter(entry: EmbedderEntry) -> dict[str, Any]:
    """Check that an adapter is of a supported kind and was made for its base model.

    Only adapters that add the product of two matrices to the weights of linear layers are
    supported, and only if their training did not change the base model.

    Args:
        entry: Entry with the adapter's folder and the base model.

    Returns:
        The configuration of the adapter.

    Raises:
        UserError: A file is missing, or the adapter has another kind or base.
    """
    place = Path(str(entry.adapter))
    for name in (_CONFIG, _WEIGHTS):
        if not (place / name).is_file():
            raise UserError(f"the adapter has no {name}", where=place, hint="check the path")
    check_lfs_pointers(place)
    config: Any = read_json(place / _CONFIG)
    if not isinstance(config, dict):
        raise UserError("not a JSON object", where=place / _CONFIG, hint="save it again")
    supported = {
        "peft_type": config.get("peft_type") == "LORA",
        "bias": config.get("bias", "none") == "none",
        # Other initializations change the weights of the base model.
        "init_lora_weights": config.get("init_lora_weights", True) in (True, False, "gaussian"),
        **{name: not config[name] for name in config.keys() - _READ - _DESCRIPTIVE},
    }
    for name in sorted(supported):
        if not supported[name]:
            raise UserError(
                f"the adapter has {name}: {config.get(name)}, which is not supported",
                where=place,
                hint="merge it with its base model, and use the folder of the merged model",
            )
    for name in ("r", "lora_alpha"):
        if not isinstance(config.get(name), int | float) or config[name] <= 0:
            raise UserError(
                f"{name} is missing or not a positive number",
                where=place / _CONFIG,
                hint="save it again",
            )
    if not isinstance(config.get("target_modules"), str | list) or not config["target_modules"]:
        raise UserError("no target_modules", where=place / _CONFIG, hint="save it again")
    _check_base(config, entry, place)
    return config


def _check_base(config: Mapping[str, Any], entry: EmbedderEntry, place: Path) -> None:
    """Check that an adapter names the entry's base model, or a folder with the same files."""
    base, revision = config.get("base_model_name_or_path"), config.get("revision")
    if base != entry.checkpoint and not _is_same_folder(base, entry):
        raise UserError(
            f"the adapter's base_model_name_or_path is {base!r}, the entry's checkpoint"
            f" {entry.checkpoint!r}",
            where=place,
            hint="use the base model that it was trained from; if this is it, set checkpoint or"
            " base_model_name_or_path to the other's name",
        )
    if revision and entry.revision and revision != entry.revision:
        raise UserError(
            f"the adapter's base has revision {revision!r}, the entry {entry.revision!r}",
            where=place,
            hint="pin the revision that it was trained from",
        )


def _is_same_folder(base: Any, entry: EmbedderEntry) -> bool:
    """Return whether a path is the entry's folder, or a folder with the same weights."""
    if entry.source != "folder" or not isinstance(base, str) or not Path(base).is_dir():
        return False
    digests = [
        {path.name: sha256(path) for path in Path(folder).glob("*.safetensors")}
        for folder in (base, str(entry.path))
    ]
    return bool(digests[0]) and digests[0] == digests[1]


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
        hint="use the base model that it was trained from",
    )
