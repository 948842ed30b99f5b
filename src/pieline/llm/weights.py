"""The GGUF files of local models, and whether they are those of their entries."""

import importlib.util
from fnmatch import fnmatch
from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import sha256
from pieline.models.llm import LLMEntry


def find_package_file(package: str, pattern: str) -> Path:
    """The one file in the folder of an installed package whose name matches, without importing it.

    Raises:
        UserError: the package is not installed, or no file or several match.
    """
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise UserError(
            f"the package {package} is not installed", mend="install the environment in envs/"
        )
    folders = [Path(folder) for folder in found.submodule_search_locations]
    files = sorted(file for folder in folders for file in folder.rglob("*") if file.is_file())
    matching = [file for file in files if fnmatch(file.name, pattern)]
    if len(matching) != 1:
        raise UserError(
            f"{len(matching)} files match {pattern!r}, not one", where=f"package {package}"
        )
    return matching[0]


def find_weights(spec: LLMEntry) -> Path:
    """The GGUF file of a local model.

    Raises:
        UserError: there is no such file.
    """
    if spec.source == "package":
        path = find_package_file(str(spec.package), str(spec.file))
    else:
        path = Path(str(spec.path), spec.file or "")
    if not path.is_file():
        raise UserError(
            "no such file",
            where=path,
            mend=f"put it there or correct the entry of {spec.label}; to replay recordings its"
            " weights_sha256 is enough",
        )
    return path


def weights_path(spec: LLMEntry) -> Path:
    """The same, with its digest checked.

    Raises:
        UserError: there is no such file, it is another than the entry says, or the entry does not
            say (see `require_digest`).
    """
    path = find_weights(spec)
    digest = sha256(path)
    if spec.weights_sha256 is None:
        raise UserError(
            "the entry lacks weights_sha256, which is part of the key of every recorded answer;"
            f" that of {path} is {digest}",
            where=spec.label,
            mend="write it there if this is the file that is meant",
        )
    if digest != spec.weights_sha256:
        raise UserError(
            "these are not the weights of the entry (sha256 differs)",
            where=path,
            mend="install the pinned version or correct weights_sha256",
        )
    return path


def require_digest(spec: LLMEntry) -> None:
    """See to it that the keys of a model's recordings tell its weights.

    Raises:
        UserError: a local model without `weights_sha256`; tells what to write, or that its file is
            missing.
    """
    if spec.is_local and spec.weights_sha256 is None:
        weights_path(spec)
