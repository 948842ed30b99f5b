"""Test Tables 1, 4, 7 and 8, the prompt and the example, which need no run."""

from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from table_files import content_of, statements
from test_baselines import jam_sentence as sentence

from pieline.core.records import save_jsonl
from pieline.llm.prompts import load_prompt
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.reporting.displays import Display
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import Number, rows_of
from pieline.reporting.printed import read_printed
from pieline.reporting.tables import TableContent, make_table, write_table
from pieline.studies.jam.settings import JamSettings
from pieline.studies.jam.study import JamStudy

PUBLISHED = ROOT / "published"


def declared(name: str, **settings: Any) -> tuple[Display, DisplayInputs]:
    """Return a table of the study on real data, and its inputs."""
    settings = {"models": ["gpt-4o"], **settings}
    run = Project(load_registry(ROOT / "models.yaml"), LLMSettings(), data="released", root=ROOT)
    shown = JamStudy(JamSettings.model_validate(settings), run).shown
    return next((each, given) for each, given in shown.items() if each.name == name)


def table_content(name: str, **settings: Any) -> TableContent:
    return content_of(*declared(name, **settings))


def hyperparameters(**settings: Any) -> dict[str, Number]:
    """Return the numbers of Table 4 by parameter."""
    table, given = declared("jam_hyperparameters", **settings)
    _, numbers = make_table(table.make, table.numbers, given)
    assert numbers is not None
    (by_name,) = rows_of(numbers, ()).values()
    return by_name


def test_table_1_has_the_languages_of_the_files_that_are_read(tmp_path: Path) -> None:
    table, given = declared("jam_datasets")
    content = content_of(table, given)
    cells = {name: cell for (name, _), cell in statements(content).items()}
    assert [cell.printed for cell in cells.values()] == [
        row["languages"] for row in read_printed(PUBLISHED / "jam_table1.csv")
    ]
    read = {name: cell.ours for name, cell in cells.items() if cell.ours}
    assert read == {
        "MAGPIE": "EN",
        "ID10M gold": "EN DE ES IT",
        "ID10M silver": "EN DE ES IT",
        "ID10M-JAM": "EN DE",
    }
    assert cells["ID10M silver"].reason == "this project reads no file in the others"
    reasons = {row.labels[0]: row.reason for row in content.groups[0].rows}
    assert {name for name, reason in reasons.items() if not reason} == read.keys()
    # The languages are those of the list of public files.
    listed = tmp_path / "upstream.yaml"
    listed.write_text("id10m/test_italian.tsv: {url: null, sha256: null}\n", encoding="utf-8")
    content = content_of(table, given.with_files(**given.files | {"upstream": str(listed)}))
    assert {name: cell.ours for (name, _), cell in statements(content).items() if cell.ours} == {
        "ID10M gold": "IT"
    }


def test_table_4_compares_settings() -> None:
    paper = {row["parameter"]: row["value"] for row in read_printed(PUBLISHED / "jam_table4.csv")}
    cells = statements(table_content("jam_hyperparameters", models=["mbert"]))
    texts = {name: cell.ours for (name, _), cell in cells.items()}
    assert texts == {
        "Epochs": paper["epochs"],
        "Batch size": paper["batch_size"],
        "Learning rate": paper["learning_rate"],
    }
    mine = {"epochs": 3, "learning_rate": 3e-4}
    numbers = hyperparameters(models=["mbert"], fine_tuning=mine)
    # The values are stated, so they count as printed numbers, but never as reproduced.
    assert {name: (one.ours, one.verdict, one.reason) for name, one in numbers.items()} == {
        "epochs": (3, "not comparable", "stated, not measured: not as printed"),
        "batch_size": (32, "not comparable", "stated, not measured: as printed"),
        "learning_rate": (3e-4, "not comparable", "stated, not measured: not as printed"),
    }
    assert {(one.kind, one.counts) for one in numbers.values()} == {("parameter", True)}
    without = hyperparameters()
    absent = "no encoder is fine-tuned in this configuration"
    assert {(one.ours, one.verdict, one.missing) for one in without.values()} == {
        (None, "not run", absent)
    }
    content = table_content("jam_hyperparameters")
    assert {row.reason for row in content.groups[0].rows} == {absent}


def test_table_7_and_the_registry_differ_in_what_is_known() -> None:
    content = table_content("jam_checkpoints")
    cells = statements(content)
    assert len(cells) == 4 * len(read_printed(PUBLISHED / "jam_table7.csv"))
    assert not any(row.reason for row in content.groups[0].rows)

    def models(what: str, reason: str) -> set[str]:
        return {name for (name, key), cell in cells.items() if (key, cell.reason) == (what, reason)}

    # The Hub does not have google/bert-bert-base-uncased.
    assert models("Checkpoint", "not as printed") == {"BERT"}
    assert models("Checkpoint", "printed without its organization") == {
        "Llama 4 Scout",
        "Qwen2.5-72B",
    }
    assert models("License", "not as printed") == set()
    assert models("# Param", "differs from the printed size even when rounded") == {"mBERT"}
    assert models("# Param", "as printed, rounded") == {"Llama-3.2-3B"}
    # The paper has no size for the Gemini models, either.
    assert models("# Param", "not stated in the paper") == {"Gemini 2.5 Flash", "Gemini 2.5 Pro"}
    assert cells["GPT-4o", "# Param"].ours == "not published"
    assert cells["GPT-4o", "# Param"].printed == "8B"
    assert len(cells["GBERT", "Revision here"].ours) == 40


def test_table_8_has_licences_and_versions() -> None:
    content = table_content("jam_artifacts")
    texts = {key: cell.ours for key, cell in statements(content).items()}
    assert {row.labels[0]: row.reason for row in content.groups[0].rows if row.reason} == {
        "LangChain": "not used in this project"
    }
    lock = (ROOT / "envs/requirements.lock").read_text(encoding="utf-8")
    assert f"\nagno=={texts['Agno', 'Version here']} " in lock
    assert "\nlangchain" not in lock
    assert texts["ID10M", "License"] == "CC-BY-NC-SA-4.0"
    assert "files by digest" in texts["ID10M", "Version here"]
    assert "not as printed" not in {cell.reason for cell in statements(content).values()}


def prompt_texts(content: TableContent) -> dict[tuple[str, str], str]:
    """Return the text of each turn by prompt and role."""
    return {
        (group.title, row.labels[0]): row.cells[0].text
        for group in content.groups
        for row in group.rows
    }


def test_figure_4_shows_the_sent_prompts(tmp_path: Path) -> None:
    content = table_content("jam_prompt")
    assert [group.title for group in content.groups] == [
        "Zero-shot",
        "Few-shot +SC+CoTBest",
        "Few-shot example",
    ]
    texts = prompt_texts(content)
    sent = load_prompt(ROOT / "prompts/jam/zero_shot.jinja")
    system, user = sent.messages(sentence="{sentence}", language="{language}")
    assert texts["Zero-shot", "System prompt"] == system.content
    assert texts["Zero-shot", "User prompt"] == user.content == "Sentence: {sentence}"
    assert texts["Few-shot example", "Answer"].endswith("idioms: [{idiom}]")

    own = tmp_path / "mine.jinja"
    own.write_text("=== user ===\nIdioms in {{ sentence }}?\n", encoding="utf-8")
    mine = {"file": str(own)}
    ways = ["zero_shot_schema", "zero_shot", "mine"]
    content = table_content("jam_prompt", settings=ways, prompts={"mine": mine})
    # A response format enforced by the provider is not part of the prompt.
    assert [group.title for group in content.groups] == ["Zero-shot, form enforced", "mine"]
    assert prompt_texts(content)["mine", "User prompt"] == "Idioms in {sentence}?"


def test_figure_1_has_an_original_of_each_usage_and_a_variant(tmp_path: Path) -> None:
    data = tmp_path / "english.jsonl"
    sentences = [
        sentence(original, number, figurative=original > 2)
        for original in (1, 2, 3, 4)
        for number in range(4)
    ]
    save_jsonl(data, sentences)
    table, given = declared("jam_example", languages=["english"])
    assert given.files == {"english": "results/datasets/jam/english.jsonl"}
    inputs = given.with_files(english=str(data))
    content = content_of(table, inputs)
    assert [row.labels for row in content.groups[0].rows] == [
        ("go dutch (literal)", "original"),
        ("go dutch (literal)", "hard variant"),
        ("go dutch (figurative)", "original"),
        ("go dutch (figurative)", "hard variant"),
    ]
    by_id = {item.id: item.sentence for item in sentences}
    assert [row.cells[0].text for row in content.groups[0].rows] == [
        by_id[name] for name in ("o1", "o1-v1", "o3", "o3-v1")
    ]


@pytest.mark.parametrize("wraps", [True, False])
def test_long_texts_are_broken_into_lines(wraps: bool, tmp_path: Path) -> None:
    content = table_content("jam_prompt" if wraps else "jam_artifacts")
    files = {end: tmp_path / f"table.{end}" for end in ("tex", "csv", "html")}
    write_table("table", content, None, templates=ROOT / "templates", **files)
    tex, html = (files[end].read_text(encoding="utf-8") for end in ("tex", "html"))
    assert (r"{llp{0.65\linewidth}}" in tex) is wraps
    assert (r"expert of this language.\newline \newline If detected" in tex) is wraps
    assert ('class="paper-table wraps"' in html) is wraps
    header = files["csv"].read_text(encoding="utf-8").splitlines()[0]
    assert header == "row,column,ours,printed,reason"
