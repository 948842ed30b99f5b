"""Check the files of a LoRA adapter, without loading weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError
from pieline.core.files import check_lfs_pointers, read_json, sha256
from pieline.models.embedder import EmbedderEntry

_CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_DESCRIPTIVE = {
    "auto_mapping", "inference_mode", "lora_dropout", "peft_version", "runtime_config",
    "task_type", "megatron_core", "qalora_group_size",
}  # fmt: skip
"""Fields that change nothing in a supported adapter."""
_READ = {
    "r", "lora_alpha", "use_rslora", "target_modules", "base_model_name_or_path", "revision",
    "peft_type", "bias", "init_lora_weights",
}  # fmt: skip
"""Fields that are read; any other field must be null, false or empty."""


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
    for name in (_CONFIG, WEIGHTS):
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
    """Check that an adapter's base model is the entry's: its checkpoint, or the same weights."""
    base, revision = config.get("base_model_name_or_path"), config.get("revision")
    if base != entry.checkpoint and not _is_same_folder(base, entry):
        raise UserError(
            f"the adapter's base_model_name_or_path is {base!r}, the entry's checkpoint"
            f" {entry.checkpoint!r}",
            where=place,
            hint="use the base model that the adapter was trained from; if the two names mean the"
            " same model, write the same name in both",
        )
    if revision and entry.revision and revision != entry.revision:
        raise UserError(
            f"the adapter's base has revision {revision!r}, the entry {entry.revision!r}",
            where=place,
            hint="pin the revision that the adapter was trained from",
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
