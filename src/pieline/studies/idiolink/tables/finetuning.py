"""IdioLink's fine-tuning results: Table 5, and what of it Figure 3 shows."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from pieline.reporting.latex import render_table
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.printed import (
    Comparison,
    compare,
    read_published,
    rounded,
    write_comparisons,
)
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.tables.zero_shot import (
    COLUMNS,
    METRICS,
    NOT_RELEASED,
    marked_cells,
    per_cent,
)

TRAIN_MODES = {
    "sentence": "w/o inst - sentence",
    "instruction_sentence": "w/ inst - sentence",
    "span": "w/o inst - span",
    "instruction_span": "w/ inst - span",
}
"""Training configurations in the order of Table 5."""
FINETUNED_TOLERANCE = 1.0
"""Points by which a mean of Table 5 may differ: the paper's seeds and tuples are not known."""


class Tuned(NamedTuple):
    """A fine-tuned model: what it was made from and how."""

    model: str
    train_mode: str
    loss: str

    @classmethod
    def parse(cls, name: str) -> "Tuned":
        """The parts of model+training mode+loss."""
        return cls(*name.split("+"))


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation (ddof = 1) over seeds, per cent; unknown from one seed alone."""

    mean: float
    std: float | None
    seeds: int


def evaluated_modes(train_mode: str) -> list[str]:
    """Query modes of Table 5: written as in training; trained on spans, then on spans only."""
    if train_mode.endswith("span"):
        return [train_mode]
    return [train_mode, train_mode.replace("sentence", "span")]


def spread_over_seeds(
    metrics: Sequence[IdiolinkMetrics],
) -> dict[tuple[str, str, str], Spread]:
    """Mean and deviation by model, query mode and metric; where a score is unknown, nothing."""
    values = defaultdict(list)
    for item in metrics:
        for metric in METRICS:
            value = per_cent(item, metric)
            if value is not None:
                values[item.model, item.query_mode, metric].append(value)
    return {
        key: Spread(fmean(found), stdev(found) if len(found) > 1 else None, len(found))
        for key, found in values.items()
    }


def write_finetuned_table(
    metrics: Sequence[IdiolinkMetrics],
    models: Sequence[ModelDescription],
    *,
    altered: Sequence[str],
    published: str | Path,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """Table 5: both metrics (per cent) by training configuration, model and query mode.

    The LaTeX has what was trained; the CSV has every printed cell too, with the reason why one was
    not.

    Args:
        metrics: of the fine-tuned models, one a query mode and seed.
        models: all embedders of models.yaml.
        altered: hyperparameters that are not those of Table 3.
        published: CSV of the printed numbers.
        template: LaTeX template.
        tex: LaTeX output.
        csv: CSV output.
    """
    printed = read_published(published, ["train_mode", "model", "query_mode"])
    spreads = spread_over_seeds(metrics)
    released = all(item.dataset_is_released for item in metrics)
    trained = list(dict.fromkeys(Tuned.parse(item.model) for item in metrics))
    ran = {(tuned.model, tuned.train_mode) for tuned in trained}
    checkpoints = {name for _, name, _ in printed}
    missing = [
        Tuned(model.name, train_mode, "")
        for model in models
        for train_mode in TRAIN_MODES
        if model.published_as in checkpoints and (model.name, train_mode) not in ran
    ]
    names = {model.name: model for model in models}

    def comparisons() -> list[tuple[Mapping[str, str], Comparison]]:
        rows: list[tuple[Mapping[str, str], Comparison]] = []
        for tuned in [*trained, *missing]:
            checkpoint = names[tuned.model].published_as or ""
            for query_mode in evaluated_modes(tuned.train_mode):
                row = printed.get((tuned.train_mode, checkpoint, query_mode), {})
                key = {"train_mode": tuned.train_mode, "loss": tuned.loss, "model": tuned.model}
                for metric in METRICS:
                    found = spreads.get(("+".join(tuned), query_mode, metric))
                    obstacles = []
                    if tuned in missing:
                        obstacles.append("not run: idiolink.finetuning does not name it")
                    elif not released:
                        obstacles.append(NOT_RELEASED)
                    elif altered:
                        obstacles.append(f"not the paper's: {', '.join(altered)}")
                    mean = compare(
                        found.mean if found else None,
                        row.get(f"{metric}_pct"),
                        obstacles=obstacles,
                        tolerance=FINETUNED_TOLERANCE,
                    )
                    if found and found.seeds != 3:
                        obstacles.append(f"over {found.seeds} seeds, the paper's over 3")
                    std = compare(
                        found.std if found else None,
                        row.get(f"{metric}_pct_std"),
                        obstacles=obstacles,
                        tolerance=FINETUNED_TOLERANCE,
                    )
                    named = key | {"query_mode": query_mode}
                    rows.append((named | {"metric": metric}, mean))
                    rows.append((named | {"metric": f"{metric}_pct_std"}, std))
        return rows

    write_comparisons(csv, comparisons(), decimals=2)
    numbers = {
        "+".join(tuned): {
            (metric, mode): spread.mean
            if (spread := spreads.get(("+".join(tuned), mode, metric)))
            else None
            for metric, mode in COLUMNS
        }
        for tuned in trained
    }
    cells = {
        name: [
            replace(cell, text=_with_deviation(cell.text, spreads.get((name, mode, metric))))
            for cell, (metric, mode) in zip(row, COLUMNS, strict=True)
        ]
        for name, row in marked_cells(numbers).items()
    }
    groups = [
        (
            title,
            [
                {"name": "+".join(tuned), "loss": tuned.loss, "model": names[tuned.model]}
                for tuned in trained
                if tuned.train_mode == train_mode
            ],
        )
        for train_mode, title in TRAIN_MODES.items()
    ]
    render_table(
        template,
        tex,
        groups=[(title, members) for title, members in groups if members],
        cells=cells,
        seeds=max(spread.seeds for spread in spreads.values()),
        note="" if released else SAMPLE_NOTE,
    )


def best_trainings(
    metrics: Sequence[IdiolinkMetrics],
) -> dict[tuple[str, str, str], tuple[str, Spread]]:
    """What Figure 3 shows of each model, query mode and metric: the better of the trainings.

    At inference by spans a model may have been trained on sentences or on spans; the higher mean
    is taken, as the paper does. With several losses it is that of the first one.

    Returns:
        Training mode and result, by model, query mode and metric.
    """
    best: dict[tuple[str, str, str], tuple[str, Spread]] = {}
    first_loss: dict[str, str] = {}
    for (name, query_mode, metric), spread in spread_over_seeds(metrics).items():
        tuned = Tuned.parse(name)
        if first_loss.setdefault(tuned.model, tuned.loss) != tuned.loss:
            continue
        key = (tuned.model, query_mode, metric)
        if key not in best or spread.mean > best[key][1].mean:
            best[key] = (tuned.train_mode, spread)
    return best


def _with_deviation(text: str, spread: Spread | None) -> str:
    if spread is None or spread.std is None:
        return text
    return f"{text}±{rounded(spread.std, 2)}"
