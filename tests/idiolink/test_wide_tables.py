"""Table 5, average gains, scores by PIE, and the randomization tests."""

import csv
from collections import defaultdict
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from support import ROOT

from pieline.core.conditions import Conditions
from pieline.core.files import write_json
from pieline.core.significance import holm, randomization_test, sign_patterns
from pieline.core.uncertainty import Interval
from pieline.models.embedder import EmbedderEntry
from pieline.models.registry import load_registry
from pieline.reporting.displays import Table
from pieline.reporting.inputs import DisplayInputs, PlannedRun
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.numbers import EQUAL, NOT_EQUAL
from pieline.reporting.ours import over_seeds
from pieline.reporting.printed import read_published, rounded
from pieline.reporting.published import RELEASED_RUN
from pieline.reporting.tables import Cell, TableContent, make_table, write_table
from pieline.studies.idiolink import paths
from pieline.studies.idiolink.figures import by_pie as figure_by_pie
from pieline.studies.idiolink.metrics.scores import (
    UNKNOWN,
    IdiolinkMetrics,
    QueryScores,
    RankingScores,
)
from pieline.studies.idiolink.metrics.significance import (
    ModeSignificance,
    RankingComparison,
    compare_modes,
)
from pieline.studies.idiolink.records import Bm25Parameters, Tuning
from pieline.studies.idiolink.tables.finetuning import (
    FINETUNED_TABLE,
    GAINS,
    GAINS_TABLE,
    average_gains,
    best_trainings,
    shown_loss,
)
from pieline.studies.idiolink.tables.significance import (
    BY_PIE_TABLE,
    PAIRS_TABLE,
    SIGNIFICANCE_TABLE,
    by_pie_numbers,
    gains_by_pie,
    hardest_first,
    zero_shot_means,
)
from pieline.studies.idiolink.tables.zero_shot import (
    BM25_TABLE,
    RELEASED_INPUTS_NOTE,
    RELEASED_TABLE,
    UNKNOWN_NOTE,
    ZERO_SHOT_TABLE,
    of_rankings,
)
from pieline.study import NOT_CONFIGURED

PRINTED = ROOT / "published/idiolink_table5.csv"
RELEASED = {RELEASED_RUN: str(ROOT / f"published/{RELEASED_RUN}.csv")}
MODELS = [
    ModelDescription(name=name, kind=kind, label=label)
    for name, kind, label in (
        ("bm25", "bm25", "BM25"),
        ("sbert", "embedder", "SBERT"),
        ("mine", "predictions", "Mine"),
    )
]


def metrics(
    model: str,
    mode: str,
    scores: tuple[float | None, float | None],
    *,
    seed: int = 0,
    pies: Mapping[str, float | None] | None = None,
    deviations: tuple[str, ...] = (),
    settings: dict[str, str] | None = None,
) -> IdiolinkMetrics:
    """Return a metric file with these scores in percent."""
    r_precision, ndcg = scores
    overall = RankingScores(
        queries=2,
        r_precision=None if r_precision is None else r_precision / 100,
        ndcg_at_10=None if ndcg is None else ndcg / 100,
    )
    by_pie = {
        pie: RankingScores(queries=1, r_precision=value, ndcg_at_10=value)
        for pie, value in (
            (pie, None if value is None else value / 100) for pie, value in (pies or {}).items()
        )
    }
    return IdiolinkMetrics(
        split="test", composition="full", model=model, query_mode=mode, seed=seed,
        dataset_is_released=True, overall=overall, by_usage={}, by_subject={}, by_pie=by_pie,
        same_meaning_and_subject=overall, same_subject=overall, depth=100, tuning=None,
        computed_from={}, conditions=Conditions(deviations=deviations, settings=settings or {}),
    )  # fmt: skip


@pytest.fixture(scope="module")
def embedders() -> list[ModelDescription]:
    fields = {"label", "parameters", "published_as", "trained_with_instructions", "kind"}
    return [
        ModelDescription.model_validate({"name": name} | entry.model_dump(include=fields))
        for name, entry in load_registry(ROOT / "models.yaml").items()
        if isinstance(entry, EmbedderEntry)
    ]


def inputs_of(
    records: list[IdiolinkMetrics],
    models: list[ModelDescription],
    folder: Path,
    table: Table | None = None,
) -> DisplayInputs:
    """Return the inputs of a table of these metrics; models without metrics were not run."""
    files = []
    for number, item in enumerate(records):
        files.append(str(folder / f"{number}.json"))
        write_json(files[-1], item.model_dump())
    ran = {paths.base_of(item.model) for item in records}
    of_paper = {"is_configured": False, "not_run": NOT_CONFIGURED}
    absent = [model for model in models if model.name not in ran and model.published_as]
    names = [f"{name}.csv" for name in table.printed] if table else []
    places = [ROOT / f"published/{name}" for name in (*names, "tables.yaml", "schema.yaml")]
    return DisplayInputs(
        study="idiolink",
        display=table.name if table else "",
        otherwise=table.otherwise if table else "",
        metrics=tuple(files),
        files={place.stem: str(place) for place in places},
        models=(
            *(model for model in models if model.name in ran),
            *(model.model_copy(update=of_paper) for model in absent),
        ),
        data="released",
    )


def made(table: Table, inputs: DisplayInputs) -> TableContent:
    """Return the content of a table."""
    return make_table(table.make, table.numbers, inputs)[0]


def written(table: Table, inputs: DisplayInputs, folder: Path) -> tuple[str, list[dict[str, str]]]:
    """Return the LaTeX and the CSV rows of a table, with our values as they are shown."""
    files = {kind: folder / f"table.{kind}" for kind in ("tex", "csv", "html")}
    content, numbers = make_table(table.make, table.numbers, inputs)
    write_table("table", content, numbers, templates=ROOT / "templates", **files)
    with files["csv"].open(encoding="utf-8", newline="") as stream:
        rows = [defaultdict(str, row) for row in csv.DictReader(stream)]
    for row in rows:
        for name in ("ours", "low", "high"):
            row[name] = rounded(float(row[name]), int(row["decimals"])) if row[name] else ""
    return files["tex"].read_text(encoding="utf-8"), [*rows]


def ours_of(records: list[IdiolinkMetrics], folder: Path) -> DisplayInputs:
    """Return inputs with these metrics, for functions that need no models."""
    return inputs_of(records, [], folder)


class TestTable5:
    def write(
        self, records: list[IdiolinkMetrics], models: list[ModelDescription], folder: Path
    ) -> tuple[str, dict[tuple[str, ...], dict[str, str]]]:
        inputs = inputs_of(records, models, folder, FINETUNED_TABLE)
        tex, rows = written(FINETUNED_TABLE, inputs, folder)
        keys = ("train_mode", "loss", "model", "query_mode", "measure")
        return tex, {tuple(row[key] for key in keys): row for row in rows}

    def test_mean_and_deviation_over_three_seeds(
        self, embedders: list[ModelDescription], tmp_path: Path
    ) -> None:
        records = [
            metrics("sbert+sentence+paper", mode, scores, seed=seed)
            for seed, values in {
                42: ((42.0, 71.0), (51.0, 74.0)),
                43: ((42.2, 71.5), (52.0, 75.0)),
                44: ((42.4, 72.0), (53.0, 76.0)),
            }.items()
            for mode, scores in zip(("sentence", "span"), values, strict=True)
        ]
        tex, cells = self.write(records, embedders, tmp_path)
        key = ("sentence", "paper", "sbert", "sentence")
        assert cells[*key, "r_precision"]["ours"] == "42.20"
        assert cells[*key, "r_precision"]["printed"] == "42.14"
        assert cells[*key, "r_precision"]["verdict"] == "within sampling range"
        assert cells[*key, "r_precision"]["reason"] == ""
        assert cells[*key, "r_precision_std"]["ours"] == "0.20"
        assert cells[*key, "r_precision_std"]["verdict"] == "within sampling range"
        # Three seeds cannot explain nine times the printed deviation.
        assert cells["sentence", "paper", "sbert", "span", "r_precision_std"]["verdict"] == (
            "not reproduced"
        )
        assert "if printed with ddof 0" in cells[*key, "r_precision"]["tolerance"]
        assert cells[*key, "r_precision_std"]["printed"] == "0.05"
        assert cells[*key, "ndcg_at_10_std"]["ours"] == "0.50"
        assert r"42.20 $\pm$ 0.20" in tex
        assert r"\textbf{52.00 $\pm$ 1.00}$\uparrow$\printed{51.78 $\pm$ 0.10}" in tex
        files = cells[*key, "r_precision"]["files"].split()
        assert len(files) == 3
        assert {Path(name).stem for name in files} == {"0", "2", "4"}

    def test_every_printed_cell_has_a_row(
        self, embedders: list[ModelDescription], tmp_path: Path
    ) -> None:
        records = [metrics("sbert+sentence+paper", "sentence", (40.0, 70.0), seed=42)]
        tex, cells = self.write(records, embedders, tmp_path)
        names = {model.name: model.published_as for model in embedders}
        shown_cells = {(key[0], names[key[2]], key[3]) for key in cells}
        assert shown_cells == set(read_published(PRINTED, ["train_mode", "model", "query_mode"]))
        missing = [row for row in cells.values() if row["model"] != "sbert"]
        assert {row["ours"] for row in missing} == {""}
        assert {row["verdict"] for row in missing} == {"not run"}
        assert all(row["reason"] for row in missing)
        other_mode = cells["span", "", "sbert", "span", "ndcg_at_10"]
        assert other_mode["reason"] == "idiolink.finetuning.train_modes does not name it"
        other_model = cells["sentence", "", "bge-m3", "span", "ndcg_at_10"]
        assert other_model["reason"] == NOT_CONFIGURED
        assert r"--\printed{81.81 $\pm$ 0.63}" in tex
        assert tex.index("SBERT") < tex.index("Drama") < tex.index("E5") < tex.index("BGE-M3")

    def test_one_seed_has_no_deviation_and_span_training_no_sentence_columns(
        self, embedders: list[ModelDescription], tmp_path: Path
    ) -> None:
        records = [
            metrics("sbert+instruction_span+released", "instruction_span", (48.0, 71.0), seed=1)
        ]
        tex, cells = self.write(records, embedders, tmp_path)
        key = ("instruction_span", "released", "sbert", "instruction_span")
        deviation = cells[*key, "r_precision_std"]
        assert (deviation["ours"], deviation["verdict"]) == ("", "not run")
        assert deviation["reason"] == "one seed has no deviation"
        # A single seed may differ by 4.97 deviations: 0.4 from 48.03 ± 0.08, 0.7 from 71.83 ± 0.14,
        # or 0.85 if the deviation has ddof 0.
        assert (cells[*key, "r_precision"]["verdict"], cells[*key, "r_precision"]["reason"]) == (
            "within sampling range",
            "",
        )
        assert cells[*key, "ndcg_at_10"]["reason"] == (
            "within sampling range only if printed with ddof 0"
        )
        assert not any(
            cell_key[0] == "instruction_span" and cell_key[3] == "instruction_sentence"
            for cell_key in cells
        )
        assert tex.count("--") > 5

    def test_a_missing_printed_deviation_is_never_reproduced(
        self, embedders: list[ModelDescription], tmp_path: Path
    ) -> None:
        names = {model.published_as: model.name for model in embedders}
        printed = read_published(PRINTED, ["train_mode", "model", "query_mode"])
        records = [
            metrics(
                f"{names[checkpoint]}+{train_mode}+paper",
                mode,
                (row["r_precision_pct"], row["ndcg_at_10_pct"]),
                seed=seed,
            )
            for (train_mode, checkpoint, mode), row in printed.items()
            for seed in (42, 43, 44)
        ]
        _, cells = self.write(records, embedders, tmp_path)
        verdicts = [(key[-1].endswith("_std"), row["verdict"]) for key, row in cells.items()]
        of_deviations, of_means = (True, "not reproduced"), (False, "reproduced")
        assert verdicts.count(of_deviations) == verdicts.count(of_means) == 60

    def test_both_losses_are_compared_with_the_printed_numbers(
        self, embedders: list[ModelDescription], tmp_path: Path
    ) -> None:
        records = [
            metrics(
                f"sbert+sentence+{loss}", "span", scores, seed=42, settings={"tuples": "sampled"}
            )
            for loss, scores in (("paper", (46.0, 71.0)), ("released", (52.0, 75.0)))
        ]
        content = made(FINETUNED_TABLE, inputs_of(records, embedders, tmp_path, FINETUNED_TABLE))
        rows = content.groups[0].rows
        assert [row.labels[:2] for row in rows[:2]] == [
            ("SBERT", "equation 2"),
            ("SBERT", "released"),
        ]
        tex, cells = self.write(records, embedders, tmp_path)
        assert {
            cells["sentence", loss, "sbert", "span", "r_precision"]["printed"]
            for loss in ("paper", "released")
        } == {"51.78"}
        assert "tuples that were sampled as described in section 4.3" in tex
        assert "tuples that the authors mined; those" not in tex

    def test_figure_3_shows_the_better_training(self, tmp_path: Path) -> None:
        def best_of(records: list[IdiolinkMetrics]) -> Any:
            return best_trainings(over_seeds(of_rankings(ours_of(records, tmp_path))))

        records = [
            metrics("a+sentence+paper", "span", (50.0, 70.0)),
            metrics("a+span+paper", "span", (40.0, 80.0)),
        ]
        best = best_of(records)
        assert best["a", "span", "r_precision"].train_mode == "sentence"
        assert best["a", "span", "ndcg_at_10"].train_mode == "span"
        assert best["a", "span", "ndcg_at_10"].ours == pytest.approx(80.0)
        # A training mode counts only with all its seeds.
        records.append(metrics("a+span+paper", "span", (None, None), seed=1))
        records.append(metrics("a+sentence+paper", "span", (10.0, 60.0), seed=1))
        best = best_of(records)
        for metric, mean in (("r_precision", 30), ("ndcg_at_10", 65)):
            row = best["a", "span", metric]
            assert (row.train_mode, row.ours) == ("sentence", pytest.approx(mean))

    @pytest.mark.parametrize("losses", [("paper", "released"), ("released", "paper")])
    def test_figure_3_shows_the_released_loss_if_both_were_run(
        self, losses: tuple[str, str], tmp_path: Path
    ) -> None:
        scores = {"paper": (99.0, 99.0), "released": (43.0, 72.0)}
        records = [metrics(f"a+sentence+{loss}", "sentence", scores[loss]) for loss in losses]
        ours = over_seeds(of_rankings(ours_of(records, tmp_path)))
        best = best_trainings(ours)["a", "sentence", "r_precision"]
        assert best.ours == pytest.approx(43.0)
        assert shown_loss(ours) == "released"
        assert shown_loss(ours[ours["loss"] == "paper"]) == "paper"


class TestTable2:
    @pytest.mark.parametrize("inputs", ["paper", "released"])
    def test_released_inputs_are_noted(
        self, inputs: str, embedders: list[ModelDescription], tmp_path: Path
    ) -> None:
        records = [metrics("sbert", "sentence", (18.34, 35.08), settings={"inputs": inputs})]
        content = made(ZERO_SHOT_TABLE, inputs_of(records, embedders, tmp_path, ZERO_SHOT_TABLE))
        assert (RELEASED_INPUTS_NOTE in content.notes) is (inputs == "released")

    def test_rows_follow_the_papers_order_and_ours_are_separate(
        self, embedders: list[ModelDescription], tmp_path: Path
    ) -> None:
        records = [
            metrics("smollm2-135m", "sentence", (99.0, 99.0)),
            metrics("sbert", "sentence", (18.34, 35.08)),
            metrics("sbert", "span", (40.88, 58.86), deviations=("top k 5, the paper 100",)),
        ]
        shown = inputs_of(records, embedders, tmp_path, ZERO_SHOT_TABLE)
        table = made(ZERO_SHOT_TABLE, shown)
        assert [(group.title, len(group.rows)) for group in table.groups] == [
            ("No-Instruct", 5),
            ("Instruction", 19),
            ("Not in the paper", 1),
        ]
        labels = [row.labels[0] for row in table.groups[0].rows]
        assert labels == ["SBERT", "Contriever", "E5-base-v2", "Drama-1B", "Stella-en-1.5B-v5"]
        tex, rows = written(ZERO_SHOT_TABLE, shown, tmp_path)
        cells = {(row["model"], row["query_mode"], row["measure"]): row for row in rows}
        # The model that is not in the paper was only run in one mode.
        assert len(cells) == 24 * 8 + 2
        assert cells["sbert", "sentence", "r_precision"]["verdict"] == "reproduced"
        assert cells["sbert", "span", "r_precision"]["reason"] == "top k 5, the paper 100"
        not_asked = cells["sbert", "instruction_span", "r_precision"]
        assert not_asked["reason"] == "idiolink.query_modes does not name it"
        absent = cells["gritlm-7b", "span", "r_precision"]
        assert (absent["ours"], absent["files"]) == ("", "")
        assert absent["reason"] == NOT_CONFIGURED
        assert absent["printed"]
        assert r"\textbf{99.00}" in tex
        assert r"40.88}$\uparrow$" in tex or r"40.88$\uparrow$" in tex

    def cells(
        self, records: list[IdiolinkMetrics], embedders: list[ModelDescription], folder: Path
    ) -> dict[tuple[str, str, str], Cell]:
        content = made(ZERO_SHOT_TABLE, inputs_of(records, embedders, folder, ZERO_SHOT_TABLE))
        shown = [cell for group in content.groups for row in group.rows for cell in row.cells]
        keyed = {
            (cell.number.model, cell.number.query_mode, cell.number.measure): cell
            for cell in shown
            if cell.number
        }
        assert len(keyed) == len(shown)
        return keyed

    @pytest.mark.parametrize(
        ("model", "mode", "ours", "is_reproduced"),
        [
            # Printed: 18.34, 38.4 and, with instructions, 32.57.
            ("sbert", "sentence", 18.344, True),
            ("sbert", "sentence", 18.336, True),
            ("sbert", "sentence", 18.346, False),
            ("contriever", "span", 38.454, True),
            ("contriever", "span", 38.456, False),
            ("sbert", "instruction_sentence", 32.624, True),
            ("sbert", "instruction_sentence", 32.626, False),
        ],
    )
    def test_tolerance_depends_on_decimals_and_instructions(
        self, model: str, mode: str, ours: float, is_reproduced: bool,
        embedders: list[ModelDescription], tmp_path: Path,
    ) -> None:  # fmt: skip
        cells = self.cells([metrics(model, mode, (ours, 50.0))], embedders, tmp_path)
        number = cells[model, mode, "r_precision"].number
        assert number
        assert number.verdict == ("reproduced" if is_reproduced else "not reproduced")
        assert number.files == (str(tmp_path / "0.json"),)

    def test_best_cells_and_arrows_use_two_decimals(
        self, embedders: list[ModelDescription], tmp_path: Path
    ) -> None:
        records = [
            metrics("sbert", "sentence", (18.341, 35.0)),
            metrics("sbert", "span", (18.339, 34.99)),
            metrics("sbert", "instruction_sentence", (18.34, None)),
            metrics("sbert", "instruction_span", (18.35, 40.0)),
            metrics("contriever", "sentence", (18.338, 34.0)),
            metrics("contriever", "span", (18.35, 90.0)),
        ]
        cells = self.cells(records, embedders, tmp_path)
        marks = {
            key: (cells[key].best, cells[key].mark)
            for key in cells
            if key[0] in ("sbert", "contriever")
        }
        assert marks == {
            ("sbert", "sentence", "r_precision"): (True, ""),
            ("sbert", "sentence", "ndcg_at_10"): (True, ""),
            ("sbert", "span", "r_precision"): (False, ""),
            ("sbert", "span", "ndcg_at_10"): (False, "down"),
            ("sbert", "instruction_sentence", "r_precision"): (True, ""),
            ("sbert", "instruction_sentence", "ndcg_at_10"): (False, ""),
            # The difference is to the mode sentence with instructions, if its score is known.
            ("sbert", "instruction_span", "r_precision"): (True, "up"),
            ("sbert", "instruction_span", "ndcg_at_10"): (True, ""),
            ("contriever", "sentence", "r_precision"): (True, ""),
            ("contriever", "sentence", "ndcg_at_10"): (False, ""),
            ("contriever", "span", "r_precision"): (True, "up"),
            ("contriever", "span", "ndcg_at_10"): (True, "up"),
            **{("contriever", f"instruction_{mode}", metric): (False, "")
               for mode in ("sentence", "span") for metric in ("r_precision", "ndcg_at_10")},
        }  # fmt: skip

    def test_intervals_and_unknown_scores_are_in_the_csv(
        self, embedders: list[ModelDescription], tmp_path: Path
    ) -> None:
        interval = {"r_precision": Interval(low=0.17504, high=0.19251)}
        known = metrics("sbert", "sentence", (18.34, None))
        records = [known.model_copy(update={"intervals": interval, "dataset_is_released": False})]
        shown = inputs_of(records, embedders, tmp_path, ZERO_SHOT_TABLE)
        why = "Not compared with printed numbers: sample data, not the public IdioLink."
        assert made(ZERO_SHOT_TABLE, shown).notes == (SAMPLE_NOTE, UNKNOWN_NOTE, why)
        _, rows = written(ZERO_SHOT_TABLE, shown, tmp_path)
        of_sbert = {
            row["measure"]: (row["ours"], row["low"], row["high"], row["reason"])
            for row in rows
            if (row["model"], row["query_mode"]) == ("sbert", "sentence")
        }
        sample = "sample data, not the public IdioLink"
        assert of_sbert == {
            "r_precision": ("18.34", "17.50", "19.25", sample),
            "ndcg_at_10": ("", "", "", f"{UNKNOWN}; {sample}"),
        }

    def test_the_headers_of_all_columns(
        self, embedders: list[ModelDescription], tmp_path: Path
    ) -> None:
        records = [metrics("sbert", "sentence", (18.34, 35.08))]
        content = made(ZERO_SHOT_TABLE, inputs_of(records, embedders, tmp_path, ZERO_SHOT_TABLE))
        headings = [[(head.text, head.span) for head in heads] for heads in content.heads]
        assert headings == [
            [("", 3), ("without instructions", 4), ("with instructions", 4)],
            [("", 3), *[("R-Precision", 2), ("nDCG@10", 2)] * 2],
            [("", 1), ("Model", 1), ("Param", 1), *[("sentence", 1), ("span", 1)] * 4],
        ]
        columns = [
            (cell.number.measure, cell.number.query_mode)
            for cell in content.groups[0].rows[0].cells
            if cell.number
        ]
        assert columns == [
            *[("r_precision", "sentence"), ("r_precision", "span")],
            *[("ndcg_at_10", "sentence"), ("ndcg_at_10", "span")],
            *[("r_precision", "instruction_sentence"), ("r_precision", "instruction_span")],
            *[("ndcg_at_10", "instruction_sentence"), ("ndcg_at_10", "instruction_span")],
        ]

    def test_bm25_has_its_own_tolerance(self, tmp_path: Path) -> None:
        # Printed: k1 0.9, b 0.4, 36.04 and 59.07; scores may differ by 0.155.
        chosen = Tuning(
            query_mode="sentence", composition="full", chosen=Bm25Parameters(k1=0.9, b=0.5),
            grid=[],
        )  # fmt: skip
        scored = metrics("bm25", "span", (49.37, 50.03))
        tuned = metrics("bm25", "sentence", (36.19, 59.23)).model_copy(update={"tuning": chosen})
        model = ModelDescription(name="bm25", kind="bm25", label="BM25")
        inputs = inputs_of([tuned, scored], [model], tmp_path, BM25_TABLE)
        _, rows = written(BM25_TABLE, inputs, tmp_path)
        shown = [(row["measure"], row["ours"], row["verdict"], row["files"]) for row in rows]
        first, second = (str(tmp_path / f"{number}.json") for number in (0, 1))
        assert shown == [
            ("k1", "0.90", "reproduced", first), ("b", "0.50", "not reproduced", first),
            ("r_precision", "36.19", "reproduced", first),
            ("ndcg_at_10", "59.23", "not reproduced", first),
            ("k1", "", "not run", second), ("b", "", "not run", second),
            ("r_precision", "49.37", "reproduced", second),
            ("ndcg_at_10", "50.03", "not reproduced", second),
        ]  # fmt: skip


class TestReleasedRun:
    """The authors' run is a third number beside the printed one."""

    SBERT = "sentence-transformers/all-MiniLM-L6-v2"

    def record(
        self, model: str, mode: str, composition: str, scores: tuple[float, float]
    ) -> IdiolinkMetrics:
        item = metrics(model, mode, scores).model_copy(update={"composition": composition})
        if model != "bm25":
            return item
        values = Bm25Parameters(k1=0.6, b=0.9)
        tuning = Tuning(query_mode=mode, composition=composition, chosen=values, grid=[])
        return item.model_copy(update={"tuning": tuning})

    def write(
        self, records: list[IdiolinkMetrics], folder: Path
    ) -> tuple[str, dict[tuple[str, ...], dict[str, str]]]:
        models = [
            ModelDescription(name="bm25", kind="bm25", label="BM25"),
            ModelDescription(name="sbert", kind="embedder", label="SBERT", published_as=self.SBERT),
        ]
        inputs = inputs_of(records, models, folder, RELEASED_TABLE)
        inputs = inputs.with_files(**inputs.files, **RELEASED)
        tex, rows = written(RELEASED_TABLE, inputs, folder)
        keys = ("model", "query_mode", "composition", "scope", "measure")
        return tex, {tuple(row[key] for key in keys): row for row in rows}

    def test_three_numbers_and_a_verdict(self, tmp_path: Path) -> None:
        records = [
            self.record("sbert", "sentence", "full", (18.3449, 35.0861)),
            self.record("bm25", "sentence", "lit_sim_sense", (32.6233, 42.9956)),
            # The authors' run has no scores of BM25 with the full index.
            self.record("bm25", "sentence", "full", (36.0, 59.0)),
        ]
        tex, cells = self.write(records, tmp_path)
        verdicts = {key: (row["released"], row["released_verdict"]) for key, row in cells.items()}
        place = ("sbert", "sentence", "full", "")
        assert verdicts[*place, "r_precision"] == ("18.34", EQUAL)
        assert verdicts[*place, "ndcg_at_10"] == ("35.08", NOT_EQUAL)
        place = ("bm25", "sentence", "lit_sim_sense", "")
        assert verdicts[*place, "r_precision"] == ("32.6283", EQUAL)
        assert verdicts[*place, "ndcg_at_10"] == ("42.9956", EQUAL)
        assert not [key for key in cells if key[:3] == ("bm25", "sentence", "full")]
        printed = {key[0]: row["printed"] for key, row in cells.items() if row["printed"]}
        assert printed == {"sbert": "35.08"}
        assert cells["sbert", "sentence", "full", "", "r_precision"]["printed"] == "18.34"
        assert "18.34 (18.34) [18.34]" in tex
        assert "sentence: 3 of 6 scores" in tex

    def test_other_data_or_tuning_has_no_verdict(self, tmp_path: Path) -> None:
        sample = self.record("sbert", "sentence", "full", (18.34, 35.08))
        fixed = self.record("bm25", "sentence", "lit_sim_sense", (32.63, 43.0))
        assert fixed.tuning
        tuning = fixed.tuning.model_copy(update={"composition": "full"})
        records = [
            sample.model_copy(update={"dataset_is_released": False}),
            fixed.model_copy(update={"tuning": tuning}),
        ]
        _, cells = self.write(records, tmp_path)
        overall = [row for key, row in cells.items() if not key[3]]
        assert {row["released_verdict"] for row in overall} == {""}
        assert {row["released_reason"] for row in overall} == {
            "sample data, not the public IdioLink",
            "k1 and b of other queries or of another index than in the authors' run",
        }

    def test_table_2_has_the_released_score_in_its_csv(self, tmp_path: Path) -> None:
        record = self.record("sbert", "sentence", "full", (18.34, 35.08))
        model = ModelDescription(
            name="sbert", kind="embedder", label="SBERT", published_as=self.SBERT
        )
        inputs = inputs_of([record], [model], tmp_path, ZERO_SHOT_TABLE)
        inputs = inputs.with_files(**inputs.files, **RELEASED)
        _, rows = written(ZERO_SHOT_TABLE, inputs, tmp_path)
        shown = [
            (row["ours"], row["printed"], row["released"], row["released_verdict"])
            for row in rows
            if row["model"] == "sbert" and row["ours"]
        ]
        assert shown == [("18.34", "18.34", "18.34", EQUAL), ("35.08", "35.08", "35.08", EQUAL)]


class TestGains:
    """Tests of the gains: the printed 11.21 and 14.83 do not follow from Table 2; the others do."""

    EXPECTED: ClassVar = {
        ("instruction", "r_precision"): 10.53,
        ("instruction", "ndcg_at_10"): 14.19,
        ("span", "r_precision"): 12.13,
        ("span", "ndcg_at_10"): 13.49,
        ("combined", "r_precision"): 21.99,
        ("combined", "ndcg_at_10"): 22.71,
    }

    def printed(self, embedders: list[ModelDescription]) -> list[IdiolinkMetrics]:
        table = read_published(ROOT / "published/idiolink_table2.csv", ["model", "query_mode"])
        names = {model.published_as: model.name for model in embedders}
        return [
            metrics(names[checkpoint], mode, (row["r_precision_pct"], row["ndcg_at_10_pct"]))
            for (checkpoint, mode), row in table.items()
        ]

    def write(
        self, records: list[IdiolinkMetrics], models: list[ModelDescription], folder: Path
    ) -> tuple[str, dict[str, dict[str, str]]]:
        inputs = inputs_of(records, models, folder, GAINS_TABLE)
        tex, rows = written(GAINS_TABLE, inputs, folder)
        return tex, {row["measure"]: row for row in rows}

    def test_from_the_printed_table(
        self, embedders: list[ModelDescription], tmp_path: Path
    ) -> None:
        records = self.printed(embedders)
        tex, cells = self.write(records, embedders, tmp_path)
        assert len(cells) == 6
        for (gain, metric), expected in self.EXPECTED.items():
            row = cells[f"{gain}_gain_{metric}"]
            assert float(row["ours"]) == pytest.approx(expected, abs=0.006)
            is_reproduced = gain != "instruction"
            assert row["verdict"] == ("reproduced" if is_reproduced else "not reproduced")
        assert cells["instruction_gain_ndcg_at_10"]["printed"] == "14.83"
        assert "over 24 models" in tex
        assert "12.13\\printed{12.13}" in tex

    def test_means_over_some_models_are_not_comparable(
        self, embedders: list[ModelDescription], tmp_path: Path
    ) -> None:
        records = [row for row in self.printed(embedders) if row.model == "sbert"]
        records.append(metrics("smollm2-135m", "sentence", (1.0, 1.0)))
        tex, cells = self.write(records, embedders, tmp_path)
        row = cells["span_gain_r_precision"]
        assert (row["ours"], row["verdict"]) == ("22.54", "not comparable")
        assert row["reason"] == "over 1 of the paper's 24 models"
        assert "over 1 model," in tex
        # Means exclude the model that the paper does not have, so its file is not listed.
        assert len(row["files"].split()) == 4

    def test_a_missing_score_makes_the_mean_unknown(self) -> None:
        scores = {("a", "sentence", "r_precision"): 1.0, ("a", "span", "r_precision"): 3.0}
        scores |= {("b", "sentence", "r_precision"): 1.0}
        assert average_gains(scores, ["a"]) == {("span", "r_precision"): 2.0}
        assert average_gains(scores, ["a", "b"]) == {}
        assert set(GAINS) == {"instruction", "span", "combined"}


class TestRowsOfTheRun:
    def inputs(
        self,
        records: list[IdiolinkMetrics],
        models: list[ModelDescription],
        folder: Path,
        table: Table,
    ) -> DisplayInputs:
        """Return inputs of a run that configured three models, the first of which was left out."""
        inputs = inputs_of(records, models, folder, table)
        names = ("bge-m3", "smollm2-135m", "sbert")
        described = {model.name: model for model in models}
        others = (model for model in inputs.models if model.name not in names)
        left_out = PlannedRun(
            keys=paths.keys_of(
                "test", str(records[0].model).replace("sbert", names[0]), "sentence", 1
            ),
            metrics="",
            not_run="our GPU is too small",
        )
        update = {"rows": "run", "models": (*(described[name] for name in names), *others)}
        return inputs.model_copy(update={**update, "runs": (left_out,)})

    def test_table_2(self, embedders: list[ModelDescription], tmp_path: Path) -> None:
        records = [metrics(model, "sentence", (18.34, 35.0)) for model in ("sbert", "smollm2-135m")]
        inputs = self.inputs(records, embedders, tmp_path, ZERO_SHOT_TABLE)
        content = made(ZERO_SHOT_TABLE, inputs)
        rows = [row for group in content.groups for row in group.rows]
        assert [row.labels[0] for row in rows] == ["BGE-M3 (Dense)", "SmolLM2-135M", "SBERT"]
        assert rows[0].cells[0].number
        assert rows[0].cells[0].number.missing == "our GPU is too small"
        assert not content.titled
        assert content.columns == content.label_columns + 8
        whole = made(ZERO_SHOT_TABLE, inputs.model_copy(update={"rows": "paper"}))
        every = {row.labels: row.cells for group in whole.groups for row in group.rows}
        assert len(every) == 25
        for row in rows:
            assert row.cells == every[row.labels]

    def test_table_5(self, embedders: list[ModelDescription], tmp_path: Path) -> None:
        records = [
            metrics(f"{model}+sentence+paper", "sentence", (40.0, 70.0))
            for model in ("sbert", "smollm2-135m")
        ]
        inputs = self.inputs(records, embedders, tmp_path, FINETUNED_TABLE)
        content = made(FINETUNED_TABLE, inputs)
        assert [group.title for group in content.groups] == ["w/o inst - sentence"]
        rows = content.groups[0].rows
        assert [row.labels[0] for row in rows] == ["BGE-M3 (Dense)", "SmolLM2-135M", "SBERT"]
        assert rows[0].labels[1] == "equation 2"
        assert rows[0].cells[0].number
        assert rows[0].cells[0].number.missing == "our GPU is too small"


class TestPies:
    def ours(self, records: list[IdiolinkMetrics], folder: Path) -> pd.DataFrame:
        return by_pie_numbers(ours_of(records, folder))

    def records(self) -> list[IdiolinkMetrics]:
        return [
            metrics(model, mode, (1, 1), seed=seed, pies={"easy": easy, "hard": hard, "even": even})
            for model, mode, seed, easy, hard, even in (
                ("sbert", "sentence", 0, 90, 10, 50),
                ("sbert", "span", 0, 80, 20, 50),
                ("sbert+sentence+paper", "span", 1, 100, 30, 40),
                ("sbert+sentence+paper", "span", 2, 100, 50, 60),
            )
        ]

    def test_means_over_seeds_and_order(self, tmp_path: Path) -> None:
        scores = self.ours(self.records(), tmp_path)
        means = zero_shot_means(scores)
        assert hardest_first(scores, means) == ["hard", "even", "easy"]
        # Each fine-tuned model is compared with itself; other models do not matter.
        strong = metrics("other", "span", (1, 1), pies={"easy": 0, "hard": 99, "even": 0})
        for ours in (scores, self.ours([*self.records(), strong], tmp_path)):
            gains = gains_by_pie(ours)
            assert gains.values["span"].to_dict() == pytest.approx(
                {"easy": 20, "hard": 20, "even": 0}
            )
        tex, rows = written(BY_PIE_TABLE, inputs_of(self.records(), MODELS, tmp_path), tmp_path)
        # Two zero-shot runs, and the mean and deviation of a fine-tuned one.
        assert len(rows) == 3 * (2 + 2) * 2
        (mean,) = (
            row
            for row in rows
            if (row["scope"], row["loss"], row["measure"]) == ("hard", "paper", "ndcg_at_10")
        )
        assert (mean["ours"], len(mean["files"].split())) == ("40.00", 2)
        assert r"\begin{longtable}{llrr}" in tex
        assert "1 & hard" in tex

    def test_all_modes_are_averaged_over_the_same_models(self, tmp_path: Path) -> None:
        # BM25 has no instructions, and "mine" is external predictions of one mode.
        records = [
            metrics(model, mode, (1, 1), pies={"a": first, "b": second})
            for model, mode, first, second in (
                ("bm25", "sentence", 90, 60),
                ("bm25", "span", 90, 60),
                ("sbert", "sentence", 40, 50),
                ("sbert", "span", 44, 54),
                ("sbert", "instruction_sentence", 48, 49),
                ("sbert", "instruction_span", 46, 58),
                ("mine", "instruction_sentence", 0, 0),
            )
        ]
        ours = self.ours(records, tmp_path)
        means = zero_shot_means(ours)
        assert means.models == ["sbert"]
        assert means.values.loc["a", "sentence"] == pytest.approx(40)
        assert means.values.loc["a", "instruction_sentence"] == pytest.approx(48)
        assert hardest_first(ours, means) == ["a", "b"]
        inputs = inputs_of(records, MODELS, tmp_path)
        content = made(BY_PIE_TABLE, inputs)
        shown = [[cell.text for cell in row.cells] for row in content.groups[0].rows]
        assert shown == [["40.00", "44.00", "48.00", "46.00"], ["50.00", "54.00", "49.00", "58.00"]]
        notes = [
            "Every zero-shot mean is over the same models: SBERT.",
            "Not averaged, because a query mode or a score is missing: BM25, Mine.",
        ]
        assert list(content.notes[:2]) == notes
        figure = figure_by_pie(inputs)
        assert " ".join(notes) in " ".join(figure.get_supxlabel().split())
        plt.close(figure)

    def test_without_a_model_of_all_modes_the_largest_set_is_averaged(self, tmp_path: Path) -> None:
        records = [
            metrics(model, mode, (1, 1), pies={"a": score})
            for model, mode, score in (
                ("mine", "instruction_sentence", 0),
                ("bm25", "sentence", 90),
                ("bm25", "span", 80),
            )
        ]
        means = zero_shot_means(self.ours(records, tmp_path))
        assert (means.models, [*means.values]) == (["bm25"], ["sentence", "span"])
        none = zero_shot_means(self.ours([], tmp_path))
        assert (none.models, none.values.size) == ([], 0)

    def test_a_mode_with_an_unknown_score_is_not_averaged(self, tmp_path: Path) -> None:
        records = [
            metrics(model, mode, (1, 1), pies={"a": score, "b": 10})
            for model, mode, score in (
                ("sbert", "sentence", 20),
                ("sbert", "span", 30),
                ("mine", "sentence", 80),
                ("mine", "span", None),
            )
        ]
        means = zero_shot_means(self.ours(records, tmp_path))
        assert means.models == ["sbert"]
        assert means.values.loc["a", "sentence"] == pytest.approx(20)
        # A mean over seeds is unknown if one of them is.
        seeds = [
            metrics("sbert+sentence+paper", "sentence", (1, 1), seed=seed, pies={"a": score})
            for seed, score in ((1, 40), (2, None))
        ]
        assert self.ours(seeds, tmp_path)["ours"].isna().all()

    def test_changes_from_fine_tuning_are_of_the_same_models_in_all_modes(
        self, tmp_path: Path
    ) -> None:
        records = [
            metrics(model, mode, (1, 1), pies={"a": score})
            for model, mode, score in (
                ("sbert", "sentence", 10),
                ("sbert", "span", 20),
                ("sbert+sentence+paper", "sentence", 15),
                ("sbert+sentence+paper", "span", 30),
                ("sbert+span+paper", "span", 40),
                # Without a zero-shot run by span, there is no change to average.
                ("other", "sentence", 10),
                ("other+sentence+paper", "sentence", 90),
                ("other+sentence+paper", "span", 90),
            )
        ]
        gains = gains_by_pie(self.ours(records, tmp_path))
        assert gains.models == ["sbert"]
        assert gains.values.loc["a"].to_dict() == pytest.approx({"sentence": 5, "span": 15})


class TestSignificance:
    def test_few_units_have_all_sign_patterns(self) -> None:
        differences = np.random.default_rng(4).normal(0.3, 1.0, size=(3, 4))
        exact = []
        for row in differences:
            sums = [abs(np.dot(signs, row)) for signs in product((-1, 1), repeat=4)]
            exact.append(np.mean([total >= abs(row.sum()) - 1e-9 for total in sums]))
        p_values = randomization_test(differences, permutations=999, seed=1)
        np.testing.assert_allclose(p_values, exact)
        # Two patterns reach the sum of equal signs: all plus and all minus.
        for units in (2, 4):
            alike = np.full((1, units), 0.5)
            assert randomization_test(alike, permutations=999, seed=1).tolist() == [2 / 2**units]
        assert (sign_patterns(4, 999), sign_patterns(75, 999)) == (16, 999)

    def test_many_units_have_sampled_sign_patterns(self) -> None:
        differences = np.random.default_rng(4).normal(0.3, 1.0, size=(2, 14))
        exact = randomization_test(differences, permutations=2**14, seed=1)
        p_values = randomization_test(differences, permutations=9_999, seed=1)
        np.testing.assert_allclose(p_values, exact, atol=0.012)
        assert np.array_equal(p_values, randomization_test(differences, permutations=9_999, seed=1))
        equal, apart = np.zeros((1, 30)), np.full((1, 30), 0.5)
        assert randomization_test(equal, permutations=999, seed=0).tolist() == [1.0]
        assert randomization_test(apart, permutations=999, seed=0).tolist() == [0.001]

    def test_holm(self) -> None:
        assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
        assert holm([0.6, 0.7]) == [1.0, 1.0]

    def compared(self, pies: int) -> list[RankingComparison]:
        """Compare 40 queries whose R-Precision differs by 0.4 and whose nDCG@10 is equal."""
        names = {f"q{number}": f"p{number % pies}" for number in range(40)}
        low: QueryScores = {name: {"r_precision": 0.2, "ndcg_at_10": 0.5} for name in names}
        high: QueryScores = {name: {"r_precision": 0.6, "ndcg_at_10": 0.5} for name in names}
        modes = {"sentence": low, "span": high}
        return compare_modes(modes, names, permutations=999, resamples=50, seed=3)

    def test_pairs_of_modes(self) -> None:
        by_metric = {row.metric: row for row in self.compared(20)}
        assert by_metric["r_precision"].difference == pytest.approx(0.4)
        assert by_metric["r_precision"].p_value == pytest.approx(0.001)
        assert by_metric["ndcg_at_10"].p_value == 1.0
        assert {(row.first, row.second) for row in by_metric.values()} == {("sentence", "span")}
        # With four PIEs, the minimum is two of sixteen patterns for any number of queries.
        assert {row.metric: row.p_value for row in self.compared(4)}["r_precision"] == 2 / 16
        single = {row.metric: row for row in self.compared(1)}["r_precision"]
        assert (single.p_value, single.interval) == (1.0, None)

    def test_the_interval_resamples_pies(self) -> None:
        # Ten queries of one PIE gain and ten of another lose, so PIE resamples give both signs.
        queries = {f"q{number}": "gains" if number < 10 else "loses" for number in range(20)}
        first = {name: dict.fromkeys(("r_precision", "ndcg_at_10"), 0.5) for name in queries}
        second = {
            name: dict.fromkeys(("r_precision", "ndcg_at_10"), 0.9 if pie == "gains" else 0.1)
            for name, pie in queries.items()
        }
        modes = {"sentence": first, "span": second}
        comparisons = compare_modes(modes, queries, permutations=9, resamples=200, seed=0)
        assert comparisons[0].difference == pytest.approx(0)
        assert comparisons[0].interval is not None
        assert (comparisons[0].interval.low, comparisons[0].interval.high) == pytest.approx(
            (-0.4, 0.4)
        )

    @pytest.mark.parametrize(("pies", "patterns"), [(4, "all 16"), (20, "999")])
    def test_the_caption_states_the_resampling(
        self, pies: int, patterns: str, tmp_path: Path
    ) -> None:
        item = ModeSignificance(
            split="test", model="m", seed=0, queries=40, pies=pies,
            patterns=sign_patterns(pies, 999), resamples=50, dataset_is_released=True,
            comparisons=self.compared(pies), computed_from={},
        )  # fmt: skip
        write_json(tmp_path / "found.json", item.model_dump())
        model = ModelDescription(name="m", kind="embedder", label="M")
        inputs = DisplayInputs(metrics=(str(tmp_path / "found.json"),), models=(model,))
        content = made(SIGNIFICANCE_TABLE, inputs)
        assert (
            f"The {pies} PIEs were resampled with all their queries (40): 50 bootstrap samples, and"
            f" {patterns} sign patterns over PIEs."
        ) in content.caption
        tex, rows = written(SIGNIFICANCE_TABLE, inputs, tmp_path)
        assert "40.00 [40.00, 40.00]" in tex
        assert r"its 95\% interval and the $p$-value" in tex
        assert (rows[0]["low"], rows[0]["high"]) == ("40.00", "40.00")

    def test_metrics_with_an_unknown_score_are_not_tested(self) -> None:
        pies = {f"q{number}": f"p{number}" for number in range(4)}
        known: QueryScores = {name: {"r_precision": 0.2, "ndcg_at_10": 0.5} for name in pies}
        cut = known | {"q3": {"r_precision": None, "ndcg_at_10": 0.1}}
        modes = {"sentence": known, "span": cut}
        comparisons = compare_modes(modes, pies, permutations=99, resamples=50, seed=3)
        by_metric = {row.metric: row for row in comparisons}
        assert by_metric["ndcg_at_10"].difference == pytest.approx(-0.1)
        assert by_metric["ndcg_at_10"].interval is not None
        untested = by_metric["r_precision"].model_dump(exclude={"first", "second", "metric"})
        assert set(untested.values()) == {None}

    def test_every_pair_of_models_in_a_query_mode(self, tmp_path: Path) -> None:
        # "c" is 10 points above "a" in all four PIEs; gains and losses of "b" cancel.
        gains = {"a": (0, 0, 0, 0), "b": (20, 20, -20, -20), "c": (10, 10, 10, 10)}
        records = [
            metrics(
                model, mode, (50, 50), pies={f"p{n}": 50 + gain for n, gain in enumerate(of_model)}
            )
            for mode in ("span", "sentence")
            for model, of_model in gains.items()
            if (mode, model) != ("sentence", "c")
        ]
        models = [
            ModelDescription(name=name, kind="embedder", label=name.upper()) for name in gains
        ]
        made_from = inputs_of(records, models, tmp_path)
        options = {"permutations": 99, "resamples": 50}
        inputs = made_from.model_copy(update={"options": options})
        content = made(PAIRS_TABLE, inputs)
        tex, rows = written(PAIRS_TABLE, inputs, tmp_path)
        of_precision = [row for row in rows if row["measure"] == "r_precision_difference"]
        tested = {(row["query_mode"], row["against"], row["model"]): row for row in of_precision}
        assert list(tested) == [
            ("sentence", "a", "b"), ("span", "a", "b"), ("span", "a", "c"), ("span", "b", "c")
        ]  # fmt: skip
        above = tested["span", "a", "c"]
        assert (above["ours"], above["low"], above["high"]) == ("10.00", "10.00", "10.00")
        assert tested["span", "a", "b"]["ours"] == "0.00"
        # Two of sixteen patterns, times the three pairs of the mode.
        assert (above["p_value"], above["p_holm"]) == ("0.125", "0.375")
        assert above["files"].split() == [made_from.metrics[0], made_from.metrics[2]]
        assert "all 16 sign patterns" in content.caption
        assert "span & A & C" in tex
