"""Sidecars: `.evidence/<file>.json` states what a file was made from.

Jobs check the sidecars of the files that they read. The checks need neither timestamps nor
Snakemake's metadata, because a copied folder may lack them. Only `pieline.core.jobs.job` writes
sidecars; Snakemake does not know about sidecars.
"""

import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from pieline.core.errors import UserError, pluralize
from pieline.core.files import cached_sha256, sha256_of, write_json, write_text
from pieline.core.records import Record, load_record

FOLDER = ".evidence"
"""Name of the folder next to the files that contains their sidecars; hidden from people."""
_OLD_ENDING = ".evidence.json"
"""Ending of the names of sidecars that earlier versions wrote next to the files."""
LIST_ENDING = ".sha256"
"""Ending of the name of a file that lists the digests of a folder's files.

Rules have this file as input instead of the folder.

Snakemake compares files by content, but folders only by time.
"""
MAKE_AGAIN = "run the same snakemake command with --forcerun {}"
"""Hint for files that are missing or not up to date; the placeholder stands for their paths."""
EXTRACTED = "this folder has other data than {}: use another folder (--directory)"
"""Hint for files from an archive with other inputs; the placeholder stands for the archive."""
_OUTPUT_FOLDERS = ("results/", "paper_tables/")
"""Folders to which only jobs write."""
_DOWNLOADED = "results/archives/"
"""Subfolder of `results/` with downloaded archives, which have no sidecars."""
_NO_SETTINGS = ("contents", "fresh")
"""Params of rules that are not settings and only cause a job to run again."""
_SHOWN_SETTINGS = 3
"""Maximum number of settings that an error message names."""
_TIMESTAMP = ".snakemake_timestamp"
"""File that Snakemake creates in each output folder."""
_DIGEST_CACHE = Path(".snakemake/pieline_digests.json")
_SHORT_DIGEST = 8
"""Number of hexadecimal digits in the digests of settings."""
_PACKAGES = (
    "litellm", "agno", "numpy", "rank-bm25", "scipy",
    "sentence-transformers", "tokenizers", "torch", "transformers",
)  # fmt: skip
"""Packages whose version may affect answers, tags or embeddings."""


Settings = Annotated[
    Mapping[str, str],
    # Earlier versions wrote one digest of all settings.
    BeforeValidator(lambda value: {} if isinstance(value, str) else value),
]


class Sidecar(Record):
    """Content of a sidecar.

    Attributes:
        path: Path of the file or folder, relative to the working directory. If this path is not
            next to the sidecar, the sidecar was copied.
        files: SHA-256 of the file, or of each file in the folder, by path.
        made_from: SHA-256 of each input file of the job, by path.
        outputs: Paths of all outputs of the job.
        settings: Digest of each setting of the rule, by name (see `settings_of`); empty if unknown.
        source: Source of a raw file, or name of the archive from which a run was extracted.
        answers: Digest of each recorded answer that was used, by question key.
        recordings: SHA-256 of each recordings file, by path.
        token: Token of the used answers (see `pieline.llm.recordings.answers_token`).
        packages: Versions of the loaded packages that may affect the results, by name.
    """

    path: str
    files: dict[str, str]
    made_from: dict[str, str]
    outputs: Sequence[str] = ()
    settings: Settings = {}  # noqa: RUF012
    source: str = ""
    answers: Mapping[str, str] = {}
    recordings: Mapping[str, str] = {}
    token: str = ""
    packages: Mapping[str, str] = {}


class Digests(dict[str, str]):
    """SHA-256 of files by path; each digest is computed when it is first used."""

    def __missing__(self, path: str) -> str:
        """Compute a file's digest, which is cached in the working directory for a large file."""
        self[path] = digest = cached_sha256(Path(path), _DIGEST_CACHE)
        return digest

    def of(self, *paths: str) -> dict[str, str]:
        """Return the digests of files, and of all files in folders, by path."""
        digests: dict[str, str] = {}
        for path in sorted(str(path) for path in paths):
            digests.update({file: self[file] for file in _files_of(path)})
        return digests


def sidecar_of(path: str | Path) -> str:
    """Return the path of the sidecar of a file or folder."""
    path = Path(path)
    return str(path.parent / FOLDER / f"{path.name}.json")


def is_sidecar(path: str) -> bool:
    """Return whether a file is a sidecar."""
    return Path(path).parent.name == FOLDER


def file_of(sidecar: str) -> str:
    """Return the path of the file or folder that a sidecar describes."""
    path = Path(sidecar)
    return str(path.parent.parent / path.stem)


def move_old_sidecars(folders: Iterable[str] = _OUTPUT_FOLDERS) -> None:
    """Move sidecars of earlier versions, which lie next to their files, to the sidecar folders."""
    for folder in folders:
        for path in _files_below(folder):
            if path.endswith(_OLD_ENDING):
                sidecar = Path(sidecar_of(path.removesuffix(_OLD_ENDING)))
                sidecar.parent.mkdir(exist_ok=True)
                Path(path).replace(sidecar)


def is_made(path: str) -> bool:
    """Return whether a path is one to which only jobs write, so that the file needs a sidecar."""
    return path.startswith(_OUTPUT_FOLDERS) and not path.startswith(_DOWNLOADED)


def load_sidecar(path: str | Path) -> Sidecar:
    """Return the sidecar of a file or folder.

    Raises:
        UserError: The sidecar is missing, invalid, or describes another file.
    """
    sidecar_path, hint = sidecar_of(path), MAKE_AGAIN.format(path)
    if not Path(sidecar_path).is_file():
        raise UserError("is missing", where=sidecar_path, hint=hint)
    try:
        sidecar = load_record(sidecar_path, Sidecar)
    except UserError as error:
        raise UserError(error.what, where=error.where, hint=hint) from None
    if sidecar.path != str(path):
        problem = f"is a copy of that of {sidecar.path}, so {path} may be a copy, too"
        raise UserError(problem, where=sidecar_path, hint=hint)
    return sidecar


def write_sidecar(path: str, *, made_from: Mapping[str, str], **facts: Any) -> None:
    """Write the sidecar of a file or folder, with digests and the versions of loaded packages.

    Args:
        path: File or folder.
        made_from: SHA-256 of each input, by path.
        facts: Further fields of `Sidecar`.
    """
    sidecar = Sidecar(
        path=path,
        files=Digests().of(path),
        made_from=dict(made_from),
        packages=_loaded_packages(),
        **facts,
    )
    write_json(sidecar_of(path), sidecar.model_dump(mode="json"))


def remove_sidecars(paths: Iterable[str]) -> None:
    """Remove the sidecars of files; a job does so before it writes the files again."""
    for path in paths:
        Path(sidecar_of(path)).unlink(missing_ok=True)


def write_digest_list(folder: str, path: str) -> None:
    """Write the digests of all files in a folder to a file, in the format of `sha256sum`."""
    lines = [f"{digest}  {file}\n" for file, digest in Digests().of(folder).items()]
    write_text(path, "".join(lines))


def folder_of(path: str) -> str:
    """Return the folder whose digests a file lists; return the path of any other file unchanged."""
    return path.removesuffix(LIST_ENDING)


def check_made(paths: Iterable[str], known: Digests | None = None) -> None:
    """Check the inputs of a job by their sidecars; files that no job made are not checked.

    If an input lists the digests of a folder, the folder is checked too. Each input must be
    unchanged, and must have been made from the current content of its own inputs.

    Args:
        paths: Inputs of the job.
        known: Digests of the files that were hashed so far.

    Raises:
        UserError: The sidecar of an input is missing, invalid or a copy, or the input is missing,
            was changed, or was made from other files.
    """
    known = Digests() if known is None else known
    sidecar_by_path: dict[str, Sidecar] = {}
    for path in paths:
        if is_made(path):
            folder = folder_of(path)
            if folder != path:
                sidecar_by_path[folder] = load_sidecar(folder)
            sidecar_by_path[path] = load_sidecar(path)
    for path, sidecar in sidecar_by_path.items():
        _check_content(path, sidecar, known)
    for path, sidecar in sidecar_by_path.items():
        _check_inputs(path, sidecar, known)


def _check_inputs(path: str, sidecar: Sidecar, known: Digests) -> None:
    """Check that the inputs of a file, if they still exist, have the digests in its sidecar.

    `known` contains the digests of the files that were hashed so far.
    """
    existing_inputs = {
        file: digest for file, digest in sidecar.made_from.items() if Path(file).exists()
    }
    for file, digest in existing_inputs.items():
        # If the input itself was edited, the error must name the input instead of this file.
        if known[file] != digest and Path(sidecar_of(file)).exists():
            _check_content(file, load_sidecar(file), known)
    changed = f"differs from the file that {path} was made from"
    hint = EXTRACTED.format(sidecar.source) if sidecar.source else MAKE_AGAIN.format(path)
    check_digests(existing_inputs, changed=changed, hint=hint, known=known)


@dataclass(frozen=True)
class Expected:
    """Settings and inputs from which a file must have been made for a run to keep the file.

    Attributes:
        settings: Settings of the file's rule (see `settings_of`).
        inputs: Inputs of the file's job.
    """

    settings: Mapping[str, str]
    inputs: Sequence[str]


def check_kept(
    expected: Mapping[str, Expected], remade: Collection[str], folder: str = "results"
) -> None:
    """Check the files that a run keeps, because Snakemake may compare only modification times.

    Args:
        expected: Settings and inputs from which the files of the run's jobs must have been made, by
            path.
        remade: Files that the run makes again, which are not checked.
        folder: Folder in which the content of all files is checked, including files of other runs.

    Raises:
        UserError: Files were edited, replaced, or copied with their sidecars, or were made with
            other settings or from other inputs. The message describes one file, and the hint names
            all of these files.
    """
    known = Digests()
    files_with_sidecars = {file_of(path) for path in _files_below(folder) if is_sidecar(path)}
    kept = (files_with_sidecars | expected.keys()) - set(remade)
    sidecar_by_path: dict[str, Sidecar] = {}
    problem_by_path: dict[str, UserError] = {}
    for path in sorted(kept):
        can_be_checked = is_made(path) and Path(path).exists() and Path(sidecar_of(path)).exists()
        if not can_be_checked:
            continue
        try:
            sidecar_by_path[path] = load_sidecar(path)
            if path.startswith(f"{folder}/"):
                _check_content(path, sidecar_by_path[path], known)
        except UserError as error:
            problem_by_path[path] = error
    edited = set(problem_by_path)  # files and folders
    edited_files: set[str] = set()
    for path in edited:
        if path in sidecar_by_path:
            edited_files.update(sidecar_by_path[path].files)
    for path, sidecar in sidecar_by_path.items():
        if path not in expected or path in edited:
            continue
        difference = _difference(sidecar, expected[path], known, edited_files)
        if difference:
            problem_by_path[path] = UserError(difference, where=path)
    _raise_first(problem_by_path, edited, sidecar_by_path)


def _raise_first(
    problem_by_path: Mapping[str, UserError],
    edited: Collection[str],
    sidecar_by_path: Mapping[str, Sidecar],
) -> None:
    """Raise the first problem, if there is one, with a hint that names the files to make again.

    Args:
        problem_by_path: Problem of each file that was not made as expected.
        edited: Files that were edited, replaced or copied.
        sidecar_by_path: Sidecar of each file, at least of the files that were not edited.
    """
    to_make_again: list[str] = []
    for path in sorted(problem_by_path):
        # A file that was made from one of the other files is made again along with that file.
        is_made_from_another = path not in edited and any(
            file in problem_by_path for file in sidecar_by_path[path].made_from
        )
        if not is_made_from_another:
            to_make_again.append(path)
    if not to_make_again:
        return
    first = problem_by_path[to_make_again[0]]
    other_count = len(to_make_again) - 1
    also = f", as {pluralize(other_count, 'other file')}" if other_count else ""
    hint = MAKE_AGAIN.format(" ".join(to_make_again))
    raise UserError(first.what + also, where=first.where, hint=hint)


def _difference(
    sidecar: Sidecar, expected: Expected, known: Digests, edited: Collection[str]
) -> str:
    """Describe how a file was made differently than expected; empty if it was made as expected.

    Args:
        sidecar: Sidecar of the file.
        expected: Settings and inputs from which the file must have been made.
        known: Digests of the files that were hashed so far.
        edited: Edited inputs, which are reported themselves and ignored here.
    """
    if sidecar.settings:
        changed = _changed_keys(sidecar.settings, expected.settings)
        if changed:
            shown = ", ".join(changed[:_SHOWN_SETTINGS])
            hidden_count = len(changed) - _SHOWN_SETTINGS
            more = f" and {hidden_count} more" if hidden_count > 0 else ""
            return f"was made with settings that differ from the configuration ({shown}{more})"
    # The sidecar of a file from an archive lists the inputs of the run that made the archive.
    is_from_archive = bool(sidecar.source)
    current_inputs: dict[str, str] = {}
    if not is_from_archive:
        current_inputs = known.of(*(path for path in expected.inputs if Path(path).exists()))
    for file in sorted(current_inputs.keys() | sidecar.made_from.keys()):
        # Temporary inputs may have been deleted.
        if file in edited or not Path(file).exists():
            continue
        if file not in sidecar.made_from:
            return f"was made without {file}"
        if known[file] != sidecar.made_from[file]:
            return f"was made from another {file}"
        if not is_from_archive and file not in current_inputs:
            return f"was made from {file}, which is no input any more"
    return ""


def _changed_keys(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the sorted keys that only one of two mappings has, or that have different values."""
    return sorted(key for key in {*before, *after} if before.get(key) != after.get(key))


def settings_of(params: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Return a digest of each param of a rule, by name, except params that are not settings.

    A param that is a JSON object has a digest for each field, under a name such as
    `task.parameters.temperature`.

    Args:
        params: Name and value of each param.
    """
    digests: dict[str, str] = {}
    for name, value in params:
        if name not in _NO_SETTINGS:
            digests.update(_setting_digests(name, value))
    return digests


def _setting_digests(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and digest of a param, or of each field if the param is a JSON object."""
    parsed = value
    if isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError):
            parsed = json.loads(value)
    if isinstance(parsed, Mapping) and parsed:
        for key, field_value in parsed.items():
            yield from _setting_digests(f"{name}.{key}", field_value)
    else:
        yield name, sha256_of(str(value).encode())[:_SHORT_DIGEST]


def packages_behind(paths: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the versions of the packages with which files and all their inputs were made.

    Reads the versions from the sidecars. Omits files whose jobs loaded no package that may affect
    the results.

    Returns:
        Versions by package, for each path.
    """
    packages_by_file: dict[str, dict[str, str]] = {}
    unvisited = [*paths]
    visited: set[str] = set()
    while unvisited:
        path = unvisited.pop()
        if path in visited or not Path(sidecar_of(path)).exists():
            continue
        visited.add(path)
        sidecar = load_sidecar(path)
        unvisited += [*sidecar.made_from, *sidecar.outputs]
        if sidecar.packages:
            for file in sidecar.files:
                packages_by_file[file] = dict(sidecar.packages)
    return dict(sorted(packages_by_file.items()))


def check_digests(
    recorded: Mapping[str, str], *, changed: str, hint: str, known: Digests | None = None
) -> None:
    """Check that files exist and have the recorded digests.

    Args:
        recorded: SHA-256 of each file, by path.
        changed: Error message for a file whose digest differs.
        hint: Hint for the error messages.
        known: Digests of the files that were hashed so far.

    Raises:
        UserError: A file is missing or has another digest.
    """
    known = Digests() if known is None else known
    for path, digest in recorded.items():
        if path not in known and not Path(path).is_file():
            raise UserError("is missing", where=path, hint=hint)
        if known[path] != digest:
            raise UserError(changed, where=path, hint=hint)


def _check_content(path: str, sidecar: Sidecar, known: Digests) -> None:
    """Check that a file, or each file in a folder, has the digest in the sidecar."""
    changed = "was changed after it was written"
    hint = MAKE_AGAIN.format(path)
    check_digests(sidecar.files, changed=changed, hint=hint, known=known)
    for file in _files_of(path):
        if file not in sidecar.files:
            raise UserError(f"was added after {path} was written", where=file, hint=hint)


def _files_of(path: str) -> list[str]:
    """Return all files below a folder; for the path of a file, only this path."""
    return sorted(_files_below(path)) if Path(path).is_dir() else [path]


def _files_below(folder: str) -> Iterator[str]:
    """Yield the paths of all files below a folder, except Snakemake's timestamp."""
    for parent, _, names in os.walk(folder):
        yield from (f"{parent}/{name}" for name in names if name != _TIMESTAMP)


def _loaded_packages() -> dict[str, str]:
    """Return the versions of the loaded packages that may affect results, by name."""
    return {
        package: metadata.version(package)
        for package in _PACKAGES
        if package.replace("-", "_") in sys.modules
    }
