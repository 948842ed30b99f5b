"""Figure 1 of IdioLink with texts of a run, and the flow of its construction."""

from pathlib import Path
from typing import Any

from pieline.core.files import write_json
from pieline.core.records import save_jsonl
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiolink.figures import flow
from pieline.studies.idiolink.records import Document, Usage
from pieline.studies.idiolink.tables.described import example

CORRECTIONS: dict[str, Any] = {"by_action": {}, "by_cause": {}, "by_collection": {}, "by_usage": {}}
METRICS = {
    "sample": True, "texts": 96, "labels": {"valid": 89, "invalid": 7}, "votes": {},
    "agreement": None, "gold_texts": 30, "generation": {}, "validator": "m", "computed_from": {},
    "gold_corrections": {**CORRECTIONS, "corrected": 2, "reviewed": 24},
    "silver_corrections": {**CORRECTIONS, "corrected": 3, "reviewed": 6},
    "silver": {"texts": 72, "flagged": 5, "flagged_share": 0.07, "reviewed": 5, "confirmed": 2,
               "confirmed_share": 0.4, "awaiting": 0},
}  # fmt: skip
REPORT = {
    "pies": 1500, "occurrences": 9000, "candidates": 11, "kept": 4, "failed": {}, "differs": {},
    "kept_by_reading": {}, "released": None, "semantics": "released", "thresholds": {},
    "computed_from": {},
}  # fmt: skip


def test_the_flow_has_the_counts_of_each_step(tmp_path: Path) -> None:
    metrics, report = tmp_path / "metrics.json", tmp_path / "report.json"
    write_json(metrics, METRICS)
    write_json(report, REPORT)
    inputs = DisplayInputs(metrics=(str(metrics),), files={"filter_report": str(report)})
    figure = flow(inputs)
    shown = [
        (label.get_text(), bar.get_width(), text.get_text())
        for axis in figure.axes
        for label, bar, text in zip(axis.get_yticklabels(), axis.patches, axis.texts, strict=True)
    ]
    assert shown == [
        ("in MAGPIE", 1500, "1,500"),
        ("frequent and balanced", 11, "11"),
        ("used", 4, "4"),
        ("generated", 96, "96"),
        ("automatically valid", 89, "89"),
        ("checked by people", 30, "30"),
        ("corrected", 5, "5"),
    ]
    assert "sample data" in figure.get_supxlabel()


def document(name: str, usage: Usage, pie: str = "break the ice") -> Document:
    """Return a document whose span is its name."""
    return Document(
        id=name, sentence=f"The text {name}.", pie=pie, span=name, subject="Sport", is_gold=True,
        usage=usage,
    )  # fmt: skip


def test_figure_1_shows_a_document_of_each_type_of_one_pie(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    documents = [document("d1", "idiomatic"), document("d2", "idiomatic")]
    documents += [document("d3", "literal"), document("d4", "sense", "cold feet")]
    save_jsonl(path, documents)
    content = example(DisplayInputs(files={"documents": str(path)}, notes=("A note.",)))
    assert [row.labels for row in content.groups[0].rows] == [
        ("idiomatic", "d1"),
        ("literal", "d3"),
    ]
    assert "“break the ice”" in content.caption
    assert content.notes == ("A note.",)
