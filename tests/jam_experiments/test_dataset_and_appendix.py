"""Test ID10M-JAM's Table 2 and its appendix tables on small counts."""

from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from table_files import table_rows

from pieline.core.conditions import Conditions
from pieline.core.files import write_json
from pieline.core.uncertainty import Interval
from pieline.reporting.figures import use_style
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription
from pieline.reporting.tables import TableContent, shown
from pieline.studies.jam.figures.dataset import flow
from pieline.studies.jam.metrics.attention_records import AttentionMetrics, MeanShare
from pieline.studies.jam.metrics.humans import AnnotatorScores, HumanMetrics
from pieline.studies.jam.metrics.neutral import NeutralMetrics
from pieline.studies.jam.metrics.statistics import JamStatistics
from pieline.studies.jam.tables.appendix import SIMULATED_NOTE, attention, humans, neutral
from pieline.studies.jam.tables.dataset import statistics

PRINTED = {
    "published": str(ROOT / "published" / "jam_table2.csv"),
    "text_numbers": str(ROOT / "published" / "text_numbers.csv"),
}
NOT_RELEASED = "sample data or other than the released ID10M-JAM"
LANGUAGES = ("english", "german")
GPT = ModelDescription(
    name="gpt-4o-mini", kind="llm", label="GPT-4o mini", published_as="GPT-4o mini"
)


def display_inputs(folder: Path, *metrics: Any, **fields: Any) -> DisplayInputs:
    paths = tuple(str(folder / f"{number}.json") for number in range(len(metrics)))
    for path, item in zip(paths, metrics, strict=True):
        write_json(path, item.model_dump())
    return DisplayInputs.model_validate({"metrics": paths, "files": PRINTED, **fields})


def values_of(rows: list[dict[str, str]], *columns: str) -> list[tuple[str, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


def cell_texts(content: TableContent) -> list[list[str]]:
    """Return the cells of each row."""
    return [
        [*row.labels, *(shown(cell, content.decimals).ours for cell in row.cells)]
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
    figure = flow(
        display_inputs(tmp_path, *(counts(name, dropped=dropped, **left) for name in LANGUAGES))
    )
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
    content = statistics(
        display_inputs(tmp_path, counts(raw_train_sentences=37919), notes=("A note.",))
    )
    assert content.notes == ("A note.",)
    rows = table_rows(content, tmp_path)
    columns = ("dataset", "number", "ours", "printed", "reproduced", "reason")
    none = "not run: this configuration uses no hard variants (jam.variants.source: none)"
    assert values_of(rows, *columns) == [
        ("ID10M", "train_sentences", "37919", "37919", "yes", ""),
        ("ID10M", "test_sentences", "200", "200", "yes", ""),
        ("ID10M", "literal_share_id10m", "20.0", "20", "yes", ""),
        ("ID10M-JAM", "test_sentences", "178", "178", "yes", ""),
        ("ID10M-JAM", "test_variants", "", "534", "", none),
        ("ID10M-JAM", "unique_pies", "153", "153", "yes", ""),
        ("ID10M-JAM", "literal", "20", "20", "yes", ""),
        ("ID10M-JAM", "literal_share", "11.24", "11.24", "yes", ""),
        ("ID10M-JAM", "filtered_originals", "", "191", "",
         "not published: the release holds what variant validation left"),
    ]  # fmt: skip
    assert {(row["language"], row["metrics"]) for row in rows} == {
        ("english", str(tmp_path / "0.json"))
    }
    # Numbers printed in the text have an id, which claims refer to.
    assert {row["number"]: row["id"] for row in rows if row["metric"] == "value"} == {
        "unique_pies": "jam.pies_english",
        "literal": "jam.literal_originals_english",
        "literal_share": "jam.literal_share_english",
        "literal_share_id10m": "jam.literal_share_id10m_english",
        "filtered_originals": "jam.filtered_english",
    }
    assert cell_texts(content) == [
        ["EN", "37,919", "200", "–", "–"],
        ["EN", "–", "178", "–", "153"],
    ]
    assert [group.title for group in content.groups] == ["ID10M", "ID10M-JAM"]


@pytest.mark.parametrize(
    ("language", "with_idiom", "share", "printed", "reproduced"),
    [
        ("english", 159, "20.5", "20", "yes"),
        ("german", 181, "9.5", "9", "yes"),
        ("english", 158, "21.0", "20", "no"),
        ("german", 180, "10.0", "9", "no"),
    ],
)
def test_a_share_printed_without_decimals_agrees_within_half_a_unit(
    tmp_path: Path, language: str, with_idiom: int, share: str, printed: str, reproduced: str
) -> None:
    item = counts(language, raw_test_with_idiom=with_idiom)
    (row,) = [
        row
        for row in table_rows(statistics(display_inputs(tmp_path, item)), tmp_path)
        if row["number"] == "literal_share_id10m"
    ]
    assert (row["ours"], row["printed"], row["reproduced"]) == (share, printed, reproduced)


def test_made_variants_are_counted_in_their_dataset_and_not_compared(tmp_path: Path) -> None:
    rows = table_rows(statistics(display_inputs(tmp_path, counts(**MADE))), tmp_path)
    why = "generated variants, not the released ones"
    assert values_of(rows[1:], "number", "ours", "reason") == [
        ("test_sentences", "200", ""),
        ("literal_share_id10m", "20.0", ""),
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
    rows = table_rows(statistics(display_inputs(tmp_path, own, without)), tmp_path)
    jam = [row for row in rows if row["dataset"] == "ID10M-JAM"]
    why = "sample data or other than the released originals"
    assert {row["reason"] for row in jam if row["language"] == "english"} == {why}
    ours = {(row["language"], row["number"]): row["ours"] for row in jam}
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
    content = statistics(display_inputs(tmp_path, counts(), german, counts("spanish")))
    labels = [row.labels for group in content.groups for row in group.rows]
    assert labels == [("EN",), ("DE",), ("ES",)] * 2
    rows = {
        (row["language"], row["dataset"], row["number"]): row
        for row in table_rows(content, tmp_path)
    }
    variants = rows["german", "ID10M-JAM", "test_variants"]
    assert (variants["printed"], variants["reproduced"]) == ("411", "yes")
    assert variants["metrics"] == str(tmp_path / "1.json")
    # Languages that are not in the paper have no printed numbers.
    assert {row["printed"] for key, row in rows.items() if key[0] == "spanish"} == {""}


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
    content = humans(display_inputs(tmp_path, people(), notes=("A note.",)))
    assert content.notes == ("A note.",)
    assert "(English)" in content.caption
    assert cell_texts(content) == [
        ["variants labeled", "178", "170", "8", " "],
        ["first", "90.4", "75.0", "–", "12.5"],
        ["second", "50.0", "75.0", "–", "12.5"],
        ["agreement", "81.5", " ", " ", " "],
        ["Cohen's kappa", "0.62", " ", " ", " "],
    ]
    rows = {row["id"].removeprefix("jam.human_"): row for row in table_rows(content, tmp_path)}
    verdicts = {name: row["reproduced"] for name, row in rows.items() if row["printed"]}
    assert verdicts == {
        "variants": "yes", "accuracy_first": "yes", "accuracy_second": "no", "agreement": "yes",
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
    content = humans(display_inputs(tmp_path, people(**fields)))
    assert content.notes == notes
    rows = table_rows(content, tmp_path)
    assert {row["reason"] for row in rows if row["printed"]} == {why}


def test_missing_labels_have_a_reason(tmp_path: Path) -> None:
    content = humans(display_inputs(tmp_path, not_run={"people": "the variants are not labeled"}))
    assert [texts[1] for texts in cell_texts(content)] == ["–"] * 5
    assert {row.reason for group in content.groups for row in group.rows} == {
        "the variants are not labeled"
    }
    rows = {row["id"].removeprefix("jam.human_"): row for row in table_rows(content, tmp_path)}
    assert rows["accuracy_second"]["printed"] == "87.1"
    assert {row["ours"] for row in rows.values()} == {""}
    reasons = [row["reason"] for row in rows.values()]
    assert all(reason.startswith("not run: the variants are not labeled") for reason in reasons)


def ablation(**fields: Any) -> NeutralMetrics:
    usual: dict[str, Any] = {
        "language": "english", "model": "gpt-4o-mini", "setting": "zero_shot", "seed": 42,
        "dataset_is_released": True, "confusing": 61, "neutral": 58, "still_confused": 25,
        "share": 25 / 58, "interval": Interval(low=0.3066, high=0.5512), "computed_from": {},
        "outcomes": {"ok": 56, "unparseable": 2},
    }  # fmt: skip
    return NeutralMetrics.model_validate(usual | fields)


OPTIONS = {"model": "gpt-4o-mini", "setting": "zero_shot", "language": "english", "seed": "42"}


def test_neutral_table(tmp_path: Path) -> None:
    inputs = display_inputs(tmp_path, ablation(), models=[GPT], options=OPTIONS)
    content = neutral(inputs)
    assert cell_texts(content) == [
        [
            "GPT-4o mini (unreadable: 2 of 58)", "Zero-shot", "English",
            *("61", "58", "25", "43.1", "30.7, 55.1"),
        ]
    ]  # fmt: skip
    columns = ("model", "setting", "language", "id", "ours", "printed", "reproduced")
    run = ("gpt-4o-mini", "zero_shot", "english")
    assert values_of(table_rows(content, tmp_path), *columns) == [
        (*run, "jam.neutral_variants", "58", "58", "yes"),
        (*run, "jam.neutral_confused", "25", "25", "yes"),
        (*run, "jam.neutral_share", "43.1", "43.1", "yes"),
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
    inputs = display_inputs(tmp_path, ablation(**fields), models=[model], options=OPTIONS)
    assert {row["reason"] for row in table_rows(neutral(inputs), tmp_path)} == {why}


def test_without_confusing_variants_no_share_is_known(tmp_path: Path) -> None:
    nothing = ablation(confusing=0, neutral=0, still_confused=0, share=None, interval=None)
    inputs = display_inputs(tmp_path, nothing, models=[GPT], options=OPTIONS)
    assert cell_texts(neutral(inputs))[0][3:] == ["0", "0", "0", "–", "–"]


def test_an_ablation_that_was_left_out_shows_what_the_paper_prints(tmp_path: Path) -> None:
    not_run = {GPT.name: "of the writer nothing is recorded"}
    inputs = display_inputs(tmp_path, models=[GPT], not_run=not_run, options=OPTIONS)
    rows = table_rows(neutral(inputs), tmp_path)
    assert values_of(rows, "id", "ours", "printed") == [
        ("jam.neutral_variants", "", "58"),
        ("jam.neutral_confused", "", "25"),
        ("jam.neutral_share", "", "43.1"),
    ]
    assert all(row["reason"].startswith("not run: of the writer") for row in rows)


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
    content = attention(display_inputs(tmp_path, record, **LLAMA))
    assert cell_texts(content) == [["Llama", "German", "0", "18.2 [10.0, 25.0]", "12.50", "–"]]
    columns = ("model", "language", "pairs", "metric", "ours", "low", "high")
    rows = table_rows(content, tmp_path)
    run = ("llama", "german", "0")
    assert values_of(rows, *columns) == [
        (*run, "misleading", "18.25", "10.01", "25.00"),
        (*run, "resolved", "12.50", "", ""),
        (*run, "difference", "", "", ""),
    ]
    assert {row["reason"] for row in rows} == {f"{NOT_RELEASED}; the paper prints no such number"}


def test_missing_attention_has_a_reason(tmp_path: Path) -> None:
    content = attention(display_inputs(tmp_path, not_run={"llama": "no weights"}, **LLAMA))
    assert cell_texts(content) == [["Llama", "German", *["–"] * 4]]
    assert content.groups[0].rows[0].reason == "no weights"
    assert [
        (row["model"], row["language"], row["metric"], row["reason"].partition(";")[0])
        for row in table_rows(content, tmp_path)
    ] == [
        ("llama", "german", metric, "not run: no weights")
        for metric in ("pairs", "misleading", "resolved", "difference")
    ]
