"""Layouts of tables: cells, rows and columns made from the frame of numbers."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

from pieline.core.measures import Measure
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription
from pieline.reporting.numbers import Number, add_origin_and_tables, join, rows_of
from pieline.reporting.ours import OurNumbers
from pieline.reporting.printed import state
from pieline.reporting.published import printed_frame
from pieline.reporting.tables import (
    Cell,
    Column,
    Group,
    Head,
    Row,
    TableContent,
    headers,
    in_order,
    interval_text,
    make_table,
    mark_best,
    number_row,
    shown,
    write_table,
)

SCORE = Measure[float]("score", lambda score: score, decimals=1, better="high")
DEVIATION = replace(SCORE, name="score_std", value=lambda _: 0.25)
INPUTS = DisplayInputs(study="p", display="t")


def ours(inputs: DisplayInputs = INPUTS) -> Any:
    """Return rows of two models, of which one was not run."""
    numbers = OurNumbers(inputs.study)
    numbers.add({"model": "a"}, [SCORE, DEVIATION], 41.26, files=["a.json"])
    numbers.add({"model": "b"}, [SCORE, DEVIATION], None, not_run="no key")
    return numbers.frame()


def number(**fields: Any) -> Number:
    """Return our number of model a, with other fields."""
    frame = join(add_origin_and_tables(ours(), INPUTS), printed_frame({}, {}, {}), why=lambda _: "")
    return replace(rows_of(frame, ["model"])["a",]["score"], **fields)


def content(*rows: Row, **fields: Any) -> TableContent:
    return TableContent(
        heads=(headers(["Model"], [Column("score", "Score")]),),
        groups=(Group(rows),),
        caption="Scores.",
        **fields,
    )


def test_a_cell_shows_our_number_and_the_printed_one() -> None:
    score = number(printed=41.3, verdict="reproduced", reason="")
    deviation = number(measure="score_std", ours=0.25, printed=0.5)
    cell = shown(Cell(score, deviation))
    assert (cell.ours, cell.printed) == ("41.3 ± 0.2", "41.3 ± 0.5")
    assert (cell.verdict, cell.reason, cell.metrics) == ("reproduced", "", ("a.json",))
    # Without a printed number, there is no verdict to show.
    assert shown(Cell(number())).verdict == ""
    missing = shown(Cell(number(ours=None, printed=41.25, reason="no key")))
    assert (missing.ours, missing.printed, missing.reason) == ("–", "41.2", "no key")
    # A text in place of the number has the printed number unrounded.
    assert shown(Cell(number(printed=41.25), text="41 [40, 42]")).printed == "41.25"
    assert shown(Cell()).ours == "–"


def test_a_stated_text_shows_the_printed_one_if_they_differ() -> None:
    cells = [shown(Cell(stated=state("MIT", printed))) for printed in ("MIT", "Apache")]
    assert [(cell.ours, cell.printed) for cell in cells] == [("MIT", ""), ("MIT", "Apache")]
    assert cells[1].reason == "not as printed"


def test_a_column_selects_a_measure() -> None:
    numbers = {"score": number(low=40.0, high=42.504), "score_std": number(measure="score_std")}
    cell = Column("score", "Score").cell(numbers)
    assert (cell.number, cell.deviation, cell.text) == (*numbers.values(), "")
    assert Column("score", "Score", interval=2).cell(numbers).text == "41.26 [40.00, 42.50]"
    assert interval_text(number(), 2) == ""
    assert Column("other", "Other").cell(numbers) == Cell()
    tested = {"score": number(p_holm=0.0004)}
    assert Column("score", "p", p_value=True).cell(tested).text == "< 0.001"
    assert Column("score", "p", p_value=True).cell(numbers) == Cell()
    heads = headers(["Model"], [Column("score", "Score", "$S$")])
    assert [(head.text, head.latex) for head in heads] == [("Model", None), ("Score", "$S$")]


def test_a_row_whose_numbers_are_all_missing_states_the_reason() -> None:
    columns = [Column("score", "Score"), Column("other", "Other"), Column("none", "None")]
    missing = number(ours=None, missing="no key")

    def reason(**numbers: Number) -> str:
        return number_row(("A",), columns, numbers).reason

    assert reason(score=missing, other=missing) == "no key"
    assert reason(score=missing, other=number()) == ""
    assert reason(score=missing, other=replace(missing, missing="no GPU")) == ""
    # Numbers without a column do not matter, unless no column has a number.
    assert reason(score=missing, hidden=number()) == "no key"
    assert reason(hidden=missing) == "no key"


@pytest.mark.parametrize(
    ("better", "different", "expected"),
    [
        ("high", 1, [False, True, True, False]),
        ("low", 1, [True, False, False, False]),
        ("high", 2, [False, True, True, False]),
        ("high", 3, [False] * 4),
        ("", 1, [False] * 4),
    ],
)
def test_the_best_numbers_are_marked_after_rounding(
    better: str, different: int, expected: list[bool]
) -> None:
    values = (1.0, 2.001, 2.004, None)
    rows = [Row(("m",), (Cell(number(ours=ours, better=better)),)) for ours in values]
    marked = mark_best(content(*rows), different=different).groups[0].rows
    assert [row.cells[0].best for row in marked] == expected
    assert [shown(row.cells[0]).ours for row in marked] == ["1.0", "2.0", "2.0", "–"]


def test_rows_of_runs_come_first_unless_only_this_runs_models_have_rows() -> None:
    def model(name: str, *, is_configured: bool = True) -> ModelDescription:
        return ModelDescription(name=name, kind="llm", label=name, is_configured=is_configured)

    models = (model("b"), model("a"), model("c"), model("x", is_configured=False))
    inputs = DisplayInputs(models=models)
    ran, missing = {"score": number()}, {"score": number(files=())}
    rows = {("x",): missing, ("c",): ran, ("a",): ran, ("b",): missing}
    assert [model for (model,) in in_order(rows, inputs)] == ["c", "a", "b", "x"]
    only_run = inputs.model_copy(update={"rows": "run"})
    assert [model for (model,) in in_order(rows, only_run)] == ["b", "a", "c"]


def layout(numbers: Any, inputs: DisplayInputs) -> TableContent:
    """Lay out a row per model."""
    rows = rows_of(numbers, ["model"])
    columns = [Column("score", "Score")]
    return content(
        *(number_row(key, columns, of_row) for key, of_row in rows.items()), notes=("N",)
    )


def write(folder: Path, *parts: Any) -> dict[str, str]:
    files = {end: folder / f"t.{end}" for end in ("tex", "csv", "html")}
    write_table("t", *parts, templates=ROOT / "templates", **files)
    return {end: path.read_text("utf-8") for end, path in files.items()}


def test_a_table_is_written_in_all_forms(tmp_path: Path) -> None:
    made = make_table(layout, ours, INPUTS)
    files = write(tmp_path, *made)
    assert [(row["model"], row["ours"]) for row in csv.DictReader(files["csv"].splitlines())] == [
        ("a", "41.26"),
        ("a", "0.25"),
        # The deviation of a run that was not made is no number.
        ("b", ""),
    ]
    assert "41.3 ± 0.2" in files["html"]
    assert '<tr class="not-run" data-model="b">' in files["html"]
    assert "no key" in files["tex"]
    assert write(tmp_path, *make_table(layout, ours, INPUTS)) == files


def test_the_notice_and_the_origin_of_numbers_are_notes() -> None:
    def from_archive(inputs: DisplayInputs) -> Any:
        return ours(inputs)

    run = {"keys": {"model": "a"}, "metrics": "a.json", "origin": "archive x"}
    inputs = DisplayInputs.model_validate(
        {"study": "p", "display": "t", "runs": [run], "mark": "Own data."}
    )
    made, frame = make_table(layout, from_archive, inputs)
    assert made.notes == ("Own data.", "N", "From archive x: a.")
    assert frame is not None
    assert list(frame["origin"]) == ["archive x", "archive x", ""]


def test_the_caption_states_why_numbers_are_not_compared() -> None:
    """LaTeX has no tooltips: a deviation would otherwise be silent."""

    def note_of(*numbers: Number, **fields: Any) -> list[str]:
        rows = [Row(("a",), (Cell(item),)) for item in numbers]
        inputs = INPUTS.model_copy(update={"data": "released", **fields})
        return list(make_table(lambda _: content(*rows), None, inputs)[0].notes)

    def deviating(reason: str) -> Number:
        return number(printed=40.0, verdict="not comparable", reason=reason)

    cut = deviating("cut 5, the paper 10")
    assert note_of(number(printed=40.0, verdict="reproduced", reason="")) == []
    assert note_of(number(verdict="not comparable", reason="no printed number")) == []
    assert note_of(cut, cut) == ["Not compared with printed numbers: cut 5, the paper 10."]
    [many] = note_of(cut, *map(deviating, "wxyz"))
    assert many.endswith("the paper 10; w; x; and other reasons, which the CSV states.")
    assert note_of(cut, mark="Only the first 2.") == ["Only the first 2."]
    assert note_of(cut, data="sample") == []  # the tables of the sample state what it is


def test_a_table_of_texts_has_a_line_per_cell(tmp_path: Path) -> None:
    def texts(inputs: DisplayInputs) -> TableContent:
        row = Row(("m",), (Cell(stated=state("MIT", "Apache")), Cell(text="x")))
        return TableContent(
            heads=((Head("Group"), Head("Model"), Head("Licence"), Head("Note")),),
            groups=(Group((row,), title="G"),),
            caption="Texts.",
        )

    made, numbers = make_table(texts, None, INPUTS)
    assert numbers is None
    assert write(tmp_path, made, None)["csv"].splitlines() == [
        "row,column,ours,printed,reason",
        "G / m,Licence,MIT,Apache,not as printed",
        "G / m,Note,x,,",
    ]
