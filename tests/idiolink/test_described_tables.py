"""Tables 3, 4 and 6: statements of the project compared with printed ones."""

from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from idiolink_cases import inputs_of_table, study
from support import ROOT

from pieline.reporting.described import PACKAGES, same_size
from pieline.reporting.printed import StatedText, read_printed
from pieline.reporting.tables import TableContent, write_table
from pieline.results.cells import read_cells
from pieline.studies.idiolink.tables.described import artifacts, checkpoints, hyperparameters

PUBLISHED = ROOT / "published"
NAMES = ("hyperparameters", "artifacts", "checkpoints")


def statements(content: TableContent) -> dict[tuple[str, ...], StatedText]:
    """Return the statements of a table by key."""
    by_key = {}
    for number in content.numbers():
        assert isinstance(number.comparison, StatedText)
        by_key[tuple(number.key.values())] = number.comparison
    return by_key


def tuned(*models: str, **settings: Any) -> dict[str, str]:
    """Return Table 3 of a run, by parameter."""
    content = hyperparameters(
        inputs_of_table(study(finetuning={"models": models, **settings}), "hyperparameters")
    )
    return {key[0]: cell.ours for key, cell in statements(content).items()}


class TestHyperparameters:
    def test_the_papers_settings_are_as_printed(self) -> None:
        values = tuned("sbert", "drama-1b")
        assert values == {
            row["parameter"]: row["value"]
            for row in read_printed(PUBLISHED / "idiolink_table3.csv")
        }

    def test_settings_of_this_run_are_shown_instead_of_the_papers(self) -> None:
        values = tuned("drama-1b", max_epochs=2, learning_rate=3e-4, batch_sizes={}, batch_size=16)
        assert values["max_epochs"] == "2"
        assert values["learning_rate"] == "0.0003"
        assert (values["batch_size"], values["batch_size_drama"]) == ("16", "16")
        values = tuned("sbert", hard_negatives=4, soft_negatives=1)
        assert (values["hard_negatives"], values["soft_negatives"]) == ("4", "1")

    def test_untrained_models_have_a_row_with_a_reason(self) -> None:
        assert tuned("sbert")["batch_size_drama"] == ""
        content = hyperparameters(inputs_of_table(study(), "hyperparameters"))
        rows = content.groups[0].rows
        assert len(rows) == len(read_printed(PUBLISHED / "idiolink_table3.csv"))
        assert {row.reason for row in rows} == {"no model is fine-tuned in this configuration"}
        assert {cell.ours for cell in statements(content).values()} == {""}


class TestArtifacts:
    def test_versions_match_the_lock_file(self) -> None:
        cells = statements(artifacts(inputs_of_table(study(), "artifacts")))
        for name, package in PACKAGES.items():
            pinned = cells[name, "version"].ours
            assert metadata.version(package.name).partition("+")[0] == pinned

    @pytest.mark.parametrize("name", PACKAGES)
    def test_package_metadata_has_the_license_that_we_state(self, name: str) -> None:
        about = metadata.metadata(PACKAGES[name].name)
        fields = ("License-Expression", "License", "Classifier")
        licenses = [text for field in fields for text in about.get_all(field, [])]
        family = PACKAGES[name].licence.partition("-")[0]
        assert any(family in text for text in licenses)

    def test_only_pytorchs_license_differs_from_the_paper(self) -> None:
        cells = statements(artifacts(inputs_of_table(study(), "artifacts")))
        other = {key[0] for key, cell in cells.items() if cell.reason == "not as printed"}
        assert other == {"PyTorch"}
        assert cells["PyTorch", "licence"].printed == "Own"
        assert cells["MAGPIE", "version"].ours == "Git object 24a6ef5c"


class TestCheckpoints:
    def test_the_differences_from_the_printed_table(self) -> None:
        cells = statements(checkpoints(inputs_of_table(study(), "checkpoints")))
        assert len(cells) == 4 * len(read_printed(PUBLISHED / "idiolink_table6.csv"))

        def models(what: str, reason: str) -> set[str]:
            return {
                model
                for (model, key), cell in cells.items()
                if (key, cell.reason) == (what, reason)
            }

        assert models("parameters", "differs from the printed size even when rounded") == {
            *("sbert", "bge-base-en-v1.5", "instructor-base", "instructor-xl", "bge-m3"),
        }
        assert models("checkpoint", "spelled differently") == {"stella-1.5b-v5"}
        assert not models("checkpoint", "not as printed") | models("licence", "not as printed")
        assert cells["gpt-4o-mini", "parameters"].ours == "not published"
        assert len(cells["e5-base-v2", "revision"].ours) == 40

    def test_a_model_without_an_entry_has_a_row_with_a_reason(self) -> None:
        every = inputs_of_table(study(), "checkpoints")
        known = {name: option for name, option in every.options.items() if name != "BAAI/bge-m3"}
        rows = checkpoints(every.model_copy(update={"options": known})).groups[0].rows
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
        ],
    )
    def test_sizes_are_rounded_to_the_printed_digits(
        self, ours: str, of_paper: str, same: bool
    ) -> None:
        assert same_size(ours, of_paper) is same


def test_statements_are_shown_but_never_count_as_reproduced(tmp_path: Path) -> None:
    makers = (hyperparameters, artifacts, checkpoints)
    for name, maker in zip(NAMES, makers, strict=True):
        files = {end: tmp_path / f"{name}.{end}" for end in ("tex", "csv", "html")}
        write_table(
            name, maker(inputs_of_table(study(), name)), templates=ROOT / "templates", **files
        )
    cells = read_cells(tmp_path / f"{name}.csv" for name in NAMES)
    assert {cell.verdict for cell in cells} == {"not comparable", "not run"}
    assert {cell.table for cell in cells if cell.verdict == "not run"} == {"hyperparameters"}
    tex = (tmp_path / "checkpoints.tex").read_text(encoding="utf-8")
    assert r"stella\_en\_1.5B\_v5\printed{NovaSearch/stella-en-1.5B-v5}" in tex
    assert r"\printed{BAAI" not in tex  # as printed
    html = (tmp_path / "checkpoints.html").read_text(encoding="utf-8")
    assert (
        '<td title="differs from the printed size even when rounded">22.7M<small>110M</small></td>'
        in html
    )
