"""The run report and the provenance record of a run."""

import contextlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

from pieline.config import layered, load_config, load_studies
from pieline.core.errors import UserError
from pieline.core.files import sha256
from pieline.core.upstream import UpstreamFile
from pieline.core.yamls import read_yaml
from pieline.models.registry import load_registry
from pieline.results import run_files
from pieline.results.provenance import (
    Code,
    Model,
    Provenance,
    RunDescription,
    code_state,
    describe_raw_files,
    installed_packages,
    load_licenses,
    make_provenance,
)
from pieline.results.run_models import described_models, used_models
from pieline.results.run_report import RunReport
from pieline.results.run_results import RunResults

REGISTRY = load_registry(ROOT / "models.yaml")


def report_of(*names: str, **settings: Any) -> RunReport:
    """Return the report of the default run with these studies."""
    raw = layered(read_yaml(ROOT / "config.yaml"), ROOT / "config/sample.yaml")
    config = load_config(raw | {"studies": list(names)} | settings)
    return RunReport(load_studies(config, REGISTRY, ROOT), config)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["idiolink_zero_shot"], "or figure; write paper_tables/idiolink_zero_shot.tex"),
        (["idiolink_domains"], "or figure; write paper_tables/figures/idiolink_domains.png"),
        (["paper_tables/jam_drift.txt.tex"], "did you mean 'paper_tables/jam_drift.tex'?"),
        (["paper_tables/zzzzz.tex"], "paper_tables/zzzzz.tex: no file of a table or figure; pie"),
        (["paper_tables/figures/zzzzz.png"], "pieline tables lists them"),
        (["-R", "idiolink_significance"], ""),
        (["paper_tables/numbers.csv", "paper_tables/paper.pdf", "all"], ""),
        (["--report", "paper_tables/mine.html", "paper_tables/idiolink_zero_shot.csv"], ""),
    ],
)
def test_targets_that_are_no_tables_are_answered_with_the_right_one(
    words: list[str], problem: str
) -> None:
    report = report_of("jam", "idiolink")
    if not problem:
        report.check_targets(["snakemake", *words])
        return
    with pytest.raises(UserError, match=re.escape(problem)):
        report.check_targets(["snakemake", *words])


def test_the_list_of_tables_states_place_and_requirements() -> None:
    lines = {file: rest for file, *rest in report_of("idiolink").list_displays()}
    assert lines["paper_tables/idiolink_zero_shot.tex"][0] == "Table 2"
    assert lines["paper_tables/idiolink_hyperparameters.tex"] == [
        "Table 3",
        "a configuration that fine-tunes",
    ]
    place, needs = lines["paper_tables/jam_drift.tex"]
    assert (place, needs.split("; ")) == (
        "Table 3",
        [
            "the configuration does not name ID10M-JAM",
            "the public hard variants of ID10M-JAM",
        ],
    )
    assert "paper_tables/figures/jam_flow.png" in lines


def test_displays_are_of_the_selected_studies_in_their_order() -> None:
    results = report_of("idiots", "jam").results
    assert list(results.papers()) == ["idiots", "jam", "idiolink"]
    names = (Path(path).stem.partition("_")[0] for path in results.files("csv"))
    assert list(dict.fromkeys(names)) == ["idiots", "jam"]
    assert RunResults.model_validate_json(results.canonical()) == results


def test_missing_runs_are_counted_by_reason_and_model() -> None:
    settings = {
        "models": ["gpt-4o", "vicuna-7b"],
        "settings": ["zero_shot", "zero_shot_schema"],
        "by_model": {"vicuna-7b": {"settings": ["zero_shot"]}},
    }
    report = report_of("idiots", idiots=settings, llm={"mode": "replay"})
    assert report.left_out() == [
        "left out of idiots (nothing is recorded, and llm.mode is replay):"
        " gpt-4o, 2 runs, vicuna-7b, 1 run"
    ]


def test_files_are_listed_once_without_the_projects_own() -> None:
    studies = report_of("jam", "idiots", "idiolink").studies
    for files in (run_files.metrics, run_files.inputs_of_metrics, run_files.raw_files):
        paths = files(studies)
        assert paths
        assert len(paths) == len({*paths})
        assert all(path.startswith("results/") for path in paths)


def test_models_are_described_with_exact_versions() -> None:
    run = report_of("idiots", "idiolink")
    models = {model.name: model for model in used_models(run.studies, run.project.registry)}
    assert list(models) == sorted(models)
    assert models["gpt-4o-mini"].checkpoint == REGISTRY["gpt-4o-mini"].litellm_id  # type: ignore[union-attr]
    assert models["sbert"].licence == REGISTRY["sbert"].licence
    of_papers = {name for name, entry in REGISTRY.items() if entry.published_as}
    assert {item["name"] for item in json.loads(described_models([], run.project))} == of_papers


def test_the_description_does_not_depend_on_the_machine() -> None:
    run = report_of("idiots")
    run.config = run.config.model_copy(update={"mirror": "/somewhere"})
    description = RunDescription.model_validate_json(run.description())
    assert description.config["studies"] == ["idiots"]
    assert "/somewhere" not in run.description()
    assert str(ROOT) not in run.description()


def test_the_document_is_compiled_if_latex_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for program, document in (("/usr/bin/pdflatex", "paper.pdf"), (None, "paper.tex")):
        monkeypatch.setattr(shutil, "which", lambda name, program=program: program)
        assert f"paper_tables/{document}" in report_of("idiots").targets()


def test_recordings_are_found_from_predictions() -> None:
    (jam,) = (study for study in report_of("jam").results.studies if study.name == "jam")
    run = "english/smollm2-135m-instruct/zero_shot"
    recordings = jam.recordings[f"results/predictions/jam/{run}/seed-42.jsonl"]
    assert recordings.endswith(f"recordings/jam/{run}-seed-42.jsonl")


def test_the_state_of_a_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = code_state(tmp_path)
    assert (unknown.commit, unknown.day, unknown.modified) == (None, None, None)

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True)

    (tmp_path / "a.txt").write_text("1", encoding="utf-8")
    git("init", "-q")
    git("add", "a.txt")
    git("commit", "-q", "-m", "first", "--date", "2026-01-02T00:00:00")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another/.git"))
    clean = code_state(tmp_path)
    assert clean.commit
    assert len(clean.commit) == 40
    assert clean.modified is False
    (tmp_path / "a.txt").write_text("2", encoding="utf-8")
    assert code_state(tmp_path).modified is True


URL = "https://example.org/queries.json"
LOCK = ROOT / "envs/requirements.lock"


def provenance(folder: Path, data: str) -> Provenance:
    for name in ("results/raw/idiolink/test/queries.json", "paper_tables/a.csv"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[]", encoding="utf-8")
    recording = folder.parent / "recordings.jsonl"
    recording.write_text("{}", encoding="utf-8")
    upstream = {"idiolink/test/queries.json": UpstreamFile(url=URL)}
    licences = load_licenses(ROOT / "data/licences.yaml")
    with contextlib.chdir(folder):
        run = RunDescription(
            code=Code(commit="0" * 40, day="2026-01-02", modified=False),
            config={"data": data},
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
        )
        return make_provenance(
            run,
            lock=LOCK,
            raw_files=describe_raw_files(
                ["results/raw/idiolink/test/queries.json"],
                data,  # type: ignore[arg-type]
                upstream,
                licences,
            ),
            predictions=[],
            recordings=["../recordings.jsonl"],
            outputs=["paper_tables/a.csv"],
        )


@pytest.mark.parametrize(
    ("data", "described"),
    [("released", (URL, "CC-BY-4.0", False)), ("sample", (None, "CC0-1.0", True))],
)
def test_raw_files_have_source_digest_and_license(
    data: str, described: tuple[str | None, str, bool], tmp_path: Path
) -> None:
    (raw,) = provenance(tmp_path / "run", data).raw_files
    assert (raw.url, raw.licence, raw.is_sample) == described
    assert raw.sha256 == sha256(tmp_path / "run" / raw.path)
    assert raw.bytes == 2


def test_every_raw_file_has_a_license() -> None:
    names = re.findall(r"^([a-z0-9-]+)/", (ROOT / "data/upstream.yaml").read_text(), re.MULTILINE)
    assert set(names) <= set(load_licenses(ROOT / "data/licences.yaml"))


def test_versions_are_the_installed_ones() -> None:
    packages = installed_packages(LOCK)
    assert packages["pydantic"] in LOCK.read_text(encoding="utf-8")
    assert len(packages) > 20


def test_a_missing_output_is_an_error(tmp_path: Path) -> None:
    code = Code(commit=None, day=None, modified=None)
    with pytest.raises(UserError, match="no such file"):
        make_provenance(
            RunDescription(code=code, config={"data": "sample"}, models=[]),
            lock=LOCK,
            raw_files=[],
            predictions=[],
            recordings=[],
            outputs=[tmp_path / "missing.csv"],
        )
