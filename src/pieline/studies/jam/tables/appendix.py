"""ID10M-JAM's human baseline (5.1), neutral contexts (appendix G) and attention (appendix H)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from pydantic import BaseModel

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
from pieline.studies.jam.metrics.attention_records import (
    AttendedVariant,
    AttentionMetrics,
    MeanShare,
)
from pieline.studies.jam.metrics.humans import HumanMetrics
from pieline.studies.jam.metrics.neutral import NeutralMetrics
from pieline.studies.jam.tables.results import GROUPS, NOT_RELEASED

M = TypeVar("M", bound=BaseModel)

SIMULATED_NOTE = "The labels are simulated to show the computation: no person gave them."
_SIMULATED = "simulated labels, not people's"


def write_humans_table(
    metrics: HumanMetrics,
    *,
    text_numbers: str | Path,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """Accuracy of two people, overall and by usage, and their agreement (per cent).

    Args:
        metrics: of one language; the paper's are English.
        text_numbers: the printed numbers.
        template: LaTeX template.
        tex: LaTeX output.
        csv: CSV output.
    """
    printed = read_published(text_numbers, ["id"])
    obstacles = [] if metrics.dataset_is_released else [NOT_RELEASED]
    if metrics.simulated:
        obstacles.insert(0, _SIMULATED)
    if metrics.language != "english":
        obstacles.append("the paper's annotators judged English variants")
    rows: list[tuple[Mapping[str, str], Comparison]] = []
    for identifier, value in _human_numbers(metrics):
        number = printed.get((f"jam.{identifier}",), {}).get("value")
        rows.append(
            (
                {"id": f"jam.{identifier}", "metric": "value"},
                # Printed to one decimal.
                compare(value, number, obstacles=obstacles, tolerance=0.05),
            )
        )
    write_comparisons(csv, rows, decimals=2)
    notes = [] if metrics.dataset_is_released else [SAMPLE_NOTE]
    if metrics.simulated:
        notes.insert(0, SIMULATED_NOTE)
    people = [
        {
            "name": name,
            "cells": [
                _per_cent(scores.accuracy),
                _per_cent(scores.accuracy_figurative),
                _per_cent(scores.accuracy_literal),
                _per_cent(scores.ambiguous),
            ],
        }
        for name, scores in (("first", metrics.first), ("second", metrics.second))
    ]
    render_table(
        template,
        tex,
        rows=people,
        language=find(metrics.language).label,
        counts=(metrics.variants, metrics.figurative, metrics.literal),
        agreement=_per_cent(metrics.agreement),
        kappa=rounded(metrics.kappa, 2) or "--",
        note=" ".join(notes),
    )


def _human_numbers(metrics: HumanMetrics) -> Iterator[tuple[str, float | None]]:
    yield "human_variants", metrics.variants
    for name, scores in (("first", metrics.first), ("second", metrics.second)):
        for suffix in ("", "_figurative", "_literal"):
            share = getattr(scores, f"accuracy{suffix}")
            yield f"human_accuracy{suffix}_{name}", None if share is None else 100 * share
        yield f"human_ambiguous_{name}", 100 * scores.ambiguous
    yield "human_agreement", 100 * metrics.agreement
    yield "human_kappa", metrics.kappa


def write_neutral_table(
    metrics: NeutralMetrics,
    models: Sequence[ModelDescription],
    *,
    text_numbers: str | Path,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """How many confusing variants stay confusing with a neutral context.

    Args:
        metrics: of one run.
        models: for labels.
        text_numbers: the printed numbers.
        template: LaTeX template.
        tex: LaTeX output.
        csv: CSV output.
    """
    printed = read_published(text_numbers, ["id"])
    model = next(item for item in models if item.name == metrics.model)
    obstacles = [] if metrics.dataset_is_released else [NOT_RELEASED]
    if model.published_as != "GPT-4o mini":
        obstacles.append("the paper's ablation is of GPT-4o mini")
    share = None if metrics.share is None else 100 * metrics.share
    key = {"model": metrics.model, "setting": metrics.setting, "language": metrics.language}
    numbers = {
        "neutral_variants": metrics.neutral,
        "neutral_confused": metrics.still_confused,
        "neutral_share": share,
    }
    rows: list[tuple[Mapping[str, str], Comparison]] = []
    for name, value in numbers.items():
        number = printed.get((f"jam.{name}",), {}).get("value")
        identity = {**key, "id": f"jam.{name}", "metric": "value"}
        tolerance = 0.05 if name == "neutral_share" else 0.0
        rows.append((identity, compare(value, number, obstacles=obstacles, tolerance=tolerance)))
    write_comparisons(csv, rows, decimals=2)
    interval = metrics.interval
    bounds = f"{100 * interval.low:.1f}--{100 * interval.high:.1f}" if interval else "--"
    render_table(
        template,
        tex,
        row=[
            model.label,
            GROUPS[metrics.setting],
            find(metrics.language).label,
            metrics.confusing,
            metrics.neutral,
            metrics.still_confused,
            rounded(share, 1) or "--",
            bounds,
        ],
        note="" if metrics.dataset_is_released else SAMPLE_NOTE,
    )


def write_attention_table(
    metrics: AttentionMetrics,
    models: Sequence[ModelDescription],
    *,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """Share of the PIE's attention on cue words (per cent): misleading, resolved, difference.

    The paper describes the pattern and prints no number; the CSV says so.

    Args:
        metrics: of one language.
        models: for labels.
        template: LaTeX template.
        tex: LaTeX output.
        csv: CSV output.
    """
    obstacles = [] if metrics.dataset_is_released else [NOT_RELEASED]
    parts = {
        "misleading": metrics.misleading,
        "resolved": metrics.resolved,
        "difference": metrics.difference,
    }
    rows: list[tuple[Mapping[str, str], Comparison]] = []
    key = {"model": metrics.model, "language": metrics.language}
    for name, part in parts.items():
        bounds = {"low": "", "high": ""}
        if part.interval:
            low, high = part.interval.low, part.interval.high
            bounds = {"low": rounded(100 * low, 2), "high": rounded(100 * high, 2)}
        share = None if part.mean is None else 100 * part.mean
        identity = {**key, "pairs": str(len(metrics.pairs)), "metric": name, **bounds}
        rows.append((identity, compare(share, None, obstacles=obstacles)))
    write_comparisons(csv, rows, decimals=2)
    label = next(item.label for item in models if item.name == metrics.model)
    render_table(
        template,
        tex,
        row=[
            label,
            find(metrics.language).label,
            len(metrics.pairs),
            *(_with_interval(part) for part in parts.values()),
        ],
        note="" if metrics.dataset_is_released else SAMPLE_NOTE,
    )


def draw_attention(metrics: AttentionMetrics) -> Figure:
    """Figure 7: attention from the PIE to the words before it, by layer; MIS above, COR below.

    Of the first pair. The first word, on which causal models park attention, is left blank. Without
    pairs the figure says so.
    """
    if not metrics.pairs:
        figure, axis = plt.subplots(figsize=(5, 1.2), layout="constrained")
        axis.axis("off")
        axis.text(0.5, 0.5, "no original has both a misleading and a resolved variant", ha="center")
        return figure
    pair = metrics.pairs[0]
    figure, axes = plt.subplots(2, 1, figsize=(7.2, 5.4), layout="constrained")
    highest = max(float(np.nanmax(_shown(item))) for item in (pair.misleading, pair.resolved))
    for axis, (title, variant) in zip(
        axes, (("MIS", pair.misleading), ("COR", pair.resolved)), strict=True
    ):
        _heat_map(axis, variant, f"{title}: {variant.id}, PIE “{pair.pie}”", highest)
    if not metrics.dataset_is_released:
        figure.supxlabel(SAMPLE_NOTE, fontsize=6, color="#666666")
    return figure


def _shown(variant: AttendedVariant) -> npt.NDArray[np.float64]:
    """Attention by layer, without the first word and the PIE itself."""
    values = np.array(variant.by_layer)
    values[:, [0, *variant.pie_words]] = np.nan
    return values


def _heat_map(axis: Axes, variant: AttendedVariant, title: str, highest: float) -> None:
    # One scale for both panels, and the root of attention: most of it is near zero.
    norm = PowerNorm(0.5, vmin=0, vmax=highest)
    image = axis.imshow(_shown(variant), aspect="auto", cmap="viridis", norm=norm)
    axis.figure.colorbar(image, ax=axis, label="attention", pad=0.01)
    axis.set_xticks(range(len(variant.words)), variant.words, rotation=60, ha="right", fontsize=6)
    for place, text in enumerate(axis.get_xticklabels()):
        if place in variant.cue_words:
            text.set_color("#d95f0e")
        if place in variant.pie_words:
            text.set_fontweight("bold")
    axis.set_ylabel("layer")
    axis.grid(visible=False)
    axis.set_title(f"{title} (orange: cue words, {100 * variant.share:.1f} %)", fontsize=7)


def _per_cent(share: float | None) -> str:
    return rounded(None if share is None else 100 * share, 1) or "--"


def _with_interval(part: MeanShare) -> str:
    if part.mean is None or part.interval is None:
        return "--"
    low, high = 100 * part.interval.low, 100 * part.interval.high
    return f"{100 * part.mean:.1f} [{low:.1f}, {high:.1f}]"
