"""Locate and verify the weights of local language models, and read GGUF files."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pieline.core.errors import UserError
from pieline.core.files import check_lfs_pointers, files_below, read_json, sha256, sha256_of
from pieline.models.llm import LLMEntry
from pieline.models.weights import package_file

if TYPE_CHECKING:
    from gguf import GGUFReader


def find_weights(spec: LLMEntry) -> Path:
    """Return the path of a local model's GGUF file or weights folder, without downloading.

    Raises:
        UserError: The file or folder is missing or incomplete, or the entry does not pin a commit
            on the Hub.
    """
    if spec.source == "hub":
        return _find_snapshot(spec)
    if spec.source == "package":
        path = package_file(str(spec.package), str(spec.path))
    else:
        path = Path(str(spec.path))
    if not (path.is_file() if spec.is_gguf else path.is_dir()):
        # Tables print this message, so it must not contain the absolute path.
        here = "" if path.is_absolute() else " in the working directory"
        raise UserError(
            f"no such {'file' if spec.is_gguf else 'folder'}{here}",
            where=path,
            hint=f"put it there or correct the entry of {spec.label}; replaying recordings needs"
            " only its weights_sha256",
        )
    check_lfs_pointers(path)
    if not spec.is_gguf:
        _require_all_shards(path, "copy the whole folder")
    return path


def _find_snapshot(spec: LLMEntry) -> Path:
    """Return the path of the weights in the Hub's cache, without downloading missing files."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    from pieline.models.hub import DOWNLOAD_HINT, unpinned_error

    if obstacle := unpinned_error(spec):
        raise obstacle
    try:
        # Only some files of the repository are needed; the code below checks that they exist.
        folder = snapshot_download(
            str(spec.repository),
            revision=spec.revision,
            local_files_only=True,
            allow_patterns=str(spec.path or "config.json"),
        )
    except LocalEntryNotFoundError:
        raise UserError(
            "not in the hub's cache", where=spec.repository or "", hint=DOWNLOAD_HINT
        ) from None
    if not spec.path:
        _require_all_shards(Path(folder), DOWNLOAD_HINT)
    elif not Path(folder, spec.path).exists():
        raise UserError(f"{spec.path} is not in the hub's cache", where=folder, hint=DOWNLOAD_HINT)
    return Path(folder, spec.path or "")


def _require_all_shards(folder: Path, hint: str) -> None:
    """Raise a `UserError` unless a folder has a model's configuration and all its weights.

    The weights may be a single file or the shards listed in an index. If a repository has both,
    only one of them is downloaded (see `HubCheckpoint.needed`), but all indexes are.
    """
    ways: list[list[str]] = []
    for index in sorted(folder.glob("*.index.json")):
        names = read_json(index).get("weight_map")
        if names and not index.name.startswith("consolidated"):
            ways.append(sorted(set(names.values())))
    has_index = bool(ways)
    ways += [["model.safetensors"], ["pytorch_model.bin"]]
    if not has_index:
        ways.append(["consolidated.safetensors"])
    missing = [_missing(["config.json", *way], folder) for way in ways]
    if all(missing):
        raise UserError(f"{missing[0][0]} is missing", where=folder, hint=hint)


def _missing(names: Iterable[str], folder: Path) -> list[str]:
    return [name for name in names if not (folder / name).exists()]


def weights_path(spec: LLMEntry) -> Path:
    """Return the path of a local model's weights after verifying them against the entry.

    Raises:
        UserError: The weights are missing or differ from the entry, the entry does not pin them
            (see `require_digest`), or the weights lack a required chat template.
    """
    path = find_weights(spec)
    if spec.source != "hub":
        digest = sha256(path) if path.is_file() else folder_digest(path)
        if spec.weights_sha256 is None:
            raise UserError(
                "the entry lacks weights_sha256, which is part of the key of every recorded answer;"
                f" the digest of {path} is {digest}",
                where=spec.label,
                hint="add it to the entry if this is the right file",
            )
        if digest != spec.weights_sha256:
            raise UserError(
                "the weights differ from the entry (sha256)",
                where=path,
                hint="install the pinned version, or fix weights_sha256",
            )
    if spec.source != "package":  # a file in a pinned package need not be inspected
        template = _gguf_template(path) if spec.is_gguf else _template_in(path)
        if spec.needs_template and not template:
            raise UserError(
                "the weights have no chat template, and the server would use its default",
                where=path,
                hint=f"add the model's template as chat_template to the entry of {spec.label}",
            )
    return path


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 of the output of `sha256sum` for a folder's files, sorted by path.

    Hidden files are excluded, because `hf download --local-dir` stores the download time in them.
    """
    names = {path: path.relative_to(folder) for path in files_below(folder)}
    lines = [
        f"{sha256(path)}  {name.as_posix()}\n"
        for path, name in names.items()
        if not any(part.startswith(".") for part in name.parts)
    ]
    return sha256_of("".join(lines).encode("utf-8"))


def _gguf_template(path: Path) -> str:
    """Return the chat template of a GGUF file; empty if it has none."""
    template = read_gguf(path).fields.get("tokenizer.chat_template")
    return str(template.contents()) if template else ""


def _template_in(folder: Path) -> str:
    """Return a nonempty string if a folder of weights has a chat template, else an empty one."""
    if (folder / "chat_template.jinja").exists() or (folder / "chat_template.json").exists():
        return "its file"
    config = folder / "tokenizer_config.json"
    template = read_json(config).get("chat_template") if config.exists() else None
    return json.dumps(template) if template else ""


def require_digest(spec: LLMEntry) -> None:
    """Check that a local model's entry pins its weights, so that recording keys identify them.

    Raises:
        UserError: The entry has neither `weights_sha256` nor `revision`; the message states the
            digest to add, or that the weights are missing or no commit is pinned.
    """
    if spec.is_local and spec.weights_sha256 is None and spec.revision is None:
        weights_path(spec)


def read_gguf(path: Path) -> "GGUFReader":
    """Read a GGUF file.

    Raises:
        UserError: The file is not a GGUF file or is truncated.
    """
    import numpy as np
    from gguf.gguf_reader import GGUFReader

    class PlainReader(GGUFReader):
        """GGUF reader that uses a plain array, since slicing a memory map takes 8 times as long."""

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
