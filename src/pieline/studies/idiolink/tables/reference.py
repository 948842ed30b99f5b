"""Scores of the authors' released run, a reference beside the printed numbers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pieline.reporting.models import ModelDescription
from pieline.reporting.printed import read_printed
from pieline.studies.idiolink.metrics.ranking import RankingScores
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics

EQUAL, NOT_EQUAL = "equal to the released run", "not equal to the released run"
TOLERANCE = 0.005 + 1e-9
"""Maximum difference, in points, of equal scores: as fractions, they have the same four digits."""
SCOPES = {
    "overall": "overall",
    "idiomatic": "idiomatic",
    "literal": "literal",
    "by_subject": "same subject",
}
"""Labels of the released run's scopes: all queries, those of one usage, and all queries with the
documents of their subject as relevant."""
OTHER_TEXT = (
    "the released run writes queries with instructions differently (idiolink.inputs: released)"
)
Released = Mapping[tuple[str, ...], float]
"""Scores of the released run in percent, by model, query mode, composition, scope and metric."""


class ReleasedScore(NamedTuple):
    """A score of the released run beside ours, both in percent.

    Attributes:
        score: Released score.
        verdict: `EQUAL`, `NOT_EQUAL`, or empty if the two cannot be compared.
        reason: Why the two are not comparable, or why they may differ.
    """

    score: float
    verdict: str
    reason: str

    def columns(self) -> dict[str, str]:
        """Return the columns of a CSV."""
        return {
            "released": f"{self.score:.4f}".rstrip("0").rstrip("."),
            "released_verdict": self.verdict,
            "released_reason": self.reason,
        }


def read_released(path: str) -> Released:
    """Read published/idiolink_released_run.csv."""
    keys = ("model", "query_mode", "composition", "scope", "metric")
    return {
        tuple(row[key] for key in keys): 100 * float(row["value"])
        for row in read_printed(path)
        if row["value"]
    }


def released_score(
    released: Released,
    item: IdiolinkMetrics,
    published_as: str,
    *,
    scope: str,
    metric: str,
    obstacles: Sequence[str],
) -> ReleasedScore | None:
    """Return the released run's score for a score of ours; None if it has none.

    Args:
        released: Scores of the released run.
        item: Metrics of our run.
        published_as: Name of the model in the paper.
        scope: One of `SCOPES`.
        metric: `r_precision` or `ndcg_at_10`.
        obstacles: Reasons why our score is not comparable, such as other data.
    """
    theirs = released.get((published_as, item.query_mode, item.composition, scope, metric))
    if theirs is None:
        return None
    ours, problems = score_of(item, scope, metric), [*obstacles, *_tuning_differences(item)]
    if ours is None or problems:
        return ReleasedScore(theirs, "", "; ".join(problems) or "our score is unknown")
    equal = abs(ours - theirs) <= TOLERANCE
    differs = item.query_mode.startswith("instruction") and (
        item.conditions.settings.get("inputs") == "paper"
    )
    reason = OTHER_TEXT if differs and not equal else ""
    return ReleasedScore(theirs, EQUAL if equal else NOT_EQUAL, reason)


def score_of(item: IdiolinkMetrics, scope: str, metric: str) -> float | None:
    """Return our score in percent; None if it is unknown."""
    scores: RankingScores | None = {
        "overall": item.overall,
        "by_subject": item.same_subject,
        **item.by_usage,
    }.get(scope)
    value = getattr(scores, metric) if scores else None
    return None if value is None else 100 * float(value)


def _tuning_differences(item: IdiolinkMetrics) -> list[str]:
    """Return how the tuning of k1 and b differs from that of the released run; empty if equal."""
    tuning = item.tuning
    tuning_dataset = (tuning.query_mode, tuning.composition) if tuning else ()
    if tuning_dataset in ((), (item.query_mode, item.composition)):
        return []
    return ["k1 and b of other queries or of another index than in the released run"]


def published_name(model: ModelDescription) -> str:
    """Return the name under which the released run lists a model."""
    return model.published_as or model.kind
