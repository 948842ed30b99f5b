"""Define the records of ID10M-JAM's prediction files, and predict idioms by simple baselines."""

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
        outcome: `ok` or `repaired` if there is a prediction; otherwise, the reason why the
            prediction is missing.
        idioms: Predicted idioms as spelled in the sentence or by the language model; null if the
            prediction is missing.
        tags: BIO tag of each token; null if only idioms were predicted.
        samples: Answers of the language model that made the prediction; empty for predictions that
            no language model made.
    """

    id: str
    outcome: OutcomeName
    idioms: tuple[str, ...] | None
    tags: tuple[Tag, ...] | None = None
    samples: tuple[IdiomSample, ...] = ()

    @model_validator(mode="after")
    def _idioms_fit_outcome(self) -> Self:
        has_idioms = self.idioms is not None
        if has_idioms != (self.outcome in READABLE):
            raise ValueError(
                f"outcome {self.outcome!r} is inconsistent with idioms {self.idioms!r}"
            )
        return self


BASELINES = {
    "always-none": "Always “none”",
    "always-pie": "Always the PIE",
    "majority": "Majority usage",
}
"""Display names of the baselines, by name in paths."""


def predict_by_baseline(
    baseline: str, sentences: Sequence[JamSentence]
) -> dict[str, IdiomPrediction]:
    """Return a baseline's prediction for each sentence, by sentence id.

    - `always-none` predicts no idiom, which gives the minimum accuracy of section 5.
    - `always-pie` predicts the PIE.
    - `majority` predicts the PIE if most originals are figurative, and otherwise no idiom.
    """
    originals = [sentence for sentence in sentences if sentence.is_original]
    figurative_count = sum(original.is_figurative for original in originals)
    predicts_pie = {
        "always-none": False,
        "always-pie": True,
        "majority": figurative_count > len(originals) / 2,
    }[baseline]
    predictions = {}
    for sentence in sentences:
        idioms: tuple[str, ...] = ()
        if predicts_pie:
            # Both scoring rules accept the spelling in `true_idioms`, which literal PIEs lack.
            idioms = sentence.true_idioms or sentence.pies
        predictions[sentence.id] = IdiomPrediction(id=sentence.id, outcome="ok", idioms=idioms)
    return predictions
