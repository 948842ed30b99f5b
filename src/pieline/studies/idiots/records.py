"""Sentences of IdioTS, and what a model says of one."""

from typing import Literal, Self

from pydantic import model_validator

from pieline.core.outcomes import READABLE, OutcomeName
from pieline.core.records import Id, Record

DistractorKind = Literal["whole_phrase", "parts", "other_role", "look_alike"]
"""How a distractor plays on its PIE (IdioTS, section 3.3): the whole phrase in its literal meaning,
parts of it, its words in another syntactic role, or something that only sounds like it."""


class IdiotsSentence(Record):
    """A sentence of IdioTS (section 3).

    `pie` is the idiom in canonical form, which an idiomatic sentence uses and on which a distractor
    plays; `distractor_kind` (section 3.3) is None for an idiomatic sentence and where nobody marked
    it; `translation` is the Spanish one.
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
    """What a model said of one sentence of IdioTS (section 4.2).

    `has_idiom`, `idiom`, `meaning` and `explanation` are the four fields of its answer, all None
    unless the outcome is `ok` or `repaired`; `rule` says in which form they were read, `reason` why
    they were not. `answer_key` is the digest under which the answer is recorded.
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
