"""What the papers' numbers are said to need is what configurations plan."""

import os
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
from frame_cases import CATALOGUE, PRINTED
from support import ROOT

from pieline.config import layered, load_config, load_studies
from pieline.core.yamls import merge, read_yaml
from pieline.models.entries import CheckpointEntry
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry
from pieline.models.sizing import needs_gpu
from pieline.reporting.numbers import Number
from pieline.results import run_models
from pieline.results.numbers import Requirements, all_numbers, counted
from pieline.studies.idiolink import paths
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.study import Study

REGISTRY = load_registry(ROOT / "models.yaml")
ONLY_TIME = "only time"
SEEDS = (42, 43, 44)
ALL_TRAININGS = {"idiolink": {"finetuning": {"train_modes": [*QUERY_MODES], "seeds": [*SEEDS]}}}


@pytest.fixture(scope="module")
def numbers() -> list[Number]:
    requirements = Requirements(models=run_models.requirement_by_model(REGISTRY))
    names = run_models.names_by_printed(REGISTRY)
    # Of several entries of a printed model, the usual one.
    first = {printed: of_model[:1] for printed, of_model in names.items()}
    return counted(all_numbers([], PRINTED, CATALOGUE, first, requirements=requirements))


def planned(
    file: str, monkeypatch: pytest.MonkeyPatch, changes: Mapping[str, Any] = {}
) -> Study[Any]:
    """Return IdioLink's study of a configuration, on a machine without API keys."""
    for name in [*os.environ]:
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    raw = merge(merge(read_yaml(ROOT / "config.yaml"), read_yaml(ROOT / "config" / file)), changes)
    config = load_config(layered(raw, ROOT / "config/sample.yaml"))
    return load_studies(config, REGISTRY, ROOT)["idiolink"]


def test_numbers_that_need_only_time_are_planned_without_a_gpu_or_key(
    numbers: list[Number], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nine embedders of config/embedders_cpu.yaml, and SBERT in `make verify`."""
    timed = [
        number
        for number in numbers
        if number.needs and all(need.startswith(ONLY_TIME) for need in number.needs)
    ]
    assert {number.tables for number in timed} == {("idiolink_zero_shot",)}
    models = {number.model for number in timed}
    plans = {
        file: planned(file, monkeypatch).plan for file in ("embedders_cpu.yaml", "released.yaml")
    }
    for model in models:
        entry = REGISTRY[model]
        assert isinstance(entry, CheckpointEntry)
        assert not needs_gpu(entry)
        plan = plans["released.yaml" if model == "sbert" else "embedders_cpu.yaml"]
        for mode in QUERY_MODES:
            path = paths.METRICS.format(index="test", model=model, query_mode=mode, seed=0)
            assert not plan[path].impossible_because, path
    # Two measures in four query modes.
    assert len(timed) == len(models) * 8 == 80
    of_file = read_yaml(ROOT / "config/embedders_cpu.yaml")["idiolink"]["models"]
    assert {*of_file} == models - {"sbert"}


def test_the_trainings_of_sbert_are_planned_without_a_gpu(
    numbers: list[Number], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = [
        number
        for number in numbers
        if number.tables == ("idiolink_finetuned",) and number.model == "sbert"
    ]
    assert len(trained) == 24
    assert {number.needs[1].partition(":")[0] for number in trained} == {ONLY_TIME}
    plan = planned("finetune_released.yaml", monkeypatch, ALL_TRAININGS).plan
    # Trained on spans, the table has queries as spans, else also as sentences.
    for train_mode in QUERY_MODES:
        for seed in SEEDS:
            path = paths.METRICS.format(
                index="test", model=f"sbert+{train_mode}+released", query_mode=train_mode, seed=seed
            )
            assert not plan[path].impossible_because, path


def test_documents_state_when_numbers_end(numbers: list[Number]) -> None:
    ending: dict[date, list[str]] = {}
    for entry in REGISTRY.values():
        if isinstance(entry, LLMEntry) and isinstance(entry.ends, date) and entry.published_as:
            ending.setdefault(entry.ends, []).append(entry.published_as)
    printed = {
        number: REGISTRY[number.model].published_as
        for number in numbers
        if number.model in REGISTRY
    }
    counts = {
        day: sum(name in models for name in printed.values()) for day, models in ending.items()
    }
    costs = (ROOT / "docs/costs.md").read_text(encoding="utf-8")
    table = [line for line in costs.splitlines() if re.match(r"\| \d{4}-\d\d-\d\d \|", line)]
    assert table == [
        f"| {day} | {', '.join(models)} | {counts[day]} |" for day, models in sorted(ending.items())
    ]
    (first, one), (second, other) = sorted(counts.items())
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    stated = (
        f"Providers [retire](docs/costs.md#when-models-end) the models behind {one} numbers on"
        f" {first}, and behind another {other} on {second}."
    )
    assert stated in " ".join(readme.split())


def test_numbers_of_models_that_are_run_elsewhere_name_a_gpu_a_key_or_recordings(
    numbers: list[Number],
) -> None:
    for number in numbers:
        printed = REGISTRY[number.model].published_as if number.model in REGISTRY else None
        entries = [
            entry
            for entry in REGISTRY.values()
            if printed and entry.published_as == printed and isinstance(entry, CheckpointEntry)
        ]
        if printed and not entries:
            assert any(word in number.needs[-1] for word in ("the key ", "recorded", "GPU")), (
                number.printed_at
            )
        for entry in entries:
            assert (" on a GPU with " in number.needs[-1]) == needs_gpu(entry), number.printed_at
