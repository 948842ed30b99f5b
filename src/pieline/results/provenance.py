"""Where a run's results come from. The record holds no time: equal runs give equal bytes."""

import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from pieline.core.errors import UserError
from pieline.core.evidence import packages_behind
from pieline.core.files import read_text, sha256
from pieline.core.records import Frozen, validated
from pieline.core.upstream import UpstreamFile
from pieline.core.yamls import read_yaml

Json = dict[str, Any]
DataSource = Literal["sample", "released", "own"]


class Code(Frozen):
    """The project's state: its commit, that commit's day, and whether files were changed since.

    All are None outside a git clone.
    """

    commit: str | None
    day: str | None
    modified: bool | None


class File(Frozen):
    """A file of the run."""

    path: str
    sha256: str
    bytes: int


class RawFile(File):
    """A raw file: where it is public, and under which licence the copy here is, if known."""

    url: str | None
    licence: str | None
    is_sample: bool


class Model(Frozen):
    """A model of the run and what exactly of it was used."""

    name: str
    label: str
    kind: str
    checkpoint: str | None
    revision: str | None
    package: str | None
    licence: str


class RunDescription(Frozen):
    """What the workflow knows of a run.

    Attributes:
        workflow: path of the Snakefile below the run's folder, or None where it lies elsewhere.
    """

    code: Code
    config: Json
    models: list[Model]
    workflow: str | None


def parse_models(text: str) -> list[Model]:
    """Models from JSON.

    Raises:
        UserError: the text is no such list.
    """
    hint = "pass a JSON list"
    return validated(list[Model], text, where="--models", hint=hint, is_json=True)


class Provenance(Frozen):
    """Everything that decided a run's results.

    Attributes:
        packages: versions of the packages that computed each file, by its path.
        reported_with: versions of the locked packages that were in use when this was written.
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


class Licences(Frozen):
    """Licences of one corpus."""

    released: str
    sample: str


def load_licences(path: str | Path) -> dict[str, Licences]:
    """Read data/licences.yaml.

    Raises:
        UserError: the file is wrong.
    """
    return validated(dict[str, Licences], read_yaml(path), where=path, hint="correct it")


def installed_packages(lock: str | Path) -> dict[str, str]:
    """Version in use of each package of a lock file (`name==version` a line)."""
    names = re.findall(r"^([A-Za-z0-9._-]+)==", read_text(lock), flags=re.MULTILINE)
    found = {
        name: next(iter(metadata.Distribution.discover(name=name)), None) for name in sorted(names)
    }
    # A cluster's environments hold only what their jobs need.
    return {name: package.version for name, package in found.items() if package}


def described_files(paths: Iterable[str | Path]) -> list[File]:
    """Path, digest and size of files, by path.

    Raises:
        UserError: one is missing.
    """
    found = []
    for path in sorted(set(map(str, paths))):
        if not Path(path).is_file():
            raise UserError("no such file", where=path, hint="run snakemake again")
        found.append(File(path=path, sha256=sha256(path), bytes=Path(path).stat().st_size))
    return found


def described_raw_files(
    paths: Iterable[str | Path],
    data: DataSource,
    upstream: Mapping[str, UpstreamFile],
    licences: Mapping[str, Licences],
    *,
    folder: str = "results/raw",
) -> list[RawFile]:
    """Raw files with where they come from; `folder` is the part of their path before the name."""
    described = []
    for file in described_files(paths):
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
    *,
    code: Code,
    data: DataSource,
    config: Json,
    lock: str | Path,
    raw_files: Sequence[RawFile],
    models: Sequence[Model],
    predictions: Iterable[str],
    recordings: Iterable[str | Path],
    outputs: Iterable[str | Path],
) -> Provenance:
    """The record of a run in this interpreter."""
    return Provenance(
        code=code,
        data=data,
        config=config,
        python=platform.python_version(),
        packages=packages_behind(predictions),
        reported_with=installed_packages(lock),
        raw_files=list(raw_files),
        models=list(models),
        recordings=described_files(recordings),
        outputs=described_files(outputs),
    )
