"""Where the weights of a checkpoint lie."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pieline.core.errors import UserError
from pieline.models.checkpoint import CheckpointEntry


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
    """Local path of the weights, or their name on the hub."""
    if entry.source == "package":
        return str(package_path(str(entry.package), str(entry.path)))
    if entry.source == "folder":
        return str(entry.path)
    return entry.checkpoint


@contextmanager
def loading(entry: CheckpointEntry) -> Iterator[None]:
    """Make one line of whatever keeps the weights from being loaded in the block.

    Raises:
        UserError: they cannot be.
    """
    try:
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
            mend="check network and revision, or download the checkpoint on a machine with network",
        ) from None
