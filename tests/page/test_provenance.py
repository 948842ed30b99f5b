"""The provenance record and the RO-Crate of a run."""

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rocrate.rocrate import ROCrate
from support import ROOT

from pieline.core.errors import UserError
from pieline.core.files import sha256
from pieline.core.upstream import UpstreamFile
from pieline.results.crate import ro_crate
from pieline.results.provenance import (
    Code,
    Model,
    Provenance,
    describe_raw_files,
    installed_packages,
    load_licenses,
    make_provenance,
)

URL = "https://example.org/queries.json"
LOCK = ROOT / "envs/requirements.lock"


def provenance(folder: Path, data: str = "released") -> Provenance:
    for name in ("results/raw/idiolink/test/queries.json", "paper_tables/a.csv"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[]", encoding="utf-8")
    recording = folder.parent / "recordings.jsonl"
    recording.write_text("{}", encoding="utf-8")
    upstream = {"idiolink/test/queries.json": UpstreamFile(url=URL)}
    licences = load_licenses(ROOT / "data/licences.yaml")
    with contextlib.chdir(folder):
        return make_provenance(
            code=Code(commit="0" * 40, day="2026-01-02", modified=False),
            data=data,  # type: ignore[arg-type]
            config={"data": data},
            lock=LOCK,
            raw_files=describe_raw_files(
                ["results/raw/idiolink/test/queries.json"],
                data,  # type: ignore[arg-type]
                upstream,
                licences,
            ),
            models=[
                Model(
                    name="sbert",
                    label="SBERT",
                    kind="embedder",
                    checkpoint="sentence-transformers/all-MiniLM-L6-v2",
                    revision=None,
                    package=None,
                    licence="Apache-2.0",
                )
            ],
            predictions=[],
            recordings=["../recordings.jsonl"],
            outputs=["paper_tables/a.csv"],
        )


def test_raw_files_have_source_digest_and_license(tmp_path: Path) -> None:
    (raw,) = provenance(tmp_path / "run").raw_files
    assert (raw.url, raw.licence, raw.is_sample) == (URL, "CC-BY-4.0", False)
    assert raw.sha256 == sha256(tmp_path / "run" / raw.path)
    assert raw.bytes == 2


def test_sample_files_are_not_described_as_public_files(tmp_path: Path) -> None:
    (raw,) = provenance(tmp_path / "run", data="sample").raw_files
    assert (raw.url, raw.licence, raw.is_sample) == (None, "CC0-1.0", True)


def test_every_raw_file_has_a_license() -> None:
    names = re.findall(r"^([a-z0-9-]+)/", (ROOT / "data/upstream.yaml").read_text(), re.MULTILINE)
    assert set(names) <= set(load_licenses(ROOT / "data/licences.yaml"))


def test_versions_are_the_installed_ones() -> None:
    packages = installed_packages(LOCK)
    assert packages["pydantic"] in LOCK.read_text(encoding="utf-8")
    assert len(packages) > 20


def test_a_missing_output_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        make_provenance(
            code=Code(commit=None, day=None, modified=None),
            data="sample",
            config={},
            lock=LOCK,
            raw_files=[],
            models=[],
            predictions=[],
            recordings=[],
            outputs=[tmp_path / "missing.csv"],
        )


def entities(crate: dict[str, Any]) -> dict[str, Any]:
    graph = crate["@graph"]
    by_id = {entity["@id"]: entity for entity in graph}
    assert len(by_id) == len(graph), "an id occurs twice"
    return by_id


def references(value: Any) -> set[str]:
    """Return the ids that a value refers to."""
    if isinstance(value, list):
        return set().union(*map(references, value)) if value else set()
    if isinstance(value, dict):
        return {value["@id"]} if set(value) == {"@id"} else references(list(value.values()))
    return set()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("workflow", ["Snakefile", None])
def test_the_crate_is_valid(tmp_path: Path, workflow: str | None) -> None:
    """Validate against RO-Crate 1.1 and the declared profiles with an external library."""
    run_provenance = provenance(tmp_path / "run")
    description = ro_crate(run_provenance, version="0.1.0", workflow=workflow)
    assert description == ro_crate(run_provenance, version="0.1.0", workflow=workflow)
    crate = ROCrate(json.loads(json.dumps(description)))
    standards = {"https://w3id.org/ro/crate/1.1"}
    if workflow:
        standards.add("https://w3id.org/workflowhub/workflow-ro-crate/1.0")
    assert references(crate.metadata.as_jsonld()["conformsTo"]) == standards
    assert crate.metadata["about"] is crate.root_dataset
    assert str(crate.datePublished.date()) == "2026-01-02"
    assert {"name", "description"} <= set(crate.root_dataset)
    assert crate.license["name"] == "Apache-2.0"
    # Each profile is described, and its URL contains the version.
    profiles = {profile.id: profile.type for profile in crate.root_dataset["conformsTo"]}
    names = ["process", "workflow"] if workflow else ["process"]
    assert profiles == {f"https://w3id.org/ro/wfrun/{name}/0.5": "CreativeWork" for name in names}
    assert set(crate.mainEntity.type) == {
        *(["File"] if workflow else []),
        "SoftwareSourceCode",
        "ComputationalWorkflow",
    }
    assert crate.mainEntity["programmingLanguage"]["name"] == "Snakemake"
    (run,) = crate.get_by_type("CreateAction")
    assert crate.root_dataset["mentions"] is run
    assert crate.mainEntity in run["instrument"]
    assert references(description["@graph"]) <= set(entities(description)) | standards | {
        value["@id"]
        for name in ("identifier", "url")
        for value in [crate.mainEntity["programmingLanguage"].as_jsonld()[name]]
    }


def test_ids_are_urls(tmp_path: Path) -> None:
    record = provenance(tmp_path / "run")
    output = record.outputs[0].model_copy(update={"path": "results/a b+c.json"})
    record = record.model_copy(update={"outputs": [output]})
    by_id = entities(ro_crate(record, version="0.1.0", workflow=None))
    assert by_id["#run"]["result"] == [{"@id": "results/a%20b%2Bc.json"}]
    assert by_id["results/a%20b%2Bc.json"]["name"] == "a b+c.json"


def test_the_crate_distinguishes_inputs_and_outputs(tmp_path: Path) -> None:
    by_id = entities(ro_crate(provenance(tmp_path / "run"), version="0.1.0", workflow=None))
    run = by_id["#run"]
    raw = by_id["results/raw/idiolink/test/queries.json"]
    assert {"@id": raw["@id"]} in run["object"]
    assert (raw["url"], raw["license"]) == (
        URL,
        {"@id": "https://creativecommons.org/licenses/by/4.0/"},
    )
    assert run["result"] == [{"@id": "paper_tables/a.csv"}]
    # Recordings outside the folder are described but are not part of the crate.
    (recording,) = (item for item in run["object"] if item["@id"].startswith("#recordings"))
    parts = {part["@id"] for part in by_id["./"]["hasPart"]}
    assert parts == {raw["@id"], "paper_tables/a.csv"}
    assert by_id[recording["@id"]]["@type"] == "CreativeWork"
    assert {"@id": "#model-sbert"} in run["instrument"]
