"""Signal detection on IdioTS recovers the parameters of rule-based readers."""

import json
from pathlib import Path

import numpy as np
import pytest
from idiots.idiots_cases import ROOT, answer
from matplotlib import pyplot as plt
from scipy.stats import norm
from table_files import table_rows

from pieline.beyond.idiots.figure import sensitivity_against_criterion
from pieline.beyond.idiots.metrics import (
    bias_metrics,
    counts_by_pie,
    signal_detection,
    swap_test,
)
from pieline.beyond.idiots.study import ExtendedIdiots
from pieline.beyond.idiots.table import BIAS_TABLE
from pieline.beyond.settings import BeyondIdiots
from pieline.core.conditions import Evidence, RunIdentity
from pieline.core.errors import UserError
from pieline.core.files import write_json
from pieline.core.records import save_jsonl
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.reporting.figures import use_style
from pieline.reporting.inputs import DisplayInputs, PlannedRun
from pieline.reporting.models import ModelDescription
from pieline.reporting.tables import make_table
from pieline.studies.idiots import tasks as idiots_tasks
from pieline.studies.idiots.metrics import detection_metrics
from pieline.studies.idiots.predictions import (
    Detection,
    NegatedAnswer,
    read_detection,
    read_prediction,
)
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.idiots.settings import IdiotsSettings, OwnParameters

PIES, EACH = 100, 4
SUITE = [
    IdiotsSentence(
        id=f"idi{pie:03}-sen{number:02}-{'id' if number % 2 else 'di'}",
        pie_id=f"idi{pie:03}", pie="To spill the beans", sentence=f"Sentence {pie} {number}.",
        translation="", is_idiomatic=number % 2 == 1,
    )
    for pie in range(PIES)
    for number in range(EACH)
]  # fmt: skip


def observer(d_prime: float, criterion: float, seed: int) -> list[DetectionPrediction]:
    """Return the answers of a model that sees noisy evidence and says yes above its criterion."""
    noise = np.random.default_rng(seed).normal(size=len(SUITE))
    return [
        says(item, (d_prime if item.is_idiomatic else 0) + noise[at] > d_prime / 2 + criterion)
        for at, item in enumerate(SUITE)
    ]


def says(item: IdiotsSentence, yes: bool) -> DetectionPrediction:
    text = json.dumps({"hasIdiom": bool(yes), "idiom": "spill the beans" if yes else ""})
    return read_prediction(item.id, answer(item.id, text))


def lost(seed: str, setting: str = "lost") -> PlannedRun:
    """Return a run that nobody made."""
    keys = {"model": "rules", "setting": setting, "seed": seed}
    return PlannedRun(keys=keys, metrics="", not_run="nobody asked it")


def inputs(runs: dict[str, list[DetectionPrediction]]) -> DisplayInputs:
    """Return the inputs of table and figure for a model's answers in each setting."""
    metrics = [
        detection_metrics(
            SUITE,
            answers,
            RunIdentity("rules", setting, 0),
            Evidence(),
            origin="sample",
            resamples=10,
        )
        for setting, answers in runs.items()
    ]
    record = bias_metrics(
        metrics,
        SUITE,
        list(runs.values()),
        Evidence(),
        against="zero_shot",
        permutations=199,
        resamples=400,
    )
    write_json(path := "results/metrics/idiots/rules/bias.json", record.model_dump())
    return DisplayInputs(
        study="idiots",
        metrics=(path,),
        models=(ModelDescription(name="rules", kind="llm", label="Rules"),),
        runs=(lost("0"),),
        options={"against": "zero_shot"},
    )


@pytest.fixture
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DisplayInputs:
    """Return observers: one ability with three criteria, another ability, always yes, and mute."""
    monkeypatch.chdir(tmp_path)
    unread = [read_prediction(item.id, answer(item.id, "Well.")) for item in SUITE]
    return inputs(
        {
            "zero_shot": observer(1.5, 0.0, 11),
            "eager": observer(1.5, -0.6, 12),
            "able": observer(2.4, 0.0, 13),
            "yes": [says(item, True) for item in SUITE],
            "mute": unread,
        },
    )


def test_ability_and_bias_are_separated(simulated: DisplayInputs, tmp_path: Path) -> None:
    lines = table_rows(BIAS_TABLE, simulated, tmp_path)
    rows = {(row["setting"], row["measure"]): row for row in lines}

    def value(*key: str) -> float:
        return float(rows[key]["ours"])

    for setting, d_prime, criterion in (
        ("zero_shot", 1.5, 0.0),
        ("eager", 1.5, -0.6),
        ("able", 2.4, 0.0),
        # The corrected rate is 200.5 of 201 in both.
        ("yes", 0.0, -norm.ppf(200.5 / 201)),
    ):
        for metric, put_in in (("d_prime", d_prime), ("criterion", criterion)):
            measured = rows[setting, metric]
            assert float(measured["low"]) <= put_in + 0.005
            assert put_in - 0.005 <= float(measured["high"])
            assert value(setting, metric) == pytest.approx(put_in, abs=0.3)
    # The first setting changes the criterion, the second one changes d′.

    def p_value(*key: str) -> float:
        return float(rows[key]["p_holm"])

    assert p_value("eager", "criterion_change") < 0.05 < p_value("eager", "d_prime_change")
    assert p_value("able", "d_prime_change") < 0.05 < p_value("able", "criterion_change")
    assert value("eager", "criterion_change") < 0 < value("able", "d_prime_change")
    assert value("yes", "hits") == value("yes", "false_alarms") == 100
    assert (value("mute", "unreadable"), rows["mute", "hits"]["ours"]) == (len(SUITE), "")
    assert rows["mute", "d_prime"]["ours"] == rows["zero_shot", "d_prime_change"]["ours"] == ""
    assert rows["lost", "d_prime"]["reason"].startswith("nobody asked it")


def test_the_figure_has_every_prompt(simulated: DisplayInputs) -> None:
    use_style(ROOT / "templates/pieline.mplstyle")
    figure = sensitivity_against_criterion(simulated)
    (legend,) = figure.legends
    names = ["zero-shot", "eager", "able", "yes"]  # nothing is known about the mute model
    assert [text.get_text() for text in legend.get_texts()] == [f"Rules: {name}" for name in names]
    plt.close(figure)


def test_rates_of_zero_and_one_are_corrected_log_linearly() -> None:
    halves = signal_detection(np.array([100.0, 100, 0, 100]))
    assert halves == pytest.approx([2 * norm.ppf(100.5 / 101), 0])
    # A constant answer shows no ability, even if class sizes differ.
    for yes in (0, 1):
        d_prime, criterion = signal_detection(np.array([yes * 164.0, 164, yes * 86, 86]))
        assert d_prime == pytest.approx(0)
        assert abs(criterion) == pytest.approx(norm.ppf(251 / 252))


def test_unreadable_answers_are_not_counted() -> None:
    answers = observer(1.5, 0, 1)
    answers[1] = read_prediction(SUITE[1].id, answer("", "Well."))
    counts = counts_by_pie([list(zip(SUITE, answers, strict=True))])
    assert counts.shape == (PIES, 4)
    assert counts[:, 1].sum() == PIES * EACH / 2 - 1
    assert counts[:, 3].sum() == PIES * EACH / 2


def test_the_paired_test_keeps_its_level() -> None:
    """Compare two equal prompts with correlated PIEs; benchmarks/beyond has more simulations."""
    random, simulations = np.random.default_rng(0), 300
    rejected = np.zeros(2)
    for seed in range(simulations):
        shift = random.normal(0, 0.8, (40, 1))
        chances = np.broadcast_to(norm.cdf(np.array([0.6, -0.6]) + shift), (2, 40, 2))
        yes = random.binomial(2, chances)
        first, second = (
            np.stack([part[:, 0], np.full(40, 2), part[:, 1], np.full(40, 2)], axis=1)
            for part in yes.astype(float)
        )
        rejected += swap_test(first, second, permutations=199, seed=seed) <= 0.05
    assert all(5 <= number <= 27 for number in rejected)  # 99% of binomial(300, 0.05)


@pytest.mark.parametrize(
    ("text", "has_idiom"),
    [
        ('{"freeOfIdioms": true, "idiom": ""}', False),
        ('{"freeOfIdioms": "False", "idiom": "spill the beans"}', True),
        ('{"freeOfIdioms": false, "idiom": "spill the beans"', True),
        ('{"hasIdiom": true, "idiom": "spill the beans"}', None),
        ('{"freeOfIdioms": true, "idiom": ""} {"freeOfIdioms": false, "idiom": "a b"}', None),
        ('{"freeOfIdioms": false, "idiom": "none"}', True),
    ],
)
def test_a_negated_answer_is_read_as_its_opposite(text: str, has_idiom: bool | None) -> None:
    parsed = read_detection(answer("a", text), NegatedAnswer)
    assert (parsed.value and parsed.value.has_idiom) == has_idiom


def study(against: str | None = None) -> ExtendedIdiots:
    run = Project(registry=load_registry(ROOT / "models.yaml"), llm=LLMSettings(), root=ROOT)
    file = str(ROOT / "prompts/idiots/beyond/negated.jinja")
    own = {"negated": {"file": file, "negated": True}}
    fields = {"settings": ["zero_shot", "negated"], "prompts": own}
    beyond = BeyondIdiots(prompts_against=against)
    return ExtendedIdiots(IdiotsSettings.model_validate(fields), run, beyond)


def test_a_negated_prompt_is_sent_and_parsed(tmp_path: Path) -> None:
    task = idiots_tasks.detection(study(), "smollm2-135m-instruct", "negated", "0")
    task = Detection.model_validate_json(task.model_dump_json())
    assert task.parameters == OwnParameters(negated=True)
    sentences, predictions = tmp_path / "sentences.jsonl", tmp_path / "predictions.jsonl"
    save_jsonl(sentences, SUITE[:1])
    task = task.model_copy(
        update={
            "inputs": task.inputs | {"sentences": str(sentences)},
            "outputs": {"predictions": str(predictions)},
        }
    )
    (question,) = task.questions(task.entry())
    free = '{"freeOfIdioms": true, "idiom": ""}'
    task.run(task.entry(), lambda _: {question.key: answer("", free)})
    assert '"has_idiom":false' in predictions.read_text()
    assert "negated" not in question.parameters
    schema = question.parameters["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["freeOfIdioms", "idiom"]


def test_a_seed_that_was_left_out_is_a_note(simulated: DisplayInputs) -> None:
    inputs = simulated.model_copy(update={"runs": (lost("1", "eager"),)})
    content, _ = make_table(BIAS_TABLE.make, BIAS_TABLE.numbers, inputs)
    assert content.notes[0] == "Without seed 1 of Rules (eager): nobody asked it."
    assert len(content.groups[0].rows) == 5


def test_table_and_figure_require_the_setting() -> None:
    names = {display.name for display in [*study().tables(), *study().figures()]}
    assert "idiots_bias" not in names
    declared = study("zero_shot")
    assert "idiots_bias" in {table.name for table in declared.tables()}
    assert "idiots_bias" in {figure.name for figure in declared.figures()}
    with pytest.raises(UserError, match=r"beyond\.idiots\.prompts_against: 'zero_shot_schema' is"):
        study("zero_shot_schema")
