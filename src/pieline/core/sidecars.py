"""Sidecars: `<file>.evidence.json` states what a file was made from; jobs check those they read.

The checks need neither timestamps nor Snakemake's metadata, which a copied folder may lack. Only
`pieline.core.jobs.job` writes sidecars; Snakemake does not know them.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError, pluralize
from pieline.core.files import cached_sha256, sha256_of, write_json, write_text
from pieline.core.records import Record, load_record

ENDING = ".evidence.json"
"""Ending of sidecars, after the complete name of the file or folder."""
LIST_ENDING = ".sha256"
"""Ending of the list of a folder's digests, which rules read instead of the folder.

Snakemake compares listed digests by content, but folders only by time.
"""
MAKE_AGAIN = "run the same snakemake command with --forcerun {}"
EXTRACTED = "this folder has other data than {}: use another folder (--directory)"
_MADE = ("results/", "paper_tables/")
_DOWNLOADED = "results/archives/"
_COMPUTED = tuple(
    f"results/{stage}/"
    for stage in ("raw/weights", "variants", "datasets", "training", "predictions", "metrics")
)
"""Folders of files that must have the settings of the configuration."""
_NO_SETTINGS = ("answers", "contents", "fresh")
"""Params that only make a job stale."""
_TIMESTAMP = ".snakemake_timestamp"
"""File that Snakemake creates in each output folder."""
_MEMORY = Path(".snakemake/pieline_digests.json")
_PACKAGES = (
    *("litellm", "agno", "numpy", "rank-bm25", "scipy"),
    *("sentence-transformers", "tokenizers", "torch", "transformers"),
)
"""Packages whose version may affect answers, tags or embeddings."""


class Sidecar(Record):
    """Content of a sidecar.

    Attributes:
        path: Path of the file or folder, relative to the working directory; a copied sidecar
            states another path than its own.
        files: SHA-256 of the file, or of each file in the folder, by path.
        made_from: SHA-256 of each input file of the job, by path.
        outputs: Paths of all outputs of the job.
        settings: Digest of the rule's settings (see `settings_digest`); empty if unknown.
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
    settings: str = ""
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
    return f"{path}{ENDING}"


def is_made(path: str) -> bool:
    """Return whether a file is below the folders that only jobs write, so that it has a sidecar."""
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

    The list of a folder's digests stands for the folder. The inputs of these files are compared,
    too, as far as they still exist.

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


def check_results(folder: str = "results") -> None:
    """Check that all files below a folder agree with their sidecars.

    Inputs are not compared, because a run may be about to make the file again.

    Raises:
        UserError: Files were edited, replaced, or copied with their sidecars; the hint names all.
    """
    known = Digests()
    problems: dict[str, UserError] = {}
    for place in sorted(_below(folder)):
        path = place.removesuffix(ENDING)
        if path != place and Path(path).exists():
            try:
                _check_content(path, load_sidecar(path), known)
            except UserError as error:
                problems[path] = error
    if problems:
        first, *others = problems.values()
        also = f", as {pluralize(len(others), 'other file')}" if others else ""
        hint = MAKE_AGAIN.format(" ".join(problems))
        raise UserError(first.what + also, where=first.where, hint=hint)


def settings_digest(params: Iterable[tuple[str, Any]]) -> str:
    """Return a digest of the named params of a rule, which does not depend on code."""
    lines = sorted(f"{name}={value}" for name, value in params if name not in _NO_SETTINGS)
    return sha256_of("\n".join(lines).encode())[:16]


def check_settings(expected: Mapping[str, str]) -> None:
    """Check that existing files were made with the settings of the configuration.

    Args:
        expected: Digest of the settings of the rule that makes a file, by path.

    Raises:
        UserError: A file was made with other settings, as when it was copied from another run.
    """
    for path, digest in expected.items():
        if not path.startswith(_COMPUTED) or not Path(sidecar_of(path)).exists():
            continue
        if load_sidecar(path).settings not in ("", digest):
            raise UserError(
                "was made with settings that differ from the configuration",
                where=path,
                hint=MAKE_AGAIN.format(path),
            )


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
        changed: Error message for a file with another digest.
        hint: What to do.
        known: Known digests.

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
    """Return a file, or all files in a folder except Snakemake's."""
    return sorted(_below(path)) if Path(path).is_dir() else [path]


def _below(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        yield from (f"{place}/{name}" for name in names if name != _TIMESTAMP)


def _loaded_packages() -> dict[str, str]:
    loaded = (name for name in _PACKAGES if name.replace("-", "_") in sys.modules)
    return {name: metadata.version(name) for name in loaded}
