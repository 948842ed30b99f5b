"""Whether conditions follow from what each setting declares that it affects.

A new setting fails these tests until it has a value in `OTHER_VALUES`; `workflow/test_effects.py`
compares what the jobs get.
"""

import copy
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import pytest
from pydantic.fields import FieldInfo
from support import ROOT

from pieline.config import config_class, layered, load_config, load_studies
from pieline.core.conditions import Conditions
from pieline.core.settings import declared_settings, effect_of, may_deviate
from pieline.core.yamls import merge, read_yaml
from pieline.models.registry import load_registry
from pieline.plan import Run

CONFIGURATION: dict[str, Any] = {
    "studies": ["jam", "idiots", "idiolink"],
    "data": "released",
    "llm": {"mode": "record", "max_cost_usd": 1},
    "jam": {
        "models": ["gpt-4o-mini", "mbert"],
        "languages": ["english"],
        "settings": ["zero_shot", "few_shot_sc_cotbest", "mine"],
        "prompts": {"mine": {"file": "prompts/jam/zero_shot.jinja"}},
        "neutral": "gpt-4o-mini",
        "attention": "smollm2-135m",
        "variants": {"model": "gemini-2.5-pro"},
    },
    "idiots": {
        "models": ["gpt-4o-mini"],
        "settings": ["zero_shot", "mine"],
        "prompts": {"mine": {"file": "prompts/idiots/detect.jinja"}},
    },
    "idiolink": {
        "models": ["bm25", "sbert", "contriever"],
        "finetuning": {"models": ["sbert"]},
        "construction": {"enabled": True},
    },
    "beyond": {"idiots": {"prompts_against": "zero_shot"}, "idiolink": {"shortcuts": True}},
}
OTHER_VALUES: dict[str, Any] = {
    "jam.form": "released",
    "jam.languages": ["english", "german"],
    "jam.decisions": "data/sample/id10m/decisions",
    "jam.variants.source": "generated",
    "jam.variants.model": "gpt-4o-mini",
    "jam.variants.max_tokens": 99,
    "jam.variants.review": "automatic",
    "jam.variants.annotations": {"english": ["a.json"]},
    "jam.variants.adjudications": {"english": "a.tsv"},
    "jam.models": ["mbert", "gpt-4o-mini", "bert"],
    "jam.settings": ["zero_shot"],
    "jam.prompts": {"mine": {"file": "prompts/jam/beyond/plain.jinja"}},
    "jam.seeds": [42],
    "jam.by_model": {"gpt-4o-mini": {"max_tokens": {"zero_shot": 5}}},
    "jam.few_shot.examples": 4,
    "jam.few_shot.samples": 7,
    "jam.train_split": "dev",
    "jam.fine_tuning.epochs": 2,
    "jam.fine_tuning.batch_size": 8,
    "jam.fine_tuning.batching": "by_length",
    "jam.fine_tuning.learning_rate": 1e-5,
    "jam.fine_tuning.seeds": [5],
    "jam.fine_tuning.negatives_per_idiom": 1.0,
    "jam.scoring": "released",
    "jam.bootstrap_resamples": 10,
    "jam.permutations": 10,
    "jam.neutral": None,
    "jam.humans": "labels.csv",
    "jam.attention": None,
    "idiots.models": ["gpt-4o-mini", "gpt-4o"],
    "idiots.settings": ["zero_shot", "zero_shot_schema"],
    "idiots.by_model": {"gpt-4o-mini": {"max_tokens": {"zero_shot": 5}}},
    "idiots.prompts": {"mine": {"file": "prompts/idiots/beyond/plain.jinja"}},
    "idiots.seeds": [0, 1],
    "idiots.distractor_kinds": "kinds.csv",
    "idiots.verdicts": "tests/idiots/one_verdict.csv",
    "idiots.bootstrap_resamples": 5,
    "idiots.permutations": 5,
    "idiolink.models": ["bm25", "sbert"],
    "idiolink.leave_out": {"contriever": "too slow here"},
    "idiolink.inputs": "released",
    "idiolink.device": "mps",
    "idiolink.query_modes": ["sentence"],
    "idiolink.compositions": ["full"],
    "idiolink.top_k": 50,
    "idiolink.embedding_threads": 1,
    "idiolink.dataset": "constructed",
    "idiolink.construction.semantics": "paper",
    "idiolink.construction.min_occurrences": 5,
    "idiolink.construction.pies": ["spill the beans"],
    "idiolink.construction.domains": ["Sport"],
    "idiolink.construction.enabled": False,
    "idiolink.construction.exclusions": "excluded.txt",
    "idiolink.construction.index_writer": "gpt-4o",
    "idiolink.construction.query_writer": "gpt-4o",
    "idiolink.construction.validator": "gpt-4o",
    "idiolink.construction.prompts": "tests/construction/prompts",
    "idiolink.construction.attempts": 1,
    "idiolink.construction.split_source": "released",
    "idiolink.construction.splits.train": 3,
    "idiolink.construction.splits.val": 3,
    "idiolink.construction.splits.test": 20,
    "idiolink.construction.splits.gold": 2,
    "idiolink.construction.corrections": "corrections.csv",
    "idiolink.construction.unreviewed": "keep",
    "idiolink.bm25.k1": [0.9],
    "idiolink.bm25.b": [0.4],
    "idiolink.finetuning.learning_rate": 1e-4,
    "idiolink.finetuning.batch_size": 8,
    "idiolink.finetuning.form": "released",
    "idiolink.finetuning.max_epochs": 2,
    "idiolink.finetuning.warmup_steps": 1,
    "idiolink.finetuning.models": ["sbert", "contriever"],
    "idiolink.finetuning.train_modes": ["span"],
    "idiolink.finetuning.losses": ["paper", "released"],
    "idiolink.finetuning.tuples": "released",
    "idiolink.finetuning.seeds": [42],
    "idiolink.finetuning.threads": 4,
    "idiolink.permutations": 5,
    "idiolink.bootstrap_resamples": 5,
    "beyond.jam.prompts_against": "zero_shot",
    "beyond.jam.training_contexts": ["originals"],
    "beyond.idiots.prompts_against": None,
    "beyond.idiolink.shortcuts": False,
}
"""Another value of each setting than in `CONFIGURATION`, with which some of its runs remain."""


class Planned(NamedTuple):
    """Runs, and conditions of all metric files by path."""

    runs: list[Run]
    conditions: dict[str, Conditions]


def configuration(names: Iterable[str]) -> dict[str, Any]:
    """Return `CONFIGURATION` with the other values of these settings."""
    raw = copy.deepcopy(CONFIGURATION)
    for name in names:
        *sections, field = name.split(".")
        section = raw
        for each in sections:
            section = section.setdefault(each, {})
        section[field] = OTHER_VALUES[name]
    return raw


def plan(*names: str) -> Planned:
    """Return the plan of `CONFIGURATION` with the other values of these settings."""
    raw = merge(read_yaml(ROOT / "config.yaml"), configuration(names))
    config = load_config(layered(raw, ROOT / "config" / "sample.yaml"))
    registry = load_registry(ROOT / "models.yaml")
    studies = load_studies(config, registry, ROOT)
    conditions: dict[str, Conditions] = {}
    planned: list[Run] = []
    for name in config.studies:
        runs = studies[name].plan
        planned += runs
        conditions |= {run.metrics: run.conditions for run in runs} | dict(runs.others)
    return Planned(planned, conditions)


@cache
def unchanged() -> Planned:
    return plan()


@cache
def declared() -> dict[str, FieldInfo]:
    """Return the fields of all settings by dotted name."""
    return dict(declared_settings(config_class()))


def test_every_setting_declares_what_it_affects_and_is_listed() -> None:
    assert [name for name, field in declared().items() if effect_of(field) is None] == []
    sections = ("jam.", "idiots.", "idiolink.", "beyond.")
    named = [name for name in declared() if name.startswith(sections)]
    assert sorted(named) == sorted(OTHER_VALUES)


def test_every_other_value_is_another_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value as in `CONFIGURATION`, or the default, would let every label pass."""
    monkeypatch.chdir(ROOT)
    before = load_config(configuration([])).model_dump()
    after = load_config(configuration(OTHER_VALUES)).model_dump()
    for name in OTHER_VALUES:
        one, other = before, after
        for key in name.split("."):
            one, other = one[key], other[key]
        assert one != other, name


@pytest.mark.parametrize("name", OTHER_VALUES)
def test_conditions_state_the_settings_that_affect_the_numbers(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    # Runs that cannot be made are in no comparison of runs.
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    before, after = unchanged().conditions, plan(name).conditions
    # A comparison of runs records which runs it compares.
    common = {path for path in before.keys() & after.keys() if not path.endswith("/bias.json")}
    assert common
    deviating = {path for path in common if before[path].deviations != after[path].deviations}
    affects = effect_of(declared()[name])
    if affects in ("display", "nothing"):
        assert all(before[path] == after[path] for path in common)
    elif may_deviate(declared()[name]) and name not in NOT_SENT:
        assert deviating
    if affects == "scoring":
        both = before.keys() & after.keys()
        changed = {path for path in both if before[path] != after[path]}
        assert changed or name in FILES
        key = name.rpartition(".")[2]
        for path in changed & common:
            old, new = before[path].settings, after[path].settings
            assert {each for each in {*old, *new} if old.get(each) != new.get(each)} == {key}


NOT_SENT = {"idiots.parameters.top_k"}
"""Settings that this model's provider does not accept."""
FILES = {"idiots.verdicts", "jam.humans"}
"""Files, whose digests are inputs of the metric files."""


@pytest.mark.parametrize("study", ["jam", "idiots", "idiolink"])
def test_all_runs_record_the_resamples_of_their_intervals(
    study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    after = plan(f"{study}.bootstrap_resamples")
    metrics = [run.metrics for run in after.runs if run.study == study]
    assert metrics
    for path in metrics:
        resamples = OTHER_VALUES[f"{study}.bootstrap_resamples"]
        assert after.conditions[path].settings["bootstrap_resamples"] == resamples
