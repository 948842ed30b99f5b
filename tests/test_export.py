"""The export: one row per score of a run, with its interval and the printed number."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from frame_cases import our_number

from pieline.core.conditions import digest_of
from pieline.core.files import canonical_json, write_json
from pieline.reporting.numbers import Number
from pieline.results.export import EXPORT_COLUMNS, ExportedScore, scores_of, write_export

BOUNDS = {"low": 0.25, "high": 0.75}
CONDITIONS = {
    "settings": {"temperature": 0.5},
    "weights": {},
    "deviations": ["top k 5, the paper 100"],
}
RUN: dict[str, Any] = {
    "model": "me",
    "query_mode": "span",
    "composition": "full",
    "seed": 0,
    "conditions": CONDITIONS,
    "computed_from": {},
    "tuning": {"k1": 0.6},
    "intervals": {"ndcg_at_10": BOUNDS},
    "overall": {"ndcg_at_10": 0.51239, "r_precision": None, "queries": 40},
    "by_usage": {"literal": {"ndcg_at_10": 0.51239, "queries": 20}},
}


@pytest.mark.parametrize(
    ("fields", "scores"),
    [
        (RUN, [ExportedScore("overall", "ndcg_at_10", 0.51239, 0.25, 0.75),
               ExportedScore("by_usage.literal", "ndcg_at_10", 0.51239)]),
        ({"accuracy": 0.5, "accuracy_interval": BOUNDS, "seed": 1,
          "literal": {"flipped": 2, "negative_drift": 0.5, "interval": BOUNDS}},
         [ExportedScore("", "accuracy", 0.5, 0.25, 0.75),
          ExportedScore("literal", "negative_drift", 0.5, 0.25, 0.75)]),
        ({"accuracy": 0.5, "accuracy_interval": None}, [ExportedScore("", "accuracy", 0.5)]),
        ({"by_kind": {"parts": {"recall": {"value": 0.5, "count": 1, "of": 2, **BOUNDS}}},
          "precision": {"value": None, "count": 0, "of": 0, "low": None, "high": None}},
         [ExportedScore("by_kind.parts", "recall", 0.5, 0.25, 0.75)]),
    ],
)  # fmt: skip
def test_the_scores_of_a_metric_file(fields: dict[str, Any], scores: list[ExportedScore]) -> None:
    assert list(scores_of(fields)) == scores


def number(measure: str, printed: float | None, **changes: Any) -> Number:
    values = {"measure": measure, "printed": printed, "unit": "%", "scope": ""}
    return our_number(51.239, **{**values, "files": ("run.json",), **changes})


def export(folder: Path, *numbers: Number) -> pd.DataFrame:
    write_json("run.json", RUN)
    write_json("data.json", {"share": 0.5, "computed_from": {}})
    write_export(
        folder / "e.csv", {"mine": ["run.json", "data.json"]}, numbers, data="sample", note="No."
    )
    return pd.read_csv(folder / "e.csv", keep_default_na=False)


def test_a_row_identifies_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = export(tmp_path)
    first = (tmp_path / "e.csv").read_bytes()
    assert list(table) == list(EXPORT_COLUMNS)
    # Files without a model have no rows.
    assert list(table["part"]) == ["by_usage.literal", "overall"]
    assert table.iloc[1].to_dict() == {
        "study": "mine", "model": "me", "setting": "span", "language": "", "composition": "full",
        "seed": 0, "part": "overall", "metric": "ndcg_at_10", "value": 0.51239, "low": "0.25",
        "high": "0.75", "printed": "", "data": "sample", "note": "No.; top k 5, the paper 100",
        "conditions": digest_of(canonical_json(CONDITIONS)), "metrics": "run.json",
    }  # fmt: skip
    export(tmp_path)
    assert (tmp_path / "e.csv").read_bytes() == first


@pytest.mark.parametrize(
    ("ours", "printed"),
    [
        (number("ndcg_at_10", 58.86), "0.5886"),
        (number("ndcg_at_10", 58.86, verdict="not reproduced"), "0.5886"),
        (number("ndcg_at_10", 0.6, unit=""), "0.6"),
        (number("ndcg_at_10", 58.86, verdict="not comparable"), ""),
        (number("ndcg_at_10", None, verdict="not comparable"), ""),
        (number("r_precision", 58.86), ""),
        (number("ndcg_at_10", 58.86, files=("run.json", "b.json")), ""),
        (number("ndcg_at_10", 58.86, files=("b.json",)), ""),
        (number("ndcg_at_10", 58.86, scope="a PIE"), ""),
    ],
)
def test_only_a_comparable_printed_number_is_exported(
    ours: Number, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(export(tmp_path, ours)["printed"]) == ["", printed]
