"""Records of the ID10M-JAM prediction files."""

from typing import Self

from pydantic import model_validator

from pieline.core.outcomes import READABLE, OutcomeName
from pieline.core.records import Record
from pieline.studies.jam.bio import Tag


class IdiomSample(Record):
    """A parsed answer of a language model.

    Attributes:
        key: Key of the recorded answer.
        outcome: Outcome of parsing the answer.
        rule: Name of the parsing rule; if the answer is unreadable, the provider's reason for a
            failure, or empty.
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
