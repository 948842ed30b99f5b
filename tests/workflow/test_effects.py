"""Whether the jobs behind metric files get the settings that declare to affect them, and no others.

A job is a function of its params and inputs; `test_rules.py` checks that scripts read them.
"""

from functools import cache

import pytest
from snakemake.iocontainers import Wildcards
from snakemake.settings.types import ConfigSettings
from support import ROOT
from test_settings_of_runs import OTHER_VALUES, configuration, declared
from workflow.test_rules import RuleSet

from pieline.core.settings import Effect, effect_of


class Jobs:
    """Params and inputs of the jobs behind the metric files of a configuration."""

    def __init__(self, *changed: str) -> None:
        found = RuleSet(ConfigSettings(config=configuration(changed)))
        self.rules = found.rules
        plans = [study.plan for study in found.studies]
        runs = [run for plan in plans for run in plan if not run.impossible_because]
        self.metrics = {run.metrics for run in runs}
        self.others = {path for plan in plans for path in plan.others}
        self._own: dict[str, tuple[dict[str, str], list[str]]] = {}

    def own(self, path: str) -> tuple[dict[str, str], list[str]]:
        """Return the params and inputs of the job that makes a file, by name, and the inputs."""
        if path not in self._own:
            makers = [rule for rule in self.rules if rule.is_producer(path)]
            facts: dict[str, str] = {}
            inputs: list[str] = []
            for rule in makers[:1]:
                wildcards = Wildcards(fromdict=rule.get_wildcards(path))
                inputs = list(map(str, rule.expand_input(wildcards)[0]))
                facts = {f"{path}: input": " ".join(inputs)}
                for name, value in rule.params._allitems():
                    if name and name != "contents":
                        given = value(wildcards) if callable(value) else value
                        facts[f"{path}: {name}"] = str(given)
            self._own[path] = facts, inputs
        return self._own[path]

    def behind(self, path: str, seen: set[str] | None = None) -> dict[str, str]:
        """Return the facts of the jobs that make the inputs of a file, and their inputs."""
        seen = set() if seen is None else seen
        facts: dict[str, str] = {}
        for file in self.own(path)[1]:
            if file not in seen:
                seen.add(file)
                facts |= self.own(file)[0] | self.behind(file, seen)
        return facts


def differences(one: Jobs, other: Jobs, effect: Effect) -> set[str]:
    """Return which params and inputs differ, of jobs that settings with an effect must not change.

    Settings that affect scoring may change the params of the jobs that write metric files.
    """
    found: set[str] = set()
    for path in sorted((one.metrics | one.others) & (other.metrics | other.others)):
        pairs = [(one.behind(path), other.behind(path))]
        if effect != "scoring":
            pairs.append((one.own(path)[0], other.own(path)[0]))
        for before, after in pairs:
            names = {*before, *after}
            found |= {name for name in names if before.get(name) != after.get(name)}
    if effect == "scoring":  # some metric files are made from others
        return {name for name in found if not name.startswith("results/metrics/")}
    return found


@cache
def jobs(*changed: str) -> Jobs:
    with pytest.MonkeyPatch.context() as patch:
        # When it is parsed, the Snakefile sets this variable for its jobs.
        patch.setenv("PYTHONPATH", ".")
        patch.setenv("OPENAI_API_KEY", "unused")
        patch.delenv("PIELINE_MIRROR", raising=False)
        patch.chdir(ROOT)
        made = Jobs(*changed)
        for path in made.metrics | made.others:
            made.behind(path)
        return made


SELECTING = {
    "jam.languages", "jam.models", "jam.settings", "jam.seeds", "jam.fine_tuning.seeds",
    "jam.attention", "idiots.models", "idiots.settings", "idiots.seeds",
    "idiolink.models", "idiolink.leave_out", "idiolink.query_modes", "idiolink.compositions",
    "idiolink.construction.enabled", "idiolink.finetuning.models", "idiolink.finetuning.losses",
    "idiolink.finetuning.train_modes", "idiolink.finetuning.seeds",
    "beyond.jam.training_contexts", "beyond.idiots.prompts_against", "beyond.idiolink.shortcuts",
}  # fmt: skip
"""Settings that affect displays by selecting which metric files there are."""


NOT_USED = {"jam.variants.model", "jam.variants.max_tokens"}
"""Settings of variants that a model writes; `CONFIGURATION` has the public variants."""


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(OTHER_VALUES.keys() - SELECTING - NOT_USED))
def test_the_jobs_get_a_setting_as_it_declares(name: str) -> None:
    before, after, effect = jobs(), jobs(name), effect_of(declared()[name])
    of_metrics = bool(differences(before, after, "display"))
    of_predictions = bool(differences(before, after, "scoring"))
    if effect == "predictions":
        assert of_predictions
    else:
        assert (before.metrics, before.others) == (after.metrics, after.others)
        assert (of_metrics, of_predictions) == (effect == "scoring", False)


def test_no_metric_file_changes_with_the_selection_of_runs() -> None:
    before, after = jobs(), jobs(*SELECTING)
    assert {effect_of(declared()[name]) for name in SELECTING} == {"display"}
    for study in ("jam", "idiots", "idiolink"):
        common = before.metrics & after.metrics
        assert any(path.startswith(f"results/metrics/{study}/") for path in common)
    assert differences(before, after, "display") == set()


def test_a_wrong_label_is_detected() -> None:
    """As if these settings declared to affect displays, or the last ones scoring."""
    scoring = ["jam.scoring"]
    predictions = ["idiolink.top_k", "idiots.by_model"]
    found = differences(jobs(), jobs(*scoring, *predictions), "display")
    for name in ("scoring", "top_k", "task"):
        assert any(each.endswith(f": {name}") for each in found), name
    found = differences(jobs(), jobs(*scoring, *predictions), "scoring")
    assert {each.rpartition(": ")[2] for each in found} == {"top_k", "task"}
