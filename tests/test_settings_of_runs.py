"""Whether each setting of the studies reaches the runs: recorded with the numbers, or stated here.

A new setting fails these tests until it has a line, so none can change numbers silently.
"""

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel
from support import ROOT

from pieline.beyond.settings import BeyondSettings
from pieline.config import layered, load_config, load_studies
from pieline.core.conditions import Conditions
from pieline.core.yamls import merge, read_yaml
from pieline.models.registry import load_registry
from pieline.plan import Run

DEVIATES = "recorded with the numbers, and a deviation from the paper"
RECORDED = "recorded with the numbers; no value deviates from the paper"
RUNS = "decides which runs, files or displays there are"
INPUT = "decides what input files contain, which are compared with the paper's by digest"
SHOWN = "changes a table or figure, but no metric file"
BYTES = "changes speed and the last digits of vectors and weights"

CONFIGURATION: dict[str, Any] = {
    "studies": ["jam", "idiots", "idiolink"],
    "data": "released",
    "llm": {"mode": "record", "max_cost_usd": 1},
    "jam": {
        "models": ["gpt-4o-mini", "mbert"],
        "languages": ["english"],
        "neutral": "gpt-4o-mini",
        "attention": "smollm2-135m",
        "variants": {"model": "gemini-2.5-pro"},
    },
    "idiots": {
        "models": ["gpt-4o-mini"],
        "settings": ["zero_shot"],
    },
    "idiolink": {
        "models": ["bm25", "sbert"],
        "finetuning": {"models": ["sbert"]},
        "construction": {"enabled": True},
    },
    "beyond": {"idiots": {"prompts_against": "zero_shot"}, "idiolink": {"shortcuts": True}},
}
SETTINGS: dict[str, tuple[Any, str]] = {
    "jam.form": ("released", DEVIATES),
    "jam.languages": (["german"], RUNS),
    "jam.decisions": ("data/sample/id10m/decisions", INPUT),
    "jam.variants.source": ("generated", INPUT),
    "jam.variants.model": ("gpt-4o-mini", DEVIATES),
    "jam.variants.max_tokens": (99, RECORDED),
    "jam.variants.review": ("automatic", INPUT),
    "jam.variants.annotations": ({"english": ["a.json"]}, INPUT),
    "jam.variants.adjudications": ({"english": "a.tsv"}, INPUT),
    "jam.models": (["mbert", "gpt-4o-mini", "bert"], RUNS),
    "jam.settings": (["zero_shot"], RUNS),
    "jam.prompts": (
        {"mine": {"file": "prompts/jam/zero_shot.jinja"}},
        "the settings of runs refer to it by name, and record its digest",
    ),
    "jam.seeds": ([42], RUNS),
    "jam.by_model": ({"gpt-4o-mini": {"max_tokens": {"zero_shot": 5}}}, DEVIATES),
    "jam.few_shot.examples": (4, DEVIATES),
    "jam.few_shot.samples": (7, DEVIATES),
    "jam.train_split": ("dev", DEVIATES),
    "jam.fine_tuning.epochs": (2, DEVIATES),
    "jam.fine_tuning.batch_size": (8, DEVIATES),
    "jam.fine_tuning.batching": ("by_length", DEVIATES),
    "jam.fine_tuning.learning_rate": (1e-5, DEVIATES),
    "jam.fine_tuning.seeds": ([5], RUNS),
    "jam.fine_tuning.negatives_per_idiom": (1.0, DEVIATES),
    "jam.scoring": ("released", DEVIATES),
    "jam.bootstrap_resamples": (10, RECORDED),
    "jam.permutations": (10, SHOWN),
    "jam.neutral": (None, RUNS),
    "jam.humans": ("labels.csv", INPUT),
    "jam.attention": (None, RUNS),
    "idiots.models": (["gpt-4o"], RUNS),
    "idiots.settings": (["zero_shot", "zero_shot_schema"], RUNS),
    "idiots.by_model": ({"gpt-4o-mini": {"max_tokens": {"zero_shot": 5}}}, DEVIATES),
    "idiots.prompts": (
        {"mine": {"file": "prompts/idiots/detect.jinja"}},
        "the settings of runs refer to it by name, and record its digest",
    ),
    "idiots.seeds": ([0, 1], RUNS),
    "idiots.distractor_kinds": ("kinds.csv", INPUT),
    "idiots.verdicts": (None, INPUT),
    "idiots.bootstrap_resamples": (5, RECORDED),
    "idiots.permutations": (5, RECORDED),
    "idiolink.models": (["bm25"], RUNS),
    "idiolink.leave_out": ({"sbert": "too slow here"}, RUNS),
    "idiolink.inputs": ("released", RECORDED),
    "idiolink.device": ("mps", RECORDED),
    "idiolink.query_modes": (["sentence"], RUNS),
    "idiolink.compositions": (["full"], RUNS),
    "idiolink.top_k": (50, DEVIATES),
    "idiolink.embedding_threads": (1, BYTES),
    "idiolink.dataset": ("constructed", INPUT),
    "idiolink.construction.semantics": ("paper", DEVIATES),
    "idiolink.construction.min_occurrences": (5, DEVIATES),
    "idiolink.construction.pies": (["spill the beans"], DEVIATES),
    "idiolink.construction.domains": (["Sport"], DEVIATES),
    "idiolink.construction.enabled": (False, RUNS),
    "idiolink.construction.exclusions": ("excluded.txt", INPUT),
    "idiolink.construction.index_writer": ("gpt-4o", DEVIATES),
    "idiolink.construction.query_writer": ("gpt-4o", DEVIATES),
    "idiolink.construction.validator": ("gpt-4o", DEVIATES),
    "idiolink.construction.prompts": (None, "the digests of its files are inputs of the texts"),
    "idiolink.construction.attempts": (1, RECORDED),
    "idiolink.construction.split_source": ("released", RECORDED),
    "idiolink.construction.splits.train": (3, DEVIATES),
    "idiolink.construction.splits.val": (3, DEVIATES),
    "idiolink.construction.splits.test": (20, DEVIATES),
    "idiolink.construction.splits.gold": (2, DEVIATES),
    "idiolink.construction.corrections": ("corrections.csv", INPUT),
    "idiolink.construction.unreviewed": ("keep", INPUT),
    "idiolink.bm25.k1": ([0.9], DEVIATES),
    "idiolink.bm25.b": ([0.4], DEVIATES),
    "idiolink.finetuning.learning_rate": (1e-4, DEVIATES),
    "idiolink.finetuning.batch_size": (8, DEVIATES),
    "idiolink.finetuning.form": ("released", DEVIATES),
    "idiolink.finetuning.max_epochs": (2, DEVIATES),
    "idiolink.finetuning.warmup_steps": (1, DEVIATES),
    "idiolink.finetuning.models": ([], RUNS),
    "idiolink.finetuning.train_modes": (["span"], RUNS),
    "idiolink.finetuning.losses": (["released"], RUNS),
    "idiolink.finetuning.tuples": ("released", RECORDED),
    "idiolink.finetuning.seeds": ([42], RUNS),
    "idiolink.finetuning.threads": (4, BYTES),
    "idiolink.permutations": (5, RECORDED),
    "idiolink.bootstrap_resamples": (5, RECORDED),
    "beyond.jam.prompts_against": ("zero_shot", RUNS),
    "beyond.jam.training_contexts": (["originals"], RUNS),
    "beyond.idiots.prompts_against": (None, RUNS),
    "beyond.idiolink.shortcuts": (False, RUNS),
}
"""Another value of each setting than in `CONFIGURATION`, and what the change does."""


class Planned(NamedTuple):
    """Runs, conditions of all metric files by path, and paths of metric files and targets."""

    runs: list[Run]
    conditions: dict[str, Conditions]
    files: set[str]


def plan(changes: dict[str, Any]) -> Planned:
    """Return the plan of `CONFIGURATION` with these changes, by dotted name."""
    raw = copy.deepcopy(CONFIGURATION)
    for name, value in changes.items():
        *sections, field = name.split(".")
        section = raw
        for each in sections:
            section = section.setdefault(each, {})
        section[field] = value
    base = layered(merge(read_yaml(ROOT / "config.yaml"), raw), ROOT / "config" / "sample.yaml")
    config = load_config(base)
    registry = load_registry(ROOT / "models.yaml")
    studies = load_studies(config, registry, ROOT)
    conditions: dict[str, Conditions] = {}
    targets: set[str] = set()
    planned: list[Run] = []
    for name in config.studies:
        runs = studies[name].plan
        planned += runs
        conditions |= {run.metrics: run.conditions for run in runs} | dict(runs.others)
        targets.update(studies[name].targets())
    return Planned(planned, conditions, {*conditions, *targets})


@cache
def unchanged() -> Planned:
    return plan({})


def leaves(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """Yield the dotted names of all settings, sections excluded."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from leaves(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_every_setting_is_listed() -> None:
    studies = load_studies(load_config({}), load_registry(ROOT / "models.yaml"), ROOT).values()
    named = [name for study in studies for name in leaves(study.Settings, f"{study.name}.")]
    named += leaves(BeyondSettings, "beyond.")
    assert sorted(named) == sorted(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_recorded_with_the_numbers_that_it_changes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    # Runs that cannot be made are in no comparison of runs.
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    value, effect = SETTINGS[name]
    before, after = unchanged(), plan({name: value})
    common = [
        (before.conditions[path], after.conditions[path])
        for path in before.conditions.keys() & after.conditions.keys()
    ]
    recorded = any(
        (old.settings, old.weights) != (new.settings, new.weights) for old, new in common
    )
    deviates = any(old.deviations != new.deviations for old, new in common)
    if effect == DEVIATES:
        assert deviates and recorded
    elif effect == RECORDED:
        assert recorded and not deviates
    elif effect == RUNS:
        # A comparison of runs records which runs it compares.
        assert before.files != after.files and not deviates
    else:
        assert before.conditions == after.conditions
        assert before.files == after.files


@pytest.mark.parametrize("study", ["jam", "idiots", "idiolink"])
def test_all_runs_record_the_resamples_of_their_intervals(
    study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    after = plan({f"{study}.bootstrap_resamples": 7})
    metrics = [run.metrics for run in after.runs if run.study == study]
    assert metrics
    for path in metrics:
        assert after.conditions[path].settings["bootstrap_resamples"] == 7
