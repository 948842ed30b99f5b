"""Group and aggregate the runs of ID10M-JAM over seeds, for tables and figures."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import NamedTuple, TypeVar, get_args

from pieline.core.measures import Measure
from pieline.core.outcomes import READABLE
from pieline.studies.jam.metrics.neutral import NeutralMetrics
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.predictions.prompt_settings import PromptSetting
from pieline.studies.jam.settings import ConfusedModels

T = TypeVar("T")


class RunKey(NamedTuple):
    """Key of runs that differ only in their seed."""

    setting: str
    model: str
    language: str


Runs = Mapping[RunKey, Sequence[JamMetrics]]


def by_run(metrics: Iterable[JamMetrics]) -> dict[RunKey, list[JamMetrics]]:
    """Group metrics by setting, model and language, with each group ordered by seed."""
    runs: dict[RunKey, list[JamMetrics]] = defaultdict(list)
    for item in sorted(metrics, key=lambda item: item.seed):
        runs[RunKey(item.setting, item.model, item.language)].append(item)
    return dict(runs)


def prompted(metrics: Iterable[JamMetrics]) -> dict[RunKey, list[JamMetrics]]:
    """Group the runs of language models with predefined prompt settings (see `by_run`).

    The paper's figures exclude encoders.
    """
    return by_run(item for item in metrics if item.setting in get_args(PromptSetting))


def unreadable(runs: Iterable[JamMetrics | NeutralMetrics]) -> tuple[int, int]:
    """Return the number of unreadable answers and the total number of answers in the runs."""
    outcomes = Counter[str]()
    for item in runs:
        outcomes.update(item.outcomes)
    return sum(outcomes[name] for name in outcomes.keys() - READABLE), outcomes.total()


def panel(runs: Mapping[RunKey, T], setting: str, reasoning: Collection[str]) -> dict[RunKey, T]:
    """Return the runs shown for a setting of language models in section 5 and Figure 2.

    Reasoning models, which run only zero-shot, are shown for every setting.
    """
    return {
        key: seeds
        for key, seeds in runs.items()
        if key.setting == setting or (key.setting == "zero_shot" and key.model in reasoning)
    }


def mean_over_seeds(seeds: Sequence[JamMetrics], measure: Measure[JamMetrics]) -> float | None:
    """Return the mean of a measure; None if it is unknown of a seed."""
    values = [measure.value(item) for item in seeds]
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def counted_runs(runs: Runs, figure3: ConfusedModels, reasoning: Collection[str]) -> Runs:
    """Return the runs of language models that Figure 3 counts.

    If `figure3` counts runs, the result has all `runs`. If it counts models, the result has one
    seed of one prompt setting per model; for models in `reasoning`, the setting is zero-shot, as in
    Figure 2. Models without a run with this seed and setting are excluded.
    """
    if figure3.count == "released":
        reasoning = ()
    if figure3.count == "runs":
        return runs
    chosen = panel(runs, figure3.setting, reasoning).items()
    seeds = {
        key: [item for item in run_seeds if item.seed == figure3.seed] for key, run_seeds in chosen
    }
    return {key: run_seeds for key, run_seeds in seeds.items() if run_seeds}


def confused_runs(runs: Runs, language: str) -> dict[str, int]:
    """Return the number of runs that each variant of a language confuses, by variant id.

    A variant confuses a run with several seeds if it confuses most of the seeds.
    """
    totals = Counter[str]()
    for key, run_seeds in runs.items():
        if key.language != language:
            continue
        votes = Counter[str]()
        for case in chain.from_iterable(item.judged for item in run_seeds):
            votes.update(case.flipped)
        totals.update({name: int(2 * count > len(run_seeds)) for name, count in votes.items()})
    return dict(totals)
