"""Entries of language models, the estimate, and the check before any question."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from idiots_cases import ROOT, sentences

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.estimates import THOUGHT_TOKENS, check, estimate_tasks
from pieline.llm.recordings import record
from pieline.llm.settings import LLMSettings
from pieline.models.llm import LLMEntry
from pieline.models.registry import Registry, load_registry
from pieline.studies.idiots.datasets import save_dataset
from pieline.studies.idiots.predictions import Detection
from pieline.studies.idiots.settings import DetectionParameters

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "TOGETHER_API_KEY")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    return load_registry(ROOT / "models.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_dataset(tmp_path / "dataset", sentences(3, 2), origin="sample")
    return tmp_path


def jobs(folder: Path, registry: Registry, *models: str, seeds: int = 1) -> list[Detection]:
    return [
        Detection(
            model=model,
            spec=registry[model].execution_spec(),
            inputs={
                "sentences": str(folder / "dataset" / "sentences.jsonl"),
                "prompt": str(ROOT / "prompts" / "idiots" / "detect.jinja"),
            },
            outputs={"predictions": str(folder / "predictions.jsonl")},
            recordings=str(folder / "recordings" / "idiots" / f"{model}.jsonl"),
            setting="zero_shot",
            seed=seed,
            parameters=DetectionParameters(top_k=None, top_p=None),
        )
        for model in models
        for seed in range(seeds)
    ]


def settings(folder: Path, **fields: Any) -> Any:
    return LLMSettings.model_validate({"recordings_folder": folder / "recordings"} | fields)


def answered(task: Detection, count: int, **fields: Any) -> None:
    path = Path(task.recordings)
    path.parent.mkdir(parents=True, exist_ok=True)
    questions = task.questions(task.entry())[:count]
    record(path, [(q, Answer(key=q.key, text="{}", **fields)) for q in questions])


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that checks tasks that cannot be asked and returns the messages."""

    def messages(tasks: list[Any], chosen: LLMSettings) -> str:
        with pytest.raises(UserError, match="cannot be asked for answers that are not recorded"):
            check(tasks, chosen)
        return capsys.readouterr().err

    return messages


def test_each_model_has_a_line_with_its_obstacles(
    folder: Path, registry: Registry, refused: Callable[..., str]
) -> None:
    listed = jobs(folder, registry, "gpt-4o", "o3-mini", "llama-2-7b-chat", "smollm2-135m-instruct")
    answered(listed[0], 3)
    text = refused(listed, settings(folder))
    lacking = (
        "the environment variable OPENAI_API_KEY is not set,"
        " it costs money and llm.max_cost_usd is 0"
    )
    assert f"gpt-4o (2 answers not recorded): {lacking}\n" in text
    assert f"o3-mini (nothing is recorded): {lacking}\n" in text
    weights = "its weights are not here (meta-llama/Llama-2-7b-chat-hf: not in the hub's cache)"
    assert f"llama-2-7b-chat (nothing is recorded): {weights}" in text
    assert "smollm2" not in text


@pytest.mark.parametrize(
    ("model", "recorded", "has_key", "fields", "reason"),
    [
        ("gpt-4o", 5, False, {}, ""),
        ("gpt-4o", 5, False, {"mode": "replay"}, ""),
        ("gpt-4o", 5, False, {"mode": "fresh"}, "all are asked again): the environment variable"),
        ("gpt-4o", 0, True, {}, "recorded): it costs money and llm.max_cost_usd is 0"),
        ("gpt-4o", 0, True, {"max_cost_usd": 1}, ""),
        ("smollm2-135m-instruct", 0, False, {}, ""),
        (
            "smollm2-135m-instruct", 4, False, {"mode": "replay"},
            "1 answer not recorded): llm.mode is replay",
        ),
    ],
)  # fmt: skip
def test_what_a_model_needs_for_answers_that_are_not_recorded(
    model: str,
    recorded: int,
    has_key: bool,
    fields: dict[str, Any],
    reason: str,
    folder: Path,
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
    refused: Callable[..., str],
) -> None:
    if has_key:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-key")
    listed = jobs(folder, registry, model)
    if recorded:
        answered(listed[0], recorded)
    if reason:
        assert reason in refused(listed, settings(folder, **fields))
    else:
        check(listed, settings(folder, **fields))


def test_a_model_without_prices_is_rejected(
    folder: Path,
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
    refused: Callable[..., str],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-key")
    (priced,) = jobs(folder, registry, "gpt-4o")
    entry = registry["gpt-4o"].model_copy(update={"prices": None})
    listed = [priced.model_copy(update={"spec": entry.execution_spec()})]
    messages = refused(listed, settings(folder, max_cost_usd=1000))
    assert "recorded): it has no prices, so its cost is unknown\n" in messages
    (task_estimate,) = estimate_tasks(listed, settings(folder))
    assert (
        task_estimate.estimate.to_ask,
        task_estimate.estimate.usd,
        task_estimate.estimate.likely_usd,
    ) == (5, None, None)
    answered(listed[0], 5)
    check(listed, settings(folder))
    (task_estimate,) = estimate_tasks(listed, settings(folder))
    assert (task_estimate.estimate.usd, task_estimate.estimate.likely_usd) == (0, 0)


def test_estimate(folder: Path, registry: Registry) -> None:
    listed = jobs(folder, registry, "gpt-4o", "claude-4-sonnet", seeds=2)
    answered(listed[0], 2)
    gpt, claude = estimate_tasks(listed, settings(folder))
    assert gpt.bases == claude.bases == ("form",)
    assert gpt.estimate.likely_output_tokens == 8 * listed[0].likely_output_tokens()
    assert (gpt.kind, gpt.model) == ("Detection", "gpt-4o")
    assert (gpt.estimate.questions, gpt.estimate.to_ask) == (10, 8)
    assert gpt.estimate.output_tokens == 8 * 800
    assert gpt.estimate.usd == pytest.approx((gpt.estimate.input_tokens * 2.5 + 6400 * 10) / 1e6)
    # Anthropic does not accept a seed, so the second seed asks the same questions.
    assert claude.estimate.questions == 5
    assert estimate_tasks(listed, settings(folder, mode="fresh"))[0].estimate.to_ask == 10
    # This number would change if each run had its own recordings file.
    apart = [task.model_copy(update={"recordings": f"{folder}/{task.seed}"}) for task in listed[2:]]
    assert estimate_tasks(apart, settings(folder))[0].estimate.questions == 10


def test_the_likely_length_comes_from_recorded_answers(folder: Path, registry: Registry) -> None:
    models = ("gpt-4o", "gpt-4o-mini", "o3-mini", "deepseek-r1")
    listed = jobs(folder, registry, *models, seeds=5)
    by_model = dict(
        zip(models, [listed[place : place + 5] for place in (0, 5, 10, 15)], strict=True)
    )

    def likely_lengths() -> dict[str, tuple[int, tuple[str, ...]]]:
        task_estimates = estimate_tasks(listed, settings(folder))
        return {
            item.model: (item.estimate.likely_output_tokens // item.estimate.to_ask, item.bases)
            for item in task_estimates
        }

    form = listed[0].likely_output_tokens()
    thoughtful = min(form + THOUGHT_TOKENS, 800)  # the longest answer
    assert likely_lengths()["gpt-4o"] == likely_lengths()["gpt-4o-mini"] == (form, ("form",))
    assert likely_lengths()["o3-mini"] == (thoughtful, ("form and thinking",))
    for task in by_model["gpt-4o"][:4]:
        answered(task, 5, output_tokens=33)
    for task in by_model["deepseek-r1"][:4]:
        answered(task, 4, output_tokens=700)
    assert likely_lengths()["gpt-4o"] == (33, ("own answers",))
    assert likely_lengths()["gpt-4o-mini"] == (33, ("others' answers",))
    # 16 answers are too few, and answers of models without reasoning do not count.
    assert likely_lengths()["o3-mini"] == (thoughtful, ("form and thinking",))
    answered(by_model["deepseek-r1"][4], 4, output_tokens=700)
    assert likely_lengths()["o3-mini"] == (700, ("others' answers",))


def test_hand_written_answers_do_not_affect_estimated_lengths(
    folder: Path, registry: Registry
) -> None:
    listed = jobs(folder, registry, "gpt-4o", seeds=5)
    for task in listed[:4]:
        answered(task, 5, output_tokens=33, origin="hand-written")
    assert estimate_tasks(listed, settings(folder))[0].bases == ("form",)


def test_missing_inputs_are_reported_and_stop_only_without_recordings(
    folder: Path, registry: Registry, refused: Callable[..., str]
) -> None:
    listed = jobs(folder, registry, "gpt-4o")
    (folder / "dataset" / "sentences.jsonl").rename(folder / "away.jsonl")
    (task_estimate,) = estimate_tasks(listed, settings(folder))
    assert task_estimate.unknown == (str(folder / "dataset" / "sentences.jsonl"),)
    messages = refused(listed, settings(folder))
    assert "gpt-4o (nothing is recorded): the environment variable" in messages
    Path(listed[0].recordings).parent.mkdir(parents=True)
    Path(listed[0].recordings).touch()
    check(listed, settings(folder))
    another = listed[0].model_copy(update={"recordings": f"{folder}/another.jsonl"})
    messages = refused([*listed, another], settings(folder))
    assert "gpt-4o (nothing recorded for 1 run): the environment" in messages


def test_every_language_model_can_be_passed_to_a_job(registry: Registry) -> None:
    entries = {name: entry for name, entry in registry.items() if isinstance(entry, LLMEntry)}
    assert len(entries) >= 14
    for name, entry in entries.items():
        other = entry.model_copy(update={"label": "X", "ends": "past"})
        assert other.execution_spec() == entry.execution_spec()
        passed = LLMEntry.from_spec(entry.execution_spec(), label=name)
        for field in ("checkpoint", "prices", "api_key_env", "accepts"):
            assert getattr(passed, field) == getattr(entry, field), (name, field)
        assert not entry.cost_is_unknown
    with pytest.raises(UserError, match="--spec"):
        LLMEntry.from_spec("{}", label="x")


def test_a_spec_does_not_depend_on_the_process(tmp_path: Path) -> None:
    models = shutil.copy(ROOT / "models.yaml", tmp_path)
    code = (
        "from pieline.models.registry import load_registry\n"
        f"r = load_registry({str(models)!r})\n"
        "print([e.execution_spec() for e in r.values() if e.kind == 'llm'])\n"
        "import sys\n"
        "assert not {'litellm', 'agno', 'torch'} & sys.modules.keys()\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
