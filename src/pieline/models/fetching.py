"""List the checkpoints that a configuration needs from the Hub, and download them."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from huggingface_hub import constants, hf_hub_download

from pieline.core.errors import UserError, pluralize
from pieline.core.files import read_text, write_text
from pieline.core.yamls import read_yaml
from pieline.models.entries import ModelEntry
from pieline.models.hub import (
    HubCheckpoint,
    Listing,
    UnreachableError,
    hub_checkpoint,
    remote_code_checkpoints,
    unpinned_error,
)
from pieline.models.registry import local_file
from pieline.models.sizing import BYTES_PER_WEIGHT, parameter_count

GIGABYTE = 1e9


@dataclass(frozen=True)
class RequiredCheckpoint:
    """A checkpoint that models of a configuration need.

    Attributes:
        checkpoint: Checkpoint on the Hub.
        models: Names of the models that need the checkpoint.
        listing: Files of the checkpoint; None if they could not be listed.
        missing: Bytes to download. Without a listing, an estimate from the number of parameters, or
            None if this number is unknown.
        obstacle: Error that prevents the download; None if there is none.
    """

    checkpoint: HubCheckpoint
    models: tuple[str, ...]
    listing: Listing | None
    missing: int | None
    obstacle: UserError | None = None

    @property
    def size(self) -> int | None:
        """Total bytes, including files in the cache; without a listing, equal to `missing`."""
        return sum(self.listing.sizes.values()) if self.listing else self.missing

    @property
    def state(self) -> str:
        """Description of the state: in the cache, to be downloaded, or why it is unavailable."""
        if isinstance(self.obstacle, UnreachableError):
            return "not in the cache" + ("; size estimated" if self.missing is not None else "")
        if self.obstacle:
            return self.obstacle.what
        return "to download" if self.missing else "in the cache"


def required_checkpoints(entries: Mapping[str, ModelEntry]) -> list[RequiredCheckpoint]:
    """Return the checkpoints that models need from the Hub, without duplicates.

    Repositories with remote code are included. After the Hub has failed to respond, it is not
    queried again, and the remaining sizes are estimated.

    Args:
        entries: Entries of the models by name.
    """
    users: dict[HubCheckpoint, list[str]] = {}
    for name, entry in entries.items():
        if weights := hub_checkpoint(entry):
            users.setdefault(weights, []).append(name)
    checkpoints: dict[HubCheckpoint, RequiredCheckpoint] = {}
    silence: UnreachableError | None = None
    waiting = list(users)
    for checkpoint in waiting:  # the loop appends repositories of remote code
        models = tuple(users[checkpoint])
        # Prefer a model whose entry allows downloading the checkpoint.
        entry = min(
            (entries[name] for name in models), key=lambda entry: bool(unpinned_error(entry))
        )
        item = _look(checkpoint, models, entry, silence)
        checkpoints[checkpoint] = item
        if isinstance(item.obstacle, UnreachableError):
            silence = item.obstacle
        if checkpoint.only or item.obstacle:
            continue
        for code in remote_code_checkpoints(entry, partial(_read, checkpoint, item.listing)):
            if code not in users:
                waiting.append(code)
            users.setdefault(code, []).extend(models)
    return list(checkpoints.values())


def _look(
    checkpoint: HubCheckpoint,
    models: tuple[str, ...],
    entry: ModelEntry,
    silence: UnreachableError | None,
) -> RequiredCheckpoint:
    """Look up one checkpoint; `silence` is the earlier error if the Hub did not respond."""
    if obstacle := unpinned_error(entry):
        return RequiredCheckpoint(checkpoint, models, None, estimated_bytes(entry), obstacle)
    if listing := checkpoint.cached():
        return RequiredCheckpoint(checkpoint, models, listing, 0)
    try:
        if silence:
            raise silence
        listing = checkpoint.request_listing()
    except UserError as error:
        return RequiredCheckpoint(checkpoint, models, None, estimated_bytes(entry), error)
    return RequiredCheckpoint(checkpoint, models, listing, listing.missing)


def estimated_bytes(entry: ModelEntry) -> int | None:
    """Estimate the bytes of the weights; None if `parameters` is not a single number."""
    try:
        weights = parameter_count(entry.parameters or "")
    except UserError:
        return None
    return weights * BYTES_PER_WEIGHT[getattr(entry, "dtype", None) or "bfloat16"]


def _read(checkpoint: HubCheckpoint, listing: Listing | None, name: str) -> Path | None:
    """Return the path of a file of a checkpoint, downloaded if necessary; None if not listed."""
    if listing is None or name not in listing.sizes:
        return None
    return Path(hf_hub_download(checkpoint.repository, name, revision=listing.commit))


def summary(items: Sequence[RequiredCheckpoint]) -> str:
    """Return a line with the number of checkpoints, their size, the download and free space."""
    about = "about " if any(item.obstacle for item in items) else ""
    total, missing = _total(item.size for item in items), _total(item.missing for item in items)
    return (
        f"{pluralize(len(items), 'checkpoint')} of {about}{total / GIGABYTE:.1f} GB;"
        f" {about}{missing / GIGABYTE:.1f} GB to download into {constants.HF_HUB_CACHE},"
        f" which has {_free() / GIGABYTE:.1f} GB free"
    )


def obstacles(items: Iterable[RequiredCheckpoint]) -> list[str]:
    """Return the reasons why checkpoints cannot be downloaded, without duplicates."""
    lines: dict[str, None] = {}
    for item in items:
        if isinstance(item.obstacle, UnreachableError):
            line = (
                f"{item.obstacle.what}; sizes are estimated from `parameters` and `dtype`,"
                " which is too low for files in float32"
            )
            lines[line] = None
        elif item.obstacle:
            lines[str(item.obstacle)] = None
    return list(lines)


def pin_commits(
    items: Sequence[RequiredCheckpoint], models: Path
) -> tuple[list[RequiredCheckpoint], list[str]]:
    """Pin the commits of unpinned checkpoints of models.yaml, in models.local.yaml next to it.

    Args:
        items: Checkpoints that were listed.
        models: Path of models.yaml.

    Returns:
        The checkpoints with their commits, and a message for each commit that was pinned.
    """
    shipped, own = read_yaml(models), local_file(models)
    pinned, lines, text = [], [], read_text(own) if own.exists() else ""
    for item in items:
        commit = item.listing.commit if item.listing else ""
        names = [name for name in item.models if name in shipped and not item.checkpoint.only]
        if item.checkpoint.revision or not commit or not names:
            pinned.append(item)
            continue
        for name in names:
            text = f'{text.rstrip()}\n{name}:\n  revision: "{commit}"\n'.lstrip()
            lines.append(f"{name}: {own} now pins {item.checkpoint.repository} to {commit}")
        pinned.append(replace(item, checkpoint=replace(item.checkpoint, revision=commit)))
    if lines:
        write_text(own, text)
    return pinned, lines


def fetch(items: Sequence[RequiredCheckpoint]) -> Iterator[str]:
    """Download the files that the cache lacks, after checking the free space.

    Yields:
        A progress message before each download.

    Raises:
        UserError: The Hub did not respond or the space is insufficient (nothing was downloaded), a
            download was interrupted, or some checkpoints are unavailable (all others were
            downloaded).
    """
    silent = next(
        (item.obstacle for item in items if isinstance(item.obstacle, UnreachableError)), None
    )
    if silent:
        hint = "run this on a machine with network access, with HF_HUB_OFFLINE unset"
        raise UserError(silent.what, where="weights", hint=hint)
    downloads = [item for item in items if item.listing and item.missing]
    _require_room(_total(item.missing for item in downloads))
    for number, item in enumerate(downloads, start=1):
        size = _total([item.missing]) / GIGABYTE
        yield f"{number} of {len(downloads)}: {item.checkpoint}, {size:.1f} GB"
        assert item.listing
        item.checkpoint.download(item.listing)
    if left := obstacles(items):
        where = f"{pluralize(len(left), 'checkpoint')} not downloaded"
        raise UserError("; ".join(left), where=where)


def _total(sizes: Iterable[int | None]) -> int:
    return sum(size or 0 for size in sizes)


def _cache_parent() -> Path:
    """Return the cache folder, or its nearest existing parent."""
    cache = Path(constants.HF_HUB_CACHE).absolute()
    return next(folder for folder in (cache, *cache.parents) if folder.is_dir())


def _free() -> int:
    """Return the free bytes on the file system of the cache."""
    return shutil.disk_usage(_cache_parent()).free


def _require_room(size: int) -> None:
    """Check that the file system and the quota have enough space for a download.

    Raises:
        UserError: The space is insufficient.
    """
    where, hint = constants.HF_HUB_CACHE, "set HF_HOME to a larger disk, or leave models out"
    download = f"{size / GIGABYTE:.1f} GB to download"
    if size > (free := _free()):
        raise UserError(f"{download}, {free / GIGABYTE:.1f} GB free", where=where, hint=hint)
    if not size or not shutil.which("fallocate"):
        return
    # Quotas are checked only on allocation, so allocate all blocks and free them again.
    with tempfile.NamedTemporaryFile(dir=_cache_parent()) as reserved:
        tried = subprocess.run(
            ["fallocate", "--length", str(size), reserved.name],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"LC_ALL": "C"},
        )
    if tried.returncode and (why := re.search(r"[^:]*(quota|space)[^:]*$", tried.stderr.strip())):
        raise UserError(f"{download}: {why[0].strip()}", where=where, hint=hint)
