"""Check the files of a LoRA adapter, without loading weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError
from pieline.core.files import check_lfs_pointers, read_json, sha256
from pieline.models.embedder import EmbedderEntry

_CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_FIELDS_WITHOUT_EFFECT = {
    "auto_mapping", "inference_mode", "lora_dropout", "peft_version", "runtime_config",
    "task_type", "megatron_core", "qalora_group_size",
}  # fmt: skip
"""Fields of an adapter's configuration that change nothing when a supported adapter is merged."""
_SUPPORTED_FIELDS = {
    "r", "lora_alpha", "use_rslora", "target_modules", "base_model_name_or_path", "revision",
    "peft_type", "bias", "init_lora_weights",
}  # fmt: skip
"""Fields that pieline reads. All fields that are in neither set must be null, false or empty."""


def check_adapter(entry: EmbedderEntry) -> dict[str, Any]:
    """Check that an adapter is of a supported kind and was made for its base model.

    An adapter is supported if it only adds the product of two matrices to the weights of linear
    layers, and if its training did not change the base model.

    Args:
        entry: Entry with the adapter's folder and the base model.

    Returns:
        The content of the adapter's configuration file.

    Raises:
        UserError: A file is missing or invalid, the adapter is not supported, or it was made for
            another base model.
    """
    folder = Path(str(entry.adapter))
    for file_name in (_CONFIG, WEIGHTS):
        if not (folder / file_name).is_file():
            raise UserError(f"the adapter has no {file_name}", where=folder, hint="check the path")
    check_lfs_pointers(folder)
    config: Any = read_json(folder / _CONFIG)
    if not isinstance(config, dict):
        raise UserError("not a JSON object", where=folder / _CONFIG, hint="save the adapter again")
    _check_kind(config, folder)
    _check_required_fields(config, folder)
    _check_base(config, entry, folder)
    return config


def _check_kind(config: Mapping[str, Any], folder: Path) -> None:
    """Raise a `UserError` if a field of an adapter's configuration has an unsupported value."""
    unsupported = [
        field
        for field in config.keys() - _SUPPORTED_FIELDS - _FIELDS_WITHOUT_EFFECT
        if config[field]
    ]
    if config.get("peft_type") != "LORA":
        unsupported.append("peft_type")
    if config.get("bias", "none") != "none":
        unsupported.append("bias")
    # Other initializations change the weights of the base model.
    if config.get("init_lora_weights", True) not in (True, False, "gaussian"):
        unsupported.append("init_lora_weights")
    if unsupported:
        field = min(unsupported)
        raise UserError(
            f"the adapter has {field}: {config.get(field)}, which is not supported",
            where=folder,
            hint="merge it with its base model, and use the folder of the merged model",
        )


def _check_required_fields(config: Mapping[str, Any], folder: Path) -> None:
    """Raise a `UserError` if the rank, the scale or the layers of an adapter are missing."""
    for field in ("r", "lora_alpha"):
        if not isinstance(config.get(field), int | float) or config[field] <= 0:
            raise UserError(
                f"{field} is missing or not a positive number",
                where=folder / _CONFIG,
                hint="save the adapter again",
            )
    if not isinstance(config.get("target_modules"), str | list) or not config["target_modules"]:
        raise UserError("no target_modules", where=folder / _CONFIG, hint="save the adapter again")


def _check_base(config: Mapping[str, Any], entry: EmbedderEntry, folder: Path) -> None:
    """Raise a `UserError` if an adapter's base model is not the model of its entry.

    The base model may have another name if it is a folder with the same weights.
    """
    base, revision = config.get("base_model_name_or_path"), config.get("revision")
    if base != entry.checkpoint and not _has_weights_of(base, entry):
        raise UserError(
            f"the adapter's base_model_name_or_path is {base!r}, the entry's checkpoint"
            f" {entry.checkpoint!r}",
            where=folder,
            hint="use the base model that the adapter was trained from; if the two names mean the"
            " same model, write the same name in both",
        )
    if revision and entry.revision and revision != entry.revision:
        raise UserError(
            f"the adapter's base has revision {revision!r}, the entry {entry.revision!r}",
            where=folder,
            hint="pin the revision that the adapter was trained from",
        )


def _has_weights_of(base: Any, entry: EmbedderEntry) -> bool:
    """Return whether `base` is a folder with the same safetensors files as the entry's folder."""
    if entry.source != "folder" or not isinstance(base, str) or not Path(base).is_dir():
        return False
    digests_of_base = _weights_digests(base)
    return bool(digests_of_base) and digests_of_base == _weights_digests(str(entry.path))


def _weights_digests(folder: str) -> dict[str, str]:
    """Return the SHA-256 of the safetensors files in a folder, by file name."""
    return {path.name: sha256(path) for path in Path(folder).glob("*.safetensors")}
