"""Record the provenance of a run's results; identical runs produce byte-identical records."""

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from pieline.core.environment import reproducible_variables
from pieline.core.errors import UserError
from pieline.core.files import read_text, sha256
from pieline.core.records import Frozen, validated
from pieline.core.sidecars import packages_behind
from pieline.core.upstream import UpstreamFile
from pieline.core.yamls import read_yaml

Json = dict[str, Any]
DataSource = Literal["sample", "released", "own"]


class Code(Frozen):
    """Version of the project: commit, commit date, and whether files were modified.

    All fields are None outside a git clone.
    """

    commit: str | None
    day: str | None
    modified: bool | None


class File(Frozen):
    """Path, SHA-256 and size of a file of the run."""

    path: str
    sha256: str
    bytes: int


class RawFile(File):
    """A raw file with its public URL and the license of the copy (None if unknown)."""

    url: str | None
    licence: str | None
    is_sample: bool


class Model(Frozen):
    """A model of the run, with the exact version of its weights."""

    name: str
    label: str
    kind: str
    checkpoint: str | None
    revision: str | None
    package: str | None
    licence: str


class RunDescription(Frozen):
    """Run metadata provided by the workflow."""

    code: Code
    config: Json
    models: list[Model]

    @property
    def data(self) -> DataSource:
        """Data source of the run."""
        source: DataSource = self.config["data"]
        return source


def parse_models(text: str) -> list[Model]:
    """Parse models from JSON.

    Raises:
        UserError: The text is not a list of models.
    """
    hint = "pass a JSON list"
    return validated(list[Model], text, where="--models", hint=hint, is_json=True)


class Provenance(Frozen):
    """Everything that determined a run's results.

    Attributes:
        packages: Versions of the packages that computed each file, by path.
        reported_with: Versions of the locked packages in use when the record was written.
    """

    code: Code
    data: DataSource
    config: Json
    python: str
    packages: dict[str, dict[str, str]]
    reported_with: dict[str, str]
    raw_files: list[RawFile]
    models: list[Model]
    recordings: list[File]
    outputs: list[File]


class Licenses(Frozen):
    """Licenses of the public files of a corpus and of our sample."""

    released: str
    sample: str


def load_licenses(path: str | Path) -> dict[str, Licenses]:
    """Read data/licences.yaml, which lists licenses by corpus.

    Raises:
        UserError: The file is invalid.
    """
    return validated(dict[str, Licenses], read_yaml(path), where=path, hint="correct it")


def installed_packages(lock: str | Path) -> dict[str, str]:
    """Return the installed version of each package in a lock file (`name==version` per line).

    Packages that are not installed are omitted.
    """
    names = re.findall(r"^([A-Za-z0-9._-]+)==", read_text(lock), flags=re.MULTILINE)
    distributions = {
        name: next(iter(metadata.Distribution.discover(name=name)), None) for name in sorted(names)
    }
    # Environments on a cluster contain only some of the locked packages.
    return {name: package.version for name, package in distributions.items() if package}


def describe_files(paths: Iterable[str | Path]) -> list[File]:
    """Return the path, digest and size of each file, sorted by path and without duplicates.

    Raises:
        UserError: A file is missing.
    """
    files = []
    for path in sorted(set(map(str, paths))):
        if not Path(path).is_file():
            raise UserError("no such file", where=path, hint="run snakemake again")
        files.append(File(path=path, sha256=sha256(path), bytes=Path(path).stat().st_size))
    return files


def describe_raw_files(
    paths: Iterable[str | Path],
    data: DataSource,
    upstream: Mapping[str, UpstreamFile],
    licences: Mapping[str, Licenses],
    *,
    folder: str = "results/raw",
) -> list[RawFile]:
    """Describe raw files, with URL and license.

    Args:
        paths: Paths of the raw files.
        data: Data source.
        upstream: Public files by name.
        licences: Licenses by corpus.
        folder: Folder to which the names of raw files are relative.

    Raises:
        UserError: A file is missing.
    """
    described = []
    for file in describe_files(paths):
        name = str(Path(file.path).relative_to(folder))
        known = upstream.get(name)
        is_sample = data == "sample"
        licence = licences.get(name.split("/", maxsplit=1)[0]) if data != "own" else None
        described.append(
            RawFile(
                **file.model_dump(),
                url=known.url if known and data == "released" else None,
                licence=licence and (licence.sample if is_sample else licence.released),
                is_sample=is_sample,
            )
        )
    return described


def make_provenance(
    run: RunDescription,
    *,
    lock: str | Path,
    raw_files: Sequence[RawFile],
    predictions: Iterable[str],
    recordings: Iterable[str | Path],
    outputs: Iterable[str | Path],
) -> Provenance:
    """Create the provenance record of a run, with the versions of Python and packages in use.

    Args:
        run: Description of the run.
        lock: Lock file with the project's packages.
        raw_files: Descriptions of the raw files.
        predictions: Paths of the predictions.
        recordings: Paths of the recorded answers.
        outputs: Paths of the results.

    Raises:
        UserError: A file is missing.
    """
    return Provenance(
        code=run.code,
        data=run.data,
        config=run.config,
        python=platform.python_version(),
        packages=packages_behind(predictions),
        reported_with=installed_packages(lock),
        raw_files=list(raw_files),
        models=run.models,
        recordings=describe_files(recordings),
        outputs=describe_files(outputs),
    )


def code_state(root: Path) -> Code:
    """Return the commit, commit date and modification state of a git clone.

    For other folders, all fields are None.
    """

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(root), *arguments]
        try:
            # Without the user's GIT_DIR and the like, which name another repository.
            variables = reproducible_variables(os.environ)
            result = subprocess.run(
                command, capture_output=True, text=True, check=True, env=variables
            )
        except (OSError, subprocess.CalledProcessError):
            return None
        return result.stdout.strip()

    # A folder without .git may be inside another project's clone.
    commit = git("rev-parse", "HEAD") if (root / ".git").exists() else None
    if commit is None:
        return Code(commit=None, day=None, modified=None)
    return Code(
        commit=commit,
        day=git("show", "--no-patch", "--format=%cs", "HEAD"),
        modified=bool(git("status", "--porcelain", "--untracked-files=no")),
    )
