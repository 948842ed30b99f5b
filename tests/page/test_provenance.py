"""The provenance record of a run."""

import contextlib
import re
from pathlib import Path

import pytest
from support import ROOT

from pieline.core.errors import UserError
from pieline.core.files import sha256
from pieline.core.upstream import UpstreamFile
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
