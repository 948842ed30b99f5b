"""Export a run's provenance as an RO-Crate whose root is the folder of the run.

The export follows RO-Crate 1.1 and the profiles of Workflow Run RO-Crate: one action uses the raw
files, recordings, code and models, and creates the outputs. The metadata contains no timestamps, so
identical runs produce byte-identical files.
"""

import re
from pathlib import Path
from typing import Any

from rocrate.model import ContextEntity
from rocrate.model.computerlanguage import get_lang
from rocrate.rocrate import ROCrate

from pieline.results.provenance import File, Json, Provenance

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
PROFILES = {"process": "Process Run Crate", "workflow": "Workflow Run Crate"}
PROFILES_VERSION = "0.5"


def ro_crate(provenance: Provenance, *, version: str, workflow: str | None) -> Json:
    """Return the RO-Crate metadata of a run.

    Args:
        provenance: Provenance of the run.
        version: Version of this project.
        workflow: Path of the Snakefile below the run's folder; None if it is outside.
    """
    code, packages = provenance.code, provenance.reported_with
    computing = {pair for each in provenance.packages.values() for pair in each.items()}
    others = sorted(pair for pair in computing if packages.get(pair[0]) != pair[1])
    crate = ROCrate(version="1.1")

    def add(identity: str, kind: str | list[str], **properties: Any) -> Any:
        return crate.add(
            ContextEntity(crate, identity, {"@type": kind} | _without_nulls(properties))
        )

    def license_of(name: str | None) -> Any:
        if name is None:
            return None
        other = "#licence-" + re.sub(r"[^A-Za-z0-9.]+", "-", name)
        identity = LICENCE_ADDRESSES.get(name, other)
        return crate.get(identity) or add(identity, "CreativeWork", name=name)

    def file(item: File) -> Any:
        path = Path(item.path)
        properties = _without_nulls(
            {
                "name": path.name,
                "contentSize": str(item.bytes),
                "sha256": item.sha256,
                "encodingFormat": MEDIA_TYPES.get(path.suffix),
                "license": license_of(getattr(item, "licence", None)),
                "url": getattr(item, "url", None),
            }
        )
        if item.path.startswith(("/", "../")):
            # Files outside the run's folder are described, but not part of the crate.
            return add(f"#{path.name}-{item.sha256[:12]}", "CreativeWork", **properties)
        return crate.add_file(dest_path=path, properties=properties)

    crate.name = "A run of pieline"
    crate.description = (
        "Tables and figures of three papers on potentially idiomatic expressions,"
        " with everything that decided them."
    )
    crate.datePublished = code.day or "1970-01-01"
    crate.license = license_of("Apache-2.0")
    about = _without_nulls(
        {
            "name": "pieline",
            "version": version,
            "license": crate.license,
            "identifier": code.commit and f"git commit {code.commit}",
        }
    )
    language = crate.add(get_lang(crate, "snakemake", packages.get("snakemake")))
    if workflow:
        program = crate.add_workflow(dest_path=workflow, main=True, lang=language, properties=about)
    else:
        kinds = ["SoftwareSourceCode", "ComputationalWorkflow"]
        program = add("#workflow", kinds, programmingLanguage=language, **about)
        crate.mainEntity = program
    # A Workflow Run Crate must contain its workflow.
    for name, title in PROFILES.items():
        if workflow or name == "process":
            identity = f"https://w3id.org/ro/wfrun/{name}/{PROFILES_VERSION}"
            profile = add(identity, "CreativeWork", name=title, version=PROFILES_VERSION)
            crate.root_dataset.append_to("conformsTo", profile)
    own = provenance.data == "own"
    data = f"own data: {provenance.config['own_data']}" if own else f"the {provenance.data} data"
    run = crate.add_action(
        [
            program,
            *(
                add(f"#package-{name}", "SoftwareApplication", name=name, softwareVersion=installed)
                for name, installed in packages.items()
            ),
            *(
                add(
                    f"#package-{name}-{installed}",
                    "SoftwareApplication",
                    name=name,
                    softwareVersion=installed,
                )
                for name, installed in others
            ),
            *(
                add(
                    f"#model-{model.name}",
                    "SoftwareApplication",
                    name=model.label,
                    license=license_of(model.licence),
                    identifier=model.checkpoint or model.package,
                    softwareVersion=model.revision,
                )
                for model in provenance.models
            ),
        ],
        identifier="#run",
        object=[file(item) for item in (*provenance.raw_files, *provenance.recordings)],
        result=[file(item) for item in provenance.outputs],
        properties={"name": f"A run on {data}"},
    )
    crate.root_dataset["mentions"] = run
    metadata: Json = crate.metadata.generate()
    return metadata


def _without_nulls(properties: Json) -> Json:
    """Return the properties whose value is not None."""
    return {name: value for name, value in properties.items() if value is not None}
