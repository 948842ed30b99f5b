"""The IdioTS dataset, stored as sentences.jsonl and manifest.json in one folder."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pieline.core.files import write_json
from pieline.core.records import load_jsonl, load_record, save_jsonl
from pieline.core.upstream import NOT_VERIFIED, Verification
from pieline.studies.idiots.records import IdiotsSentence

Origin = Literal["sample", "released", "unverified", "own"]
"""Origin of the sentences: this repository's sample, the paper's file, a file of the same name that
could not be verified, or the user.
"""
PRINTED_COUNTS = {"idioms": 93, "idiomatic sentences": 164, "distractors": 86}
"""Counts in sections 3.1 and 3.4."""


class IdiotsManifest(Verification):
    """Description of an IdioTS dataset."""

    origin: Origin
    sentences: int
    idiomatic: int
    distractors: int
    distractors_by_kind: dict[str, int]
    pies: int


@dataclass(frozen=True)
class IdiotsDataset:
    """Sentences and their origin."""

    origin: Origin
    sentences: list[IdiotsSentence]
    verification: Verification = NOT_VERIFIED

    def save(self, folder: str | Path) -> None:
        """Save sentences.jsonl and manifest.json."""
        sentences, manifest = self.files(folder)
        idiomatic = sum(sentence.is_idiomatic for sentence in self.sentences)
        kinds = Counter(
            sentence.distractor_kind for sentence in self.sentences if sentence.distractor_kind
        )
        described = IdiotsManifest(
            **self.verification.model_dump(),
            origin=self.origin,
            sentences=len(self.sentences),
            idiomatic=idiomatic,
            distractors=len(self.sentences) - idiomatic,
            distractors_by_kind=dict(kinds),
            pies=len({sentence.pie_id for sentence in self.sentences}),
        )
        save_jsonl(sentences, self.sentences)
        write_json(manifest, described.model_dump())

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a saved dataset.

        Raises:
            UserError: A file is missing or invalid.
        """
        sentences, manifest = cls.files(folder)
        described = load_record(manifest, IdiotsManifest)
        verification = Verification(verified=described.verified, problem=described.problem)
        return cls(described.origin, load_jsonl(sentences, IdiotsSentence), verification)

    @staticmethod
    def files(folder: str | Path) -> tuple[Path, Path]:
        """Return the paths of the sentences and the manifest in a dataset folder."""
        place = Path(folder)
        return place / "sentences.jsonl", place / "manifest.json"


def count_problem(sentences: Sequence[IdiotsSentence]) -> str:
    """Return the first difference from the counts in the paper, or "" if they agree."""
    idiomatic = sum(sentence.is_idiomatic for sentence in sentences)
    idioms = len({sentence.pie_id for sentence in sentences})
    counts = (idioms, idiomatic, len(sentences) - idiomatic)
    for count, (kind, printed) in zip(counts, PRINTED_COUNTS.items(), strict=True):
        if count != printed:
            return f"{count} {kind}, the paper {printed}"
    return ""
