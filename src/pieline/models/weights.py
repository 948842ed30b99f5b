"""Where the weights of a checkpoint lie."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pieline.core.errors import UserError
from pieline.models.entries import CheckpointEntry
from pieline.models.hub import offline, on_hub, remote_code


def package_path(package: str, path: str) -> Path:
    """Where a file or folder of an installed package lies, without importing the package.

    Raises:
        UserError: the package is not installed or lacks the path.
    """
    found = importlib.util.find_spec(package)
    folders = list(found.submodule_search_locations or []) if found else []
    if not folders:
        raise UserError(
            f"Python package {package!r} is not installed",
            where="models.yaml",
            mend="install the locked requirements (make environment)",
        )
    location = Path(folders[0]) / path
    if not location.exists():
        raise UserError(
            f"package {package!r} has no {path!r}", where="models.yaml", mend="correct path"
        )
    return location


def weights_location(entry: CheckpointEntry) -> str:
    """Folder or GGUF file of the weights; those on the hub are fetched if the cache lacks them.

    Raises:
        UserError: they cannot be had.
    """
    if entry.source == "package":
        return str(package_path(str(entry.package), str(entry.path)))
    if entry.source == "folder":
        return str(entry.path)
    weights = on_hub(entry)
    assert weights is not None
    folder = weights.snapshot()
    for code in remote_code(entry, lambda name: file if (file := folder / name).exists() else None):
        code.snapshot()
    return str(folder)


def require_weights(entry: CheckpointEntry, weights: str | Path | None) -> None:
    """See that a job has its weights, or can fetch them, before it loads what takes seconds.

    `weights` is a folder to load instead of the entry's own.

    Raises:
        UserError: they cannot be had.
    """
    if not weights:
        weights_location(entry)


@contextmanager
def loading(entry: CheckpointEntry) -> Iterator[None]:
    """Make one line of whatever keeps the weights from being loaded in the block.

    Raises:
        UserError: they cannot be.
    """
    try:
        # All that is loaded is here by now; what a library asks for besides is not worth a request.
        with offline():
            yield
    except (OSError, ValueError) as error:
        if "file named model.safetensors" in str(error):
            raise UserError(
                "there are no safetensors weights at this commit",
                where=f"{entry.checkpoint} ({entry.source})",
                mend="pin a commit that has them, or set pickled: true to have them converted once",
            ) from None
        raise UserError(
            f"cannot load the weights: {str(error).splitlines()[0]}",
            where=f"{entry.checkpoint} ({entry.source})",
            mend="correct the entry, or delete these files and fetch them again",
        ) from None
