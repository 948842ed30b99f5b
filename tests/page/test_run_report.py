"""The run report, with two stub studies."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

from pieline.config import Config, layered, load_config, load_studies
from pieline.core.conditions import Conditions
from pieline.core.imports import import_object
from pieline.core.settings import Settings
from pieline.core.yamls import read_yaml
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.plan import Run
from pieline.project import Project
from pieline.reporting.displays import Figure, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.results import run_files
from pieline.results.provenance import RunDescription, code_state
from pieline.results.report_labels import CATEGORY, report_labels
from pieline.results.run_models import described_models, used_models
from pieline.results.run_report import RunReport
from pieline.results.run_results import RunResults
from pieline.study import Study

METRICS = ("results/metrics/a/x.json", "results/metrics/a/y.json")


def displays_of(name: str) -> tuple[Table, Figure]:
    """Return a table and a figure, whose inputs are the metric files."""
    return (
        Table(
            f"{name}_scores", "Table 1", "Scores.", print, lambda _: DisplayInputs(metrics=METRICS)
        ),
        Figure(f"{name}_curve", "Figure 1", "A curve.", print, lambda _: DisplayInputs()),
    )


class StandIn(Study[Settings]):
    """Stub study."""

    Settings = Settings

    def check(self, where: str) -> None:
        """Accept any settings."""

    def models(self) -> list[str]:
        """Return a language model and an embedder."""
        return ["sbert", "gpt-4o"]

    def raw_files(self) -> list[str]:
        """Return one raw file, and one of the project's own files."""
        return [f"results/raw/{self.name}/texts.json", "data/sample/list.txt"]

    def configured_runs(self) -> Iterator[Run]:
        """Yield a run per metric file."""
        for metrics in METRICS:
            predictions = metrics.replace("metrics", "predictions")
            yield Run(
                study=self.name,
                model="sbert",
                key="sbert",
                kind="embedder",
                where={},
                predictions=predictions,
                metrics=metrics,
                conditions=Conditions(),
                behind=("results/datasets/a.jsonl", predictions),
            )


class First(StandIn):
    """First stub study."""

    name = "a"
    paper = "Paper A"
    displays = displays_of("a")


class Second(StandIn):
    """Second stub study."""

    name = "b"
    paper = "Paper B"
    displays = displays_of("b")


def report_of(*names: str, root: Path = ROOT) -> RunReport:
    run = Project(load_registry(ROOT / "models.yaml"), LLMSettings(), root=root)
    every: dict[str, Study[Any]] = {"a": First(Settings(), run), "b": Second(Settings(), run)}
    return RunReport(every, Config(studies=list(names)))


def test_displays_are_limited_to_the_selected_studies() -> None:
    displays = report_of("b").results
    assert displays.papers() == {"b": "Paper B", "a": "Paper A"}
    assert displays.files("csv") == ["paper_tables/b_scores.csv"]
    assert displays.files("png") == ["paper_tables/figures/b_curve.png"]
    (study, _) = displays.studies
    assert [shown.name for shown in study.displays] == ["b_scores", "b_curve"]
    read = RunResults.model_validate_json(displays.canonical())
    assert read.all_files() == displays.all_files()
    assert read == displays


def test_studies_are_in_the_order_of_the_configuration() -> None:
    csvs = report_of("b", "a").results.files("csv")
    assert csvs == [
        "paper_tables/b_scores.csv",
        "paper_tables/a_scores.csv",
    ]
    assert list(report_of("b", "a").results.papers().items()) == [
        ("b", "Paper B"),
        ("a", "Paper A"),
    ]


def test_missing_runs_are_counted_by_reason_and_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left_out = {"gpt-4o/1": "no key", "sbert/1": "no key", "sbert/2": "no key"}
    monkeypatch.setattr(First, "left_out", lambda self: left_out)
    assert report_of("a").left_out() == ["left out of a (no key): gpt-4o, 1 run, sbert, 2 runs"]


def test_files_are_listed_once() -> None:
    both = report_of("a", "b").studies
    assert run_files.metrics(both) == list(METRICS)
    assert run_files.behind(both) == [
        "results/datasets/a.jsonl",
        "results/predictions/a/x.json",
        "results/predictions/a/y.json",
    ]
    # The project's own files are not raw files of the run.
    assert run_files.raw_files(both) == ["results/raw/a/texts.json", "results/raw/b/texts.json"]


def test_models_are_described_with_exact_versions() -> None:
    run = report_of("a", "b")
    models = {model.name: model for model in used_models(run.studies, run.project.registry)}
    assert list(models) == ["gpt-4o", "sbert"]
    registry = load_registry(ROOT / "models.yaml")
    assert models["gpt-4o"].checkpoint == registry["gpt-4o"].litellm_id  # type: ignore[union-attr]
    assert models["sbert"].licence == registry["sbert"].licence
    of_papers = {name for name, entry in registry.items() if entry.published_as}
    assert {item["name"] for item in json.loads(described_models([], run.project))} == of_papers


def test_the_description_does_not_depend_on_the_machine() -> None:
    run = report_of("a")
    run.config = run.config.model_copy(update={"mirror": "/somewhere"})
    description = RunDescription.model_validate_json(run.description())
    assert description.config["studies"] == ["a"]
    assert "/somewhere" not in run.description()
    assert str(ROOT) not in run.description()


def test_the_report_has_every_file_that_rules_show() -> None:
    shown = report_labels(report_of("a").all_studies.values())
    assert shown["paper_tables/b_scores.csv"][0] == "Paper B"
    assert shown["paper_tables/figures/a_curve.png"][1] == {
        "place": "Figure 1",
        "shows": "A curve.",
        "as": "PNG",
    }
    category, labels = shown["paper_tables/paper.pdf"]
    assert (category, labels["place"]) == (CATEGORY, "Document")


def test_the_document_is_compiled_if_latex_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert "paper_tables/paper.pdf" in report_of("a").targets()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "paper_tables/paper.tex" in report_of("a").targets()


def test_the_state_of_a_clone(tmp_path: Path) -> None:
    unknown = code_state(tmp_path)
    assert (unknown.commit, unknown.day, unknown.modified) == (None, None, None)

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True)

    (tmp_path / "a.txt").write_text("1", encoding="utf-8")
    git("init", "-q")
    git("add", "a.txt")
    git("commit", "-q", "-m", "first", "--date", "2026-01-02T00:00:00")
    clean = code_state(tmp_path)
    assert clean.commit
    assert len(clean.commit) == 40
    assert clean.modified is False
    (tmp_path / "a.txt").write_text("2", encoding="utf-8")
    assert code_state(tmp_path).modified is True


def test_the_page_reads_the_items_of_each_study() -> None:
    config = load_config(layered(read_yaml(ROOT / "config.yaml"), ROOT / "config/sample.yaml"))
    every = load_studies(config, load_registry(ROOT / "models.yaml"), ROOT)
    run = RunReport(every, config)
    assert {study.name: study.items for study in run.results.studies} == {
        name: f"pieline.studies.{name}.items:{name.title()}Item" for name in every
    }
    assert all("evidence" in vars(import_object(item)) for item in run.results.item_classes())
    assert report_of("a").results.item_classes() == []


def test_recordings_are_found_from_predictions() -> None:
    config = layered(read_yaml(ROOT / "config.yaml"), ROOT / "config/sample.yaml")
    every = load_studies(load_config(config), load_registry(ROOT / "models.yaml"), ROOT)
    for study in every.values():
        recordings = {
            task.outputs["predictions"]: task.recordings
            for task in study.tasks()
            if "predictions" in task.outputs
        }
        assert recordings == {
            path: study.plan[path].recordings for path in recordings if path in study.plan
        }
        assert bool(recordings) == (study.name != "idiolink")
    (jam,) = [
        study
        for study in RunReport(every, load_config(config)).results.studies
        if study.name == "jam"
    ]
    run = "english/smollm2-135m-instruct/zero_shot"
    recordings = jam.recordings[f"results/predictions/jam/{run}/seed-42.jsonl"]
    assert recordings.endswith(f"recordings/jam/{run}-seed-42.jsonl")
