"""Locate and verify the weights of local language models, and read GGUF files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pieline.core.errors import UserError
from pieline.core.files import check_lfs_pointers, files_below, read_json, sha256, sha256_of
from pieline.models.llm import LLMEntry
from pieline.models.weights import package_file

if TYPE_CHECKING:
    from gguf import GGUFReader


def find_weights(entry: LLMEntry) -> Path:
    """Return the path of a local model's GGUF file or weights folder, without downloading.

    Raises:
        UserError: The file or folder is missing or incomplete, or the entry does not pin a commit
            on the Hub.
    """
    if entry.source == "hub":
        return _find_snapshot(entry)
    if entry.source == "package":
        path = package_file(str(entry.package), str(entry.path))
    else:
        path = Path(str(entry.path))
    if not (path.is_file() if entry.is_gguf else path.is_dir()):
        # Tables print this message, so it must not contain the absolute path.
        location = "" if path.is_absolute() else " in the working directory"
        raise UserError(
            f"no such {'file' if entry.is_gguf else 'folder'}{location}",
            where=path,
            hint=f"put it there or correct the entry of {entry.label}; replaying recordings needs"
            " only its weights_sha256",
        )
    check_lfs_pointers(path)
    if not entry.is_gguf:
        _require_all_shards(path, "copy the whole folder")
    return path


def _find_snapshot(entry: LLMEntry) -> Path:
    """Return the path of a model's weights in the Hub's cache.

    Raises:
        UserError: The entry pins no commit, or the cache lacks a file.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    from pieline.models.hub import DOWNLOAD_HINT, unpinned_error

    obstacle = unpinned_error(entry)
    if obstacle:
        raise obstacle
    try:
        # Require only one file here, because the cache need not have the complete repository.
        folder = snapshot_download(
            str(entry.repository),
            revision=entry.revision,
            local_files_only=True,
            allow_patterns=str(entry.path or "config.json"),
        )
    except LocalEntryNotFoundError:
        raise UserError(
            "not in the hub's cache", where=entry.repository or "", hint=DOWNLOAD_HINT
        ) from None
    if not entry.path:
        _require_all_shards(Path(folder), DOWNLOAD_HINT)
    elif not Path(folder, entry.path).exists():
        raise UserError(f"{entry.path} is not in the hub's cache", where=folder, hint=DOWNLOAD_HINT)
    return Path(folder, entry.path or "")


def _require_all_shards(folder: Path, hint: str) -> None:
    """Raise a `UserError` unless a folder has a model's configuration and all of its weights.

    The weights may be a single file or the shards listed in an index. If a repository has both, the
    single file and all indexes are downloaded, but not the shards (see `HubCheckpoint.needed`).
    Consolidated files are a second copy of the weights, which is used only if there is no index.
    """
    indexed_shards: list[list[str]] = []
    for index in sorted(folder.glob("*.index.json")):
        shard_of_weight = read_json(index).get("weight_map")
        if shard_of_weight and not index.name.startswith("consolidated"):
            indexed_shards.append(sorted(set(shard_of_weight.values())))
    alternatives = [*indexed_shards, ["model.safetensors"], ["pytorch_model.bin"]]
    if not indexed_shards:
        alternatives.append(["consolidated.safetensors"])
    missing_files = []
    for weights in alternatives:
        missing = [name for name in ("config.json", *weights) if not (folder / name).exists()]
        if not missing:
            return
        missing_files += missing
    raise UserError(f"{missing_files[0]} is missing", where=folder, hint=hint)


def weights_path(entry: LLMEntry) -> Path:
    """Verify the weights of a local model, and return their path.

    Raises:
        UserError: The weights are missing or differ from the entry, the entry does not pin them
            (see `require_digest`), or the weights lack a required chat template.
    """
    path = find_weights(entry)
    if entry.source != "hub":
        _check_digest(entry, path)
    if entry.source != "package":  # a file in a pinned package need not be inspected
        _check_template(entry, path)
    return path


def _check_digest(entry: LLMEntry, path: Path) -> None:
    """Raise a `UserError` if the digest of the weights is not the `weights_sha256` of the entry."""
    digest = sha256(path) if path.is_file() else folder_digest(path)
    if entry.weights_sha256 is None:
        raise UserError(
            "the entry lacks weights_sha256, which is part of the key of every recorded answer;"
            f" the digest of {path} is {digest}",
            where=entry.label,
            hint="add it to the entry if this is the right file",
        )
    if digest != entry.weights_sha256:
        raise UserError(
            "the weights differ from the entry (sha256)",
            where=path,
            hint="install the pinned version, or fix weights_sha256",
        )


def _check_template(entry: LLMEntry, path: Path) -> None:
    """Raise a `UserError` if the weights need a chat template but contain none."""
    has_template = _gguf_has_template(path) if entry.is_gguf else _folder_has_template(path)
    if entry.needs_template and not has_template:
        raise UserError(
            "the weights have no chat template, and the server would use its default",
            where=path,
            hint=f"add the model's template as chat_template to the entry of {entry.label}",
        )


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 of the output of `sha256sum` for a folder's files, sorted by path.

    Hidden files are excluded, because `hf download --local-dir` stores the download time in them.
    """
    lines = []
    for path in files_below(folder):
        name = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in name.parts)
        if not is_hidden:
            lines.append(f"{sha256(path)}  {name.as_posix()}\n")
    return sha256_of("".join(lines).encode("utf-8"))


def _gguf_has_template(path: Path) -> bool:
    """Return whether a GGUF file contains a nonempty chat template."""
    template = read_gguf(path).fields.get("tokenizer.chat_template")
    return bool(template and template.contents())


def _folder_has_template(folder: Path) -> bool:
    """Return whether a folder of weights contains a chat template."""
    if (folder / "chat_template.jinja").exists() or (folder / "chat_template.json").exists():
        return True
    config = folder / "tokenizer_config.json"
    return config.exists() and bool(read_json(config).get("chat_template"))


def require_digest(entry: LLMEntry) -> None:
    """Check that a local model's entry pins its weights with `weights_sha256` or `revision`.

    The keys of recorded answers contain this pin.

    Raises:
        UserError: The entry does not pin its weights. The message states the digest to add, or
            that the weights are missing.
    """
    if entry.is_local and entry.weights_sha256 is None and entry.revision is None:
        weights_path(entry)


def read_gguf(path: Path) -> "GGUFReader":
    """Return a reader of a GGUF file.

    Raises:
        UserError: The file is not a GGUF file or is truncated.
    """
    import numpy as np
    from gguf.gguf_reader import GGUFReader

    class PlainReader(GGUFReader):
        """GGUF reader with a plain array, because slicing a memory map takes 8 times as long.

        `GGUFReader` assigns a memory map to `data`; the setter replaces the map by an array.
        """

        @property
        def data(self) -> Any:
            return self._data

        @data.setter
        def data(self, mapped: Any) -> None:
            self._data = np.asarray(mapped)

    try:
        return PlainReader(path)
    # The type of gguf's exception depends on where it fails.
    except (ValueError, IndexError, OverflowError, KeyError) as error:
        raise UserError(
            f"not a complete GGUF file: {error}", where=path, hint="download the file again"
        ) from None
