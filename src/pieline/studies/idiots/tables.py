"""IdioTS's tables: detection (Table 1), consistency (Table 2) and distractors (Table 3)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pieline.core.outcomes import READABLE
from pieline.reporting.latex import render_table
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.printed import (
    Comparison,
    compare,
    read_published,
    rounded,
    write_comparisons,
)
from pieline.studies.idiots.metrics import DetectionMetrics, Score
from pieline.studies.idiots.records import DistractorKind

PAPER_SETTING = "zero_shot"
"""The setting of the printed numbers."""

DECIMALS = 3

SETTING_LABELS = {"zero_shot": "zero-shot", "zero_shot_schema": "zero-shot, JSON"}
KIND_LABELS = {
    "whole_phrase": "whole phrase",
    "parts": "parts",
    "other_role": "other role",
    "look_alike": "look-alike",
}

_FIRST_LEVEL = (
    "accuracy",
    "misclassification_rate",
    "recall",
    "specificity",
    "precision",
    "balanced_accuracy",
)
_COLUMNS = {
    "detection": _FIRST_LEVEL,
    "consistency": (
        "positives",
        "true_positives",
        "true_positives_with_correct_idiom",
        "true_positive_consistency",
    ),
    "distractors": ("distractors", "false_positives_on_associated_pie", "ratio"),
}
TABLES = tuple(_COLUMNS)
_LOWER_IS_BETTER = ("misclassification_rate", "ratio")

Numbers = dict[str, Score | int]
"""Numbers of one run by name: scores, which are fractions, and counts."""


@dataclass(frozen=True)
class Cell:
    """A number in a LaTeX table: its text and whether it is the best of its column."""

    text: str
    best: bool = False


def run_labels(
    metrics: Sequence[DetectionMetrics], models: Sequence[ModelDescription]
) -> list[str]:
    """What a table or figure calls each run: the model, and what else tells the runs apart."""
    labels = {model.name: model.label for model in models}
    several_settings = len({item.setting for item in metrics}) > 1
    several_seeds = len({item.seed for item in metrics}) > 1
    names = []
    for item in metrics:
        details = [SETTING_LABELS[item.setting]] if several_settings else []
        details += [f"seed {item.seed}"] if several_seeds else []
        label = labels[item.model]
        names.append(f"{label} ({', '.join(details)})" if details else label)
    return names


def write_detection_table(
    table: str,
    metrics: Sequence[DetectionMetrics],
    models: Sequence[ModelDescription],
    every_model: Sequence[ModelDescription],
    *,
    published: str | Path,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """Write one of the three tables as LaTeX (the runs made) and CSV (beside the printed numbers).

    The CSV has, besides, the runs that were not made with the reason, the 95 % intervals, the
    counts of outcomes and verdicts, and what only our data can tell (kinds of distractors).

    Args:
        table: one of `TABLES`.
        metrics: one a run, in the table's order.
        models: those run.
        every_model: all language models of models.yaml.
        published: CSV of the printed numbers.
        template: LaTeX template.
        tex: LaTeX output.
        csv: CSV output.
    """
    printed = read_published(published, ["model"])
    numbers = [_numbers(table, item) for item in metrics]
    ran = {item.model for item in metrics if item.setting == PAPER_SETTING}
    published_as = {model.name: model.published_as or "" for model in every_model}
    not_run = [
        model
        for model in every_model
        if model.name not in ran and (model.published_as or "",) in printed
    ]

    def comparisons() -> Iterable[tuple[Mapping[str, str], Comparison]]:
        for item, row in zip(metrics, numbers, strict=True):
            of_paper = printed.get((published_as[item.model],), {})
            for name, number in row.items():
                key = _key(item.model, item.setting, str(item.seed), name, _interval(number))
                yield (
                    key,
                    compare(
                        _value(number),
                        of_paper.get(name) if item.setting == PAPER_SETTING else None,
                        obstacles=_obstacles(item),
                        decimals=_decimals(number),
                    ),
                )
        for model in not_run:
            for name, value in printed[(model.published_as or "",)].items():
                key = _key(model.name, PAPER_SETTING, "", name, "")
                reason = "not run: idiots.models and idiots.settings do not name it"
                yield key, compare(None, value, obstacles=[reason], decimals=DECIMALS)

    write_comparisons(csv, comparisons(), decimals=DECIMALS)
    kinds = [
        kind
        for kind in get_args(DistractorKind)
        if table == "distractors" and any(kind in item.by_distractor_kind for item in metrics)
    ]
    columns = [*_COLUMNS[table], *(f"ratio_{kind}" for kind in kinds)]
    columns += ["answers_unreadable"] if table == "detection" else []
    labels = run_labels(metrics, models)
    cells = _cells(columns, numbers)
    sample = any(item.origin == "sample" for item in metrics)
    render_table(
        template,
        tex,
        rows=[{"label": label, "cells": row} for label, row in zip(labels, cells, strict=True)],
        kinds=[KIND_LABELS[kind] for kind in kinds],
        human=sum(item.verdicts["human"] for item in metrics),
        judged=sum(sum(item.verdicts.values()) for item in metrics),
        not_run=[model.label for model in not_run],
        note=SAMPLE_NOTE if sample else "",
    )


def _numbers(table: str, item: DetectionMetrics) -> Numbers:
    """All numbers of a run that a table's CSV shows: the printed ones first."""
    verdicts: Numbers = {f"verdicts_{name}": count for name, count in item.verdicts.items()}
    if table == "detection":
        scores: Numbers = {name: getattr(item, name) for name in _FIRST_LEVEL}
        scores |= {f"answers_{name}": count for name, count in item.outcomes.items()}
        unreadable = sum(count for name, count in item.outcomes.items() if name not in READABLE)
        return scores | {"answers_unreadable": unreadable}
    if table == "consistency":
        consistency: Numbers = {
            "positives": item.idiomatic,
            "true_positives": item.true_positive_consistency.of or 0,
            "true_positives_with_correct_idiom": item.true_positive_consistency.count or 0,
            "true_positive_consistency": item.true_positive_consistency,
        }
        return consistency | verdicts
    numbers: Numbers = {
        "distractors": item.distractors,
        "false_positives_on_associated_pie": item.distractor_pie_ratio.count or 0,
        "ratio": item.distractor_pie_ratio,
    }
    for kind, scores_of_kind in item.by_distractor_kind.items():
        numbers[f"distractors_{kind}"] = scores_of_kind["distractor_pie_ratio"].of or 0
        numbers[f"ratio_{kind}"] = scores_of_kind["distractor_pie_ratio"]
        numbers[f"specificity_{kind}"] = scores_of_kind["specificity"]
    return numbers | verdicts


def _cells(columns: Sequence[str], rows: Sequence[Numbers]) -> list[list[Cell]]:
    """Cells of the LaTeX table; of several scores in a column the best is marked."""
    texts = [[_text(row.get(name)) for name in columns] for row in rows]
    best = []
    for place, name in enumerate(columns):
        scores = [
            float(text[place])
            for text, row in zip(texts, rows, strict=True)
            if isinstance(row.get(name), Score) and text[place] != "--"
        ]
        choose = min if name.startswith(_LOWER_IS_BETTER) else max
        best.append(choose(scores) if len(set(scores)) > 1 else None)
    return [
        [
            Cell(
                text,
                best=isinstance(row.get(name), Score)
                and text != "--"
                and float(text) == best[place],
            )
            for place, (name, text) in enumerate(zip(columns, line, strict=True))
        ]
        for row, line in zip(rows, texts, strict=True)
    ]


def _obstacles(item: DetectionMetrics) -> list[str]:
    """What makes a run incomparable with the paper's."""
    obstacles = []
    if item.origin == "sample":
        obstacles.append("sample data, not the released IdioTS")
    if item.origin == "unverified":
        obstacles.append("data/upstream.yaml has no digest by which to tell the released IdioTS")
    if failed := item.outcomes["error"]:
        obstacles.append(f"{failed} questions failed")
    return obstacles


def _key(model: str, setting: str, seed: str, metric: str, interval: str) -> dict[str, str]:
    return {
        "model": model,
        "setting": setting,
        "seed": seed,
        "metric": metric,
        "interval_95": interval,
    }


def _value(number: Score | int) -> float | None:
    return number.value if isinstance(number, Score) else float(number)


def _decimals(number: Score | int) -> int:
    return DECIMALS if isinstance(number, Score) else 0


def _interval(number: Score | int) -> str:
    if not isinstance(number, Score) or number.low is None or number.high is None:
        return ""
    return f"{number.low:.{DECIMALS}f} to {number.high:.{DECIMALS}f}"


def _text(number: Score | int | None) -> str:
    if number is None:
        return "--"
    return rounded(_value(number), _decimals(number)) or "--"
