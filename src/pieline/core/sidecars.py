"""Sidecars: `.evidence/<file>.json` states what a file was made from.

Jobs check the sidecars of the files that they read. The checks need neither timestamps nor
Snakemake's metadata, which a copied folder may lack. Only `pieline.core.jobs.job` writes sidecars;
Snakemake does not know them.
"""

import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from pieline.core.errors import UserError, pluralize
from pieline.core.files import cached_sha256, sha256_of, write_json, write_text
from pieline.core.records import Record, load_record

FOLDER = ".evidence"
"""Folder of the sidecars next to the files. Its name is hidden, because people open the files."""
_OLD_ENDING = ".evidence.json"
"""Ending of the sidecars that earlier versions wrote next to the files."""
LIST_ENDING = ".sha256"
"""Ending of the list of a folder's digests, which rules read instead of the folder.

Snakemake compares listed digests by content, but folders only by time.
"""
MAKE_AGAIN = "run the same snakemake command with --forcerun {}"
EXTRACTED = "this folder has other data than {}: use another folder (--directory)"
_MADE = ("results/", "paper_tables/")
_DOWNLOADED = "results/archives/"
_NO_SETTINGS = ("contents", "fresh")
"""Params that only make a job stale."""
_SHOWN = 3
"""Maximum number of settings to name."""
_TIMESTAMP = ".snakemake_timestamp"
"""File that Snakemake creates in each output folder."""
_MEMORY = Path(".snakemake/pieline_digests.json")
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
        path: Path of the file or folder, relative to the working directory; in a copied sidecar,
            this is not its own location.
        files: SHA-256 of the file, or of each file in the folder, by path.
        made_from: SHA-256 of each input file of the job, by path.
        outputs: Paths of all outputs of the job.
        settings: Digests of the rule's settings by name (see `settings_of`); empty if unknown.
        source: Source of a raw file, or name of the archive from which a run was extracted.
        answers: Digests of the recorded answers that were used, by question key.
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
    """SHA-256 of files by path, computed on first use."""

    def __missing__(self, path: str) -> str:
        """Compute a digest; those of large files are kept in the working directory."""
        self[path] = digest = cached_sha256(Path(path), _MEMORY)
        return digest

    def of(self, *paths: str) -> dict[str, str]:
        """Return the digests of files, and of all files in folders, by path."""
        return {file: self[file] for path in sorted(map(str, paths)) for file in _files(path)}


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


def move_old_sidecars(folders: Iterable[str] = _MADE) -> None:
    """Move the sidecars of earlier versions, which lie next to the files, to their new place."""
    for folder in folders:
        for path in _below(folder):
            if path.endswith(_OLD_ENDING):
                place = Path(sidecar_of(path.removesuffix(_OLD_ENDING)))
                place.parent.mkdir(exist_ok=True)
                Path(path).replace(place)


def is_made(path: str) -> bool:
    """Return whether a file is in a folder to which only jobs write, so that it has a sidecar."""
    return path.startswith(_MADE) and not path.startswith(_DOWNLOADED)


def load_sidecar(path: str | Path) -> Sidecar:
    """Return the sidecar of a file or folder.

    Raises:
        UserError: The sidecar is missing, invalid, or that of another file.
    """
    place, hint = sidecar_of(path), MAKE_AGAIN.format(path)
    if not Path(place).is_file():
        raise UserError("is missing", where=place, hint=hint)
    try:
        sidecar = load_record(place, Sidecar)
    except UserError as error:
        raise UserError(error.what, where=error.where, hint=hint) from None
    if sidecar.path != str(path):
        what = f"is a copy of that of {sidecar.path}, so {path} may be a copy, too"
        raise UserError(what, where=place, hint=hint)
    return sidecar


def write_sidecar(path: str, *, made_from: Mapping[str, str], **facts: Any) -> None:
    """Write the sidecar of a file or folder, with the versions of loaded packages.

    Args:
        path: File or folder.
        made_from: SHA-256 of the inputs, by path.
        facts: Other fields of `Sidecar`.
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
    """Remove the sidecars of files, before a job writes the files again."""
    for path in paths:
        Path(sidecar_of(path)).unlink(missing_ok=True)


def write_digest_list(folder: str, path: str) -> None:
    """Write the digests of all files in a folder to a file `<folder>.sha256`, as sha256sum does."""
    lines = [f"{digest}  {file}\n" for file, digest in Digests().of(folder).items()]
    write_text(path, "".join(lines))


def folder_of(path: str) -> str:
    """Return the folder whose digests a file lists."""
    return path.removesuffix(LIST_ENDING)


def check_made(paths: Iterable[str], known: Digests | None = None) -> None:
    """Check inputs of a job that other jobs made; other files are ignored.

    The list of a folder's digests stands for the folder. Inputs of these files that still exist are
    compared as well.

    Raises:
        UserError: The sidecar of a file is missing, invalid or a copy, the file is missing or was
            changed, or one of the file's inputs has changed since.
    """
    known = Digests() if known is None else known
    made = [path for listed in filter(is_made, paths) for path in (folder_of(listed), listed)]
    sidecars = {path: load_sidecar(path) for path in made}
    for path, sidecar in sidecars.items():
        _check_content(path, sidecar, known)
    for path, sidecar in sidecars.items():
        # Temporary inputs may have been deleted.
        present = {
            file: digest for file, digest in sidecar.made_from.items() if Path(file).exists()
        }
        for file, digest in present.items():
            # An edited input must be made again itself.
            if known[file] != digest and Path(sidecar_of(file)).exists():
                _check_content(file, load_sidecar(file), known)
        changed = f"differs from the file that {path} was made from"
        hint = EXTRACTED.format(sidecar.source) if sidecar.source else MAKE_AGAIN.format(path)
        check_digests(present, changed=changed, hint=hint, known=known)


@dataclass(frozen=True)
class Expected:
    """What a file that a run keeps must have been made from.

    Attributes:
        settings: Settings of its rule (see `settings_of`).
        inputs: Inputs of its job.
    """

    settings: Mapping[str, str]
    inputs: Sequence[str]


def check_kept(
    expected: Mapping[str, Expected], remade: Collection[str], folder: str = "results"
) -> None:
    """Check the files that a run keeps; Snakemake may compare only their modification times.

    Args:
        expected: What the files of the run's jobs must have been made from, by path.
        remade: Files that the run makes again.
        folder: Folder in which the content of all other files is checked, too.

    Raises:
        UserError: Files were edited, replaced, or copied with their sidecars, or were made with
            other settings or from other inputs; the hint names all.
    """
    known = Digests()
    below = map(file_of, filter(is_sidecar, _below(folder)))
    kept = {path for path in {*below, *expected} - {*remade} if is_made(path)}
    sidecars: dict[str, Sidecar] = {}
    problems: dict[str, UserError] = {}
    for path in sorted(kept):
        if not Path(path).exists() or not Path(sidecar_of(path)).exists():
            continue
        try:
            sidecars[path] = load_sidecar(path)
            if path.startswith(f"{folder}/"):
                _check_content(path, sidecars[path], known)
        except UserError as error:
            problems[path] = error
    changed = set(problems)
    edited = {file for path in changed & sidecars.keys() for file in sidecars[path].files}
    for path in sidecars.keys() & expected.keys() - changed:
        if what := _difference(sidecars[path], expected[path], known, edited):
            problems[path] = UserError(what, where=path)
    # Files that are made from these are made again along with them.
    first, *others = [
        path
        for path in sorted(problems)
        if path in changed or not sidecars[path].made_from.keys() & problems.keys()
    ] or [""]
    if first:
        also = f", as {pluralize(len(others), 'other file')}" if others else ""
        hint = MAKE_AGAIN.format(" ".join([first, *others]))
        raise UserError(problems[first].what + also, where=problems[first].where, hint=hint)


def _difference(
    sidecar: Sidecar, expected: Expected, known: Digests, edited: Collection[str]
) -> str:
    """Describe how a file was made differently than expected; empty if it was made as expected."""
    if sidecar.settings:
        names = sidecar.settings.keys() | expected.settings.keys()
        changed = [n for n in names if sidecar.settings.get(n) != expected.settings.get(n)]
        if changed:
            more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
            listed = ", ".join(sorted(changed)[:_SHOWN]) + more
            return f"was made with settings that differ from the configuration ({listed})"
    # A file from an archive lists the inputs of the run that made it.
    inputs = [] if sidecar.source else filter(os.path.exists, expected.inputs)
    now = known.of(*inputs)
    for file in sorted(now.keys() | sidecar.made_from.keys()):
        # Temporary inputs may have been deleted.
        if file in edited or not Path(file).exists():
            continue
        if file not in sidecar.made_from:
            return f"was made without {file}"
        if known[file] != sidecar.made_from[file]:
            return f"was made from another {file}"
        if not sidecar.source and file not in now:
            return f"was made from {file}, which is no input any more"
    return ""


def settings_of(params: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Return the digests of a rule's named params by name; they do not depend on code.

    The fields of a JSON param are listed separately, such as `task.parameters.temperature`.
    """
    return dict(
        chain.from_iterable(
            _digests(name, value) for name, value in params if name not in _NO_SETTINGS
        )
    )


def _digests(name: str, value: Any) -> Iterator[tuple[str, str]]:
    parsed = value
    if isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError):
            parsed = json.loads(value)
    if isinstance(parsed, Mapping) and parsed:
        for key, each in parsed.items():
            yield from _digests(f"{name}.{key}", each)
    else:
        yield name, sha256_of(str(value).encode())[:8]


def packages_behind(paths: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the package versions that produced files and all of their inputs, by path.

    Reads them from the sidecars. Omits files whose jobs loaded none of the relevant packages.
    """
    packages: dict[str, dict[str, str]] = {}
    queue, visited = [*paths], set()
    while queue:
        path = queue.pop()
        if path not in visited and Path(sidecar_of(path)).exists():
            visited.add(path)
            sidecar = load_sidecar(path)
            queue += [*sidecar.made_from, *sidecar.outputs]
            if sidecar.packages:
                packages |= {file: dict(sidecar.packages) for file in sidecar.files}
    return dict(sorted(packages.items()))


def check_digests(
    recorded: Mapping[str, str], *, changed: str, hint: str, known: Digests | None = None
) -> None:
    """Check that files have their recorded digests.

    Args:
        recorded: SHA-256 by path.
        changed: Error message for a file whose digest differs.
        hint: How the user can fix it.
        known: Digests computed so far.

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
    changed = "was changed after it was written"
    check_digests(sidecar.files, changed=changed, hint=MAKE_AGAIN.format(path), known=known)
    if added := [file for file in _files(path) if file not in sidecar.files]:
        raise UserError(
            f"was added after {path} was written", where=added[0], hint=MAKE_AGAIN.format(path)
        )


def _files(path: str) -> list[str]:
    """Return the path of a file, or all files in a folder except Snakemake's timestamp."""
    return sorted(_below(path)) if Path(path).is_dir() else [path]


def _below(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        yield from (f"{place}/{name}" for name in names if name != _TIMESTAMP)


def _loaded_packages() -> dict[str, str]:
    loaded = (name for name in _PACKAGES if name.replace("-", "_") in sys.modules)
    return {name: metadata.version(name) for name in loaded}
