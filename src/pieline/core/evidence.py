"""Evidence files: digests of a job's inputs and outputs, checked by the jobs that read the outputs.

The checks need neither timestamps nor Snakemake's metadata, which a copied folder may lack.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import digests, sha256, write_json
from pieline.core.records import Record, load_record

_ENDING = ".evidence.json"
MAKE_AGAIN = "run snakemake --cores all --forcerun {}"
_PACKAGES = (
    *("litellm", "agno", "numpy", "rank-bm25", "scipy"),
    *("sentence-transformers", "tokenizers", "torch", "transformers"),
)
"""Packages whose version may affect answers, tags or embeddings."""


class Evidence(Record):
    """Record of a job's inputs and outputs.

    Attributes:
        path: Path that the evidence file was written to, for the detection of copies.
        files: SHA-256 of each output file, by path.
        made_from: SHA-256 of each input file, by path.
        answers: Digests of the recorded answers that were used, by question key.
        recordings: SHA-256 of each recordings file, by path.
        token: Token of the used answers (see `pieline.llm.recordings.answers_token`).
        packages: Versions of the loaded packages that may affect the results, by name.
    """

    path: str
    files: dict[str, str]
    made_from: dict[str, str]
    answers: Mapping[str, str] = {}
    recordings: Mapping[str, str] = {}
    token: str = ""
    packages: Mapping[str, str] = {}


def evidence_of(path: str) -> str:
    """Return the path (or path pattern) of the evidence file of a file (or file pattern)."""
    return re.sub(r"(\.run\.gz|\.[a-z]+)$", "", path) + _ENDING


def write_evidence(
    path: str | Path,
    *,
    files: Iterable[str],
    made_from: Iterable[str],
    answers: Mapping[str, str] | None = None,
    recordings: Iterable[str] = (),
    token: str = "",
) -> None:
    """Write an evidence file with the digests of all files and the versions of loaded packages.

    Args:
        path: Path of the evidence file.
        files: Output files and folders. A folder stands for all files in it except evidence files.
        made_from: Input files and folders.
        answers: Digests of the recorded answers that were used, by question key.
        recordings: Paths of the recordings files.
        token: Token of the used answers.
    """
    write_json(
        path,
        Evidence(
            path=str(path),
            files=digests(_plain(files)),
            made_from=digests(_plain(made_from)),
            answers=dict(answers or {}),
            recordings=digests(recordings),
            token=token,
            packages=_loaded_packages(),
        ).model_dump(),
    )


def check_evidence(inputs: Iterable[str], *, known: dict[str, str] | None = None) -> None:
    """Check the files described by the evidence files among a job's inputs.

    Args:
        inputs: Input paths; only evidence files are used.
        known: Known digests by path; newly computed digests are added.

    Raises:
        UserError: An evidence file is missing, invalid or a copy, an output is missing or was
            changed, or an input has changed since the output was made.
    """
    for path in inputs:
        if path.endswith(_ENDING):
            if not Path(path).is_file():
                raise UserError("is missing", where=path, hint=MAKE_AGAIN.format(path))
            evidence = load_record(path, Evidence)
            if evidence.path != path:
                raise UserError(
                    f"is a copy of {evidence.path}, so the files next to it may be copies",
                    where=path,
                    hint=MAKE_AGAIN.format(path),
                )
            first = next(iter(evidence.files), path)
            check_digests(
                evidence.files,
                changed="was changed after it was written",
                again=first,
                known=known,
            )
            # Temporary inputs may have been deleted.
            present = {name: d for name, d in evidence.made_from.items() if Path(name).exists()}
            check_digests(
                present,
                changed=f"differs from the file that {first} was made from",
                again=first,
                known=known,
            )


def packages_behind(paths: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the package versions that produced files and all of their inputs, by path.

    Reads them from the evidence files. Omits files whose jobs loaded none of the relevant packages.
    """
    packages: dict[str, dict[str, str]] = {}
    queue, visited = [*paths], set()
    while queue:
        place = evidence_of(queue.pop())
        if place not in visited and Path(place).exists():
            visited.add(place)
            evidence = load_record(place, Evidence)
            queue += evidence.made_from
            if evidence.packages:
                packages |= {path: dict(evidence.packages) for path in evidence.files}
    return dict(sorted(packages.items()))


def check_digests(
    recorded: Mapping[str, str], *, changed: str, again: str, known: dict[str, str] | None = None
) -> None:
    """Check that files have their recorded digests.

    Args:
        recorded: SHA-256 by path.
        changed: Error message for a file with another digest.
        again: File that the hint recommends recreating.
        known: Known digests by path; newly computed digests are added.

    Raises:
        UserError: A file is missing or has another digest.
    """
    known = {} if known is None else known
    hint = MAKE_AGAIN.format(again)
    for path, digest in recorded.items():
        if path not in known:
            if not Path(path).is_file():
                raise UserError("is missing", where=path, hint=hint)
            known[path] = sha256(path)
        if known[path] != digest:
            raise UserError(changed, where=path, hint=hint)


def _plain(paths: Iterable[str]) -> set[str]:
    """Return the existing files at or below the given paths, except evidence files."""
    files: set[str] = set()
    for path in paths:
        place = Path(path)
        files |= {str(each) for each in place.rglob("*")} if place.is_dir() else {path}
    return {path for path in files if not path.endswith(_ENDING) and Path(path).is_file()}


def _loaded_packages() -> dict[str, str]:
    loaded = (name for name in _PACKAGES if name.replace("-", "_") in sys.modules)
    return {name: metadata.version(name) for name in loaded}
