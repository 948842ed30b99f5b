"""Group and aggregate the runs of ID10M-JAM over seeds, for tables and figures."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import NamedTuple, TypeVar, get_args

from pieline.core.measures import Measure
from pieline.core.outcomes import READABLE
from pieline.studies.jam.metrics.neutral import NeutralMetrics
from pieline.studies.jam.metrics.scores import JamMetrics
from pieline.studies.jam.predictions.prompt_settings import PromptSetting

T = TypeVar("T")
COUNTED_SETTING: PromptSetting = "few_shot_sc_cotbest"
COUNTED_SEED = 42
"""Setting and seed of the runs that Figure 3 counts, as in the released code."""


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


def counted_runs(runs: Runs, reasoning: Collection[str]) -> Runs:
    """Return the runs of language models that Figure 3 counts: few-shot, with one seed.

    For models in `reasoning`, the setting is zero-shot, as in Figure 2. Models without a run with
    this seed and setting are excluded.
    """
    seeds = {
        key: [item for item in run_seeds if item.seed == COUNTED_SEED]
        for key, run_seeds in panel(runs, COUNTED_SETTING, reasoning).items()
    }
    return {key: run_seeds for key, run_seeds in seeds.items() if run_seeds}


def confused_runs(runs: Runs, language: str) -> dict[str, int]:
    """Return the number of runs that confuse each variant of a language, by variant id.

    Each run has one seed.
    """
    totals = Counter[str]()
    for key, run_seeds in runs.items():
        if key.language == language:
            for case in chain.from_iterable(item.judged for item in run_seeds):
                totals.update(case.flipped)
    return dict(totals)
