"""Records of the ID10M-JAM prediction files, and baseline predictions that need no model."""

from collections.abc import Sequence
from typing import Self

from pydantic import model_validator

from pieline.core.outcomes import READABLE, OutcomeName
from pieline.core.records import Record
from pieline.studies.jam.bio import Tag
from pieline.studies.jam.records import JamSentence


class IdiomSample(Record):
    """A parsed answer of a language model.

    Attributes:
        key: Key of the recorded answer.
        outcome: Outcome of parsing the answer.
        rule: Name of the parsing rule, or the provider's reason for a failure; may be empty.
        idioms: Named idioms; null if the answer is unreadable.
    """

    key: str
    outcome: OutcomeName
    rule: str = ""
    idioms: tuple[str, ...] | None


class IdiomPrediction(Record):
    """Predicted idioms of a sentence.

    Attributes:
        id: Sentence id.
        outcome: `ok` or `repaired` if there is a prediction; otherwise the reason why there is
            none.
        idioms: Idioms as spelled in the sentence or by the language model; null if unknown, empty
            if there are none.
        tags: BIO tag of each token; null if only idioms were predicted.
        samples: Language model answers on which the prediction is based; empty if there are none.
    """

    id: str
    outcome: OutcomeName
    idioms: tuple[str, ...] | None
    tags: tuple[Tag, ...] | None = None
    samples: tuple[IdiomSample, ...] = ()

    @model_validator(mode="after")
    def _idioms_if_readable(self) -> Self:
        if (self.idioms is None) == (self.outcome in READABLE):
            raise ValueError(
                f"outcome {self.outcome!r} is inconsistent with idioms {self.idioms!r}"
            )
        return self


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
    mostly_figurative = 2 * sum(usages) > len(usages)
    names_pie = {"always-none": False, "always-pie": True, "majority": mostly_figurative}[baseline]
    predictions = {}
    for item in sentences:
        # Use the spelling that both scoring rules accept; a literal PIE is only in `pies`.
        idioms = (item.true_idioms or item.pies) if names_pie else ()
        predictions[item.id] = IdiomPrediction(id=item.id, outcome="ok", idioms=idioms)
    return predictions
