"""The study's declaration: files, trainings, conditions, tasks and tables, without Snakemake."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

from pieline.config import layered
from pieline.core.errors import UserError
from pieline.core.yamls import read_yaml
from pieline.llm.recordings import read_answers
from pieline.llm.settings import LLMSettings
from pieline.models.embedder import EmbedderEntry
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.studies.idiolink import files as idiolink_files
from pieline.studies.idiolink import inputs as idiolink_inputs
from pieline.studies.idiolink import models as idiolink_models
from pieline.studies.idiolink import questions as idiolink_questions
from pieline.studies.idiolink import runs as idiolink_runs
from pieline.studies.idiolink.originals.pairs import filter_magpie
from pieline.studies.idiolink.originals.pie_filter import FilterOptions
from pieline.studies.idiolink.settings import IdiolinkSettings
from pieline.studies.idiolink.study import IdiolinkStudy

REGISTRY = load_registry(ROOT / "models.yaml")


def study(data: Any = "sample", **settings: Any) -> IdiolinkStudy:
    """Return the study with these settings."""
    run = Project(REGISTRY, LLMSettings(recordings_folder=ROOT / "recordings"), data, root=ROOT)
    return IdiolinkStudy(IdiolinkSettings.model_validate(settings), run)


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
                {"finetuning": {"models": ["sbrt"]}},
                r"finetuning\.models: unknown model 'sbrt'; did you mean 'sbert'",
            ),
            (
                {"finetuning": {"models": ["bm25"]}},
                r"finetuning\.models: model 'bm25' is of kind 'bm25'",
            ),
            (
                {"finetuning": {"models": ["sbert"], "tuples": "released"}},
                "the sample data has no released tuples",
            ),
            ({"leave_out": {"sbrt": "no GPU"}}, r"leave_out: unknown model 'sbrt'"),
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

    def test_an_unknown_key_is_invalid_and_the_defaults_are_valid(self) -> None:
        with pytest.raises(ValueError, match="los"):
            study(finetuning={"los": ["paper"]})
        assert study().models() == ["bm25", "sbert"]


PRINTED: dict[str, Any] = {
    # Table 3.
    "max_epochs": 10,
    "batch_size": 32,
    "batch_sizes": {"drama-1b": 8},
    "learning_rate": 2e-5,
    "warmup_steps": 100,
    "min_delta": 0.001,
    "patience": 3,
    "soft_negatives": 3,
    "hard_negatives": 2,
}


@pytest.mark.parametrize("name", ["config/paper.yaml", "config/released.yaml"])
def test_the_papers_settings(name: str) -> None:
    """A run on the real data uses Table 3, appendix E.1, section 3.2 and appendix A."""
    settings = configured(name).settings
    stated = settings.finetuning.model_dump(include=set(PRINTED))
    assert stated == PRINTED
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
    assert construction.runs == 3
    assert construction.parameters.temperature == 1
    writers = (construction.index_writer, construction.query_writer, construction.validator)
    assert writers == ("gemini-2.5-pro", "gemini-3-flash-preview", "gpt-4o-mini")


class TestConditions:
    def deviations(self, conditions: str) -> list[str]:
        listed: list[str] = json.loads(conditions)["deviations"]
        return listed

    @pytest.mark.parametrize("name", ["config/paper.yaml", "config/released.yaml"])
    def test_the_papers_settings_have_no_deviations(self, name: str) -> None:
        idiolink = configured(name)
        for model in [*idiolink.settings.models, *idiolink_runs.tuned_models(idiolink)]:
            assert self.deviations(idiolink_runs.conditions(idiolink, model).canonical()) == []

    def test_each_deviation_is_listed(self) -> None:
        idiolink = study(
            top_k=50,
            bm25={"k1": [0.9], "b": [0.4]},
            finetuning={"models": ["sbert"], "max_epochs": 2, "batch_size": 8, "threads": 4},
        )
        assert self.deviations(idiolink_runs.conditions(idiolink, "sbert").canonical()) == [
            "top k 50, the paper 100"
        ]
        assert self.deviations(idiolink_runs.conditions(idiolink, "bm25").canonical()) == [
            "top k 50, the paper 100",
            "k1 0.9, the paper 0.6 0.9 1.2 1.5 2.0",
            "b 0.4, the paper 0.2 0.4 0.6 0.75 0.9",
        ]
        conditions = idiolink_runs.conditions(idiolink, "sbert+sentence+paper").canonical()
        assert self.deviations(conditions) == [
            "top k 50, the paper 100",
            "max epochs 2, the paper 10",
            "batch size 8, the paper 32",
        ]
        assert json.loads(conditions)["settings"]["tuples"] == "sampled"
        assert json.loads(conditions)["weights"]["checkpoint"] == REGISTRY["sbert"].checkpoint  # type: ignore[union-attr]
        # The paper trains this model with a smaller batch size.
        assert self.deviations(
            idiolink_runs.conditions(idiolink, "drama-1b+sentence+paper").canonical()
        )[-1].startswith("max")

    def test_released_inputs_are_recorded_but_are_no_deviation(self) -> None:
        for inputs, written in (("paper", "passage: "), ("released", "")):
            idiolink = study(data="released", models=["e5-base-v2"], inputs=inputs)
            conditions = idiolink_runs.conditions(idiolink, "e5-base-v2").canonical()
            assert self.deviations(conditions) == []
            assert json.loads(conditions)["settings"]["inputs"] == inputs
            assert json.loads(conditions)["weights"]["passage_prefix"] == written
            assert idiolink_models.embedder(idiolink, "e5-base-v2").passage_prefix == written

    def test_dataset_conditions_include_the_construction(self) -> None:
        sample = configured("config.yaml")
        assert "min occurrences 8, the paper 30" in self.deviations(
            idiolink_runs.data_conditions(sample, "constructed").canonical()
        )
        assert (
            self.deviations(idiolink_runs.data_conditions(sample, "released_format").canonical())
            == []
        )


class TestFiles:
    def test_modes(self) -> None:
        idiolink = study(models=["bm25", "sbert"])
        assert idiolink_runs.modes_of(idiolink, "bm25") == ["sentence", "span"]
        assert len(idiolink_runs.modes_of(idiolink, "sbert")) == 4
        assert idiolink_runs.modes_of(idiolink, "sbert+instruction_sentence+paper") == [
            "instruction_sentence",
            "instruction_span",
        ]
        assert idiolink_runs.modes_of(idiolink, "sbert+span+paper") == ["span"]

    def test_bm25_uses_parameters_per_mode_and_index_only_in_the_ablation(self) -> None:
        place = "results/predictions/idiolink/{}/bm25/{}/tuning.json".format
        idiolink = study()
        for mode in ("sentence", "span"):
            assert idiolink_files.tuning(idiolink, "bm25", "test", mode) == place("val", "sentence")
            assert idiolink_files.tuning(idiolink, "bm25", "test-lit_idiom", mode) == place(
                "val-lit_idiom", mode
            )
        assert idiolink_files.tuning(idiolink, "sbert", "test-lit_idiom", "span") is None
        one = study(bm25={"tuning": "sentence"})
        assert idiolink_files.tuning(one, "bm25", "test-lit_idiom", "span") == place(
            "val", "sentence"
        )
        # Settings that do not affect the full index leave its metrics up to date.
        assert (
            idiolink_runs.conditions(one, "bm25").canonical()
            == idiolink_runs.conditions(idiolink, "bm25").canonical()
        )

    def test_every_run_has_its_scores_by_query(self) -> None:
        idiolink = study(compositions=["lit_idiom"], finetuning={"models": ["sbert"], "seeds": [1]})
        files = idiolink.items().behind
        # Two modes of BM25 and four of SBERT over two indexes; trainings over the full index.
        assert len(files) == len(set(files)) == 2 * (2 + 4) + 6
        assert "results/metrics/idiolink/test-lit_idiom/bm25/span/seed-0.queries.csv" in files
        assert study(models=[]).items().behind == ()

    def test_custom_prompts_replace_the_projects(self, tmp_path: Path) -> None:
        for name in ("documents", "queries", "validate"):
            (tmp_path / f"{name}.jinja").write_text("=== user ===\n{{ pie }}\n", "utf-8")
        idiolink = study(construction={"enabled": True, "prompts": str(tmp_path)})
        assert idiolink_questions.writing(idiolink, "queries").inputs["prompt"] == str(
            tmp_path / "queries.jinja"
        )
        assert idiolink_questions.validation(idiolink, "queries").inputs["prompt"] == str(
            tmp_path / "validate.jinja"
        )
        assert (
            idiolink_runs.data_conditions(idiolink, "constructed").canonical()
            == idiolink_runs.data_conditions(study(), "constructed").canonical()
        )

    def test_batch_size_of_one_model_and_format_of_queries(self) -> None:
        idiolink = study(finetuning={"models": ["sbert", "drama-1b"]})
        drama = idiolink_models.training(idiolink, "drama-1b", "sentence", "paper", "42")
        assert (drama.batch_size, drama.seed) == (8, 42)
        assert (
            idiolink_models.training(idiolink, "sbert", "sentence", "paper", "42").batch_size == 32
        )
        assert "query_prefix" in idiolink_models.training_spec(idiolink, "sbert", "sentence")
        assert "query_prefix" not in idiolink_models.training_spec(
            idiolink, "sbert", "instruction_span"
        )

    def test_an_apple_gpu_is_stated_only_for_embedders(self) -> None:
        usual, apple = study(), study(device="mps")
        assert json.loads(idiolink_models.embedder(apple, "sbert").execution_spec()) == {
            **json.loads(idiolink_models.embedder(usual, "sbert").execution_spec()),
            "device": "mps",
        }
        assert (
            idiolink_runs.conditions(apple, "sbert").canonical()
            != idiolink_runs.conditions(usual, "sbert").canonical()
        )
        assert (
            idiolink_runs.conditions(apple, "bm25").canonical()
            == idiolink_runs.conditions(usual, "bm25").canonical()
        )
        for spec in ("sentence", "span"):
            assert idiolink_models.training_spec(
                apple, "sbert", spec
            ) == idiolink_models.training_spec(usual, "sbert", spec)

    def test_other_numbers_of_negatives_deviate_and_retrain(self) -> None:
        idiolink = study(finetuning={"models": ["sbert"], "hard_negatives": 1})
        usual = study(finetuning={"models": ["sbert"]})
        tuned = "sbert+sentence+paper"
        stated = json.loads(idiolink_runs.conditions(idiolink, tuned).canonical())
        assert stated["deviations"] == ["hard negatives 1, the paper 2"]
        assert (stated["settings"]["hard_negatives"], stated["settings"]["soft_negatives"]) == (
            *(1, 3),
        )
        assert json.loads(idiolink_runs.conditions(usual, tuned).canonical())["deviations"] == []
        run = ("sbert", "sentence", "paper", "42")
        assert idiolink_models.training(idiolink, *run) != idiolink_models.training(usual, *run)
        assert (
            idiolink_runs.conditions(idiolink, "sbert").canonical()
            == idiolink_runs.conditions(usual, "sbert").canonical()
        )

    @pytest.mark.parametrize(("name", "most"), [("hard_negatives", 2), ("soft_negatives", 3)])
    def test_released_tuples_limit_the_number_of_negatives(
        self, tmp_path: Path, name: str, most: int
    ) -> None:
        file = tmp_path / "idiolink/train/triplets_train_full.jsonl"
        file.parent.mkdir(parents=True)
        file.touch()
        run = Project(REGISTRY, LLMSettings(), "released", str(tmp_path), root=ROOT)
        for tuples, number in (("released", most), ("sampled", most + 1)):
            tuning = {"models": ["sbert"], "tuples": tuples, name: number}
            IdiolinkStudy(IdiolinkSettings.model_validate({"finetuning": tuning}), run)
        tuning = {"models": ["sbert"], "tuples": "released", name: most + 1}
        settings = IdiolinkSettings.model_validate({"finetuning": tuning})
        problem = rf"finetuning\.{name}: {most + 1} exceeds the {most} in the released tuples"
        with pytest.raises(UserError, match=problem):
            IdiolinkStudy(settings, run)

    def test_released_tuples_are_used_if_available(self, tmp_path: Path) -> None:
        wanted = {"finetuning": {"models": ["sbert"], "tuples": "released_where_available"}}
        settings = IdiolinkSettings.model_validate(wanted)
        file = tmp_path / "idiolink/train/triplets_train_full.jsonl"
        file.parent.mkdir(parents=True)
        file.touch()
        sampled = "results/datasets/idiolink/train/tuples/sampled-seed-42.jsonl"
        released = "results/datasets/idiolink/train/tuples/released.jsonl"
        # Released tuples have no public URL.
        for data, mirror, expected in (
            ("sample", None, sampled),
            ("released", None, sampled),
            ("released", str(tmp_path / "idiolink"), sampled),
            ("released", str(tmp_path), released),
        ):
            run = Project(REGISTRY, LLMSettings(), data, mirror, root=ROOT)  # type: ignore[arg-type]
            idiolink = IdiolinkStudy(settings, run)
            assert idiolink_files.tuples(idiolink, "42") == expected
            origin = json.loads(
                idiolink_runs.conditions(idiolink, "sbert+sentence+paper").canonical()
            )["settings"]["tuples"]
            assert origin == ("released" if expected == released else "sampled")
            raw = "results/raw/idiolink/train/triplets_train_full.jsonl"
            assert (raw in idiolink.raw_files()) == (expected == released)

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

    def test_a_local_checkpoint_includes_every_file_of_its_folder(self, tmp_path: Path) -> None:
        folder = tmp_path / "weights"
        (folder / "1_Pooling").mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"0")
        (folder / "1_Pooling/config.json").write_text("{}", encoding="utf-8")
        entry = REGISTRY["sbert"]
        assert isinstance(entry, EmbedderEntry)
        changes = {"source": "folder", "path": str(folder), "package": None}
        own = entry.model_copy(update=changes)
        run = Project({"sbert": REGISTRY["sbert"], "own": own}, LLMSettings())
        names = [str(folder / name) for name in ("1_Pooling/config.json", "model.safetensors")]
        assert run.weights_files("own") == names
        assert run.weights_files("own+span+paper") == names
        assert run.weights_files("sbert") == []

    def test_files_behind_a_number(self) -> None:
        idiolink = configured("config.yaml")
        path = "results/metrics/idiolink/test-lit_idiom/sbert/span/seed-0.json"
        files = idiolink.plan[path].behind
        assert files[0] == "results/predictions/idiolink/test-lit_idiom/sbert/span/seed-0.run.gz"
        assert "results/datasets/idiolink/test-lit_idiom/queries.jsonl" in files
        for name in idiolink_runs.significance_tests(idiolink, idiolink.plan):
            assert name not in idiolink.plan


class TestLeftOut:
    def test_a_skipped_model_has_a_row_with_a_reason(self) -> None:
        tuning = {"models": ["bge-m3", "sbert"]}
        idiolink = study(
            models=["bm25", "sbert", "bge-m3"],
            finetuning=tuning,
            leave_out={"bge-m3": "our GPU is too small"},
        )
        assert not any("bge-m3" in path for path in idiolink.metrics())
        for name in ("idiolink_zero_shot", "idiolink_finetuned"):
            (inputs,) = (idiolink.shown[table] for table in idiolink.tables() if table.name == name)
            assert inputs.why_not("bge-m3") == "our GPU is too small"
            assert "bge-m3" in {model.name for model in inputs.absent}
        assert idiolink.left_out() == {"bge-m3": "our GPU is too small"}
        alone = study(finetuning={"models": ["bge-m3"]}, leave_out=idiolink.left_out())
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
        # Scores on the sample have no counterpart in the released run.
        sample = study(models=["bm25"], compositions=["full"])
        assert "idiolink_released" not in {table.name for table in sample.tables()}

    def test_the_whole_grid(self) -> None:
        """24 embedders in 4 modes, BM25 in 2, over 3 indexes; 40 trainings with 3 seeds each."""
        idiolink = configured("config/paper.yaml")
        assert len(idiolink.plan.made(seed="0")) == (24 * 4 + 2) * 3
        # With both losses.
        assert len(idiolink_runs.tuned_models(idiolink)) == 20 * 2
        assert len(idiolink_inputs.tuned_metrics(idiolink)) == (10 * 2 + 10) * 3 * 2


class TestAsking:
    def test_every_question_of_the_sample_is_recorded(self, tmp_path: Path) -> None:
        idiolink = configured("config.yaml")
        sample = ROOT / "data/sample"
        _, pairs, _ = filter_magpie(
            sample / "magpie/MAGPIE_sample.jsonl",
            idiolink_files.exclusions(idiolink),
            FilterOptions.model_validate_json(idiolink_models.pie_options(idiolink)),
            candidates=None,
            documents=[],
            computed_from={},
        )
        path = tmp_path / "pairs.jsonl"
        path.write_text("".join(f"{pair.model_dump_json()}\n" for pair in pairs), "utf-8")
        counts = {}
        for collection in ("documents", "queries"):
            task = idiolink_questions.writing(idiolink, collection)
            task = task.model_copy(update={"inputs": {**task.inputs, "pairs": str(path)}})
            keys = [question.key for question in task.questions(task.entry())]
            assert set(keys) == read_answers(task.recordings).keys()
            counts[collection] = len(keys)
        # Two answers about documents were unusable, so their questions were asked again.
        assert counts == {"documents": 8 + 2, "queries": 8}

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
