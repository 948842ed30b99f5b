"""Printed numbers, reproduced from raw sentences and answers with the corresponding counts."""

import csv
import shutil
from pathlib import Path

import pytest
from idiots_cases import ROOT, predictions_of, published, score, sentences

from pieline.core.conditions import Conditions, RunIdentity
from pieline.core.files import write_json
from pieline.core.records import load_record
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.reporting.inputs import DisplayInputs, RowChoice
from pieline.reporting.tables import TableContent, make_table, write_table
from pieline.studies.idiots import runs as idiots_runs
from pieline.studies.idiots import tables
from pieline.studies.idiots.datasets import save_dataset
from pieline.studies.idiots.metrics import UNSORTED, DetectionMetrics
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.idiots.settings import IdiotsSettings
from pieline.studies.idiots.study import IdiotsStudy
from pieline.studies.idiots.verdicts import (
    ReviewCase,
    human_verdicts,
    names_pie,
    paired,
    read_cases,
    review_cases,
    save_cases,
)
from pieline.study import NOT_CONFIGURED

IDIOMS, IDIOMATIC, DISTRACTORS = 93, 164, 86
"""Numbers of idioms, idiomatic sentences and distractors in the test suite (section 3)."""


def printed_counts(model: str) -> dict[str, int]:
    """Return the counts behind Tables 1 to 3 of a model, given its printed name."""
    first, second, third = (published(f"idiots_table{number}")[model] for number in (1, 2, 3))
    return {
        "true_positives": round(second["true_positives"]),
        "right_idiom": round(second["true_positives_with_correct_idiom"]),
        "true_negatives": round(first["specificity"] * DISTRACTORS),
        "pie_in_distractor": round(third["false_positives_on_associated_pie"]),
    }


COUNTS = {
    name: printed_counts(entry.published_as)
    for name, entry in load_registry(ROOT / "models.yaml").items()
    if entry.published_as in published("idiots_table1")
}

ODD = {
    # 147 / (147 + 68) = 0.6837, rounded to two decimals and printed with a third.
    ("mistral-7b-instruct", "precision"): "0.684",
    # 47 / 86 = 0.5465 was cut off, not rounded.
    ("vicuna-7b", "ratio"): "0.547",
}
"""Printed cells that differ from the counts, with the values from the counts."""

TABLES = {"detection": 1, "consistency": 2, "distractors": 3}
MADE = {
    "detection": tables.DETECTION_TABLE,
    "consistency": tables.CONSISTENCY_TABLE,
    "distractors": tables.DISTRACTORS_TABLE,
    "errors": tables.ERRORS_TABLE,
    "dataset": tables.DATASET_TABLE,
}
REVIEWED = "llama-2-7b-chat"


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return metric files of the three models, from the texts of answers.

    A simulated person has judged all answers of Llama 2 like the matching function, and classified
    as many idioms as invented as the paper states.
    """
    folder = tmp_path_factory.mktemp("metrics")
    suite = [
        item.model_copy(update={"pie_id": f"idi{number % IDIOMS:03}"})
        for number, item in enumerate(sentences(IDIOMATIC, DISTRACTORS))
    ]
    save_dataset(folder, suite, origin="released")
    for model, counts in COUNTS.items():
        predictions = predictions_of(suite, **counts)
        verdicts = judged(suite, predictions, folder) if model == REVIEWED else {}
        metrics = score(suite, predictions, model=model, verdicts=verdicts)
        write_json(folder / f"{model}.json", metrics.model_dump())
    return [str(folder / f"{model}.json") for model in COUNTS]


def judged(
    suite: list[IdiotsSentence], predictions: list[DetectionPrediction], folder: Path
) -> dict[str, ReviewCase]:
    """Return the simulated human verdicts on a run's cases."""
    run = RunIdentity(REVIEWED, "zero_shot", 0)
    files = {"jsonl": folder / "cases.jsonl", "table": folder / "cases.csv"}
    invented = published("text_numbers", "id")["idiots.invented_llama2"]["value"]
    types = iter(["invented"] * round(invented))
    named = {
        prediction.id: "yes" if names_pie(sentence, prediction) else "no"
        for sentence, prediction in paired(suite, predictions)
    }
    cases = [
        case.model_copy(
            update={
                "verdict": named[case.sentence_id],
                "error_type": next(types, "phrasal_verb")
                if (case.gold, named[case.sentence_id]) == ("idiomatic", "no")
                else "",
            }
        )
        for case in review_cases(suite, predictions, run)
    ]
    save_cases(cases, **files)
    return human_verdicts(read_cases(files["table"]), predictions, run)


def make(
    table: str, metrics: list[str], folder: Path, rows: RowChoice = "paper"
) -> tuple[list[dict[str, str]], str]:
    """Return the CSV rows and LaTeX of a table; models without a metric file were not run."""
    run = Project(load_registry(ROOT / "models.yaml"), LLMSettings())
    models = run.describe_models(COUNTS)
    of_paper = {"is_configured": False, "not_run": NOT_CONFIGURED}
    ran, absent = models[: len(metrics)], models[len(metrics) :]
    declared = MADE[table]
    files = [ROOT / f"published/{name}" for name in ("tables.yaml", "schema.yaml")]
    files += [ROOT / f"published/{name}.csv" for name in declared.printed]
    inputs = DisplayInputs(
        study="idiots",
        display=declared.name,
        metrics=tuple(metrics),
        files={
            "manifest": str(Path(metrics[0]).with_name("manifest.json")),
            **{path.stem: str(path) for path in files},
        },
        models=(*ran, *(model.model_copy(update=of_paper) for model in absent)),
        data="released",
        rows=rows,
    )
    content, numbers = make_table(declared.make, declared.numbers, inputs)
    outputs = {name: folder / f"table.{name}" for name in ("tex", "csv", "html")}
    write_table(table, content, numbers, templates=ROOT / "templates", **outputs)
    with outputs["csv"].open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream)), outputs["tex"].read_text(encoding="utf-8")


@pytest.mark.parametrize("table", TABLES)
def test_table_from_counts(table: str, metrics: list[str], tmp_path: Path) -> None:
    lines, latex = make(table, metrics, tmp_path)
    rows = {(row["model"], row["measure"]): row for row in lines}
    printed = published(f"idiots_table{TABLES[table]}")
    models = load_registry(ROOT / "models.yaml")
    cells = {
        (model, metric): value
        for model in COUNTS
        for metric, value in printed[models[model].published_as or ""].items()
    }
    assert len(cells) == 3 * {"detection": 6, "consistency": 4, "distractors": 3}[table]
    for cell, value in cells.items():
        row = rows[cell]
        assert Path(row["files"]).stem == cell[0]
        shown = f"{float(row['ours']):.{row['decimals']}f}"
        if cell in ODD:
            assert (shown, row["verdict"]) == (ODD[cell], "not reproduced")
        else:
            assert (float(shown), row["verdict"]) == (value, "reproduced"), cell
        assert shown in latex


@pytest.mark.parametrize("table", [*TABLES, "errors"])
def test_rows_of_the_run_are_unchanged_rows_of_the_whole_table(
    table: str, metrics: list[str], tmp_path: Path
) -> None:
    whole, _ = make(table, metrics[:2], tmp_path)
    rows, latex = make(table, metrics[:2], tmp_path, rows="run")
    # The CSV has every number in both; only the layout selects.
    assert rows == whole
    assert NOT_CONFIGURED not in latex


def test_errors_and_the_invented_idioms_from_a_review(metrics: list[str], tmp_path: Path) -> None:
    lines, latex = make("errors", metrics, tmp_path)
    rows = {(row["model"], row["measure"]): row for row in lines}
    compared = {key: row["ours"] for key, row in rows.items() if row["verdict"] == "reproduced"}
    assert compared == {
        (REVIEWED, "false_negatives"): "0.0",
        ("mistral-7b-instruct", "false_negatives"): "17.0",
        ("vicuna-7b", "false_negatives"): "2.0",
        (REVIEWED, "invented"): "23.0",
    }
    assert rows[REVIEWED, "phrasal_verb"]["ours"] == "3.0"
    assert rows["vicuna-7b", "wrong_idiom"]["ours"] == "18.0"
    assert rows["vicuna-7b", "false_positives_elsewhere"]["ours"] == "32.0"
    # Cells without verdicts are empty with a reason, which the row repeats.
    assert rows["vicuna-7b", "invented"]["ours"] == ""
    assert UNSORTED in rows["vicuna-7b", "invented"]["reason"]
    assert latex.count(UNSORTED) == 1
    assert latex.count(r"Vicuna-7b\textsuperscript{a}") == 1
    assert r"Llama-2-7b-chat\textsuperscript" not in latex
    assert r"23\printed{23}" in latex


def test_agreement_is_shown_next_to_consistency(metrics: list[str], tmp_path: Path) -> None:
    lines, latex = make("consistency", metrics, tmp_path)
    cells = {(row["model"], row["measure"]): row["ours"] for row in lines}
    assert [cells[REVIEWED, name] for name in ("verdicts_human", "kappa")] == ["250.0", "1.0"]
    assert [cells["vicuna-7b", name] for name in ("verdicts_human", "kappa")] == ["0.0", ""]
    assert "People judged 250 of the 706 answers" in latex


def test_the_counts_of_section_3(metrics: list[str], tmp_path: Path) -> None:
    lines, _ = make("dataset", metrics, tmp_path)
    assert [(row["measure"], row["ours"], row["verdict"]) for row in lines] == [
        ("idioms", "93.0", "reproduced"),
        ("sentences", "250.0", "reproduced"),
        ("idiomatic", "164.0", "reproduced"),
        ("distractors", "86.0", "reproduced"),
    ]


def test_a_mirror_without_the_sentences_gives_rows_with_a_reason(tmp_path: Path) -> None:
    run = Project(
        load_registry(ROOT / "models.yaml"), LLMSettings(), "released", str(tmp_path), ROOT
    )
    study = IdiotsStudy(IdiotsSettings(models=list(COUNTS)), run)
    lack = "the mirror has no idiots/idioms_sentences.tsv"
    assert {run.impossible_because for run in study.plan} == {lack}
    assert study.raw_files() == study.plan.made() == study.tasks() == []
    sizes, first, *_ = study.tables()
    for table, cells in ((sizes, 4), (first, 18)):
        content, numbers = make_table(table.make, table.numbers, study.shown[table])
        rows = [row for group in content.groups for row in group.rows]
        assert {row.reason for row in rows} == {lack}
        assert numbers is not None
        assert numbers["printed"].notna().sum() == cells


def test_the_prompt_of_figures_1_and_2(tmp_path: Path) -> None:
    path = ROOT / "prompts/idiots/detect.jinja"
    content: TableContent = tables.prompt(DisplayInputs(files={"prompt": str(path)}))
    system, user, llama = (row.cells[0].text for group in content.groups for row in group.rows)
    assert system.startswith("You are a professional linguist")
    assert user == "sentence"
    assert llama == f"<s>[INST] <<SYS>>\n{system}\n<</SYS>> {user} [/INST]"
    outputs = {name: tmp_path / f"table.{name}" for name in ("tex", "csv", "html")}
    write_table("idiots_prompt", content, None, templates=ROOT / "templates", **outputs)
    assert "<<SYS>>" not in outputs["tex"].read_text(encoding="utf-8")


def test_each_count_is_the_only_one_for_the_printed_fraction() -> None:
    # No number of false positives gives this printed precision.
    assert not [fp for fp in range(87) if round(147 / (147 + fp), 3) == 0.680]
    first, second = published("idiots_table1"), published("idiots_table2")
    models = load_registry(ROOT / "models.yaml")
    for name, counts in COUNTS.items():
        model = models[name].published_as or ""
        of = counts["true_positives"]
        for count, size, printed in (
            (of, 164, first[model]["recall"]),
            (counts["true_negatives"], 86, first[model]["specificity"]),
            (counts["right_idiom"], of, second[model]["true_positive_consistency"]),
        ):
            assert [n for n in range(size + 1) if round(n / size, 3) == printed] == [count]


def test_a_model_that_was_not_run_has_a_row_with_a_reason(
    metrics: list[str], tmp_path: Path
) -> None:
    lines, latex = make("detection", metrics[:1], tmp_path)
    rows = [row for row in lines if row["model"] == "vicuna-7b"]
    assert len(rows) == 6
    assert all(
        (row["ours"], row["verdict"], row["reason"]) == ("", "not run", NOT_CONFIGURED)
        for row in rows
    )
    assert {row["printed"] for row in rows} >= {"0.988", "0.081"}
    row = latex[latex.index("Vicuna-7b") :].split(r"\\")[0]
    assert r"\textsuperscript{a}" in row
    assert r"--\printed{0.988}" in row
    assert NOT_CONFIGURED in latex
    html = (tmp_path / "table.html").read_text(encoding="utf-8")
    assert 'class="not-run"' in html
    assert "<small>0.988</small>" in html


def stated(settings: IdiotsSettings, root: Path = ROOT) -> list[str]:
    """Return the deviations from the paper of a run with these settings."""
    run = Project(load_registry(ROOT / "models.yaml"), LLMSettings(), root=root)
    study = IdiotsStudy(settings, run)
    return list(idiots_runs.conditions(study, REVIEWED, "zero_shot").deviations)


def test_deviations_are_a_reason(metrics: list[str], tmp_path: Path) -> None:
    shorter = {REVIEWED: {"max_tokens": {"zero_shot": 100}}}
    deviations = stated(IdiotsSettings.model_validate({"by_model": shorter}))
    assert deviations == ["max tokens 100, the paper 800"]
    record = load_record(metrics[0], DetectionMetrics)
    conditions = Conditions(deviations=tuple(deviations))
    path = tmp_path / "metrics.json"
    write_json(path, record.model_copy(update={"conditions": conditions}).model_dump(mode="json"))
    lines, _ = make("detection", [str(path)], tmp_path)
    row = next(row for row in lines if row["measure"] == "recall")
    assert (row["verdict"], row["reason"]) == ("not comparable", "; ".join(deviations))


@pytest.mark.parametrize(
    ("old", "new", "reasons"),
    [
        ("strict JSON", "JSON", ["the prompt detect.jinja is not the paper's wording"]),
        ("word by word.", "as printed.", []),
    ],
)
def test_a_reworded_prompt_is_a_deviation(
    old: str, new: str, reasons: list[str], tmp_path: Path
) -> None:
    (tmp_path / "published").symlink_to(ROOT / "published")
    shutil.copytree(ROOT / "prompts", tmp_path / "prompts")
    file = tmp_path / "prompts/idiots/detect.jinja"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    assert stated(IdiotsSettings(), tmp_path) == reasons
