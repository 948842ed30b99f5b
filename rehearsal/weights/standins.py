"""Stand-ins for the weights of models, where the pipeline expects the real ones."""

import hashlib
import re
import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pieline.core.files import sha256, write_json, write_text
from pieline.models.hub import HubCheckpoint, hub_checkpoint, remote_code_checkpoints
from pieline.models.registry import AnyEntry
from pieline.models.sizing import parameter_count

IN_PARTS_FROM = 2_000_000_000
"""Number of parameters above which public checkpoints have several weight files."""

_CHARACTERS_READ = 1_000_000


def common_words(folder: Path, count: int = 8000) -> list[str]:
    """Return the most frequent words of the text files in a folder, for `write_weights`.

    Only the beginning of each file is read.
    """
    counts: Counter[str] = Counter()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open(encoding="utf-8") as stream:
            counts.update(re.findall(r"[^\W\d_]{2,}", stream.read(_CHARACTERS_READ)))
    return [word for word, _ in counts.most_common(count)]


def write_weights(
    folder: Path, entries: Mapping[str, AnyEntry], words: Collection[str] = ()
) -> None:
    """Write `hub`, a cache of the Hugging Face Hub with stand-ins for the weights of models.

    Models that are not on the Hub are skipped.

    Args:
        folder: Output folder; earlier stand-ins in it are removed.
        entries: Models by name in models.yaml. A model without known properties gets those that are
            usual for its kind.
        words: Words that are added to all vocabularies; without them, texts are split into smaller
            pieces and take twice the time.
    """
    shutil.rmtree(folder / "hub", ignore_errors=True)
    (folder / "hub").mkdir(parents=True)
    known = tuple(sorted(set(words)))
    for name, entry in entries.items():
        if checkpoint := hub_checkpoint(entry):
            _write_repositories(folder / "hub", name, entry, checkpoint, known)


def _write_repositories(
    hub: Path, name: str, entry: AnyEntry, checkpoint: HubCheckpoint, words: tuple[str, ...]
) -> None:
    """Write the snapshot of a checkpoint and those of the repositories of its code."""
    snapshot = _snapshot(hub, checkpoint)
    if snapshot.exists():
        return  # shared by another entry
    _save(name, entry, snapshot, words)
    codes = remote_code_checkpoints(
        entry, lambda file: path if (path := snapshot / file).exists() else None
    )
    _list_files(snapshot, checkpoint)
    for code in codes:
        place = _snapshot(hub, code)
        if not place.exists():
            from rehearsal.weights.checkpoints import save_code

            save_code(place)
            _list_files(place, code)


def _save(name: str, entry: AnyEntry, folder: Path, words: tuple[str, ...]) -> None:
    # Imported here because they load torch.
    from rehearsal.weights.anatomy import ANATOMY, OTHERS, USUAL
    from rehearsal.weights.checkpoints import save_checkpoint

    anatomy = (ANATOMY | OTHERS).get(name) or USUAL[entry.kind]
    is_large = entry.kind == "llm" or (
        entry.parameters is not None and parameter_count(entry.parameters) > IN_PARTS_FROM
    )
    is_pickled = bool(getattr(entry, "pickled", False))
    save_checkpoint(anatomy, folder, words=words, pickled=is_pickled, in_parts=is_large)


def _snapshot(hub: Path, checkpoint: HubCheckpoint) -> Path:
    """Return a checkpoint's folder in the cache; an invented commit replaces a missing revision."""
    name = checkpoint.repository
    commit = checkpoint.revision or hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
    return hub / f"models--{name.replace('/', '--')}" / "snapshots" / commit


def _list_files(snapshot: Path, checkpoint: HubCheckpoint) -> None:
    """Write the file list that `snapshot_download` keeps in the Hub's cache."""
    place = snapshot.parents[1]
    # As on the Hub, the list includes files that are not fetched.
    files: dict[str, Any] = {"README.md": {"size": 12000, "blob_id": _git_blob(b"")}}
    for path in sorted(path for path in snapshot.rglob("*") if path.is_file()):
        content = path.read_bytes()
        entry: dict[str, Any] = {"size": len(content), "blob_id": _git_blob(content)}
        if path.suffix in {".safetensors", ".bin"}:
            entry |= {"lfs_sha256": sha256(path), "lfs_size": len(content)}
        files[path.relative_to(snapshot).as_posix()] = entry
    write_json(place / "trees" / f"{snapshot.name}.json", {"format_version": 1, "files": files})
    if not checkpoint.revision:
        # A final newline would become part of the commit.
        write_text(place / "refs/main", snapshot.name)


def _git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()
