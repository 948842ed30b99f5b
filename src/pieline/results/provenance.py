"""Where a run's results come from: its provenance record, and the same as an RO-Crate.

The crate follows RO-Crate 1.1 with the profiles of Workflow Run RO-Crate: one action that took the
raw files, the recordings and the code, and made the tables. Neither file holds a time: equal runs
give equal bytes.
"""

import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_text, sha256
from pieline.core.records import validated
from pieline.core.upstream import UpstreamFile
from pieline.core.yamls import read_yaml

Json = dict[str, Any]
DataSource = Literal["sample", "released"]

LICENCE_ADDRESSES = {
    "Apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
    "CC0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC-BY-NC-4.0": "https://creativecommons.org/licenses/by-nc/4.0/",
    "CC-BY-NC-SA-4.0": "https://creativecommons.org/licenses/by-nc-sa/4.0/",
    "MIT": "https://opensource.org/license/mit",
}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Code(_Part):
    """The project's state: its commit, that commit's day, and whether files were changed since.

    All are None outside a git clone.
    """

    commit: str | None
    day: str | None
    modified: bool | None


class File(_Part):
    """A file of the run."""

    path: str
    sha256: str
    bytes: int


class RawFile(File):
    """A raw file: where it is public, and under which licence the copy here is."""

    url: str | None
    licence: str | None
    is_sample: bool


class Model(_Part):
    """A model of the run and what exactly of it was used."""

    name: str
    label: str
    kind: str
    checkpoint: str | None
    revision: str | None
    package: str | None
    licence: str


class RunDescription(_Part):
    """What the workflow knows of a run.

    Attributes:
        workflow: path of the Snakefile below the run's folder, or None where it lies elsewhere.
    """

    code: Code
    config: Json
    models: list[Model]
    workflow: str | None

    def canonical(self) -> str:
        """Canonical JSON, for the command line of the script."""
        return canonical_json(self.model_dump(mode="json"))


def parse_models(text: str) -> list[Model]:
    """Models from JSON.

    Raises:
        UserError: the text is no such list.
    """
    return validated(list[Model], text, where="--models", mend="pass a JSON list")


class Provenance(_Part):
    """Everything that decided a run's results."""

    code: Code
    data: DataSource
    config: Json
    python: str
    packages: dict[str, str]
    raw_files: list[RawFile]
    models: list[Model]
    recordings: list[File]
    outputs: list[File]


class Licences(_Part):
    """Licences of one corpus."""

    released: str
    sample: str


def load_licences(path: str | Path) -> dict[str, Licences]:
    """Read data/licences.yaml.

    Raises:
        UserError: the file is wrong.
    """
    return validated(dict[str, Licences], read_yaml(path), where=path, mend="correct it")


def installed_packages(lock: str | Path) -> dict[str, str]:
    """Version in use of each package of a lock file (`name==version` a line)."""
    names = re.findall(r"^([A-Za-z0-9._-]+)==", read_text(lock), flags=re.MULTILINE)
    versions = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # a cluster's environments hold only what their jobs need
    return dict(sorted(versions.items()))


def described_files(paths: Iterable[str | Path]) -> list[File]:
    """Path, digest and size of files, by path.

    Raises:
        UserError: one is missing.
    """
    found = []
    for path in sorted(set(map(str, paths))):
        if not Path(path).is_file():
            raise UserError("no such file", where=path, mend="run snakemake again")
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
        licence = licences.get(name.split("/", maxsplit=1)[0])
        described.append(
            RawFile(
                **file.model_dump(),
                url=None if is_sample or known is None else known.url,
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
    recordings: Iterable[str | Path],
    outputs: Iterable[str | Path],
) -> Provenance:
    """The record of a run in this interpreter."""
    return Provenance(
        code=code,
        data=data,
        config=config,
        python=platform.python_version(),
        packages=installed_packages(lock),
        raw_files=list(raw_files),
        models=list(models),
        recordings=described_files(recordings),
        outputs=described_files(outputs),
    )


def ro_crate(provenance: Provenance, *, version: str, workflow: str | None) -> Json:
    """The metadata of an RO-Crate whose root is the folder in which the run was made.

    Args:
        provenance: of the run.
        version: of this project.
        workflow: path of the Snakefile below that folder, or None where it lies elsewhere.
    """
    code = provenance.code
    workflow_id = workflow or "#workflow"
    inputs = [*provenance.raw_files, *provenance.recordings]
    # What lies outside the folder (a clone elsewhere) is described but no part of the crate.
    inside = [file for file in [*inputs, *provenance.outputs] if not _is_outside(file.path)]
    licences = {file.licence for file in provenance.raw_files if file.licence}
    licences |= {model.licence for model in provenance.models}
    graph: list[Json] = [
        {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
            "about": {"@id": "./"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": "A run of pieline",
            "description": "Tables and figures of three papers on potentially idiomatic"
            " expressions, with everything that decided them.",
            "datePublished": code.day or "1970-01-01",
            "license": {"@id": LICENCE_ADDRESSES["Apache-2.0"]},
            "conformsTo": [
                {"@id": f"https://w3id.org/ro/wfrun/{profile}/0.5"}
                for profile in ("process", "workflow")
            ],
            "mainEntity": {"@id": workflow_id},
            "hasPart": [{"@id": file.path} for file in inside]
            + ([{"@id": workflow}] if workflow else []),
            "mentions": {"@id": "#run"},
        },
        {
            "@id": workflow_id,
            "@type": ["SoftwareSourceCode", "ComputationalWorkflow"]
            if workflow is None
            else ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
            "name": "pieline",
            "version": version,
            "programmingLanguage": {"@id": "#snakemake"},
            "license": {"@id": LICENCE_ADDRESSES["Apache-2.0"]},
        }
        | ({"identifier": f"git commit {code.commit}"} if code.commit else {}),
        {
            "@id": "#snakemake",
            "@type": "ComputerLanguage",
            "name": "Snakemake",
            "url": "https://snakemake.github.io",
            "version": provenance.packages.get("snakemake", ""),
        },
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": f"A run on the {provenance.data} data",
            "instrument": [
                {"@id": workflow_id},
                *({"@id": _package_id(name)} for name in provenance.packages),
                *({"@id": _model_id(model)} for model in provenance.models),
            ],
            "object": [{"@id": _file_id(file)} for file in inputs],
            "result": [{"@id": _file_id(file)} for file in provenance.outputs],
        },
    ]
    graph += [_raw_entity(file) for file in provenance.raw_files]
    graph += [_file_entity(file) for file in [*provenance.recordings, *provenance.outputs]]
    graph += [_model_entity(model) for model in provenance.models]
    graph += [
        {
            "@id": _package_id(name),
            "@type": "SoftwareApplication",
            "name": name,
            "softwareVersion": found,
        }
        for name, found in provenance.packages.items()
    ]
    graph += [
        {"@id": _licence_id(name), "@type": "CreativeWork", "name": name}
        for name in sorted(licences | {"Apache-2.0"})
    ]
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}


def _is_outside(path: str) -> bool:
    return path.startswith(("/", "../"))


def _file_id(file: File) -> str:
    return f"#{Path(file.path).name}-{file.sha256[:12]}" if _is_outside(file.path) else file.path


def _file_entity(file: File) -> Json:
    endings = {
        ".csv": "text/csv",
        ".html": "text/html",
        ".json": "application/json",
        ".jsonl": "application/jsonl",
        ".pdf": "application/pdf",
        ".png": "image/png",
        ".tex": "application/x-tex",
        ".tsv": "text/tab-separated-values",
    }
    described: Json = {
        "@id": _file_id(file),
        "@type": "CreativeWork" if _is_outside(file.path) else "File",
        "name": Path(file.path).name,
        "contentSize": str(file.bytes),
        "sha256": file.sha256,
    }
    ending = endings.get(Path(file.path).suffix)
    return described | ({"encodingFormat": ending} if ending else {})


def _raw_entity(file: RawFile) -> Json:
    described = _file_entity(file)
    if file.licence:
        described["license"] = {"@id": _licence_id(file.licence)}
    if file.url:
        described["url"] = file.url
    return described


def _model_entity(model: Model) -> Json:
    described: Json = {
        "@id": _model_id(model),
        "@type": "SoftwareApplication",
        "name": model.label,
        "license": {"@id": _licence_id(model.licence)},
    }
    source = model.checkpoint or model.package
    if source:
        described["identifier"] = source
    if model.revision:
        described["softwareVersion"] = model.revision
    return described


def _package_id(name: str) -> str:
    return f"#package-{name}"


def _model_id(model: Model) -> str:
    return f"#model-{model.name}"


def _licence_id(name: str) -> str:
    return LICENCE_ADDRESSES.get(name, "#licence-" + re.sub(r"[^A-Za-z0-9.]+", "-", name))
