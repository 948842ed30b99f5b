"""Runs of ID10M-JAM over their seeds: what tables and figures show of a model and a setting."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar, get_args

from pieline.core.outcomes import READABLE
from pieline.reporting.printed import per_cent
from pieline.studies.jam.metrics.neutral import NeutralMetrics
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.predictions.prompt_settings import PromptSetting
from pieline.studies.jam.settings import ConfusedModels

T = TypeVar("T")


class RunKey(NamedTuple):
    """Runs that differ in nothing but their seed."""

    setting: str
    model: str
    language: str


Runs = Mapping[RunKey, Sequence[JamMetrics]]
Value = Callable[[JamMetrics], float | None]


def key_of(metrics: JamMetrics) -> RunKey:
    """What a run has in common with those that differ in their seed only."""
    return RunKey(metrics.setting, metrics.model, metrics.language)


def by_run(metrics: Iterable[JamMetrics]) -> dict[RunKey, list[JamMetrics]]:
    """Metrics of the seeds of each run, in the order of the seeds."""
    runs: dict[RunKey, list[JamMetrics]] = defaultdict(list)
    for item in sorted(metrics, key=lambda item: item.seed):
        runs[key_of(item)].append(item)
    return dict(runs)


def prompted(metrics: Iterable[JamMetrics]) -> dict[RunKey, list[JamMetrics]]:
    """The runs of language models: the paper's figures leave encoders out."""
    return by_run(item for item in metrics if item.setting in get_args(PromptSetting))


def unreadable(runs: Iterable[JamMetrics | NeutralMetrics]) -> tuple[int, int]:
    """Sentences whose answer could not be read, and all sentences, over some runs."""
    outcomes = Counter[str]()
    for item in runs:
        outcomes.update(item.outcomes)
    return sum(outcomes[name] for name in outcomes.keys() - READABLE), outcomes.total()


def panel(runs: Mapping[RunKey, T], setting: str, reasoning: Collection[str]) -> dict[RunKey, T]:
    """The runs that section 5 and Figure 2 show of a setting of language models.

    Models of `reasoning`, which are only asked zero-shot, stand beside every setting.
    """
    return {
        key: found
        for key, found in runs.items()
        if key.setting == setting or (key.setting == "zero_shot" and key.model in reasoning)
    }


def accuracy(item: JamMetrics) -> float | None:
    """Accuracy on the originals, in per cent."""
    return per_cent(item.accuracy)


def negative_drift(item: JamMetrics) -> float | None:
    """ND_M, in per cent."""
    return per_cent(item.overall.negative_drift)


def counted_runs(runs: Runs, figure3: ConfusedModels, reasoning: Collection[str]) -> Runs:
    """The runs of language models that Figure 3 counts.

    Of 'models' one seed of each under one prompt type. Models of `reasoning`, which are only asked
    zero-shot, count with that run, as in Figure 2; a model without the run does not count.
    """
    if figure3.count == "runs":
        return runs
    chosen = panel(runs, figure3.setting, reasoning).items()
    seeds = {key: [item for item in found if item.seed == figure3.seed] for key, found in chosen}
    return {key: found for key, found in seeds.items() if found}


def confused_runs(runs: Runs, language: str) -> dict[str, int]:
    """How many runs each variant of a language confuses, by its id.

    A run of several seeds is confused by a variant if most of its seeds are.
    """
    totals = Counter[str]()
    for key, found in runs.items():
        if key.language != language:
            continue
        votes = Counter[str]()
        for case in chain.from_iterable(item.judged for item in found):
            votes.update(case.flipped)
        totals.update({name: int(2 * count > len(found)) for name, count in votes.items()})
    return dict(totals)
