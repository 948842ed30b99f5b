"""IdioLink's tables: zero-shot results (Table 2), BM25 (appendix E), index compositions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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

METRICS = {"r_precision": "R-Precision", "ndcg_at_10": "nDCG@10"}
BM25_MODES = ("sentence", "span")
QUERY_MODES = ("sentence", "span", "instruction_sentence", "instruction_span")
COLUMNS = [
    (metric, mode)
    for modes in (QUERY_MODES[:2], QUERY_MODES[2:])
    for metric in METRICS
    for mode in modes
]
"""Columns of Table 2: without and with instructions, each metric, sentence beside span."""

COMPOSITION_LABELS = {
    "full": "full",
    "lit_sim_sense": "without idiomatic",
    "lit_idiom": "literal + idiomatic",
}
BM25_TOLERANCE = 0.15
"""Points by which BM25 may differ: 143 span queries reach documents of score zero within the top
100, and the paper's order among equal scores is not known."""

NOT_RELEASED = "sample data, not the released IdioLink"


@dataclass(frozen=True)
class Cell:
    """A number in a LaTeX table: its text, whether it is the column's best, and its mark."""

    text: str
    best: bool = False
    mark: Literal["", "up", "down"] = ""


def per_cent(metrics: IdiolinkMetrics | None, metric: str) -> float | None:
    """The overall score in per cent, or None where it is unknown."""
    value = None if metrics is None else getattr(metrics.overall, metric)
    return None if value is None else 100 * float(value)


def write_zero_shot_table(
    metrics: Sequence[IdiolinkMetrics],
    models: Sequence[ModelDescription],
    every_model: Sequence[ModelDescription],
    *,
    published: str | Path,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """Table 2: R-Precision and nDCG@10 (per cent) in four query modes, in two groups of models.

    The LaTeX has the models that were run; the CSV has all, those not run with the reason.

    Args:
        metrics: one a model and query mode, of the full index.
        models: those run, in the table's order.
        every_model: all embedders of models.yaml.
        published: CSV of the printed numbers.
        template: LaTeX template.
        tex: LaTeX output.
        csv: CSV output.
    """
    printed = read_published(published, ["model", "query_mode"])
    found = {(item.model, item.query_mode): item for item in metrics}
    numbers = {
        model.name: {
            (metric, mode): per_cent(found.get((model.name, mode)), metric)
            for metric, mode in COLUMNS
        }
        for model in models
    }
    released = all(item.dataset_is_released for item in metrics)
    ran = {model.name for model in models}

    def comparisons() -> Iterable[tuple[Mapping[str, str], Comparison]]:
        for model in every_model:
            for metric, mode in COLUMNS:
                ours = numbers.get(model.name, {}).get((metric, mode))
                row = printed.get((model.published_as or "", mode), {})
                obstacles = []
                if model.name not in ran:
                    obstacles.append("not run: idiolink.models does not name it")
                elif (model.name, mode) not in found:
                    obstacles.append("not run: idiolink.query_modes does not name it")
                elif not released:
                    obstacles.append(NOT_RELEASED)
                name = {"model": model.name, "query_mode": mode, "metric": metric}
                value = row.get(f"{metric}_pct")
                tolerance = zero_shot_tolerance(mode, value)
                yield name, compare(ours, value, obstacles=obstacles, tolerance=tolerance)

    write_comparisons(csv, comparisons(), decimals=2)
    groups = [
        (title, [model for model in models if model.trained_with_instructions == instructed])
        for title, instructed in (("No-Instruct", False), ("Instruction", True))
    ]
    render_table(
        template,
        tex,
        groups=[(title, members) for title, members in groups if members],
        cells=marked_cells(numbers),
        columns=COLUMNS,
        note="" if released else SAMPLE_NOTE,
        not_run=[model.label for model in every_model if model.name not in ran],
    )


def zero_shot_tolerance(query_mode: str, printed: float | None) -> float:
    """Points by which a cell of Table 2 may differ and count as reproduced.

    Without instructions the protocol is fully known, so only the printed decimals matter (some
    cells are printed to one). With instructions the paper's exact text is not: 0.05.
    """
    to_one_decimal = printed is not None and round(printed, 1) == printed
    return 0.05 if to_one_decimal or query_mode.startswith("instruction") else 0.0


def write_bm25_table(
    metrics: Sequence[IdiolinkMetrics],
    *,
    published: str | Path,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """Appendix E.2: BM25 with the k1 and b that validation chose, scores in per cent."""
    printed = read_published(published, ["query_mode"])
    rows = []
    comparisons: list[tuple[Mapping[str, str], Comparison]] = []
    for item in metrics:
        obstacles = [] if item.dataset_is_released else [NOT_RELEASED]
        chosen = item.tuning.chosen if item.tuning else None
        numbers: dict[str, float | None] = {
            "k1": chosen.k1 if chosen else None,
            "b": chosen.b if chosen else None,
        }
        numbers |= {f"{metric}_pct": per_cent(item, metric) for metric in METRICS}
        row = printed.get((item.query_mode,), {})
        for name, value in numbers.items():
            key = {"model": item.model, "query_mode": item.query_mode, "metric": name}
            key["metric"] = name.removesuffix("_pct")
            tolerance = BM25_TOLERANCE if name.endswith("_pct") else 0.0
            cell = compare(value, row.get(name), obstacles=obstacles, tolerance=tolerance)
            comparisons.append((key, cell))
        texts = {name: rounded(value, 2) for name, value in numbers.items()}
        rows.append({"query_mode": item.query_mode} | texts)
    write_comparisons(csv, comparisons, decimals=2)
    released = all(item.dataset_is_released for item in metrics)
    render_table(template, tex, rows=rows, note="" if released else SAMPLE_NOTE)


def write_ablation_table(
    metrics: Sequence[IdiolinkMetrics],
    models: Sequence[ModelDescription],
    *,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """The index-composition ablation: both metrics (per cent) by model, mode and composition.

    The paper prints no such table; the CSV says so in each row.
    """
    found = {(item.model, item.query_mode, item.composition): item for item in metrics}
    compositions = [
        name for name in COMPOSITION_LABELS if any(item.composition == name for item in metrics)
    ]
    released = all(item.dataset_is_released for item in metrics)
    rows = []
    comparisons: list[tuple[Mapping[str, str], Comparison]] = []
    for model in models:
        for mode in QUERY_MODES:
            if not any((model.name, mode, name) in found for name in compositions):
                continue
            texts = []
            for metric in METRICS:
                for composition in compositions:
                    value = per_cent(found.get((model.name, mode, composition)), metric)
                    texts.append(rounded(value, 2) or "--")
                    key = {"model": model.name, "query_mode": mode, "composition": composition}
                    obstacles = [] if released else [NOT_RELEASED]
                    cell = compare(value, None, obstacles=obstacles)
                    comparisons.append((key | {"metric": metric}, cell))
            rows.append({"model": model.label, "mode": mode.replace("_", " + "), "texts": texts})
    write_comparisons(csv, comparisons, decimals=2)
    render_table(
        template,
        tex,
        rows=rows,
        metrics=list(METRICS.values()),
        compositions=[COMPOSITION_LABELS[name] for name in compositions],
        note="" if released else SAMPLE_NOTE,
    )


def marked_cells(
    numbers: Mapping[str, Mapping[tuple[str, str], float | None]],
) -> dict[str, list[Cell]]:
    """Cells of Table 2 by model: the best of a column, and span marked against sentence."""
    texts = {
        model: {column: rounded(value, 2) for column, value in row.items()}
        for model, row in numbers.items()
    }
    best = {
        column: max((float(row[column]) for row in texts.values() if row[column]), default=None)
        for column in COLUMNS
    }
    cells = {}
    for model, row in texts.items():
        cells[model] = [
            Cell(
                row[metric, mode] or "--",
                best=bool(row[metric, mode]) and float(row[metric, mode]) == best[metric, mode],
                mark=_mark(row[metric, mode], row[metric, mode.replace("span", "sentence")]),
            )
            for metric, mode in COLUMNS
        ]
    return cells


def _mark(value: str, reference: str) -> Literal["", "up", "down"]:
    """Up or down against the reference, nothing where equal, unknown, or the reference itself."""
    if not value or not reference or float(value) == float(reference):
        return ""
    return "up" if float(value) > float(reference) else "down"
