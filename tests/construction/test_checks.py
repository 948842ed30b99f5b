"""Each check detects its defect and accepts valid data; report on the public data."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from construction_cases import loose
from support import MIRROR, ROOT, needs_mirror
from table_files import table_rows

from pieline.core.errors import UserError
from pieline.core.files import write_json
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import rounded
from pieline.studies.idiolink.datasets.checks import (
    CHECKS,
    count_occurrences,
    names_pie,
    run_checks,
)
from pieline.studies.idiolink.datasets.composition import DatasetChecks, check_dataset
from pieline.studies.idiolink.datasets.reading import LooseText, read_loosely
from pieline.studies.idiolink.originals.pairs import read_candidates
from pieline.studies.idiolink.originals.splits import SPLITS
from pieline.studies.idiolink.tables.described import DATASET_TABLE

SAMPLE = ROOT / "data/sample/idiolink"


def texts_of(folder: Path) -> list[LooseText]:
    return read_loosely([(split, folder / split) for split in SPLITS])[0]


def altered(name: str, **changes: Any) -> list[LooseText]:
    """Return the sample with one text changed."""
    texts = texts_of(SAMPLE)
    assert sum(text.id == name for text in texts) == 1
    return [text.model_copy(update=changes) if text.id == name else text for text in texts]


def test_the_sample_passes_every_check() -> None:
    results = run_checks(texts_of(SAMPLE))
    assert results.keys() == CHECKS.keys()
    assert {name: result.count for name, result in results.items() if result.count} == {}


def sentence_of(name: str) -> str:
    return next(text.sentence for text in texts_of(SAMPLE) if text.id == name)


DEFECTS: dict[str, Callable[[], list[LooseText]]] = {
    "counts_per_pair": lambda: texts_of(SAMPLE)[1:],
    "ids": lambda: altered("001_s01_lit_01", id="001_s02_lit_09"),
    "domains": lambda: altered("001_s01_lit_01", subject="Weather"),
    "span_missing": lambda: altered("001_s01_lit_01", span="broke the vase"),
    "span_repeated": lambda: altered(
        "001_s01_lit_01", sentence="To break the ice, break the ice.", span="break the ice"
    ),
    "span_is_not_pie": lambda: altered("001_s01_lit_01", span="the"),
    "pie_repeated": lambda: altered(
        "001_s01_lit_01", sentence="They broke the ice, and we break the ice.", span="break the ice"
    ),
    "pie_present": lambda: altered(
        "001_s01_sense_01", sentence="She was breaking the ice.", span="was breaking"
    ),
    "simplification_is_no_copy": lambda: altered(
        "001_s01_sim_01", sentence="A different story.", span="different"
    ),
    "shared_by_index_and_queries": lambda: altered(
        "q_001_s01_lit_01", sentence=f"  {sentence_of('001_s01_lit_02').upper()}"
    ),
    "duplicates": lambda: altered("001_s01_lit_01", sentence=sentence_of("001_s02_lit_01")),
    "pie_across_splits": lambda: altered("001_s01_lit_01", split="test"),
    "near_duplicates": lambda: altered(
        "001_s01_lit_01", sentence=sentence_of("001_s01_lit_02").replace("the", "a", 1)
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_finds_its_defect(name: str) -> None:
    result = run_checks(DEFECTS[name]())[name]
    assert result.count >= 1
    assert len(result.findings) == result.count


def test_a_repeated_id_is_found() -> None:
    texts = texts_of(SAMPLE)
    details = [item.detail for item in run_checks([*texts, texts[0]])["ids"].findings]
    assert "occurs 2 times" in details


@pytest.mark.parametrize(
    ("sentence", "pie", "number"),
    [
        ("He broke the ice.", "break the ice", 1),
        ("Break the ice; breaking the ice is fun.", "break the ice", 2),
        ("The ice breaks.", "break the ice", 0),
        ("They took the old rookie for a ride.", "take someone for a ride", 1),
        ("They took the very old and tired rookie for a ride.", "take someone for a ride", 0),
        ("Behind the mayor’s back he laughed.", "behind someone's back", 1),
        ("It has been around.", "have been around", 1),
        ("", "break the ice", 0),
    ],
)
def test_occurrences_match_inflections_and_slots(sentence: str, pie: str, number: int) -> None:
    assert count_occurrences(sentence, pie) == number


@pytest.mark.parametrize(
    ("span", "pie", "named"),
    [
        ("out of her own pocket", "out of pocket", True),
        ("in the senator's face", "in your face", True),
        ("boot", "to boot", False),
        ("under the chair", "under the table", False),
    ],
)
def test_a_span_may_fill_slots(span: str, pie: str, named: bool) -> None:
    assert names_pie(span, pie) == named


def test_lenient_reading_keeps_invalid_values_but_rejects_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "test"
    folder.mkdir()
    wrong = loose(span="not there").model_dump(by_alias=True, exclude={"split", "collection"})
    (folder / "indexes.json").write_text(json.dumps([wrong]), encoding="utf-8")
    (folder / "queries.json").write_text("[]", encoding="utf-8")
    texts, _ = read_loosely([("test", folder)])
    assert [text.span for text in texts] == ["not there"]
    del wrong["usage"]
    (folder / "indexes.json").write_text(json.dumps([wrong]), encoding="utf-8")
    with pytest.raises(UserError, match=r"record 1 \(\S+\): usage: Field required"):
        read_loosely([("test", folder)])


def table(checks: DatasetChecks, folder: Path) -> list[dict[str, str]]:
    """Return the numbers of Table 1 and of the text."""
    write_json(folder / "checks.json", checks.model_dump())
    names = ("tables.yaml", "schema.yaml", "idiolink_table1.csv", "text_numbers.csv")
    files = {Path(name).stem: str(ROOT / "published" / name) for name in names}
    inputs = DisplayInputs(
        study="idiolink",
        display=DATASET_TABLE.name,
        metrics=(str(folder / "checks.json"),),
        files=files,
        data="released",
    )
    return table_rows(DATASET_TABLE, inputs, folder)


def test_table_1_of_the_sample_is_never_comparable(tmp_path: Path) -> None:
    checks = check_dataset(
        texts_of(SAMPLE), origin="released_format", sample=True, released=False, computed_from={}
    )
    rows = table(checks, tmp_path)
    ours = {(row["scope"], row["measure"]): row["ours"] for row in rows}
    assert len(ours) == 18 + 18
    assert float(ours["test_gold", "pies"]) == 2
    assert float(ours["test_silver", "documents"]) == 120
    assert float(ours["total", "queries"]) == 64
    # 16 + 160 + 64 + 0 texts; the gold PIEs of the sample have 80 + 16 of them.
    texts = float(ours["total", "documents"]) + 64
    assert float(ours["total", "silver_texts"]) == texts - 96
    reasons = {row["measure"]: row["reason"] for row in rows}
    for name in ("candidate_pies", "removed_pies"):
        assert not ours["total", name]
        assert reasons[name].startswith("there is no released list of candidate PIEs")
    lacking = {"candidate_pies", "removed_pies"}
    assert {row["verdict"] for row in rows if row["measure"] not in lacking} == {"not comparable"}
    assert "no basis for a scientific conclusion" in (tmp_path / "table.tex").read_text(
        encoding="utf-8"
    )


@pytest.fixture(scope="module")
def released() -> DatasetChecks:
    """Return the report on the public data."""
    return check_dataset(
        texts_of(MIRROR / "idiolink"),
        origin="released_format",
        sample=False,
        released=True,
        computed_from={},
        candidates=read_candidates(MIRROR / "idiolink/MAGPIE_SOURCE_IDIOMS.csv"),
    )


@needs_mirror
def test_table_1_of_the_released_data_equals_every_printed_count(
    released: DatasetChecks, tmp_path: Path
) -> None:
    rows = table(released, tmp_path)
    of_table = [row for row in rows if row["measure"] in {"pies", "queries", "documents"}]
    assert len(of_table) == 18
    assert all(float(row["ours"]) == float(row["printed"]) for row in of_table)
    assert {row["verdict"] for row in of_table} == {"reproduced"}
    assert {row["files"] for row in rows} == {str(tmp_path / "checks.json")}
    text = {
        row["measure"]: (
            rounded(float(row["ours"]), int(row["decimals"])),
            row["printed"],
            "yes" if row["verdict"] == "reproduced" else "no",
        )
        for row in rows
        if row not in of_table
    }
    assert text == {
        "domains": ("10", "10", "yes"),
        "documents_per_pie": ("100.00", "100", "yes"),
        "literal_documents_per_pie": ("40.00", "40", "yes"),
        "idiomatic_documents_per_pie": ("60.00", "60", "yes"),
        "documents_per_pair": ("10.00", "10", "yes"),
        "literal_per_pair": ("4.00", "4", "yes"),
        "idiomatic_per_pair": ("2.00", "2", "yes"),
        "simplification_per_pair": ("2.00", "2", "yes"),
        "sense_per_pair": ("2.00", "2", "yes"),
        "idiomatic_per_pie": ("20.00", "20", "yes"),
        "simplification_per_pie": ("20.00", "20", "yes"),
        "sense_per_pie": ("20.00", "20", "yes"),
        "training_tuples": ("440", "440", "yes"),
        "candidate_pies": ("118", "118", "yes"),
        "removed_pies": ("11", "11", "yes"),
        "silver_texts": ("11280", "11280", "yes"),
        "gold_texts": ("3249", "3570", "no"),
        "gold_share": ("25.3", "27.8", "no"),
    }


@needs_mirror
def test_the_report_on_the_released_data_lists_its_findings(released: DatasetChecks) -> None:
    totals = {name: result.count for name, result in released.checks.items() if result.count}
    assert totals == {
        "near_duplicates": 1,
        "simplification_is_no_copy": 282,
        "span_is_not_pie": 26,
        "span_repeated": 1,
    }
    # The paper states 3,570 checked texts, but the files mark only this many.
    assert sum(sum(marked.values()) for marked in released.marked_gold.values()) == 3249
    assert len(released.gold_pies) == 13
