"""Records of the sentences and predictions of IdioTS."""

from typing import Literal, Self

from pydantic import model_validator

from pieline.core.outcomes import READABLE, OutcomeName
from pieline.core.records import Id, Record

PRINTED_COUNTS = {"idioms": 93, "idiomatic sentences": 164, "distractors": 86}
"""Counts of the test suite that the paper prints in sections 3.1 and 3.4."""
DistractorKind = Literal["whole_phrase", "parts", "other_role", "look_alike"]
"""Relation of a distractor to its PIE (section 3.3).

The distractor contains the whole PIE in its literal meaning, parts of the PIE, the words of the PIE
in another syntactic role, or a phrase that only sounds like the PIE.
"""


class IdiotsSentence(Record):
    """A sentence of IdioTS (section 3).

    Attributes:
        pie: Canonical form of the idiom that an idiomatic sentence uses or a distractor plays on.
        translation: Spanish translation of the sentence.
        distractor_kind: Kind of distractor (section 3.3); None for idiomatic sentences and for
            distractors whose kind is unknown.
    """

    id: Id
    pie_id: Id
    pie: str
    sentence: str
    translation: str
    is_idiomatic: bool
    distractor_kind: DistractorKind | None = None

    @model_validator(mode="after")
    def _only_distractors_have_a_kind(self) -> Self:
        if self.is_idiomatic and self.distractor_kind:
            raise ValueError("an idiomatic sentence has no distractor kind")
        return self


class DetectionPrediction(Record):
    """A model's answer about one sentence of IdioTS (section 4.2).

    Attributes:
        has_idiom, idiom, meaning, explanation: Fields of the answer; all None unless the outcome is
            `ok` or `repaired`.
        rule: Format in which the answer was read; empty if the answer could not be parsed.
        reason: Reason why the answer could not be parsed; may be empty.
        answer_key: Key of the recorded answer, or digest of an external prediction.
    """

    id: str
    outcome: OutcomeName
    has_idiom: bool | None = None
    idiom: str | None = None
    meaning: str | None = None
    explanation: str | None = None
    rule: str = ""
    reason: str = ""
    answer_key: str

    @model_validator(mode="after")
    def _readable_answers_decide(self) -> Self:
        if (self.has_idiom is None) == (self.outcome in READABLE):
            raise ValueError(f"outcome {self.outcome!r} with has_idiom {self.has_idiom!r}")
        return self
