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

from pieline.core.errors import UserError
from pieline.core.files import read_text, sha256
from pieline.core.records import Frozen, validated
from pieline.core.upstream import UpstreamFile
from pieline.core.yamls import read_yaml

Json = dict[str, Any]
DataSource = Literal["sample", "released", "own"]

LICENCE_ADDRESSES = {
    "Apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
    "CC0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC-BY-NC-4.0": "https://creativecommons.org/licenses/by-nc/4.0/",
    "CC-BY-NC-SA-4.0": "https://creativecommons.org/licenses/by-nc-sa/4.0/",
    "MIT": "https://opensource.org/license/mit",
}
MEDIA_TYPES = {
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".html": "text/html",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".parquet": "application/vnd.apache.parquet",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".tex": "application/x-tex",
    ".tsv": "text/tab-separated-values",
}


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
    mend = "pass a JSON list"
    return validated(list[Model], text, where="--models", mend=mend, is_json=True)


class Provenance(Frozen):
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


class Licences(Frozen):
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
    code, models, packages = provenance.code, provenance.models, provenance.packages
    inputs = [*provenance.raw_files, *provenance.recordings]
    # What lies outside the folder (a clone elsewhere) is described but no part of the crate.
    parts = [file.path for file in [*inputs, *provenance.outputs] if not _is_outside(file.path)]
    licences = {file.licence for file in provenance.raw_files if file.licence}
    licences |= {model.licence for model in models} | {"Apache-2.0"}
    program = _ref(workflow or "#workflow")
    own = provenance.data == "own"
    data = f"own data: {provenance.config['own_data']}" if own else f"the {provenance.data} data"
    graph: list[Json] = [
        {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "conformsTo": _ref("https://w3id.org/ro/crate/1.1"),
            "about": _ref("./"),
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": "A run of pieline",
            "description": "Tables and figures of three papers on potentially idiomatic"
            " expressions, with everything that decided them.",
            "datePublished": code.day or "1970-01-01",
            "license": _licence("Apache-2.0"),
            "conformsTo": [
                _ref(f"https://w3id.org/ro/wfrun/{profile}/0.5")
                for profile in ("process", "workflow")
            ],
            "mainEntity": program,
            "hasPart": [_ref(path) for path in [*parts, *([workflow] if workflow else [])]],
            "mentions": _ref("#run"),
        },
        program
        | {
            "@type": [
                *(["File"] if workflow else []),
                "SoftwareSourceCode",
                "ComputationalWorkflow",
            ],
            "name": "pieline",
            "version": version,
            "programmingLanguage": _ref("#snakemake"),
            "license": _licence("Apache-2.0"),
            "identifier": code.commit and f"git commit {code.commit}",
        },
        {
            "@id": "#snakemake",
            "@type": "ComputerLanguage",
            "name": "Snakemake",
            "url": "https://snakemake.github.io",
            "version": packages.get("snakemake", ""),
        },
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": f"A run on {data}",
            "instrument": [
                program,
                *(_ref(f"#package-{name}") for name in packages),
                *(_ref(f"#model-{model.name}") for model in models),
            ],
            "object": [_ref(_file_id(file)) for file in inputs],
            "result": [_ref(_file_id(file)) for file in provenance.outputs],
        },
        *map(_file_entity, [*inputs, *provenance.outputs]),
        *(
            {
                "@id": f"#model-{model.name}",
                "@type": "SoftwareApplication",
                "name": model.label,
                "license": _licence(model.licence),
                "identifier": model.checkpoint or model.package,
                "softwareVersion": model.revision,
            }
            for model in models
        ),
        *(
            {
                "@id": f"#package-{name}",
                "@type": "SoftwareApplication",
                "name": name,
                "softwareVersion": found,
            }
            for name, found in packages.items()
        ),
        *(_licence(name) | {"@type": "CreativeWork", "name": name} for name in sorted(licences)),
    ]
    # What is not known is not said.
    known = [{key: value for key, value in each.items() if value is not None} for each in graph]
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": known}


def _ref(identity: str) -> Json:
    return {"@id": identity}


def _licence(name: str) -> Json:
    return _ref(LICENCE_ADDRESSES.get(name, "#licence-" + re.sub(r"[^A-Za-z0-9.]+", "-", name)))


def _is_outside(path: str) -> bool:
    return path.startswith(("/", "../"))


def _file_id(file: File) -> str:
    return f"#{Path(file.path).name}-{file.sha256[:12]}" if _is_outside(file.path) else file.path


def _file_entity(file: File) -> Json:
    licence: str | None = getattr(file, "licence", None)
    return {
        "@id": _file_id(file),
        "@type": "CreativeWork" if _is_outside(file.path) else "File",
        "name": Path(file.path).name,
        "contentSize": str(file.bytes),
        "sha256": file.sha256,
        "encodingFormat": MEDIA_TYPES.get(Path(file.path).suffix),
        "license": _licence(licence) if licence else None,
        "url": getattr(file, "url", None),
    }
