"""Export of review sheets, import of decisions, and their effect on the texts."""

import csv
import json
import re
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree

import pytest
from construction_cases import text

from pieline.core.conditions import Evidence
from pieline.core.errors import UserError
from pieline.studies.idiolink.datasets.assembly import (
    ReviewedTexts,
    construction_metrics,
    require_review,
    save_released_format,
)
from pieline.studies.idiolink.originals.splits import Splits
from pieline.studies.idiolink.raw import read_texts
from pieline.studies.idiolink.records import Document, Usage
from pieline.studies.idiolink.variants.generation import GeneratedText
from pieline.studies.idiolink.variants.validation import (
    CRITERIA,
    Action,
    Cause,
    Correction,
    TextVerdict,
    apply_corrections,
    count_corrections,
    majority,
    read_corrections,
    to_review,
    write_review,
)

GOLD, SILVER = "spill the beans", "tie the knot"
SPLITS = Splits(source="by hand", train=[SILVER], val=[], test=[GOLD], gold=[GOLD])


def knot(name: str, **changes: Any) -> GeneratedText:
    fields = {"pie": SILVER, "span": "tied the knot", "sentence": "The baker tied the knot."}
    return text(name, **(fields | changes))


TEXTS = [
    text("007_s08_lit_01"),
    text("007_s08_sense_01", usage="sense", sentence="He told it all.", span="He told it all"),
    knot("009_s08_lit_01"),
    knot("009_s08_lit_02", sentence="A sailor tied the knot."),
    knot("q_009_s08_lit_01", sentence="The cook tied the knot."),
]


def verdict(name: str, *votes: str) -> TextVerdict:
    return TextVerdict(
        id=name,
        votes=list(votes),
        label=majority(votes),
        failed={"span_fits": votes.count("invalid")} if "invalid" in votes else {},
        comments=[],
        answer_keys=[],
    )


VERDICTS = [
    verdict("007_s08_lit_01", "valid", "valid", "valid"),
    verdict("007_s08_sense_01", "invalid", "invalid", "valid"),
    verdict("009_s08_lit_01", "valid", "valid", "valid"),
    verdict("009_s08_lit_02", "invalid", "valid", "unparseable"),
    verdict("q_009_s08_lit_01", "invalid", "invalid", "invalid"),
]


def correction(name: str, action: str, **changes: str) -> Correction:
    seen = next(item for item in TEXTS if item.id == name)
    fields = {"id": name, "sentence": seen.sentence, "span": seen.span, "action": action}
    return Correction.model_validate(fields | changes)


DECISIONS = {
    item.id: item
    for item in (
        correction("007_s08_lit_01", "valid"),
        correction(
            "007_s08_sense_01", "span_corrected", new_span="told it all", cause="wrong_span"
        ),
        correction("009_s08_lit_02", "valid"),
        correction(
            "q_009_s08_lit_01",
            "replaced",
            new_sentence="Before the climb she tied the knot twice.",
            cause="off_domain",
        ),
    )
}


def test_reviewers_get_all_gold_texts_and_flagged_others() -> None:
    texts = to_review(TEXTS, VERDICTS, SPLITS.gold)
    assert [text.id for text in texts] == [
        "007_s08_lit_01",
        "007_s08_sense_01",
        "009_s08_lit_02",
        "q_009_s08_lit_01",
    ]


SHOWN = ["id", "pie", "domain", "usage", "sentence", "span"]
ANSWERS = ["action", "cause", "new_sentence", "new_span"]


@pytest.fixture
def forms(tmp_path: Path) -> Path:
    """Return the folder of the forms for reviewers."""
    write_review(
        to_review(TEXTS, VERDICTS, SPLITS.gold),
        sheet=tmp_path / "review.csv",
        guidelines=tmp_path / "guidelines.txt",
        tasks=tmp_path / "review.json",
        labelling=tmp_path / "labelling.xml",
    )
    return tmp_path


def sheet_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def fill_in(path: Path, **annotation: Any) -> None:
    """Enter the decisions in a sheet or tasks, as a reviewer would."""
    decided = {
        name: {field: getattr(item, field) for field in ANSWERS} for name, item in DECISIONS.items()
    }
    if path.suffix == ".csv":
        rows = [row | decided[row["id"]] for row in sheet_rows(path)]
        with path.open("w", encoding="utf-8", newline="") as stream:
            sheet = csv.DictWriter(stream, list(rows[0]))
            sheet.writeheader()
            sheet.writerows(rows)
        return
    tasks = json.loads(path.read_text(encoding="utf-8"))
    for task in tasks:
        result = [
            {"from_name": name, "value": {"text" if name.startswith("new") else "choices": [value]}}
            for name, value in decided[task["data"]["id"]].items()
            if value
        ]
        task["annotations"] = [{"result": result} | annotation]
    path.write_text(json.dumps(tasks), encoding="utf-8")


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_decisions_are_read_from_sheet_and_label_studio(forms: Path, suffix: str) -> None:
    path = forms / f"review{suffix}"
    assert read_corrections(path) == {}
    fill_in(path)
    assert read_corrections(path) == DECISIONS


def test_a_canceled_annotation_is_ignored(forms: Path) -> None:
    fill_in(forms / "review.json", was_cancelled=True)
    assert read_corrections(forms / "review.json") == {}


def test_reviewers_see_neither_votes_nor_decisions(forms: Path) -> None:
    rows = sheet_rows(forms / "review.csv")
    assert list(rows[0]) == SHOWN + ANSWERS
    assert {row[name] for row in rows for name in ANSWERS} == {""}
    tasks = json.loads((forms / "review.json").read_text(encoding="utf-8"))
    assert tasks == [{"data": {name: row[name] for name in SHOWN}} for row in rows]
    assert rows[1]["sentence"] == "He told it all."
    assert rows[1]["domain"] == "Food"
    labelling = (forms / "labelling.xml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$(\w+)", labelling)) == set(SHOWN) - {"id"}


def test_guidelines_explain_criteria_kinds_and_allowed_values(forms: Path) -> None:
    guidelines = (forms / "guidelines.txt").read_text(encoding="utf-8")
    form = ElementTree.fromstring((forms / "labelling.xml").read_text(encoding="utf-8"))
    shown = [value for part in form.iter() for value in part.attrib.values()]
    causes = [cause for cause in get_args(Cause) if cause]
    labels = [*get_args(Action), *causes]
    assert [choice.get("value") for choice in form.iter("Choice")] == labels
    meanings = [
        line.strip()
        for line in guidelines.splitlines()
        if line.startswith("  ") and line.split(":")[0].strip() in {*labels, *get_args(Usage)}
    ]
    assert len(meanings) == len(labels) + len(get_args(Usage))
    for line in (*meanings, *CRITERIA.values()):
        assert line in guidelines
        assert any(line in value for value in shown), line


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"action": "fine"},
            "action: Input should be 'valid', 'span_corrected', 'text_revised' or 'replaced'"
            " (given: 'fine')",
        ),
        ({"action": "", "new_sentence": "He told it all."}, "action: Input should be"),
        ({"new_span": "the beans"}, "action 'valid' does not allow a new sentence or span"),
        ({"action": "span_corrected"}, "needs a new span"),
        (
            {"action": "span_corrected", "new_span": "beans", "new_sentence": "Other beans."},
            "the same sentence",
        ),
        ({"action": "text_revised"}, "needs a new sentence"),
        ({"action": "replaced", "new_sentence": "Nothing of it."}, "is not in the corrected"),
        ({"action": "span_corrected", "new_span": "the peas"}, "is not in the corrected"),
        ({"cause": "mood"}, "cause: Input should be '', 'wrong_span', 'usage_mismatch', "),
    ],
)
def test_an_inconsistent_decision_reports_row_and_id(
    tmp_path: Path, changes: dict[str, str], problem: str
) -> None:
    path = tmp_path / "sheet.csv"
    seen = DECISIONS["007_s08_lit_01"].model_dump() | changes
    with path.open("w", encoding="utf-8", newline="") as stream:
        sheet = csv.DictWriter(stream, list(seen))
        sheet.writeheader()
        sheet.writerow(seen)
    with pytest.raises(UserError) as caught:
        read_corrections(path)
    assert str(caught.value).startswith(f"{path}:2 (007_s08_lit_01): ")
    assert problem in caught.value.what


HEADER = "id,sentence,span,action,cause,new_sentence,new_span\n"
LINE = "007_s08_lit_01,a b,a,valid,,,\n"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("sheet.csv", HEADER.replace(",new_span", ""), "no column 'new_span'"),
        ("export.json", '[{"id": "007_s08_lit_01"}]', "task 1: data: Field required"),
        ("sheet.xlsx", HEADER, r"\.xlsx: the file ends in none of \.csv, .*; save"),
        ("sheet.csv", HEADER + LINE * 2, "duplicate id '007_s08_lit_01'"),
    ],
)
def test_files_in_another_format_are_rejected(
    name: str, content: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=problem):
        read_corrections(path)


def test_applying_changes_the_text_and_marks_it_gold() -> None:
    after = {item.id: item for item in apply_corrections(TEXTS, DECISIONS, where="sheet")}
    assert after["007_s08_sense_01"].span == "told it all"
    assert after["q_009_s08_lit_01"].sentence == "Before the climb she tied the knot twice."
    assert after["q_009_s08_lit_01"].span == "tied the knot"
    assert [name for name, item in after.items() if item.is_gold] == list(DECISIONS)


def test_a_decision_about_another_text_is_rejected() -> None:
    changed = [text("007_s08_lit_01", sentence="Now he spilled the beans."), *TEXTS[1:]]
    with pytest.raises(UserError, match="text '007_s08_lit_01' has changed since the decision"):
        apply_corrections(changed, DECISIONS, where="sheet")
    with pytest.raises(UserError, match="decision about unknown text '007_s08_lit_01'"):
        apply_corrections(TEXTS[1:], DECISIONS, where="sheet")


def test_counts_by_action_cause_usage_and_collection() -> None:
    counts = count_corrections(DECISIONS.values())
    assert (counts.reviewed, counts.corrected) == (4, 2)
    assert counts.by_action == {"span_corrected": 1, "replaced": 1}
    assert counts.by_cause == {"wrong_span": 1, "off_domain": 1}
    assert counts.by_usage == {"sense": 1, "literal": 1}
    assert counts.by_collection == {"documents": 1, "queries": 1}


def test_metrics_separate_gold_and_silver() -> None:
    metrics = construction_metrics(
        ReviewedTexts(TEXTS, VERDICTS, DECISIONS, SPLITS),
        Evidence(computed_from={}),
        reports=[],
        validator="v",
        sample=True,
    )
    assert metrics.agreement is not None
    assert (metrics.agreement.texts, metrics.agreement.accuracy) == (2, 1.0)
    assert metrics.gold_corrections.by_action == {"span_corrected": 1}
    silver = metrics.silver
    assert (silver.texts, silver.flagged, silver.reviewed, silver.awaiting) == (3, 2, 2, 0)
    assert (silver.confirmed, silver.confirmed_share) == (1, 0.5)
    assert metrics.labels == {"valid": 2, "invalid": 2, "undecided": 1}


def test_values_that_await_review_are_unknown() -> None:
    decided = {name: item for name, item in DECISIONS.items() if name == "009_s08_lit_02"}
    metrics = construction_metrics(
        ReviewedTexts(TEXTS, VERDICTS, decided, SPLITS),
        Evidence(computed_from={}),
        reports=[],
        validator="v",
        sample=True,
    )
    assert metrics.agreement is None
    assert metrics.silver.awaiting == 1
    assert metrics.silver.confirmed_share is None


def test_a_dataset_with_unreviewed_texts_is_rejected() -> None:
    require_review(ReviewedTexts(TEXTS, VERDICTS, DECISIONS, SPLITS), sheet="review.csv")
    for missing in DECISIONS:
        rest = {name: item for name, item in DECISIONS.items() if name != missing}
        with pytest.raises(UserError, match=f"1 texts await human review \\(first: {missing}"):
            require_review(ReviewedTexts(TEXTS, VERDICTS, rest, SPLITS), sheet="review.csv")


def test_our_reader_reads_the_saved_format(tmp_path: Path) -> None:
    save_released_format(apply_corrections(TEXTS, DECISIONS, where="sheet"), SPLITS, tmp_path)
    test = read_texts(tmp_path / "test/indexes.json", Document)
    assert [item.id for item in test] == ["007_s08_lit_01", "007_s08_sense_01"]
    assert all(item.is_gold for item in test)
    raw = json.loads((tmp_path / "train/indexes.json").read_text(encoding="utf-8"))
    assert list(raw[0]) == ["id", "sentence", "idiom", "span", "subject", "usage", "is_gold"]
    assert json.loads((tmp_path / "val/queries.json").read_text(encoding="utf-8")) == []
