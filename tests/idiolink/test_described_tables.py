"""Tables 3, 4 and 6: statements of the project compared with printed ones."""

import csv
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from idiolink_cases import inputs_of_table, study
from support import ROOT
from table_files import statements

from pieline.reporting.described import PACKAGES, is_same_size
from pieline.reporting.displays import Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import read_printed
from pieline.reporting.tables import TableContent, make_table, write_table
from pieline.studies.idiolink.tables.described import (
    ARTIFACTS_TABLE,
    CHECKPOINTS_TABLE,
    HYPERPARAMETERS_TABLE,
)

PUBLISHED = ROOT / "published"


def made(table: Table, inputs: DisplayInputs | None = None) -> TableContent:
    """Return the content of a table, by default in the default configuration."""
    inputs = inputs or inputs_of_table(study(), table.name.removeprefix("idiolink_"))
    return make_table(table.make, table.numbers, inputs)[0]


def tuned(*models: str, **settings: Any) -> dict[str, str]:
    """Return our values in Table 3 of a run, by parameter."""
    inputs = inputs_of_table(study(finetuning={"models": models, **settings}), "hyperparameters")
    _, numbers = make_table(HYPERPARAMETERS_TABLE.make, HYPERPARAMETERS_TABLE.numbers, inputs)
    assert numbers is not None
    values = zip(numbers["measure"], numbers["ours"], strict=True)
    return {name: "" if value != value else f"{value:g}" for name, value in values}


class TestHyperparameters:
    def test_the_papers_settings_are_as_printed(self) -> None:
        values = tuned("sbert", "drama-1b")
        assert values == {
            row["parameter"]: f"{float(row['value']):g}"
            for row in read_printed(PUBLISHED / "idiolink_table3.csv")
        }

    def test_settings_of_this_run_are_shown_instead_of_the_papers(self) -> None:
        values = tuned("drama-1b", max_epochs=2, learning_rate=3e-4, batch_size=4)
        assert values["max_epochs"] == "2"
        assert values["learning_rate"] == "0.0003"
        assert (values["batch_size"], values["batch_size_drama"]) == ("4", "4")
        assert tuned("drama-1b", batch_size=16)["batch_size_drama"] == "8"
        assert tuned("sbert", form="released")["early_stopping_min_delta"] == "0"

    def test_untrained_models_have_a_row_with_a_reason(self) -> None:
        assert tuned("sbert")["batch_size_drama"] == ""
        content = made(HYPERPARAMETERS_TABLE)
        rows = content.groups[0].rows
        assert len(rows) == len(read_printed(PUBLISHED / "idiolink_table3.csv"))
        assert {row.reason for row in rows} == {"no model is fine-tuned in this configuration"}
        assert {cell.ours for cell in statements(content).values()} == {""}


class TestArtifacts:
    def test_versions_match_the_lock_file(self) -> None:
        cells = statements(made(ARTIFACTS_TABLE))
        for name, package in PACKAGES.items():
            pinned = cells[name, "Version here"].ours
            assert metadata.version(package.name).partition("+")[0] == pinned

    @pytest.mark.parametrize("name", PACKAGES)
    def test_package_metadata_has_the_license_that_we_state(self, name: str) -> None:
        about = metadata.metadata(PACKAGES[name].name)
        fields = ("License-Expression", "License", "Classifier")
        licenses = [text for field in fields for text in about.get_all(field, [])]
        family = PACKAGES[name].licence.partition("-")[0]
        assert any(family in text for text in licenses)

    def test_only_pytorchs_license_differs_from_the_paper(self) -> None:
        cells = statements(made(ARTIFACTS_TABLE))
        other = {key[0] for key, cell in cells.items() if cell.reason == "not as printed"}
        assert other == {"PyTorch"}
        assert cells["PyTorch", "License"].printed == "Own"
        assert cells["MAGPIE", "Version here"].ours == "Git object 24a6ef5c"


class TestCheckpoints:
    def test_the_differences_from_the_printed_table(self) -> None:
        cells = statements(made(CHECKPOINTS_TABLE))
        assert len(cells) == 4 * len(read_printed(PUBLISHED / "idiolink_table6.csv"))

        def models(what: str, reason: str) -> set[str]:
            return {
                model
                for (model, key), cell in cells.items()
                if (key, cell.reason) == (what, reason)
            }

        assert models("# Param", "differs from the printed size even when rounded") == {
            *("SBERT", "BGE-base-en-v1.5", "InstructOR-base", "InstructOR-xl", "BGE-M3 (Dense)"),
        }
        assert models("Checkpoint", "spelled differently") == {"Stella-en-1.5B-v5"}
        assert not models("Checkpoint", "not as printed") | models("License", "not as printed")
        assert cells["GPT-4o mini", "# Param"].ours == "not published"
        assert len(cells["E5-base-v2", "Revision here"].ours) == 40

    def test_a_model_without_an_entry_has_a_row_with_a_reason(self) -> None:
        every = inputs_of_table(study(), "checkpoints")
        known = {name: option for name, option in every.options.items() if name != "BAAI/bge-m3"}
        content = made(CHECKPOINTS_TABLE, every.model_copy(update={"options": known}))
        rows = content.groups[0].rows
        assert {row.labels[0]: row.reason for row in rows if row.reason} == {
            "BGE-M3 (Dense)": "neither models.yaml nor idiolink.construction names it"
        }

    @pytest.mark.parametrize(
        ("ours", "of_paper", "same"),
        [
            ("109M", "110M", True),
            ("475M", "0.5B", True),
            ("1.5B", "2B", True),
            ("568M", "0.5B", False),
            ("22.7M", "110M", False),
            ("a few M", "110M", False),
            ("4.13M", "4.1M", True),
            ("32.68M", "32.7M", True),
            ("109", "109", True),
            ("108", "109", False),
            ("1M", "0M", False),
        ],
    )
    def test_sizes_are_rounded_to_the_printed_digits(
        self, ours: str, of_paper: str, same: bool
    ) -> None:
        assert is_same_size(ours, of_paper) is same


def test_statements_are_shown_but_never_count_as_reproduced(tmp_path: Path) -> None:
    for table in (HYPERPARAMETERS_TABLE, ARTIFACTS_TABLE, CHECKPOINTS_TABLE):
        name = table.name.removeprefix("idiolink_")
        files = {end: tmp_path / f"{name}.{end}" for end in ("tex", "csv", "html")}
        inputs = inputs_of_table(study(), name)
        content, numbers = make_table(table.make, table.numbers, inputs)
        write_table(name, content, numbers, templates=ROOT / "templates", **files)
        with files["csv"].open(encoding="utf-8") as stream:
            verdicts = {row.get("verdict", "") for row in csv.DictReader(stream)}
        assert verdicts == ({"not run"} if table is HYPERPARAMETERS_TABLE else {""})
    tuning = study(finetuning={"models": ["sbert", "drama-1b"]})
    inputs = inputs_of_table(tuning, "hyperparameters")
    _, numbers = make_table(HYPERPARAMETERS_TABLE.make, HYPERPARAMETERS_TABLE.numbers, inputs)
    assert numbers is not None
    assert {*numbers["verdict"]} == {"not comparable"}
    tex = (tmp_path / "checkpoints.tex").read_text(encoding="utf-8")
    assert r"stella\_en\_1.5B\_v5\printed{NovaSearch/stella-en-1.5B-v5}" in tex
    assert r"\printed{BAAI" not in tex  # as printed
    html = (tmp_path / "checkpoints.html").read_text(encoding="utf-8")
    assert (
        '<td title="differs from the printed size even when rounded">22.7M<small>110M</small></td>'
        in html
    )
