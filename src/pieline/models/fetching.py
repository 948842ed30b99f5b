"""Fetching all checkpoints of a configuration from the hub, and before it what that takes."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from huggingface_hub import constants, hf_hub_download

from pieline.core.errors import UserError, pluralize
from pieline.models.entries import ModelEntry
from pieline.models.hub import (
    HubCheckpoint,
    Listing,
    UnreachableError,
    on_hub,
    remote_code,
    unpinned,
)
from pieline.models.sizing import BYTES_PER_WEIGHT, parameter_count

GIGABYTE = 1e9


@dataclass(frozen=True)
class Wanted:
    """A checkpoint that models of a configuration need.

    Attributes:
        checkpoint: what is on the hub.
        models: their names in models.yaml.
        listing: its files; none where the hub could not tell.
        missing: bytes to download; without a listing an estimate from the number of parameters,
            and none where that is not known either.
        obstacle: why it cannot be fetched.
    """

    checkpoint: HubCheckpoint
    models: tuple[str, ...]
    listing: Listing | None
    missing: int | None
    obstacle: UserError | None = None

    @property
    def size(self) -> int | None:
        """All its bytes, also those in the cache; estimated or none as `missing`."""
        return sum(self.listing.sizes.values()) if self.listing else self.missing

    @property
    def state(self) -> str:
        """For people: in the cache, to be fetched, or why not."""
        if isinstance(self.obstacle, UnreachableError):
            return "not in the cache" + ("; size estimated" if self.missing is not None else "")
        if self.obstacle:
            return self.obstacle.what
        gated = ", licence accepted" if self.listing and self.listing.gated else ""
        return f"to fetch{gated}" if self.missing else "in the cache"


def wanted(entries: Mapping[str, ModelEntry]) -> list[Wanted]:
    """What models need from the hub, each checkpoint once, and what of it the cache lacks.

    Where the hub does not answer it is asked no more, and sizes are estimated.

    Args:
        entries: the models by name.
    """
    users: dict[HubCheckpoint, list[str]] = {}
    for name, entry in entries.items():
        if weights := on_hub(entry):
            users.setdefault(weights, []).append(name)
    found: dict[HubCheckpoint, Wanted] = {}
    silence: UnreachableError | None = None
    waiting = list(users)
    for checkpoint in waiting:  # grows by the repositories of code
        models = tuple(users[checkpoint])
        # What may not be fetched for one of them may be for another.
        entry = min((entries[name] for name in models), key=lambda entry: bool(unpinned(entry)))
        item = _look(checkpoint, models, entry, silence)
        found[checkpoint] = item
        if isinstance(item.obstacle, UnreachableError):
            silence = item.obstacle
        if checkpoint.only or item.obstacle:
            continue
        for code in remote_code(entry, partial(_read, checkpoint, item.listing)):
            if code not in users:
                waiting.append(code)
            users.setdefault(code, []).extend(models)
    return list(found.values())


def _look(
    checkpoint: HubCheckpoint,
    models: tuple[str, ...],
    entry: ModelEntry,
    silence: UnreachableError | None,
) -> Wanted:
    """What is known of one checkpoint; `silence` is the error of a hub that did not answer."""
    if obstacle := unpinned(entry):
        return Wanted(checkpoint, models, None, estimated_bytes(entry), obstacle)
    if listing := checkpoint.cached():
        return Wanted(checkpoint, models, listing, 0)
    try:
        if silence:
            raise silence
        listing = checkpoint.look_up()
    except UserError as error:
        return Wanted(checkpoint, models, None, estimated_bytes(entry), error)
    return Wanted(checkpoint, models, listing, sum(checkpoint.missing(listing).values()))


def estimated_bytes(entry: ModelEntry) -> int | None:
    """Bytes of the weights by number of parameters and dtype; None if the entry says no number."""
    try:
        weights = parameter_count(entry.parameters or "")
    except UserError:
        return None
    return weights * BYTES_PER_WEIGHT[getattr(entry, "dtype", None) or "bfloat16"]


def _read(checkpoint: HubCheckpoint, listing: Listing | None, name: str) -> Path | None:
    """A small file of a checkpoint, which may name the repositories of its code."""
    if listing is None or name not in listing.sizes:
        return None
    return Path(hf_hub_download(checkpoint.repository, name, revision=listing.commit))


def summary(items: Sequence[Wanted]) -> str:
    """One line: how many checkpoints, their bytes, what is missing, and the room for it."""
    about = "about " if any(item.obstacle for item in items) else ""
    whole, missing = _total(item.size for item in items), _total(item.missing for item in items)
    return (
        f"{pluralize(len(items), 'checkpoint')} of {about}{whole / GIGABYTE:.1f} GB;"
        f" {about}{missing / GIGABYTE:.1f} GB to download into {constants.HF_HUB_CACHE},"
        f" which has {_free() / GIGABYTE:.1f} GB free"
    )


def obstacles(items: Iterable[Wanted]) -> list[str]:
    """What keeps checkpoints from being fetched: a line each, one for all that need the hub."""
    found = dict.fromkeys(
        f"{item.obstacle.what}; sizes are estimated from `parameters` and `dtype`,"
        " which is too little for files in float32"
        if isinstance(item.obstacle, UnreachableError)
        else str(item.obstacle)
        for item in items
        if item.obstacle
    )
    return list(found)


def fetch(items: Sequence[Wanted]) -> Iterator[str]:
    """Download what the cache lacks, after a check that there is room for all of it.

    Yields:
        A line before each download.

    Raises:
        UserError: there is no room (nothing was downloaded), a download broke off, or some
            checkpoints could not be had (all others were downloaded).
    """
    silent = next(
        (item.obstacle for item in items if isinstance(item.obstacle, UnreachableError)), None
    )
    if silent:
        hint = "run this where there is network, with HF_HUB_OFFLINE unset"
        raise UserError(silent.what, where="weights", hint=hint)
    had = [item for item in items if item.listing and item.missing]
    _require_room(_total(item.missing for item in had))
    for number, item in enumerate(had, start=1):
        size = _total([item.missing]) / GIGABYTE
        yield f"{number} of {len(had)}: {item.checkpoint}, {size:.1f} GB"
        assert item.listing
        item.checkpoint.download(item.listing)
    if left := obstacles(items):
        raise UserError("; ".join(left), where=f"{pluralize(len(left), 'checkpoint')} not fetched")


def _total(sizes: Iterable[int | None]) -> int:
    return sum(size or 0 for size in sizes)


def _cache_parent() -> Path:
    """The cache, or the lowest folder above it that is there."""
    cache = Path(constants.HF_HUB_CACHE).absolute()
    return next(folder for folder in (cache, *cache.parents) if folder.is_dir())


def _free() -> int:
    """Bytes that the cache's file system has left."""
    return shutil.disk_usage(_cache_parent()).free


def _require_room(size: int) -> None:
    """Refuse a download for which file system or quota has not enough room.

    Raises:
        UserError: says how much there is to download.
    """
    where, hint = constants.HF_HUB_CACHE, "set HF_HOME to a folder with room, or leave models out"
    told = f"{size / GIGABYTE:.1f} GB are to be downloaded"
    if size > (free := _free()):
        raise UserError(f"{told}, and {free / GIGABYTE:.1f} GB are free", where=where, hint=hint)
    if not size or not shutil.which("fallocate"):
        return
    # A quota shows only where blocks are taken: all are, at once, and given back.
    with tempfile.NamedTemporaryFile(dir=_cache_parent()) as taken:
        tried = subprocess.run(
            ["fallocate", "--length", str(size), taken.name],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"LC_ALL": "C"},
        )
    if tried.returncode and (why := re.search(r"[^:]*(quota|space)[^:]*$", tried.stderr.strip())):
        raise UserError(f"{told}, and {why[0].strip()}", where=where, hint=hint)
