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
    """Version of the project's code; all fields are None outside a git clone.

    Attributes:
        commit: Commit of the clone.
        day: Date of the commit (`YYYY-MM-DD`).
        modified: Whether tracked files differ from the commit.
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
    """A raw file with its origin.

    Attributes:
        url: Public URL of the file; None if the file is not public.
        licence: License of the file; None if it is unknown.
        is_sample: Whether the file belongs to our sample data.
    """

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
    """Code, settings and models of a run."""

    code: Code
    config: Json
    models: list[Model]

    @property
    def data(self) -> DataSource:
        """Source of the run's data."""
        source: DataSource = self.config["data"]
        return source


def parse_models(text: str) -> list[Model]:
    """Parse a JSON list of models.

    Raises:
        UserError: The text is not a list of models.
    """
    hint = "pass a JSON list"
    return validated(list[Model], text, where="--models", hint=hint, is_json=True)


class Provenance(Frozen):
    """Record of what determined a run's results.

    Attributes:
        packages: Versions of the packages with which each file of predictions was computed, by
            path of the file and by name of the package.
        reported_with: Versions of the locked packages with which the record was written, by name
            of the package.
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
    """Licenses of a corpus: of the public files (`released`) and of our sample."""

    released: str
    sample: str


def load_licenses(path: str | Path) -> dict[str, Licenses]:
    """Read the licenses of the corpora, by name of the corpus, from data/licences.yaml.

    Raises:
        UserError: The file is invalid.
    """
    return validated(dict[str, Licenses], read_yaml(path), where=path, hint="correct it")


def installed_packages(lock: str | Path) -> dict[str, str]:
    """Return the installed version of each package in a lock file, by name of the package.

    Packages that are not installed are omitted, since environments on a cluster contain only some
    of the locked packages.

    Args:
        lock: Lock file with lines that start with `name==version`.
    """
    names = re.findall(r"^([A-Za-z0-9._-]+)==", read_text(lock), flags=re.MULTILINE)
    versions = {}
    for name in sorted(names):
        # Python imports the first of several distributions with the same name.
        distributions = list(metadata.Distribution.discover(name=name))
        if distributions:
            versions[name] = distributions[0].version
    return versions


def describe_files(paths: Iterable[str | Path]) -> list[File]:
    """Return the path, SHA-256 and size of each file, sorted by path and without duplicates.

    Raises:
        UserError: A file is missing.
    """
    files = []
    for path in sorted({str(path) for path in paths}):
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
    """Return the path, SHA-256, size, public URL and license of each raw file.

    Args:
        paths: Paths of the raw files.
        data: Source of the run's data.
        upstream: Public files, keyed by the path of the raw file relative to `folder`.
        licences: Licenses, keyed by corpus: the first folder in the path.
        folder: Folder to which the names of raw files are relative.

    Raises:
        UserError: A file is missing.
    """
    is_public, is_sample = data == "released", data == "sample"
    described_files = []
    for file in describe_files(paths):
        name = Path(file.path).relative_to(folder).as_posix()
        corpus = name.partition("/")[0]
        url = upstream[name].url if is_public and name in upstream else None
        licence = None
        if is_public and corpus in licences:
            licence = licences[corpus].released
        elif is_sample and corpus in licences:
            licence = licences[corpus].sample
        described_files.append(
            RawFile(**file.model_dump(), url=url, licence=licence, is_sample=is_sample)
        )
    return described_files


def make_provenance(
    run: RunDescription,
    *,
    lock: str | Path,
    raw_files: Sequence[RawFile],
    predictions: Iterable[str],
    recordings: Iterable[str | Path],
    outputs: Iterable[str | Path],
) -> Provenance:
    """Return the provenance record of a run.

    Args:
        run: Code, settings and models of the run.
        lock: Lock file with the project's packages.
        raw_files: Descriptions of the raw files.
        predictions: Paths of the files of predictions.
        recordings: Paths of the files of recorded answers.
        outputs: Paths of the run's outputs.

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
    """Return the version of the code in a folder; its fields are None outside a git clone."""

    def git(*arguments: str) -> str | None:
        """Return the output of a git command; None if the command fails."""
        command = ["git", "-C", str(root), *arguments]
        # Variables such as the user's GIT_DIR could select another repository.
        environment = reproducible_variables(os.environ)
        try:
            result = subprocess.run(
                command, capture_output=True, text=True, check=True, env=environment
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
