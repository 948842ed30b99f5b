"""What needs no model: baselines beside every result."""

from collections.abc import Sequence

from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence

BASELINES = {
    "always-none": "Always “none”",
    "always-pie": "Always the PIE",
    "majority": "Majority usage",
}
"""What tables call each baseline."""


def predict(baseline: str, sentences: Sequence[JamSentence]) -> dict[str, IdiomPrediction]:
    """What a baseline says of every sentence, by id.

    `always-none` names nothing, the least accuracy of section 5; `always-pie` names the PIE;
    `majority` does what is right of most originals.
    """
    usages = [item.is_figurative for item in sentences if item.is_original]
    mostly = 2 * sum(usages) > len(usages)
    names = {"always-none": False, "always-pie": True, "majority": mostly}[baseline]
    # As both scorings spell the PIE; that of a literal sentence stands in `pies` alone.
    idioms = {item.id: (item.true_idioms or item.pies) if names else () for item in sentences}
    return {
        name: IdiomPrediction(id=name, outcome="ok", idioms=named) for name, named in idioms.items()
    }
