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
        listing: Files of the checkpoint; None if there is an `obstacle`.
        missing: Bytes to download. If `listing` is None, this is an estimate from the number of
            parameters, or None if that number is unknown.
        obstacle: Error that prevents the download; None if nothing prevents it.
    """

    checkpoint: HubCheckpoint
    models: tuple[str, ...]
    listing: Listing | None
    missing: int | None
    obstacle: UserError | None = None

    @property
    def size(self) -> int | None:
        """Total bytes, including files in the cache; `missing` if the files are not known."""
        return sum(self.listing.sizes.values()) if self.listing else self.missing

    @property
    def state(self) -> str:
        """State to print: in the cache, to download, or why the checkpoint is unavailable."""
        if isinstance(self.obstacle, UnreachableError):
            return "not in the cache" + ("; size estimated" if self.missing is not None else "")
        if self.obstacle:
            return self.obstacle.what
        return "to download" if self.missing else "in the cache"


def required_checkpoints(entries: Mapping[str, ModelEntry]) -> list[RequiredCheckpoint]:
    """Return the checkpoints that models need from the Hub, without duplicates.

    The result includes repositories with remote code. If the Hub does not respond once, it is not
    queried again, and the remaining sizes are estimated.

    Args:
        entries: Entries of the models by name.
    """
    models_by_checkpoint: dict[HubCheckpoint, list[str]] = {}
    for model, entry in entries.items():
        weights = hub_checkpoint(entry)
        if weights:
            models_by_checkpoint.setdefault(weights, []).append(model)
    required: list[RequiredCheckpoint] = []
    hub_error: UnreachableError | None = None
    queue = list(models_by_checkpoint)
    for checkpoint in queue:  # the loop appends repositories of remote code
        models = tuple(models_by_checkpoint[checkpoint])
        entry = _choose_entry([entries[model] for model in models])
        looked_up = _look_up(checkpoint, models, entry, hub_error)
        required.append(looked_up)
        if isinstance(looked_up.obstacle, UnreachableError):
            hub_error = looked_up.obstacle
        if checkpoint.only or looked_up.obstacle:
            continue
        find_file = partial(_fetch_file, checkpoint, looked_up.listing)
        for code_repository in remote_code_checkpoints(entry, find_file):
            if code_repository not in models_by_checkpoint:
                queue.append(code_repository)
            models_by_checkpoint.setdefault(code_repository, []).extend(models)
    return required


def _choose_entry(entries: Sequence[ModelEntry]) -> ModelEntry:
    """Return the first entry of a checkpoint that allows the download, or else the first entry."""
    for entry in entries:
        if not unpinned_error(entry):
            return entry
    return entries[0]


def _look_up(
    checkpoint: HubCheckpoint,
    models: tuple[str, ...],
    entry: ModelEntry,
    hub_error: UnreachableError | None,
) -> RequiredCheckpoint:
    """List the files of one checkpoint, without a request if the Hub has failed before.

    Args:
        checkpoint: Checkpoint on the Hub.
        models: Names of the models that need the checkpoint.
        entry: Entry of one of these models.
        hub_error: Earlier error because the Hub did not respond; None if it has not failed.
    """
    obstacle: UserError | None = unpinned_error(entry)
    if not obstacle:
        cached_files = checkpoint.cached()
        if cached_files:
            return RequiredCheckpoint(checkpoint, models, cached_files, missing=0)
        obstacle = hub_error
    if not obstacle:
        try:
            listing = checkpoint.request_listing()
            return RequiredCheckpoint(checkpoint, models, listing, listing.missing)
        except UserError as error:
            obstacle = error
    return RequiredCheckpoint(checkpoint, models, None, estimated_bytes(entry), obstacle)


def estimated_bytes(entry: ModelEntry) -> int | None:
    """Estimate the bytes of a model's weights; None if `parameters` is not a single number."""
    try:
        parameters = parameter_count(entry.parameters or "")
    except UserError:
        return None
    return parameters * BYTES_PER_WEIGHT[getattr(entry, "dtype", None) or "bfloat16"]


def _fetch_file(checkpoint: HubCheckpoint, listing: Listing | None, name: str) -> Path | None:
    """Download a file of a checkpoint and return its path; None if the file is not listed."""
    if listing is None or name not in listing.sizes:
        return None
    return Path(hf_hub_download(checkpoint.repository, name, revision=listing.commit))


def summary(checkpoints: Sequence[RequiredCheckpoint]) -> str:
    """Return a line with the number of checkpoints, and the total, missing and free space in GB."""
    about = "about " if any(required.obstacle for required in checkpoints) else ""
    total_gb = _total(required.size for required in checkpoints) / GIGABYTE
    missing_gb = _total(required.missing for required in checkpoints) / GIGABYTE
    return (
        f"{pluralize(len(checkpoints), 'checkpoint')} of {about}{total_gb:.1f} GB;"
        f" {about}{missing_gb:.1f} GB to download into {constants.HF_HUB_CACHE},"
        f" which has {_free_bytes() / GIGABYTE:.1f} GB free"
    )


def obstacles(checkpoints: Iterable[RequiredCheckpoint]) -> list[str]:
    """Return the reasons why checkpoints cannot be downloaded, without duplicates."""
    reasons: list[str] = []
    for required in checkpoints:
        if not required.obstacle:
            continue
        reason = str(required.obstacle)
        if isinstance(required.obstacle, UnreachableError):
            reason = (
                f"{required.obstacle.what}; sizes are estimated from `parameters` and `dtype`,"
                " which is too low for files in float32"
            )
        if reason not in reasons:
            reasons.append(reason)
    return reasons


def pin_commits(
    checkpoints: Sequence[RequiredCheckpoint], models: Path
) -> tuple[list[RequiredCheckpoint], list[str]]:
    """Pin the commits of entries of models.yaml, in the file models.local.yaml next to it.

    Only entries that pin no commit are changed.

    Args:
        checkpoints: Checkpoints whose files were looked up.
        models: Path of models.yaml.

    Returns:
        The checkpoints with their commits, and a message for each commit that was pinned.
    """
    shipped, local_models = read_yaml(models), local_file(models)
    local_text = read_text(local_models) if local_models.exists() else ""
    pinned_checkpoints: list[RequiredCheckpoint] = []
    messages: list[str] = []
    for required in checkpoints:
        checkpoint = required.checkpoint
        commit = required.listing.commit if required.listing else ""
        shipped_models = [model for model in required.models if model in shipped]
        # Files selected by a pattern are remote code or a GGUF file, which are not pinned here.
        if checkpoint.revision or checkpoint.only or not commit or not shipped_models:
            pinned_checkpoints.append(required)
            continue
        for model in shipped_models:
            local_text = f'{local_text.rstrip()}\n{model}:\n  revision: "{commit}"\n'.lstrip()
            messages.append(f"{model}: {local_models} now pins {checkpoint.repository} to {commit}")
        pinned = replace(required, checkpoint=replace(checkpoint, revision=commit))
        pinned_checkpoints.append(pinned)
    if messages:
        write_text(local_models, local_text)
    return pinned_checkpoints, messages


def fetch(checkpoints: Sequence[RequiredCheckpoint]) -> Iterator[str]:
    """Download the files that the cache lacks, after checking the free space.

    Yields:
        A progress message before each download.

    Raises:
        UserError: The Hub does not respond, the space is insufficient, or a download is
            interrupted. If some checkpoints are unavailable, the error is raised after the other
            checkpoints have been downloaded.
    """
    for required in checkpoints:
        if isinstance(required.obstacle, UnreachableError):
            hint = "run this on a machine with network access, with HF_HUB_OFFLINE unset"
            raise UserError(required.obstacle.what, where="weights", hint=hint)
    downloads = [required for required in checkpoints if required.listing and required.missing]
    _require_space(_total(required.missing for required in downloads))
    for number, required in enumerate(downloads, start=1):
        assert required.listing and required.missing
        size_gb = required.missing / GIGABYTE
        yield f"{number} of {len(downloads)}: {required.checkpoint}, {size_gb:.1f} GB"
        required.checkpoint.download(required.listing)
    reasons = obstacles(checkpoints)
    if reasons:
        where = f"{pluralize(len(reasons), 'checkpoint')} not downloaded"
        raise UserError("; ".join(reasons), where=where)


def _total(sizes: Iterable[int | None]) -> int:
    """Return the sum of sizes in bytes, without sizes that are unknown (None)."""
    return sum(size or 0 for size in sizes)


def _cache_folder() -> Path:
    """Return the folder of the Hub's cache or, before the first download, its nearest parent."""
    folder = Path(constants.HF_HUB_CACHE).absolute()
    while not folder.is_dir():
        folder = folder.parent
    return folder


def _free_bytes() -> int:
    """Return the free bytes on the file system of the cache."""
    return shutil.disk_usage(_cache_folder()).free


def _require_space(size: int) -> None:
    """Check that the file system and the quota have enough space for a download.

    Args:
        size: Bytes to download.

    Raises:
        UserError: The space is insufficient.
    """
    where, hint = constants.HF_HUB_CACHE, "set HF_HOME to a larger disk, or leave models out"
    download = f"{size / GIGABYTE:.1f} GB to download"
    free = _free_bytes()
    if size > free:
        raise UserError(f"{download}, {free / GIGABYTE:.1f} GB free", where=where, hint=hint)
    allocation_error = _allocation_error(size)
    if allocation_error:
        raise UserError(f"{download}: {allocation_error}", where=where, hint=hint)


def _allocation_error(size: int) -> str:
    """Return the system's message if it refuses to allocate `size` bytes in the cache, else "".

    Quotas are checked only on allocation, so all blocks are allocated and freed again.
    """
    if not size or not shutil.which("fallocate"):
        return ""
    with tempfile.NamedTemporaryFile(dir=_cache_folder()) as reserved:
        allocation = subprocess.run(
            ["fallocate", "--length", str(size), reserved.name],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"LC_ALL": "C"},
        )
    if not allocation.returncode:
        return ""
    # fallocate also fails on file systems that do not support it; downloads work on them.
    message = re.search(r"[^:]*(quota|space)[^:]*$", allocation.stderr.strip())
    return message[0].strip() if message else ""
