"""Test that comparisons of custom prompts recover the effects of simulated models."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from idiots.idiots_cases import answer
from jam.jam_cases import original, sentences_of
from run_script import run_script
from support import ROOT
from table_files import content_of, table_rows

from pieline.beyond.jam.figure import forest
from pieline.beyond.jam.metrics import difference_interval, prompt_measures
from pieline.beyond.jam.study import ExtendedJam
from pieline.beyond.jam.table import PROMPTS_TABLE
from pieline.beyond.settings import BeyondJam
from pieline.core.conditions import Evidence, RunIdentity
from pieline.core.errors import UserError
from pieline.core.files import read_json, write_json
from pieline.core.records import load_jsonl, save_jsonl
from pieline.languages.registry import get_language
from pieline.llm.answers import Answer
from pieline.llm.questions import Question
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.reporting.figures import use_style
from pieline.reporting.inputs import DisplayInputs, PlannedRun
from pieline.reporting.models import ModelDescription
from pieline.studies.jam import runs as jam_runs
from pieline.studies.jam import tasks as jam_tasks
from pieline.studies.jam.metrics.drift import compare_shares
from pieline.studies.jam.metrics.scores import jam_metrics, judge
from pieline.studies.jam.predictions.prompt_settings import Arranged, ZeroShot
from pieline.studies.jam.predictions.prompting import Identification, arrange_texts
from pieline.studies.jam.predictions.records import IdiomPrediction, predict_by_baseline
from pieline.studies.jam.records import JamSentence
from pieline.studies.jam.settings import JamSettings
from pieline.studies.jam.study import JamStudy

PIE = "broke the ice"
SETTINGS = ["zero_shot", "careful", "blind", "yes"]
"""Simulated models by setting."""


def dataset(originals: int) -> list[JamSentence]:
    """Return originals, every second of them literal, with three variants each."""
    contexts = ("It was very cold.", "It was a long day.", "It was late.")
    sentences = []
    for number in range(originals):
        text, figurative = f"Ann {PIE} on day {number}.", number % 2 == 1
        first = original(text, PIE, figurative=figurative, id=f"o{number:03}")
        sentences += sentences_of(first, *contexts)
    return sentences


def predictions_by_rule(
    sentences: Iterable[JamSentence], rule: Callable[[JamSentence], bool]
) -> dict[str, IdiomPrediction]:
    """Return predictions of a model that names the PIE according to a rule."""
    return {
        item.id: IdiomPrediction(id=item.id, outcome="ok", idioms=(PIE,) if rule(item) else ())
        for item in sentences
    }


def misled(chance: float, seed: int) -> Callable[[JamSentence], bool]:
    """Simulate a model that is right on originals and wrong on variants with this probability."""
    draw = np.random.default_rng(seed).random
    return lambda item: item.is_figurative != (not item.is_original and draw() < chance)


def lost(setting: str, seed: str) -> PlannedRun:
    """Return a configured run that cannot be made."""
    keys = {"model": "rules", "setting": setting, "language": "english", "seed": seed}
    return PlannedRun(keys=keys, metrics="", not_run="nobody asked it")


def display_inputs(
    folder: Path, runs: dict[str, list[dict[str, IdiomPrediction]]], **options: Any
) -> DisplayInputs:
    """Return the table's inputs for predictions by setting and seed."""
    paths = []
    for setting, seeds in runs.items():
        for seed, predictions in enumerate(seeds):
            name = "always-none" if setting == "baseline" else "rules"
            path = folder / name / setting / f"seed-{seed}.json"
            metrics = jam_metrics(
                SENTENCES,
                predictions,
                RunIdentity(model=name, setting=setting, seed=seed),
                Evidence(is_released=False, computed_from={}),
                scoring="paper",
                resamples=20,
            )
            write_json(path, metrics.model_dump())
            paths.append(str(path))
    return DisplayInputs(
        study="jam",
        metrics=tuple(paths),
        models=(
            ModelDescription(name="rules", kind="llm", label="Rules"),
            ModelDescription(name="always-none", kind="baseline", label="Always “none”"),
        ),
        runs=(lost("lost", "42"),),
        options={"added": False, "permutations": 199, "resamples": 400, **options},
    )


SENTENCES = dataset(120)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> DisplayInputs:
    """Return inputs with models that are misled, less misled, context-blind, or always agree."""
    return display_inputs(
        tmp_path_factory.mktemp("runs"),
        {
            "zero_shot": [predictions_by_rule(SENTENCES, misled(0.3, seed)) for seed in (1, 2)],
            "careful": [predictions_by_rule(SENTENCES, misled(0.1, seed)) for seed in (7, 8)],
            "blind": [predictions_by_rule(SENTENCES, misled(0.0, 5))],
            "yes": [predictions_by_rule(SENTENCES, lambda item: True)],
            "baseline": [predict_by_baseline("always-none", SENTENCES)],
        },
        against="zero_shot",
    )


@pytest.fixture(scope="module")
def table(
    simulated: DisplayInputs, tmp_path_factory: pytest.TempPathFactory
) -> dict[Any, dict[str, str]]:
    return rows_of(simulated, tmp_path_factory.mktemp("table"))


def rows_of(inputs: DisplayInputs, folder: Path) -> dict[Any, dict[str, str]]:
    """Return the rows of the CSV by setting, usage and measure."""
    rows = table_rows(PROMPTS_TABLE, inputs, folder)
    return {(row["setting"], row["scope"], row["measure"]): row for row in rows}


def number(table: dict[Any, dict[str, str]], *key: str) -> float:
    return float(table[key]["ours"])


def test_estimates_recover_what_the_rules_put_in(table: dict[Any, dict[str, str]]) -> None:
    # 720 variants give a standard error of 1.7 percentage points.
    assert number(table, "zero_shot", "all", "negative_drift") == pytest.approx(30, abs=5)
    assert number(table, "careful", "all", "negative_drift") == pytest.approx(10, abs=4)
    assert number(table, "zero_shot", "all", "success") == 360
    change = table["careful", "all", "negative_drift_difference"]
    assert float(change["low"]) < -20 < float(change["high"]) < 0
    for usage in ("all", "literal", "idiomatic"):
        gone = number(table, "blind", usage, "negative_drift_difference")
        assert gone == pytest.approx(-number(table, "zero_shot", usage, "negative_drift"))
        assert number(table, "blind", usage, "variant_errors") == 0
    assert table["careful", "all", "negative_drift_difference"]["against"] == "zero_shot"
    assert ("zero_shot", "all", "negative_drift_difference") not in table


def test_always_yes_prompt_is_detected(table: dict[Any, dict[str, str]]) -> None:
    assert number(table, "yes", "all", "negative_drift") == 0
    assert number(table, "yes", "all", "negative_drift_difference") < 0
    assert [
        number(table, "yes", usage, "variant_errors") for usage in ("literal", "idiomatic")
    ] == [
        100,
        0,
    ]
    assert number(table, "yes", "literal", "accuracy") == 0
    # The model has no success on literal originals, so nothing can drift.
    assert table["yes", "literal", "negative_drift"]["ours"] == ""
    assert number(table, "yes", "literal", "variant_errors_difference") > 60
    assert number(table, "yes", "idiomatic", "variant_errors_difference") < -20
    assert number(table, "baseline", "all", "negative_drift") == 0
    assert number(table, "baseline", "idiomatic", "variant_errors") == 100
    assert ("baseline", "all", "variant_errors_difference") not in table
    assert table["baseline", "all", "variant_errors"]["model"] == "always-none"
    assert table["lost", "all", "accuracy"]["reason"].startswith("nobody asked it")


def test_encoders_are_compared_with_the_usual_training(tmp_path: Path) -> None:
    runs = {
        "fine_tuned": [predictions_by_rule(SENTENCES, misled(0.3, seed)) for seed in (1, 2)],
        "fine_tuned_hard": [predictions_by_rule(SENTENCES, misled(0.1, seed)) for seed in (7, 8)],
        "baseline": [predict_by_baseline("always-none", SENTENCES)],
    }
    inputs = display_inputs(tmp_path, runs, against="zero_shot", added=True)
    table = rows_of(inputs, tmp_path)
    change = table["fine_tuned_hard", "all", "negative_drift_difference"]
    assert float(change["low"]) < -20 < float(change["high"]) < 0
    assert table["fine_tuned_hard", "all", "negative_drift_difference"]["against"] == "fine_tuned"
    assert ("fine_tuned", "all", "negative_drift_difference") not in table
    caption = (tmp_path / "table.tex").read_text()
    assert "against Zero-shot and encoders trained with texts of other PIEs" in caption
    assert len(forest(inputs).axes[0].get_yticklabels()) == 1


def test_p_values_are_corrected_for_the_prompts_of_a_usage(
    table: dict[Any, dict[str, str]],
) -> None:
    lines = [
        table[name, "all", "variant_errors_difference"] for name in ("careful", "blind", "yes")
    ]
    least = min(lines, key=lambda line: float(line["p_value"]))
    assert float(least["p_holm"]) == pytest.approx(3 * float(least["p_value"]), rel=0.01)


def test_the_table_ends_each_usage_with_the_baseline(simulated: DisplayInputs) -> None:
    (group,) = content_of(PROMPTS_TABLE, simulated).groups
    assert group.title == "Rules, English"
    settings = ["Zero-shot", "careful", "blind", "yes", "Always “none”"]
    assert [row.labels for row in group.rows] == [
        *((usage, name) for usage in ("all", "literal", "idiomatic") for name in settings),
        ("all", "lost"),
    ]


def test_the_interval_is_paired() -> None:
    hard = np.random.default_rng(0).random(100) < 0.5
    run = np.array([np.full(100, 3.0), 3.0 * hard])
    interval = difference_interval(run, run, resamples=50)
    assert interval
    assert (interval.low, interval.high) == (0, 0)


def test_the_paired_test_keeps_its_level() -> None:
    """Compare equal prompts on originals of different difficulty; see benchmarks/beyond."""
    random = np.random.default_rng(0)
    simulations, originals = 300, 80
    hard = random.beta(0.3, 2.0, (simulations, 1, originals))
    flips = random.binomial(3, np.broadcast_to(hard, (simulations, 2, originals)))
    parts = {
        (number, side): np.array([np.full(originals, 3.0), flips[number, side]])
        for number in range(simulations)
        for side in (0, 1)
    }
    pairs = [((number, 0), (number, 1)) for number in range(simulations)]
    tests = compare_shares(parts, pairs, permutations=199, seed=0).values()
    rejected = sum(test.p_value < 0.05 for test in tests)
    assert 5 <= rejected <= 27  # 99% of binomial(300, 0.05)


def test_the_figure_shows_both_kinds_of_error(simulated: DisplayInputs) -> None:
    use_style(ROOT / "templates/pieline.mplstyle")
    figure = forest(simulated)
    assert [axis.get_title() for axis in figure.axes] == [
        "ND",
        "false alarms (literal)",
        "misses (idiomatic)",
    ]
    english = get_language("english").label
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert names == [f"Rules, {english}: {name}" for name in ("careful", "blind", "yes")]


def test_a_usage_without_originals_has_nothing_to_count() -> None:
    literal = [item for item in SENTENCES if not item.is_figurative]
    judged = judge(literal, predictions_by_rule(literal, misled(0.3, 1)))
    measures = prompt_measures(
        {"zero_shot": [judged], "careful": [judged]}, "zero_shot", "idiomatic",
        permutations=9, resamples=9,
    )["careful"]  # fmt: skip
    assert (measures.accuracy, measures.drift, measures.drift_effect) == (None, None, None)


def test_context_positions() -> None:
    first = original("Ann broke the ice.", PIE, id="a")
    second = original("Bob broke the ice!", PIE, id="b")
    sentences = [
        *sentences_of(first, "It was a cold, dark day."),
        *sentences_of(second, "Nobody had spoken yet."),
    ]
    texts = {
        way: arrange_texts(sentences, way)["a-v1"] for way in ("first", "last", "none", "other")
    }
    assert texts == {
        "first": "It was a cold, dark day. Ann broke the ice.",
        "last": "Ann broke the ice. It was a cold, dark day.",
        "none": "Ann broke the ice.",
        "other": "Nobody had spoken yet. Ann broke the ice.",
    }
    assert arrange_texts(sentences, "other")["a"] == "Ann broke the ice."
    # Neutral variants may occur without their originals.
    assert arrange_texts(sentences[1::2], "none")["a-v1"] == texts["first"]


RUN = Project(registry=load_registry(ROOT / "models.yaml"), llm=LLMSettings(), root=ROOT)
MODEL = "smollm2-135m-instruct"


def settings(context: str, **fields: Any) -> JamSettings:
    """Return settings with a custom prompt that is named after its context."""
    file = str(ROOT / "prompts/jam/beyond/plain.jinja")
    values = {
        "models": [MODEL],
        "settings": ["zero_shot", context],
        "seeds": [42],
        "variants": {"source": "sample"},
        "prompts": {context: {"file": file, "context": context}},
    }
    return JamSettings.model_validate({**values, **fields})


def test_the_configured_prompts_are_asked_with_their_contexts() -> None:
    study = ExtendedJam(settings("last"), RUN, BeyondJam(prompts_against="zero_shot"))
    for setting, parameters in (("last", Arranged(context="last")), ("zero_shot", ZeroShot())):
        task = jam_tasks.identification(
            study, language="english", model=MODEL, setting=setting, seed="42"
        )
        again = Identification.model_validate_json(task.model_dump_json())
        assert (type(again.parameters), again.parameters) == (type(parameters), parameters)
    deviations = jam_runs.conditions(study, MODEL, "last").deviations
    assert "context last, the paper first" in deviations
    usual = ExtendedJam(settings("last"), RUN, BeyondJam())
    for each, count in ((study, 2), (usual, 0)):
        names = [display.name for display in [*each.tables(), *each.figures()]]
        assert names.count("jam_prompts") == count
    with pytest.raises(UserError, match=r"beyond\.jam\.prompts_against: 'mine' is not one of"):
        ExtendedJam(settings("last"), RUN, BeyondJam(prompts_against="mine"))


def test_a_neutral_context_replaces_that_of_each_variant() -> None:
    study = JamStudy(settings("neutral", languages=["english", "german"]), RUN)
    run = {"language": "english", "model": MODEL, "seed": "42"}
    inputs = jam_tasks.identification(study, setting="neutral", **run).inputs
    assert inputs["neutral"] == "results/variants/jam_neutral/english.jsonl"
    assert "neutral" not in jam_tasks.identification(study, setting="zero_shot", **run).inputs
    # The sample has neutral contexts only in English.
    assert {
        run.where["language"]: run.impossible_because
        for run in study.plan.select(setting="neutral")
    } == {
        "english": "",
        "german": "no neutral contexts in German (jam.variants.model writes them)",
    }
    (asked,) = (spec for spec in study.llm_tasks() if spec.name == "prompt_idioms")
    assert {(one["setting"], one["language"]) for one in asked.runs} == {
        ("zero_shot", "english"), ("zero_shot", "german"), ("neutral", "english")
    }  # fmt: skip


def test_a_model_writes_neutral_contexts_for_all_variants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = JamStudy(settings("neutral", variants={"source": "sample", "model": MODEL}), RUN)
    sentences = dataset(2)
    save_jsonl("results/datasets/jam/english.jsonl", sentences)
    task = jam_tasks.neutral_contexts(study, "english")
    questions = task.questions(task.entry())
    assert len(questions) == 6  # all variants, whether or not they confused a model
    lost = questions[-1].key

    def ask(asked: Sequence[Question]) -> dict[str, Answer]:
        return {
            one.key: answer(one.key, "Well." if one.key == lost else json.dumps({"variants": [
                f"The week had begun. Ann {PIE} on day {0 if number < 3 else 1}."
            ]}))
            for number, one in enumerate(asked)
        }  # fmt: skip

    task.run(task.entry(), ask)
    written = load_jsonl(task.outputs["variants"], JamSentence)
    assert [item.id for item in written] == [item.id for item in sentences]
    assert [item.tags for item in written if item.is_original] == [
        item.tags for item in sentences if item.is_original
    ]
    hard = [item for item in written if not item.is_original]
    assert [item.sentence.startswith("The week had begun.") for item in hard] == [True] * 5 + [
        False
    ]
    # A missing variant is replaced by its original.
    assert hard[-1].sentence == sentences[4].sentence
    assert hard[-1].original_id == "o001" and hard[-1].variant_number == 3


def test_the_sample_has_a_neutral_context_for_each_variant(tmp_path: Path) -> None:
    sentences = dataset(2)
    save_jsonl(tmp_path / "dataset.jsonl", sentences)
    write_json(
        tmp_path / "neutral.json",
        {item.id: f"On Monday. {item.sentence}" for item in sentences if item.id == "o001"},
    )
    output = {"variants": tmp_path / "variants.jsonl", "report": tmp_path / "report.json"}
    run_script(
        "jam_neutral_sample",
        input={
            "dataset": tmp_path / "dataset.jsonl",
            "metrics": [],
            "sample": tmp_path / "neutral.json",
        },
        output=output,
    )
    written = load_jsonl(output["variants"], JamSentence)
    assert [item.id for item in written] == [item.id for item in sentences]
    neutral = [item.original_id for item in written if item.sentence.startswith("On Monday.")]
    assert neutral == ["o001"] * 3
    assert read_json(output["report"]) == {"asked": 6, "variants": 3}


def test_a_seed_that_was_left_out_is_a_note(simulated: DisplayInputs) -> None:
    inputs = simulated.model_copy(update={"runs": (lost("careful", "44"),)})
    content = content_of(PROMPTS_TABLE, inputs)
    assert "Without seed 44 of Rules (careful, English): nobody asked it." in content.notes
