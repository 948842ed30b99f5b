"""Locate the weights of checkpoints."""

import importlib.util
from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import check_lfs_pointers
from pieline.models.entries import CheckpointEntry


def package_file(package: str, pattern: str) -> Path:
    """Return the path of the only file or folder in an installed package that matches a pattern.

    This function does not import the package.

    Args:
        package: Import name of the package.
        pattern: Pattern of the path relative to the package's folder, or of the file name.

    Raises:
        UserError: The package is not installed, or not exactly one path matches.
    """
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        raise UserError(
            f"Python package {package!r} is not installed",
            where="models.yaml",
            hint="install the locked requirements (make environment)",
        )
    matching: list[Path] = []
    for folder in folders:
        paths = sorted(Path(folder).rglob("*"))
        matching += [path for path in paths if path.relative_to(folder).match(pattern)]
    if len(matching) != 1:
        raise UserError(
            f"{len(matching)} files match {pattern!r}, not one",
            where=f"package {package}",
            hint="correct the entry in models.yaml",
        )
    return matching[0]


def weights_location(entry: CheckpointEntry) -> str:
    """Return the path of a model's weights, after downloading them if the Hub's cache lacks them.

    Raises:
        UserError: The weights on the Hub or in a package are unavailable, or a file in the entry's
            folder is a Git LFS pointer.
    """
    if entry.source == "package":
        return str(package_file(str(entry.package), str(entry.path)))
    if entry.source == "folder":
        check_lfs_pointers(str(entry.path))
        return str(entry.path)
    from pieline.models.hub import hub_checkpoint, remote_code_checkpoints

    weights = hub_checkpoint(entry)
    assert weights is not None
    folder = weights.snapshot()

    def find_file(name: str) -> Path | None:
        return folder / name if (folder / name).exists() else None

    for code in remote_code_checkpoints(entry, find_file):
        code.snapshot()
    return str(folder)
