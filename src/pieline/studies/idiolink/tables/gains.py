"""What instructions, spans and both gain on average over models (IdioLink, section 6)."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from pieline.core.records import load_records
from pieline.reporting.given import Given
from pieline.reporting.printed import compare, read_published
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.tables.zero_shot import (
    METRICS,
    UNKNOWN,
    notes_on,
    obstacles_of,
    per_cent,
)

GAINS = {
    "instruction": "instruction_sentence",
    "span": "span",
    "combined": "instruction_span",
}
"""The query mode that is set against `sentence`."""
_LABELS = {"instruction": "Instructions", "span": "Span embedding", "combined": "Both"}
_TEXT_NAMES = {"r_precision": "r_precision", "ndcg_at_10": "ndcg"}

Scores = Mapping[tuple[str, str, str], float]
"""Per cent by model, query mode and metric."""


def average_gains(scores: Scores, models: Sequence[str]) -> dict[tuple[str, str], float]:
    """Mean difference in points by gain and metric, over models; none where a score is missing."""
    found = {}
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
                found[gain, metric] = fmean(known)
    return found


def gains(given: Given) -> TableContent:
    """The average gains (points) of the models that the paper has, beside those of its text."""
    printed = read_published(given.files["published"], ["id"])
    metrics = load_records(given.metrics, IdiolinkMetrics)
    scores = {
        (item.model, item.query_mode, metric): value
        for item in metrics
        for metric in METRICS
        if (value := per_cent(item, metric)) is not None
    }
    counted = [model.name for model in given.models if model.published_as]
    files = tuple(
        path for item, path in zip(metrics, given.metrics, strict=True) if item.model in counted
    )
    found = average_gains(scores, counted)
    obstacles = obstacles_of(*metrics)
    if given.absent:
        papers = len(counted) + len(given.absent)
        obstacles.append(f"over {len(counted)} of the paper's {papers} models")

    def cell(gain: str, metric: str) -> Cell:
        name = f"idiolink.{gain}_gain_{_TEXT_NAMES[metric]}"
        value = printed[name,]["value"]
        unknown = [UNKNOWN] if any(per_cent(item, metric) is None for item in metrics) else []
        compared = compare(found.get((gain, metric)), value, obstacles=[*unknown, *obstacles])
        return Cell(Number({"id": name, "gain": gain, "metric": metric}, compared, files))

    models = f"{len(counted)} model{'' if len(counted) == 1 else 's'}"
    rows = [
        Row((label,), tuple(cell(gain, metric) for metric in METRICS))
        for gain, label in _LABELS.items()
    ]
    return TableContent(
        heads=((Head("Gain"), *map(Head, METRICS.values())),),
        groups=(Group(tuple(rows)),),
        caption=f"What instructions, span embedding and both change on average over {models}, in"
        " points against the sentence embedding without instructions.",
        notes=notes_on(metrics),
        wide=False,
    )
