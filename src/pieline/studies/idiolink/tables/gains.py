"""What instructions, spans and both gain on average over models (IdioLink, section 6)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

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
from pieline.studies.idiolink.tables.zero_shot import METRICS, NOT_RELEASED, per_cent

GAINS = {
    "instruction": "instruction_sentence",
    "span": "span",
    "combined": "instruction_span",
}
"""The query mode that is set against `sentence`."""
_TEXT_NAMES = {"r_precision": "r_precision", "ndcg_at_10": "ndcg"}

Scores = Mapping[tuple[str, str, str], float]
"""Per cent by model, query mode and metric."""


def average_gains(scores: Scores, models: Sequence[str]) -> dict[tuple[str, str], float]:
    """Mean difference in points by gain and metric, over models; none where a score is missing."""
    gains = {}
    for gain, mode in GAINS.items():
        for metric in METRICS:
            pairs = [
                (scores.get((model, mode, metric)), scores.get((model, "sentence", metric)))
                for model in models
            ]
            known = [
                after - before
                for after, before in pairs
                if after is not None and before is not None
            ]
            if known and len(known) == len(pairs):
                gains[gain, metric] = fmean(known)
    return gains


def write_gains(
    metrics: Sequence[IdiolinkMetrics],
    models: Sequence[ModelDescription],
    every_model: Sequence[ModelDescription],
    *,
    published: str | Path,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """The average gains beside those of the running text, and as a sentence.

    Args:
        metrics: one a model and query mode, of the full index.
        models: those run; only those of the paper count.
        every_model: all embedders of models.yaml.
        published: CSV of the numbers of the running text.
        template: LaTeX template.
        tex: LaTeX output.
        csv: CSV output.
    """
    printed = read_published(published, ["id"])
    scores = {
        (item.model, item.query_mode, metric): value
        for item in metrics
        for metric in METRICS
        if (value := per_cent(item, metric)) is not None
    }
    counted = [model.name for model in models if model.published_as]
    papers = [model.name for model in every_model if model.published_as]
    gains = average_gains(scores, counted)
    released = all(item.dataset_is_released for item in metrics)
    obstacles = [] if released else [NOT_RELEASED]
    if set(counted) != set(papers):
        obstacles.append(f"over {len(counted)} of the paper's {len(papers)} models")

    rows: list[tuple[Mapping[str, str], Comparison]] = []
    for gain in GAINS:
        for metric in METRICS:
            name = f"idiolink.{gain}_gain_{_TEXT_NAMES[metric]}"
            cell = compare(gains.get((gain, metric)), printed[name,]["value"], obstacles=obstacles)
            rows.append(({"id": name, "gain": gain, "metric": metric}, cell))
    write_comparisons(csv, rows, decimals=2)
    texts = {
        gain: {metric: _signed(gains.get((gain, metric))) for metric in METRICS} for gain in GAINS
    }
    render_table(
        template,
        tex,
        gains=texts,
        models=len(counted),
        note="" if released else SAMPLE_NOTE,
    )


def _signed(value: float | None) -> str:
    text = rounded(value, 2)
    return text if not text or text.startswith("-") else f"+{text}"
