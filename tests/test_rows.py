"""The setting `tables`: rows of the paper's models, or only of this run's."""

from typing import Any

import pandas as pd
import pytest
from support import ROOT

from pieline.config import layered, load_config, load_studies
from pieline.core.errors import UserError
from pieline.models.registry import load_registry
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.tables import TableContent, make_table
from pieline.results.run_report import RunReport

REGISTRY = load_registry(ROOT / "models.yaml")
CONFIGURED = {
    "jam_drift": ["claude-4-sonnet", "gpt-4o"],
    "jam_usage": ["claude-4-sonnet", "gpt-4o"],
    "jam_confusion": ["claude-4-sonnet", "gpt-4o"],
    "jam_runs": ["claude-4-sonnet", "gpt-4o"],
    "idiots_detection": ["gpt-4o", "vicuna-7b"],
    "idiots_consistency": ["gpt-4o", "vicuna-7b"],
    "idiots_distractors": ["gpt-4o", "vicuna-7b"],
    "idiots_errors": ["gpt-4o", "vicuna-7b"],
    "idiolink_zero_shot": ["sbert", "smollm2-135m", "bge-m3"],
    "idiolink_finetuned": ["smollm2-135m", "bge-m3"],
}
"""Configured models, in an order other than the paper's, by result table."""


def run_report(**settings: Any) -> RunReport:
    """Return a run of models that cannot be run; some of them are not in the paper."""
    why = "our GPU is too small"
    raw = {
        "studies": ["jam", "idiots", "idiolink"],
        "llm": {"mode": "replay"},
        "jam": {
            "models": CONFIGURED["jam_drift"],
            "settings": ["zero_shot"],
            "neutral": None,
            "attention": None,
        },
        "idiots": {"models": CONFIGURED["idiots_detection"]},
        "idiolink": {
            "models": CONFIGURED["idiolink_zero_shot"],
            "finetuning": {
                "models": CONFIGURED["idiolink_finetuned"],
                "train_modes": ["sentence"],
            },
            "leave_out": dict.fromkeys(CONFIGURED["idiolink_zero_shot"], why),
        },
        **settings,
    }
    config = load_config(layered(raw, ROOT / "config" / "sample.yaml"))
    return RunReport(load_studies(config, REGISTRY, ROOT), config)


def made(report: RunReport) -> dict[str, tuple[TableContent, pd.DataFrame]]:
    """Return the result tables of a run, without baselines, and their frames."""
    contents = {}
    for study in report.studies:
        for table in study.tables():
            if table.name in CONFIGURED:
                inputs = DisplayInputs.model_validate_json(report.display_inputs_json(table))
                inputs = inputs.model_copy(update={"metrics": ()})
                content, frame = make_table(table.make, table.numbers, inputs)
                assert frame is not None
                contents[table.name] = content, frame
    return contents


def tables_of(report: RunReport) -> dict[str, TableContent]:
    return {name: content for name, (content, _) in made(report).items()}


def frames_of(report: RunReport) -> dict[str, pd.DataFrame]:
    return {name: frame for name, (_, frame) in made(report).items()}


def models_of(content: TableContent) -> list[str]:
    """Return the models with a row, in order of their first row."""
    names = {entry.label: name for name, entry in REGISTRY.items()}
    rows = [row for group in content.groups for row in group.rows]
    return list(
        dict.fromkeys(names[label] for row in rows for label in row.labels if label in names)
    )


def test_with_rows_of_the_run_tables_have_the_configured_models_in_order() -> None:
    contents = tables_of(run_report(tables={"rows": "run"}))
    assert {name: models_of(content) for name, content in contents.items()} == CONFIGURED
    for content in contents.values():
        assert all(row.reason for group in content.groups for row in group.rows)


def test_by_default_tables_have_all_models_of_the_paper() -> None:
    contents = tables_of(run_report())
    papers = tables_of(run_report(tables={"rows": "paper"}))
    assert contents == papers
    counts = {name: len(models_of(content)) for name, content in contents.items()}
    assert counts == {
        **dict.fromkeys(("jam_drift", "jam_usage", "jam_confusion"), 12),
        "jam_runs": 2,
        **dict.fromkeys((name for name in counts if name.startswith("idiots")), 4),
        "idiolink_zero_shot": 25,
        "idiolink_finetuned": 6,
    }


def test_the_name_of_a_table_sets_its_rows() -> None:
    contents = tables_of(run_report(tables={"rows": "run", "jam_drift": "paper"}))
    assert len(models_of(contents["jam_drift"])) == 12
    assert models_of(contents["jam_usage"]) == CONFIGURED["jam_usage"]
    one = tables_of(run_report(tables={"jam_usage": "run"}))
    assert len(models_of(one["jam_drift"])) == 12
    assert models_of(one["jam_usage"]) == CONFIGURED["jam_usage"]


def test_figures_show_what_the_paper_prints() -> None:
    report = run_report(tables={"rows": "run"})
    figures = [figure for study in report.studies for figure in study.figures()]
    for figure in figures:
        inputs = DisplayInputs.model_validate_json(report.display_inputs_json(figure))
        assert inputs.rows == "paper"


def test_an_unknown_table_or_value_is_an_error() -> None:
    with pytest.raises(UserError) as caught:
        run_report(tables={"jam_drfit": "run"})
    assert str(caught.value) == (
        "config.yaml: tables: this configuration has no result table 'jam_drfit'; did you"
        " mean 'jam_drift'?"
    )
    with pytest.raises(UserError, match=r"config\.yaml: tables\.rows: "):
        run_report(tables={"rows": "all"})


def test_printed_numbers_without_a_row_have_a_reason() -> None:
    """The rows of a table do not change the frame."""
    reasons = []
    for settings in ({"rows": "run"}, {"rows": "paper"}):
        frames = frames_of(run_report(tables=settings))
        usage = frames["jam_usage"]
        of_paper = usage[~usage["model"].isin(CONFIGURED["jam_usage"])]
        assert set(of_paper["reason"]) == {"not in this configuration"}
        assert set(of_paper["missing"]) == {"not in this configuration"}
        reasons.append(usage["reason"].to_list())
    assert reasons[0] == reasons[1]
