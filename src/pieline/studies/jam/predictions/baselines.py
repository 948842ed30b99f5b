"""Baseline predictions that need no model."""

from collections.abc import Sequence

from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence

BASELINES = {
    "always-none": "Always “none”",
    "always-pie": "Always the PIE",
    "majority": "Majority usage",
}
"""Display names of the baselines."""


def predict(baseline: str, sentences: Sequence[JamSentence]) -> dict[str, IdiomPrediction]:
    """Return a baseline's predictions by sentence id.

    `always-none` names no idiom, which gives the minimum accuracy of section 5; `always-pie` names
    the PIE; `majority` names the PIE if most originals are figurative, and otherwise no idiom.
    """
    usages = [item.is_figurative for item in sentences if item.is_original]
    mostly = 2 * sum(usages) > len(usages)
    names_pie = {"always-none": False, "always-pie": True, "majority": mostly}[baseline]
    # Use the spelling that both scoring rules accept; a literal PIE is only in `pies`.
    idioms = {item.id: (item.true_idioms or item.pies) if names_pie else () for item in sentences}
    return {
        name: IdiomPrediction(id=name, outcome="ok", idioms=named) for name, named in idioms.items()
    }
