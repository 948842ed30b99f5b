"""Test ID10M-JAM's Table 2 and its appendix tables on small counts."""

from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from table_files import content_of, shown_number, table_rows, with_printed

from pieline.core.conditions import Conditions
from pieline.core.files import write_json
from pieline.core.uncertainty import Interval
from pieline.reporting.displays import Display
from pieline.reporting.figures import use_style
from pieline.reporting.inputs import DisplayInputs, PlannedRun
from pieline.reporting.models import ModelDescription
from pieline.reporting.tables import TableContent, shown
from pieline.studies.jam.figures.data import FLOW
from pieline.studies.jam.metrics.attention_records import AttentionMetrics, MeanShare
from pieline.studies.jam.metrics.humans import AnnotatorScores, HumanMetrics
from pieline.studies.jam.metrics.scores import NeutralMetrics
from pieline.studies.jam.metrics.statistics import JamStatistics
from pieline.studies.jam.tables.appendix import (
    ATTENTION_TABLE,
    HUMANS_TABLE,
    NEUTRAL_TABLE,
    NO_RUN,
    SIMULATED_NOTE,
    UNLABELED,
)
from pieline.studies.jam.tables.described import STATISTICS_TABLE

NOT_RELEASED = "sample data or other than the public ID10M-JAM"
LANGUAGES = ("english", "german")
GPT = ModelDescription(
    name="gpt-4o-mini", kind="llm", label="GPT-4o mini", published_as="GPT-4o mini"
)


def display_inputs(table: Display, folder: Path, *metrics: Any, **fields: Any) -> DisplayInputs:
    paths = tuple(str(folder / f"{number}.json") for number in range(len(metrics)))
    for path, item in zip(paths, metrics, strict=True):
        write_json(path, item.model_dump())
    usual = {"study": "jam", "metrics": paths, "data": "released"}
    return with_printed(table, DisplayInputs.model_validate({**usual, **fields}))


def values_of(rows: list[dict[str, str]], *columns: str) -> list[tuple[str, ...]]:
    shown = ({**row, "ours": shown_number(row)} for row in rows)
    return [tuple(row.get(column, "") for column in columns) for row in shown]


def cell_texts(content: TableContent) -> list[list[str]]:
    """Return the cells of each row."""
    return [
        [*row.labels, *(shown(cell).ours for cell in row.cells)]
        for group in content.groups
        for row in group.rows
    ]


def counts(language: str = "english", **fields: Any) -> JamStatistics:
    usual: dict[str, Any] = {
        "language": language, "originals_are_released": True, "variants_source": None,
        "dataset_is_released": None, "raw_train_sentences": None, "raw_test_sentences": 200,
        "raw_test_with_idiom": 160, "dropped": {}, "fixed": {}, "originals": 178,
        "figurative": 158, "literal": 20, "unique_pies_originals": 153, "oddities": {},
        "candidate_variants": None, "valid_variants": None, "dataset_originals": None,
        "dataset_figurative": None, "dataset_literal": None, "dataset_variants": None,
        "unique_pies": None, "computed_from": {},
    }  # fmt: skip
    return JamStatistics.model_validate(usual | fields)


MADE = {
    "variants_source": "generated", "dataset_is_released": False, "dataset_originals": 170,
    "dataset_figurative": 151, "dataset_literal": 19, "dataset_variants": 510, "unique_pies": 149,
}  # fmt: skip


ALL_REASONS = {
    "ambiguous": 12, "wrong_label": 11, "several_pies": 13, "translation_appended": 10,
    "no_known_pie": 17,
}  # fmt: skip


@pytest.mark.parametrize(
    ("dropped", "variants"),
    [({"not_recorded": 22}, None), (ALL_REASONS, 250), (ALL_REASONS, 350), (ALL_REASONS, 534)],
)
def test_flow_remarks_are_readable(
    dropped: dict[str, int], variants: int | None, tmp_path: Path
) -> None:
    use_style(ROOT / "templates/pieline.mplstyle")
    left = {"candidate_variants": variants, "dataset_originals": variants and 170}
    made = (counts(name, dropped=dropped, **left) for name in LANGUAGES)
    figure = FLOW.make(display_inputs(FLOW, tmp_path, *made))
    figure.canvas.draw()
    for axis in figure.axes:
        panel = axis.get_window_extent()
        remarks = [text for text in axis.texts if len(text.get_text()) > len("unknown")]
        assert len(remarks) == 1 + bool(variants)
        for text in remarks:
            row = int(text.get_position()[1])
            box, bar = text.get_window_extent(), axis.patches[row].get_window_extent()
            others = [other for other in axis.texts if other is not text and other.get_text()]
            assert not any(box.overlaps(other.get_window_extent()) for other in others)
            assert box.x1 <= (bar.x1 if text.get_color() == "white" else panel.x1)


def test_released_originals_without_variants_are_the_datasets(tmp_path: Path) -> None:
    made_from = display_inputs(
        STATISTICS_TABLE, tmp_path, counts(raw_train_sentences=37919), notes=("A note.",)
    )
    content = content_of(STATISTICS_TABLE, made_from)
    assert content.notes == ("A note.",)
    every = table_rows(STATISTICS_TABLE, made_from, tmp_path)
    rows = [row for row in every if row["language"] == "english"]
    columns = ("scope", "measure", "ours", "printed", "verdict", "reason")
    none = "this configuration uses no hard variants (jam.variants.source: none)"
    assert values_of(rows, *columns) == [
        ("ID10M", "train_sentences", "37919", "37919", "reproduced", ""),
        ("ID10M", "test_sentences", "200", "200", "reproduced", ""),
        ("ID10M", "literal_share", "20.0", "20", "reproduced", ""),
        ("ID10M-JAM", "test_sentences", "178", "178", "reproduced", ""),
        ("ID10M-JAM", "test_variants", "", "534", "not run", none),
        ("ID10M-JAM", "unique_pies", "153", "153", "reproduced", ""),
        ("ID10M-JAM", "literal", "20", "20", "reproduced", ""),
        ("ID10M-JAM", "literal_share", "11.24", "11.24", "reproduced", ""),
        ("ID10M-JAM", "filtered_originals", "", "191", "not run",
         "not published: the release holds what variant validation left"),
    ]  # fmt: skip
    assert {row["files"] for row in rows} == {str(tmp_path / "0.json")}
    # What the paper prints of the other language is missing.
    german = [row for row in every if row["language"] == "german"]
    assert {row["reason"] for row in german} == {STATISTICS_TABLE.otherwise}
    assert cell_texts(content) == [
        ["EN", "37,919", "200", "–", "–"],
        ["EN", "–", "178", "–", "153"],
    ]
    assert [group.title for group in content.groups] == ["ID10M", "ID10M-JAM"]


@pytest.mark.parametrize(
    ("language", "with_idiom", "share", "printed", "verdict"),
    [
        ("english", 159, "20.5", "20", "reproduced"),
        ("german", 181, "9.5", "9", "reproduced"),
        ("english", 158, "21.0", "20", "not reproduced"),
        ("german", 180, "10.0", "9", "not reproduced"),
    ],
)
def test_a_share_printed_without_decimals_agrees_within_half_a_unit(
    tmp_path: Path, language: str, with_idiom: int, share: str, printed: str, verdict: str
) -> None:
    item = counts(language, raw_test_with_idiom=with_idiom)
    (row,) = [
        row
        for row in table_rows(
            STATISTICS_TABLE, display_inputs(STATISTICS_TABLE, tmp_path, item), tmp_path
        )
        if (row["measure"], row["scope"]) == ("literal_share", "ID10M") and row["ours"]
    ]
    assert (row["ours"], row["printed"], row["verdict"]) == (share, printed, verdict)


def test_made_variants_are_counted_in_their_dataset_and_not_compared(tmp_path: Path) -> None:
    made_from = display_inputs(STATISTICS_TABLE, tmp_path, counts(**MADE))
    rows = table_rows(STATISTICS_TABLE, made_from, tmp_path)[:9]
    why = "generated variants, not the public ones"
    assert values_of(rows[1:], "measure", "ours", "reason") == [
        ("test_sentences", "200", ""),
        ("literal_share", "20.0", ""),
        ("test_sentences", "170", why),
        ("test_variants", "510", why),
        ("unique_pies", "149", why),
        ("literal", "19", why),
        ("literal_share", "11.18", why),
        ("filtered_originals", "",
         f"not published: the release holds what variant validation left; {why}"),
    ]  # fmt: skip
    assert rows[0]["reason"] == "there is no training file"


def test_other_originals_are_compared_in_no_number(tmp_path: Path) -> None:
    own = counts(originals_are_released=False, originals=191, **MADE)
    without = counts("german", originals_are_released=False)
    made_from = display_inputs(STATISTICS_TABLE, tmp_path, own, without)
    rows = table_rows(STATISTICS_TABLE, made_from, tmp_path)
    jam = [row for row in rows if row["scope"] == "ID10M-JAM"]
    why = "sample data or other than the public originals"
    assert {row["reason"] for row in jam if row["language"] == "english"} == {why}
    ours = {(row["language"], row["measure"]): shown_number(row) for row in jam}
    assert ours["english", "filtered_originals"] == "191"
    assert ours["english", "test_sentences"] == "170"
    # Without variants, other originals are no dataset.
    german = {number: value for (language, number), value in ours.items() if language == "german"}
    assert german == {
        "test_sentences": "", "test_variants": "", "unique_pies": "", "literal": "",
        "literal_share": "", "filtered_originals": "178",
    }  # fmt: skip


def test_languages_are_rows_of_both_parts(tmp_path: Path) -> None:
    released = {"variants_source": "released", "dataset_is_released": True}
    german = counts("german", **MADE | released | {"dataset_variants": 411})
    made_from = display_inputs(STATISTICS_TABLE, tmp_path, counts(), german, counts("spanish"))
    content = content_of(STATISTICS_TABLE, made_from)
    labels = [row.labels for group in content.groups for row in group.rows]
    assert labels == [("EN",), ("DE",), ("ES",)] * 2
    rows = {
        (row["language"], row["scope"], row["measure"]): row
        for row in table_rows(STATISTICS_TABLE, made_from, tmp_path)
    }
    variants = rows["german", "ID10M-JAM", "test_variants"]
    assert (variants["printed"], variants["verdict"]) == ("411", "reproduced")
    assert variants["files"] == str(tmp_path / "1.json")
    # Languages that are not in the paper have no printed numbers.
    assert {row["printed"] for key, row in rows.items() if key[0] == "spanish"} == {""}


def by_name(rows: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    return {row["measure"].removeprefix("human_"): row for row in rows}


def people(**fields: Any) -> HumanMetrics:
    scores = {"accuracy_figurative": 0.75, "accuracy_literal": None, "ambiguous": 0.125}
    usual = {
        "language": "english", "dataset_is_released": True, "simulated": False, "variants": 178,
        "figurative": 170, "literal": 8, "agreement": 0.8146, "kappa": 0.625,
        "first": AnnotatorScores(accuracy=0.9038, **scores),
        "second": AnnotatorScores(accuracy=0.5, **scores),
        "computed_from": {},
    }  # fmt: skip
    return HumanMetrics.model_validate(usual | fields)


def test_human_accuracies_are_percentages(tmp_path: Path) -> None:
    made_from = display_inputs(HUMANS_TABLE, tmp_path, people(), notes=("A note.",))
    content = content_of(HUMANS_TABLE, made_from)
    assert content.notes == ("A note.",)
    assert "(English)" in content.caption
    assert cell_texts(content) == [
        ["variants labeled", "178", "170", "8", " "],
        ["first", "90.4", "75.0", "–", "12.5"],
        ["second", "50.0", "75.0", "–", "12.5"],
        ["agreement", "81.5", " ", " ", " "],
        ["Cohen's kappa", "0.62", " ", " ", " "],
    ]
    rows = by_name(table_rows(HUMANS_TABLE, made_from, tmp_path))
    verdicts = {name: row["verdict"] for name, row in rows.items() if row["printed"]}
    assert verdicts == {
        "variants": "reproduced", "accuracy_first": "reproduced",
        "accuracy_second": "not reproduced", "agreement": "reproduced",
    }  # fmt: skip
    assert list(rows)[1:5] == [
        "accuracy_first", "accuracy_figurative_first", "accuracy_literal_first", "ambiguous_first",
    ]  # fmt: skip
    assert rows["kappa"]["reason"] == "the paper prints no such number"


@pytest.mark.parametrize(
    ("fields", "why", "notes"),
    [
        ({"dataset_is_released": False}, NOT_RELEASED, ()),
        ({"language": "german"}, "the paper's annotators judged English variants", ()),
        ({"simulated": True}, "simulated labels, not people's", (SIMULATED_NOTE,)),
        ({"simulated": True, "dataset_is_released": False},
         f"simulated labels, not people's; {NOT_RELEASED}", (SIMULATED_NOTE,)),
    ],
)  # fmt: skip
def test_incomparable_labels(
    fields: dict[str, Any], why: str, notes: tuple[str, ...], tmp_path: Path
) -> None:
    made_from = display_inputs(HUMANS_TABLE, tmp_path, people(**fields))
    not_compared = f"Not compared with printed numbers: {why}."
    assert content_of(HUMANS_TABLE, made_from).notes == (*notes, not_compared)
    rows = table_rows(HUMANS_TABLE, made_from, tmp_path)
    assert {row["reason"] for row in rows if row["printed"]} == {why}


def test_missing_labels_have_a_reason(tmp_path: Path) -> None:
    made_from = display_inputs(HUMANS_TABLE, tmp_path)
    content = content_of(HUMANS_TABLE, made_from)
    assert [texts[1] for texts in cell_texts(content)] == ["–"] * 5
    assert {row.reason for group in content.groups for row in group.rows} == {UNLABELED}
    rows = by_name(table_rows(HUMANS_TABLE, made_from, tmp_path))
    assert rows["accuracy_second"]["printed"] == "87.1"
    assert {row["ours"] for row in rows.values()} == {""}
    assert all(row["reason"].startswith(UNLABELED) for row in rows.values())


def ablation(**fields: Any) -> NeutralMetrics:
    usual: dict[str, Any] = {
        "language": "english", "model": "gpt-4o-mini", "setting": "zero_shot", "seed": 42,
        "dataset_is_released": True, "confusing": 61, "neutral": 58, "still_confused": 25,
        "share": 25 / 58, "interval": Interval(low=0.3066, high=0.5512), "computed_from": {},
        "outcomes": {"ok": 56, "unparseable": 2},
    }  # fmt: skip
    return NeutralMetrics.model_validate(usual | fields)


def test_neutral_table(tmp_path: Path) -> None:
    inputs = display_inputs(NEUTRAL_TABLE, tmp_path, ablation(), models=[GPT])
    content = content_of(NEUTRAL_TABLE, inputs)
    assert cell_texts(content) == [
        [
            "GPT-4o mini (unreadable: 2 of 58)", "Zero-shot", "English",
            *("61", "58", "25", "43.1", "30.7, 55.1"),
        ]
    ]  # fmt: skip
    columns = ("model", "setting", "language", "measure", "ours", "printed", "verdict")
    run = ("gpt-4o-mini", "zero_shot", "english")
    assert values_of(table_rows(NEUTRAL_TABLE, inputs, tmp_path), *columns) == [
        (*run, "neutral_confusing", "61", "", "not comparable"),
        (*run, "neutral_variants", "58", "58", "reproduced"),
        (*run, "neutral_confused", "25", "25", "reproduced"),
        (*run, "neutral_share", "43.1", "43.1", "reproduced"),
    ]


@pytest.mark.parametrize(
    ("fields", "model", "why"),
    [
        ({"dataset_is_released": False}, GPT, NOT_RELEASED),
        ({}, GPT.model_copy(update={"published_as": "GPT-4o"}),
         "the paper's ablation is of GPT-4o mini"),
        ({"conditions": Conditions(deviations=("seeds 1, the paper 3",))}, GPT,
         "seeds 1, the paper 3"),
    ],
)  # fmt: skip
def test_incomparable_ablations(
    fields: dict[str, Any], model: ModelDescription, why: str, tmp_path: Path
) -> None:
    inputs = display_inputs(NEUTRAL_TABLE, tmp_path, ablation(**fields), models=[model])
    rows = table_rows(NEUTRAL_TABLE, inputs, tmp_path)
    assert {row["reason"] for row in rows if row["printed"]} == {why}


def test_without_confusing_variants_no_share_is_known(tmp_path: Path) -> None:
    nothing = ablation(confusing=0, neutral=0, still_confused=0, share=None, interval=None)
    inputs = display_inputs(NEUTRAL_TABLE, tmp_path, nothing, models=[GPT])
    assert cell_texts(content_of(NEUTRAL_TABLE, inputs))[0][3:] == ["0", "0", "0", "–", "–"]


def test_an_ablation_that_was_left_out_shows_what_the_paper_prints(tmp_path: Path) -> None:
    keys = {"model": GPT.name, "setting": "zero_shot", "language": "english"}
    lost = PlannedRun(keys=keys, metrics="", not_run="of the writer nothing is recorded")
    inputs = display_inputs(NEUTRAL_TABLE, tmp_path, models=[GPT], runs=[lost])
    rows = table_rows(NEUTRAL_TABLE, inputs, tmp_path)
    assert values_of(rows, "measure", "ours", "printed") == [
        ("neutral_confusing", "", ""),
        ("neutral_variants", "", "58"),
        ("neutral_confused", "", "25"),
        ("neutral_share", "", "43.1"),
    ]
    assert all(row["reason"].startswith("of the writer") for row in rows)
    (row,) = content_of(NEUTRAL_TABLE, inputs).groups[0].rows
    assert row.reason == "of the writer nothing is recorded"


LLAMA = {
    "models": [ModelDescription(name="llama", kind="llm", label="Llama")],
    "options": {"model": "llama", "language": "german"},
}


def test_attention_on_cue_words_with_its_intervals(tmp_path: Path) -> None:
    bounds = {"interval": Interval(low=0.10012, high=0.25)}
    record = AttentionMetrics(
        language="german", model="llama", dataset_is_released=False, judged_by=[], pairs=[],
        misleading=MeanShare(mean=0.18249, **bounds), resolved=MeanShare(mean=0.125, interval=None),
        difference=MeanShare(mean=None, interval=None), computed_from={},
    )  # fmt: skip
    made_from = display_inputs(ATTENTION_TABLE, tmp_path, record, **LLAMA)
    content = content_of(ATTENTION_TABLE, made_from)
    assert cell_texts(content) == [["Llama", "German", "0", "18.2 [10.0, 25.0]", "12.50", "–"]]
    columns = ("model", "language", "measure", "ours")
    rows = table_rows(ATTENTION_TABLE, made_from, tmp_path)
    run = ("llama", "german")
    assert values_of(rows, *columns) == [
        (*run, "attention_pairs", "0"),
        (*run, "attention_misleading", "18.25"),
        (*run, "attention_resolved", "12.50"),
        (*run, "attention_difference", ""),
    ]
    assert [(row["low"], row["high"]) for row in rows] == [("", ""), ("10.012", "25.0")] + 2 * [
        ("", "")
    ]
    assert {row["reason"] for row in rows} == {f"{NOT_RELEASED}; the paper prints no such number"}


def test_missing_attention_has_a_reason(tmp_path: Path) -> None:
    made_from = display_inputs(ATTENTION_TABLE, tmp_path, **LLAMA)
    content = content_of(ATTENTION_TABLE, made_from)
    assert cell_texts(content) == [["Llama", "German", *["–"] * 4]]
    assert content.groups[0].rows[0].reason == NO_RUN
    assert [
        (row["model"], row["language"], row["measure"], row["reason"].partition(";")[0])
        for row in table_rows(ATTENTION_TABLE, made_from, tmp_path)
    ] == [
        ("llama", "german", f"attention_{measure}", NO_RUN)
        for measure in ("pairs", "misleading", "resolved", "difference")
    ]
