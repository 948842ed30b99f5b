"""ID10M-JAM's result tables: negative drift (Table 3), by usage (Table 5), confusion (Table 6)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pieline.languages.registry import find
from pieline.reporting.latex import render_table
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.printed import (
    Comparison,
    compare,
    read_published,
    rounded,
    write_comparisons,
)
from pieline.studies.jam.metrics.drift import Drift, Spread, spread
from pieline.studies.jam.metrics.runs import JamMetrics

GROUPS = {
    "zero_shot": "Zero-shot",
    "zero_shot_schema": "Zero-shot, form enforced",
    "few_shot_sc_cotbest": "Few-shot +SC+CoTBest",
    "reasoning": "Reasoning LLMs",
    "fine_tuned": "Encoders",
}
"""Parts of every table, in the paper's order; the second is not the paper's."""

NOT_RELEASED = "sample data, not the released ID10M-JAM"
NO_VARIANTS = "no hard variants"
OTHER_TRAINING = "not trained on ID10M's train split"


class RunKey(NamedTuple):
    """Runs that differ in nothing but their seed."""

    setting: str
    model: str
    language: str


Runs = Mapping[RunKey, Sequence[JamMetrics]]
Value = Callable[[JamMetrics], float | None]


@dataclass(frozen=True)
class Column:
    """A number of a table.

    Attributes:
        name: its column in published/*.csv.
        head: LaTeX of its heading.
        value: ours for one run, in the printed unit; None where it is unknown.
        unknown: why it can be unknown although the run was made.
    """

    name: str
    head: str
    value: Value
    unknown: str = ""


def _share(part: Callable[[JamMetrics], Drift]) -> Value:
    def value(metrics: JamMetrics) -> float | None:
        share = part(metrics).negative_drift
        return None if share is None else 100 * share

    return value


_NOTHING_RIGHT = "no such original was judged right, so nothing could drift"

DRIFT_COLUMNS = (
    Column("success", "$S_M$", lambda item: item.overall.success),
    Column(
        "negative_drift_pct",
        r"$\mathit{ND}_M$ (\%) $\downarrow$",
        _share(lambda item: item.overall),
        _NOTHING_RIGHT,
    ),
)
USAGE_COLUMNS = (
    DRIFT_COLUMNS[0],
    Column("success_literal", "$S_L$", lambda item: item.literal.success),
    Column(
        "negative_drift_literal_pct",
        r"$\mathit{ND}_L$ (\%) $\downarrow$",
        _share(lambda item: item.literal),
        _NOTHING_RIGHT,
    ),
    Column("success_idiomatic", "$S_I$", lambda item: item.idiomatic.success),
    Column(
        "negative_drift_idiomatic_pct",
        r"$\mathit{ND}_I$ (\%) $\downarrow$",
        _share(lambda item: item.idiomatic),
        _NOTHING_RIGHT,
    ),
)


def _confusion(name: str) -> Value:
    def value(metrics: JamMetrics) -> float:
        # The paper counts variants of encoders, and originals of language models.
        tagged = metrics.setting == "fine_tuned"
        return int(getattr(metrics.confusion_of_variants if tagged else metrics.confusion, name))

    return value


CONFUSION_COLUMNS = (
    Column("all_confused", "AC", _confusion("all_confused")),
    Column("none_confused", "NC", _confusion("none_confused")),
    Column("mixed", "MX", _confusion("mixed")),
)
TABLES = {"drift": DRIFT_COLUMNS, "usage": USAGE_COLUMNS, "confusion": CONFUSION_COLUMNS}


def by_run(metrics: Iterable[JamMetrics]) -> dict[RunKey, list[JamMetrics]]:
    """Metrics of the seeds of each run, in the order of the seeds."""
    runs: dict[RunKey, list[JamMetrics]] = defaultdict(list)
    for item in sorted(metrics, key=lambda item: item.seed):
        runs[RunKey(item.setting, item.model, item.language)].append(item)
    return dict(runs)


def group_of(setting: str, model: ModelDescription | None) -> str:
    """The part of a table in which a run stands; a key of `GROUPS`."""
    return "reasoning" if model is not None and model.reasoning else setting


def over_seeds(metrics: Sequence[JamMetrics], value: Value) -> Spread | None:
    """Mean and deviation over seeds; None without runs, or where it is unknown for some seed."""
    values = [value(item) for item in metrics]
    known = [item for item in values if item is not None]
    return spread(known) if known and len(known) == len(values) else None


def write_results_table(
    table: str,
    metrics: Sequence[JamMetrics],
    models: Sequence[ModelDescription],
    *,
    published: str | Path,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """One of the three tables, in the paper's layout, and each of its numbers beside the printed.

    The LaTeX has what was run; the CSV has every printed row besides, with the reason why there is
    no number of ours.

    Args:
        table: a key of `TABLES`.
        metrics: of all runs.
        models: every language model and encoder of models.yaml.
        published: CSV of the printed numbers.
        template: LaTeX template.
        tex: LaTeX output.
        csv: CSV output.
    """
    columns, runs = TABLES[table], by_run(metrics)
    printed = read_published(published, ["setting", "model", "language"])
    described = {model.name: model for model in models}
    keys = sorted(runs, key=lambda key: _place(key, described))
    missing = [key for key in _printed_runs(printed, models) if key not in runs]
    comparisons = [
        (
            {**key._asdict(), "seeds": _seeds(runs.get(key, [])), "metric": name},
            cell,
        )
        for key in [*keys, *missing]
        for name, cell in _cells(key, runs.get(key, []), columns, printed, described)
    ]
    write_comparisons(csv, comparisons, decimals=2)
    shown = languages_of(runs)
    groups = []
    for group, title in GROUPS.items():
        rows = [
            {"model": label, "cells": [_texts(runs.get(key, []), columns) for key in row]}
            for label, row in _rows(keys, described, group, shown)
        ]
        if rows:
            groups.append({"title": title, "rows": rows})
    render_table(
        template,
        tex,
        columns=columns,
        languages=[find(name).label for name in shown],
        groups=groups,
        note="" if all(item.dataset_is_released for item in metrics) else SAMPLE_NOTE,
        not_run=sorted({described[key.model].label for key in missing} - _labels(keys, described)),
        scoring=sorted({item.scoring for item in metrics}),
    )


def languages_of(runs: Iterable[RunKey]) -> list[str]:
    """The languages of some runs, in the order of every table."""
    return sorted({key.language for key in runs})


def obstacles_of(metrics: Sequence[JamMetrics]) -> list[str]:
    """What makes numbers of these runs incomparable with the printed ones."""
    found = []
    if not all(item.dataset_is_released for item in metrics):
        found.append(NOT_RELEASED)
    if not all(item.overall.variants for item in metrics):
        found.append(NO_VARIANTS)
    return found


def _cells(
    key: RunKey,
    metrics: Sequence[JamMetrics],
    columns: Sequence[Column],
    printed: Mapping[tuple[str, ...], Mapping[str, float]],
    described: Mapping[str, ModelDescription],
) -> Iterator[tuple[str, Comparison]]:
    """Name and comparison of each number of a run: means, then deviations."""
    model = described[key.model]
    row = printed.get((key.setting, model.published_as or "", key.language), {})
    obstacles = obstacles_of(metrics)
    if not metrics:
        obstacles = ["not run: config.yaml (jam) does not name this model, setting and language"]
    for column in columns:
        found = over_seeds(metrics, column.value)
        problems = [*obstacles]
        if metrics and found is None:
            problems.insert(0, column.unknown)
        # Answers and trainings vary from run to run: two printed deviations count as reproduced.
        tolerance = 2 * row.get(f"{column.name}_std", 0.0)
        yield (
            column.name.removesuffix("_pct"),
            compare(
                found.mean if found else None,
                row.get(column.name),
                obstacles=problems,
                tolerance=tolerance,
            ),
        )
        deviation = found.deviation if found else None
        if deviation is None and f"{column.name}_std" not in row:
            continue
        if found and deviation is None:
            problems.insert(0, "one seed has no deviation")
        yield (
            f"{column.name}_std",
            compare(deviation, row.get(f"{column.name}_std"), obstacles=problems),
        )


def _printed_runs(
    printed: Mapping[tuple[str, ...], object], models: Sequence[ModelDescription]
) -> Iterator[RunKey]:
    """The printed rows by the names of models.yaml, in the printed order."""
    names = {model.published_as: model.name for model in models if model.published_as}
    for setting, label, language in printed:
        if label in names:
            yield RunKey(setting, names[label], language)


def _place(key: RunKey, described: Mapping[str, ModelDescription]) -> tuple[int, int, str]:
    """Where a run stands in a table."""
    return (
        list(GROUPS).index(group_of(key.setting, described[key.model])),
        list(described).index(key.model),
        key.language,
    )


def _rows(
    keys: Iterable[RunKey],
    described: Mapping[str, ModelDescription],
    group: str,
    languages: Sequence[str],
) -> Iterator[tuple[str, list[RunKey]]]:
    """Label and runs (one a language) of each row of a group."""
    members = [key for key in keys if group_of(key.setting, described[key.model]) == group]
    for setting, name in dict.fromkeys((key.setting, key.model) for key in members):
        yield (
            described[name].label,
            [RunKey(setting, name, language) for language in languages],
        )


def _labels(keys: Iterable[RunKey], described: Mapping[str, ModelDescription]) -> set[str]:
    return {described[key.model].label for key in keys}


def _seeds(metrics: Sequence[JamMetrics]) -> str:
    return " ".join(str(item.seed) for item in metrics)


def _texts(metrics: Sequence[JamMetrics], columns: Sequence[Column]) -> list[str]:
    """LaTeX of a run's cells."""
    texts = []
    for column in columns:
        found = over_seeds(metrics, column.value)
        text = rounded(found.mean, 2) if found else "--"
        if found and found.deviation is not None:
            text += f"$\\pm${rounded(found.deviation, 2)}"
        texts.append(text)
    return texts
