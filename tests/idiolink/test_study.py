"""The study's declaration: files, trainings, conditions, tasks and tables, without Snakemake."""

from pathlib import Path
from typing import Any

import pytest
from idiolink_cases import REGISTRY, inputs_of_table, study
from support import ROOT

from pieline.config import layered
from pieline.core.errors import UserError
from pieline.core.yamls import read_yaml
from pieline.llm.settings import LLMSettings
from pieline.project import Project
from pieline.studies.idiolink import files as idiolink_files
from pieline.studies.idiolink import inputs as idiolink_inputs
from pieline.studies.idiolink import runs as idiolink_runs
from pieline.studies.idiolink import tasks as idiolink_tasks
from pieline.studies.idiolink.settings import IdiolinkSettings
from pieline.studies.idiolink.study import IdiolinkStudy
from pieline.studies.idiolink.variants.generation import TEMPERATURE
from pieline.studies.idiolink.variants.validation import VOTES


def configured(name: str) -> IdiolinkStudy:
    """Return the study as in one of the project's configurations."""
    raw = layered(read_yaml(ROOT / name), ROOT / "config/sample.yaml")
    return study(raw.get("data", "sample"), **raw["idiolink"])


class TestMistakes:
    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            ({"models": ["gpt-4o-mini"]}, "models: model 'gpt-4o-mini' is of kind 'llm'"),
            (
                {"finetuning": {"models": ["bm25"]}},
                r"finetuning\.models: model 'bm25' is of kind 'bm25'",
            ),
            (
                {"finetuning": {"models": ["sbert"], "tuples": "released"}},
                "the sample data has no tuples mined by the authors",
            ),
            ({"leave_out": {"bge-m3": "no GPU"}}, "'bge-m3' is not among the models to run"),
            ({"construction": {"validator": "sbert"}}, "construction: model 'sbert'"),
            ({"dataset": "constructed"}, "the construction is not enabled"),
            (
                {"construction": {"enabled": True, "prompts": "mine"}},
                r"construction\.prompts: mine has no documents\.jinja; see the files",
            ),
        ],
    )
    def test_invalid_settings(self, settings: dict[str, Any], problem: str) -> None:
        with pytest.raises(UserError, match=problem):
            study(**settings)


@pytest.mark.parametrize("name", ["config/paper.yaml", "config/released.yaml"])
def test_the_papers_settings(name: str) -> None:
    """A run on the real data uses appendix E.1, section 3.2 and appendix A."""
    settings = configured(name).settings
    assert len(settings.finetuning.seeds) == 3
    assert settings.bm25.k1 == [0.6, 0.9, 1.2, 1.5, 2.0]
    assert settings.bm25.b == [0.2, 0.4, 0.6, 0.75, 0.9]
    assert settings.top_k == 100
    construction = settings.construction
    assert construction.thresholds.model_dump() == {
        "min_occurrences": 30,
        "min_share": 0.25,
        "max_share": 0.75,
        "min_confidence": 1.0,
    }
    assert construction.splits.model_dump() == {"train": 22, "val": 10, "test": 75, "gold": 13}
    assert construction.pies is None
    assert len(construction.domains) == 10
    assert (VOTES, TEMPERATURE) == (3, 1)
    writers = (construction.index_writer, construction.query_writer, construction.validator)
    assert writers == ("gemini-2.5-pro", "gemini-3-flash-preview", "gpt-4o-mini")


def deviations(idiolink: IdiolinkStudy, model: str) -> list[str]:
    return list(idiolink_runs.conditions(idiolink, model).deviations)


class TestConditions:
    @pytest.mark.parametrize("name", ["config/paper.yaml", "config/released.yaml"])
    def test_the_papers_settings_have_no_deviations(self, name: str) -> None:
        idiolink = configured(name)
        for model in [*idiolink.settings.models, *idiolink_runs.tuned_models(idiolink)]:
            assert deviations(idiolink, model) == []

    def test_each_deviation_is_listed(self) -> None:
        idiolink = study(
            top_k=50,
            bm25={"k1": [0.9], "b": [0.4]},
            finetuning={"models": ["sbert"], "max_epochs": 2, "batch_size": 8, "threads": 4},
        )
        assert deviations(idiolink, "sbert") == ["top k 50, the paper 100"]
        assert deviations(idiolink, "bm25") == [
            "top k 50, the paper 100",
            "k1 0.9, the paper 0.6 0.9 1.2 1.5 2.0",
            "b 0.4, the paper 0.2 0.4 0.6 0.75 0.9",
        ]
        assert deviations(idiolink, "sbert+sentence+paper") == [
            "top k 50, the paper 100",
            "max epochs 2, the paper 10",
            "batch size 8, the paper 32",
        ]
        # The paper trains this model with a smaller batch size.
        assert deviations(idiolink, "drama-1b+sentence+paper")[-1].startswith("max")

    @pytest.mark.parametrize(
        ("changes", "changed", "unchanged"),
        [
            ({"device": "mps"}, "sbert", "bm25"),
            ({"finetuning": {"form": "released"}}, "sbert+sentence+paper", "sbert"),
            ({"bm25": {"k1": [0.9]}}, "bm25", "sbert"),
        ],
    )
    def test_a_setting_outdates_only_the_runs_that_it_affects(
        self, changes: dict[str, Any], changed: str, unchanged: str
    ) -> None:
        def same(model: str) -> bool:
            runs = [idiolink_runs.conditions(each, model) for each in (study(), study(**changes))]
            return runs[0] == runs[1]

        assert not same(changed)
        assert same(unchanged)

    def test_released_inputs_are_recorded_but_are_no_deviation(self) -> None:
        for inputs, written in (
            ("paper", "instruction_newline_query"),
            ("released", "instruct_query"),
        ):
            idiolink = study(data="released", models=["e5-base-v2"], inputs=inputs)
            conditions = idiolink_runs.conditions(idiolink, "e5-base-v2")
            assert conditions.deviations == ()
            assert conditions.settings["inputs"] == inputs
            assert conditions.weights["instruction_format"] == written


class TestFiles:
    def test_bm25_uses_parameters_per_mode_and_index_only_in_the_ablation(self) -> None:
        place = "results/predictions/idiolink/{}/bm25/{}/tuning.json".format
        idiolink = study()
        for mode in ("sentence", "span"):
            assert idiolink_files.tuning(idiolink, "bm25", "test", mode) == place("val", "sentence")
            assert idiolink_files.tuning(idiolink, "bm25", "test-lit_idiom", mode) == place(
                "val-lit_idiom", mode
            )
        assert idiolink_files.tuning(idiolink, "sbert", "test-lit_idiom", "span") is None

    def test_custom_prompts_replace_the_projects(self, tmp_path: Path) -> None:
        for name in ("documents", "queries", "validate"):
            (tmp_path / f"{name}.jinja").write_text("=== user ===\n{{ pie }}\n", "utf-8")
        idiolink = study(construction={"enabled": True, "prompts": str(tmp_path)})
        assert idiolink_tasks.writing(idiolink, "queries").inputs["prompt"] == str(
            tmp_path / "queries.jinja"
        )
        assert idiolink_tasks.validation(idiolink, "queries").inputs["prompt"] == str(
            tmp_path / "validate.jinja"
        )

    def test_released_tuples_are_used_if_available(self, tmp_path: Path) -> None:
        wanted = {"finetuning": {"models": ["sbert"], "tuples": "released_where_available"}}
        settings = IdiolinkSettings.model_validate(wanted)
        file = tmp_path / "idiolink/train/triplets_train_full.jsonl"
        file.parent.mkdir(parents=True)
        file.touch()
        sampled = "results/datasets/idiolink/train/tuples/sampled-seed-42.jsonl"
        released = "results/datasets/idiolink/train/tuples/released.jsonl"
        for data, mirror, expected in (
            ("sample", None, sampled),
            ("released", None, released),
            ("released", str(tmp_path / "idiolink"), sampled),
            ("released", str(tmp_path), released),
        ):
            run = Project(REGISTRY, LLMSettings(), data, mirror, root=ROOT)  # type: ignore[arg-type]
            idiolink = IdiolinkStudy(settings, run)
            assert idiolink_files.tuples(idiolink, "42") == expected
            conditions = idiolink_runs.conditions(idiolink, "sbert+sentence+paper")
            is_released = expected == released
            assert conditions.settings["tuples"] == ("released" if is_released else "sampled")
            raw = "results/raw/idiolink/train/triplets_train_full.jsonl"
            assert (raw in idiolink.raw_files()) == is_released

    def test_a_fine_tuned_model_loads_its_trained_weights(self) -> None:
        idiolink = study()
        assert idiolink_files.weights(idiolink, "sbert+span+released", "7") == (
            "results/training/idiolink/sbert/span/released/seed-7/weights.sha256"
        )
        assert idiolink_files.weights(idiolink, "smollm2-135m", "0") == (
            "results/raw/weights/smollm2-135m.sha256"
        )
        assert idiolink_files.weights(idiolink, "sbert", "0") is None
        assert idiolink_files.vectors(idiolink, "test-lit_idiom", "sbert", "documents", "0") == (
            "results/predictions/idiolink/test/sbert/documents/seed-0.npy"
        )


class TestLeftOut:
    def test_a_skipped_model_has_a_row_with_a_reason(self) -> None:
        tuning = {"models": ["bge-m3", "sbert"]}
        idiolink = study(
            models=["bm25", "sbert", "bge-m3"],
            finetuning=tuning,
            leave_out={"bge-m3": "our GPU is too small"},
        )
        assert not any("bge-m3" in path for path in idiolink.metrics())
        for name in ("zero_shot", "finetuned"):
            inputs = inputs_of_table(idiolink, name)
            left_out = {(run.keys["model"], run.not_run) for run in inputs.left_out()}
            assert left_out == {("bge-m3", "our GPU is too small")}
            assert "bge-m3" in {model.name for model in inputs.own_models()}
        alone = study(
            finetuning={"models": ["bge-m3"]}, leave_out={"bge-m3": "our GPU is too small"}
        )
        assert "idiolink_finetuned" in {table.name for table in alone.tables()}


class TestDeclaration:
    def test_results_that_are_not_run_have_no_table(self) -> None:
        idiolink = study(models=["bm25"], compositions=["full"], data="released")
        names = {table.name for table in idiolink.tables()}
        assert names == {
            *("idiolink_example", "idiolink_dataset", "idiolink_zero_shot", "idiolink_bm25"),
            *("idiolink_significance", "idiolink_by_pie", "idiolink_released"),
            *("idiolink_hyperparameters", "idiolink_artifacts", "idiolink_checkpoints"),
        }
        assert not any("construct" in name for name in idiolink.targets())
        assert not idiolink.tasks()
        # Scores on the sample have no counterpart in the authors' run.
        sample = study(models=["bm25"], compositions=["full"])
        assert "idiolink_released" not in {table.name for table in sample.tables()}

    def test_the_whole_grid(self) -> None:
        """24 embedders in 4 modes, BM25 in 2, over 3 indexes; 40 trainings with 3 seeds each."""
        idiolink = configured("config/paper.yaml")
        assert len(idiolink.plan.made(seed="0")) == (24 * 4 + 2) * 3
        # With both losses.
        assert len(idiolink_runs.tuned_models(idiolink)) == 20 * 2
        trained_runs = idiolink_inputs.fine_tuned_runs(idiolink, include_impossible=True)
        assert len(trained_runs) == (10 * 2 + 10) * 3 * 2


class TestAsking:
    def test_validation_waits_for_the_texts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)  # a run in this clone may have made the files
        idiolink = configured("config.yaml")
        asked = {asking.name: asking for asking in idiolink.llm_tasks()}
        assert not asked["idiolink_generate"].after_answers
        assert asked["idiolink_validate"].after_answers == ("texts",)
        for task in asked["idiolink_validate"].tasks():
            with pytest.raises(UserError, match="no such file"):
                task.questions(task.entry())
