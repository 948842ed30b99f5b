"""What a model says of a sentence of ID10M-JAM: the records of every prediction file."""

from typing import Self

from pydantic import model_validator

from pieline.core.outcomes import READABLE, OutcomeName
from pieline.core.records import Record
from pieline.studies.jam.bio import Tag


class IdiomSample(Record):
    """One answer of a language model.

    Attributes:
        key: of the recorded answer.
        outcome: what became of it.
        rule: the form that was read; empty unless the answer could be read.
        idioms: those it names; null unless the answer could be read.
    """

    key: str
    outcome: OutcomeName
    rule: str = ""
    idioms: tuple[str, ...] | None


class IdiomPrediction(Record):
    """The idioms that a model finds in a sentence.

    Attributes:
        id: of the sentence.
        outcome: `ok` or `repaired` if there is a prediction, else why there is none.
        idioms: as they stand in the sentence, or as a language model spells them. Null is unknown,
            which is not the same as none.
        tags: one a token; only of encoders.
        samples: the answers behind it; none for encoders.
    """

    id: str
    outcome: OutcomeName
    idioms: tuple[str, ...] | None
    tags: tuple[Tag, ...] | None = None
    samples: tuple[IdiomSample, ...] = ()

    @model_validator(mode="after")
    def _idioms_if_readable(self) -> Self:
        if (self.idioms is None) == (self.outcome in READABLE):
            raise ValueError(f"outcome {self.outcome!r} does not fit idioms {self.idioms!r}")
        return self
