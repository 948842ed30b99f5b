"""The plan of a configuration's runs."""

from collections.abc import Collection, Sequence
from pathlib import Path

from support import ROOT

from pieline.core.conditions import Conditions
from pieline.llm.settings import LLMSettings
from pieline.plan import Plan, Run, make_plan
from pieline.project import Project


def run(model: str, seed: int, kind: str = "llm") -> Run:
    name = f"{model}/zero_shot/seed-{seed}"
    return Run(
        study="small",
        model=model,
        key=f"{model}/{seed}",
        kind=kind,
        where={"setting": "zero_shot", "seed": str(seed)},
        predictions=f"results/predictions/small/{name}.jsonl",
        metrics=f"results/metrics/small/{name}.json",
        conditions=Conditions(settings={"seed": seed}),
    )


RUNS = (run("a", 1), run("a", 2), run("b+span+paper", 1), run("mine", 1, "predictions"))


def plan_of(*missing: Run) -> Plan:
    def lacks(runs: Sequence[Run], archived: Collection[str]) -> dict[str, str]:
        assert not archived
        return {one.metrics: "no key" for one in missing}

    return make_plan(RUNS, Project({}, LLMSettings(), root=Path(ROOT)), lacks)


def test_both_files_of_a_run_lead_to_it() -> None:
    plan = plan_of()
    for one in RUNS:
        assert plan[one.metrics] == plan[one.predictions] == one
    assert "results/metrics/small/other.json" not in plan


def test_runs_are_selected_by_fields_and_wildcards() -> None:
    plan = plan_of()
    assert plan.select(model="a", seed="2") == [RUNS[1]]
    assert plan.select(model=["a", "mine"], seed="1") == [RUNS[0], RUNS[3]]
    assert plan.select(base="b") == [RUNS[2]]


def test_a_run_that_lacks_something_is_planned_but_not_made() -> None:
    plan = plan_of(RUNS[1])
    assert plan[RUNS[1].metrics].lacks == "no key"
    assert [one.metrics for one in plan] == [one.metrics for one in RUNS]
    assert plan.metrics(model="a") == [RUNS[0].metrics]


def test_conditions_are_those_of_a_run_or_of_another_metric_file() -> None:
    counts = Conditions(settings={"counts": True})
    plan = Plan(RUNS, {"results/metrics/small/counts.json": counts})
    assert plan.conditions(RUNS[1].metrics) == Conditions(settings={"seed": 2})
    assert plan.conditions("results/metrics/small/counts.json") == counts
    assert plan.conditions("results/metrics/small/other.json") is None
