"""Columns of tables: how our number and the printed one appear in cells and rows."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pieline.core.conditions import Conditions, MetricRecord
from pieline.core.files import sha256, write_json
from pieline.core.uncertainty import Spread
from pieline.reporting.columns import (
    Column,
    Source,
    cell,
    headers,
    mark_best,
    model_table,
    over_seeds,
    row,
    sources,
    text_cell,
)
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription
from pieline.reporting.printed import Comparison
from pieline.reporting.seeds import PrintedSeeds
from pieline.reporting.tables import Cell, Group, Number, TableContent, shown

SCORE = Column[float | None]("score_pct", "Score", lambda score: score, unknown="too few documents")
MODEL = {"model": "m"}


def compared(number: Number | None) -> Comparison:
    assert number
    assert isinstance(number.comparison, Comparison)
    return number.comparison


def test_a_number_is_paired_with_the_printed_one_of_its_column() -> None:
    printed = {"score_pct": 12.35, "score": 99.0}
    number = cell(SCORE, Source(MODEL, [12.345], ("a.json",), printed)).number
    assert number
    assert (number.key, number.metrics) == ({"model": "m", "metric": "score"}, ("a.json",))
    number = compared(number)
    assert (number.ours, number.printed, number.reproduced) == (12.345, 12.35, "yes")
    assert (number.reason, number.decimals) == ("", None)


def test_decimals_tolerance_and_details_come_from_the_column() -> None:
    column = replace(
        SCORE,
        decimals=0,
        tolerance=lambda source: 2.0 if source.key["model"] == "m" else 0.0,
        details=lambda source: {"low": f"{source.records[0]}"},
        text=lambda score: f"about {score}",
    )
    printed = {"score_pct": 10.0}
    near, far = (cell(column, Source(MODEL, [ours], (), printed)) for ours in (12.4, 12.6))
    assert [compared(table_cell.number).reproduced for table_cell in (near, far)] == ["yes", "no"]
    assert near.text == "about 12.4"
    assert near.number
    assert near.number.key == {"model": "m", "metric": "score", "low": "12.4"}
    elsewhere = cell(column, Source({"model": "other"}, [12.4], (), printed))
    assert compared(elsewhere.number).reproduced == "no"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (Source(MODEL, [None], obstacles=["sample data"]), "too few documents; sample data"),
        (
            Source(MODEL, not_run="no key", obstacles=["sample data"]),
            "not run: no key; sample data",
        ),
        (Source(MODEL, [1.0], obstacles=["sample data"]), "sample data"),
        (Source(MODEL, [1.0, None], seeds=PrintedSeeds(3)), "too few documents"),
    ],
)
def test_the_reason_for_a_missing_number_comes_first(
    source: Source[float | None], reason: str
) -> None:
    comparison = compared(cell(SCORE, source).number)
    assert comparison.reason == f"{reason}; the paper prints no such number"
    assert (comparison.ours is None) == (reason != "sample data")
    assert comparison.reproduced is None


def test_a_number_that_is_not_a_mean_has_the_ranges_of_its_source() -> None:
    ranges = {"as drawn": (1.0, 3.0)}
    table_cell = cell(SCORE, Source(MODEL, [2.5], (), {"score_pct": 2.0}, ranges=ranges))
    number = compared(table_cell.number)
    assert (number.ranges, number.reproduced) == (ranges, "within sampling range")
    assert table_cell.deviation is None


def test_a_mean_over_seeds_is_unknown_if_one_value_is() -> None:
    assert over_seeds([1.0, 2.0], float) == Spread(mean=1.5, deviation=0.5**0.5, seeds=2)
    assert over_seeds([1.0], float) == Spread(mean=1.0, deviation=None, seeds=1)
    assert over_seeds([1.0, None], lambda value: value) is None
    assert over_seeds([], float) is None


class TestSeeds:
    def cell(self, records: Sequence[float], seeds: PrintedSeeds | None, **printed: float) -> Cell:
        return cell(SCORE, Source(MODEL, records, (), printed, seeds=seeds))

    def test_mean_and_deviation_are_two_numbers(self) -> None:
        table_cell = self.cell([10, 11, 12], PrintedSeeds(3), score_pct=11.5, score_pct_std=0.9)
        mean, deviation = compared(table_cell.number), compared(table_cell.deviation)
        assert (mean.ours, mean.printed, mean.reproduced) == (11, 11.5, "within sampling range")
        assert (deviation.ours, deviation.printed) == (1, 0.9)
        assert deviation.reproduced == "within sampling range"
        assert [number.key["metric"] for number in table_cell.numbers()] == [
            "score",
            "score_pct_std",
        ]
        assert set(mean.ranges) == {"printed with ddof 1"}
        both = self.cell([10, 11, 12], PrintedSeeds(3, (1, 0)), score_pct=11, score_pct_std=0.9)
        assert len(compared(both.number).ranges) == len(compared(both.deviation).ranges) == 2

    def test_no_deviation_without_seeds_of_the_paper(self) -> None:
        table_cell = self.cell([10, 12], None, score_pct=11, score_pct_std=1)
        assert (table_cell.deviation, compared(table_cell.number).ranges) == (None, {})

    def test_one_seed_has_no_deviation(self) -> None:
        assert self.cell([10], PrintedSeeds(3), score_pct=10).deviation is None
        table_cell = self.cell([10], PrintedSeeds(3), score_pct=10, score_pct_std=1)
        deviation = compared(table_cell.deviation)
        assert (deviation.ours, deviation.reason) == (None, "one seed has no deviation")
        assert compared(table_cell.number).reason == ""
        source = Source(
            MODEL, [10.0], printed={"score_pct_std": 1}, obstacles=["sample"], seeds=PrintedSeeds(3)
        )
        reason = compared(cell(SCORE, source).deviation).reason
        assert reason == "one seed has no deviation; sample"

    def test_other_rows_provide_the_deviation_of_a_single_printed_seed(self) -> None:
        alone = self.cell([10.5], PrintedSeeds(3), score_pct=10)
        assert compared(alone.number).reproduced == "no"
        pools = {"score_pct": [Spread(mean=1, deviation=1, seeds=3)]}
        # Two single seeds differ by at most 6.08, a single seed and a mean of three by 4.97.
        pooled = self.cell([15.5], PrintedSeeds(3, pool=pools.__getitem__), score_pct=10)
        assert compared(pooled.number).reproduced == "within sampling range"

    def test_a_deviation_that_is_not_printed_has_no_range(self) -> None:
        deviation = compared(self.cell([10, 12], PrintedSeeds(3), score_pct=11).deviation)
        assert deviation.ours == pytest.approx(2**0.5)
        assert (deviation.printed, deviation.ranges) == (None, {})


def test_a_row_shows_columns_with_a_header_and_its_csv_has_all_columns() -> None:
    hidden = replace(SCORE, name="other", header="")
    ran, missing = Source(MODEL, [1.0]), Source[float | None](MODEL, not_run="no key")
    table_row = row(("m",), [(SCORE, ran), (hidden, ran), (SCORE, None)])
    assert [compared(item).ours for cell in table_row.cells for item in cell.numbers()] == [1.0]
    assert table_row.cells[1] == Cell()
    assert [number.key["metric"] for number in table_row.unseen] == ["other"]
    not_made = row(("m",), [(SCORE, missing), (hidden, missing)], reason="no key")
    assert (len(not_made.cells), not_made.unseen, not_made.reason) == (1, (), "no key")
    heads = headers(["Model"], [replace(SCORE, latex="$S$"), hidden])
    assert [(head.text, head.latex) for head in heads] == [("Model", None), ("Score", "$S$")]


def test_a_number_of_the_text_is_named_by_its_id() -> None:
    text = {("idiots.score_pct",): {"value": 7.0}, ("idiots.other",): {"value": 8.0}}
    number = text_cell(SCORE, Source(MODEL, [7.0]), "idiots", text).number
    assert number
    assert number.key == {"model": "m", "id": "idiots.score_pct", "metric": "value"}
    assert compared(number).reproduced == "yes"
    unprinted = text_cell(SCORE, Source({}, [7.0]), "jam", text)
    assert compared(unprinted.number).printed is None


@pytest.mark.parametrize(
    ("kind", "different", "expected"),
    [
        ("highest", 1, [False, True, True, False]),
        ("lowest", 1, [True, False, False, False]),
        ("highest", 2, [False, True, True, False]),
        ("highest", 3, [False] * 4),
        ("", 1, [False] * 4),
    ],
)
def test_the_best_numbers_are_marked_after_rounding(
    kind: str, different: int, expected: list[bool]
) -> None:
    column = Column[float | None]("a", "A", lambda score: score, best=kind)  # type: ignore[arg-type]
    columns = [replace(column, header="", best="lowest"), column]
    rows = [
        row(("m",), [(item, Source(MODEL, [ours])) for item in columns])
        for ours in (1.0, 2.001, 2.004, None)
    ]
    content = TableContent(
        heads=(headers(["Model"], columns),), groups=(Group(tuple(rows)),), caption=""
    )
    marked = mark_best(content, columns, different=different).groups[0].rows
    assert [item.cells[0].best for item in marked] == expected
    assert [shown(item.cells[0], 2).ours for item in marked] == ["1.00", "2.00", "2.00", "–"]


class Scored(MetricRecord):
    model: str
    seed: int
    score: float


def test_records_of_one_run_share_a_source(tmp_path: Path) -> None:
    files = []
    for model, seed in (("a", 1), ("b", 1), ("a", 2)):
        files.append(str(tmp_path / f"{model}{seed}.json"))
        record = Scored(model=model, seed=seed, score=seed, computed_from={})
        write_json(files[-1], record.model_dump(mode="json"))
    inputs = DisplayInputs(metrics=tuple(files))
    by_run = sources(inputs, Scored, ["model"], lambda *runs: [f"{len(runs)} runs"])
    assert list(by_run) == [("a",), ("b",)]
    of_a = by_run["a",]
    assert (of_a.key, of_a.files) == ({"model": "a"}, (files[0], files[2]))
    assert ([item.seed for item in of_a.records], of_a.obstacles) == ([1, 2], ["2 runs"])
    by_run = sources(inputs, Scored, ["model"], lambda *_: [], order=lambda run: -run.seed)
    assert by_run["a",].files == (files[2], files[0])
    assert [item.seed for item in by_run["a",].records] == [2, 1]


def test_a_table_of_models_has_own_models_and_the_papers_models(tmp_path: Path) -> None:
    class Accuracy(MetricRecord):
        model: str
        accuracy: float

    (tmp_path / "published.csv").write_text("model,accuracy\na,0.5\nb,0.7\n")
    described = {
        name: ModelDescription(name=name, kind="llm", label=name.upper()) for name in "abcde"
    }
    digest = sha256(tmp_path / "published.csv")
    (tmp_path / "schema.yaml").write_text(
        f"published: {{texts: [model], numbers: [accuracy], rows: 2, sha256: {digest}}}\n"
    )
    for name, deviations in (("a", ()), ("c", ("epochs 4, the paper 20",))):
        conditions = Conditions(deviations=deviations)
        record = Accuracy(model=name, accuracy=0.5, conditions=conditions, computed_from={})
        write_json(tmp_path / f"{name}.json", record.model_dump())
    inputs = DisplayInputs(
        metrics=tuple(str(tmp_path / f"{name}.json") for name in "ac"),
        models=(described["a"], described["c"], described["e"]),
        absent=(described["b"], described["d"]),
        not_run={
            "b": "not in this configuration",
            "d": "not in this configuration",
            "e/0": "no key",
        },
        files={"published": str(tmp_path / "published.csv")},
    )
    column = Column[Accuracy]("accuracy", "Accuracy", lambda item: item.accuracy)
    content = model_table(inputs, Accuracy, [column], caption="Accuracy.")
    assert [row.labels for row in content.groups[0].rows] == [("A",), ("C",), ("E",), ("B",)]
    a, c, e, b = (compared(number) for number in content.numbers())
    assert (a.ours, a.printed, a.reproduced) == (0.5, 0.5, "yes")
    assert (c.reason, c.printed) == (
        "epochs 4, the paper 20; the paper prints no such number",
        None,
    )
    assert (e.ours, e.reason) == (None, "not run: no key; the paper prints no such number")
    assert (b.ours, b.printed, b.reason) == (None, 0.7, "not run: not in this configuration")
    of_run = inputs.model_copy(update={"rows": "run"})
    own = model_table(of_run, Accuracy, [column], caption="Accuracy.")
    assert own.groups[0].rows == content.groups[0].rows[:3]
