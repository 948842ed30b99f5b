"""The IdioTS dataset, stored as sentences.jsonl and manifest.json in one folder."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pieline.core.files import write_json
from pieline.core.measures import Measure
from pieline.core.records import save_jsonl
from pieline.core.upstream import NOT_VERIFIED, Verification
from pieline.studies.idiots.records import IdiotsSentence

Origin = Literal["sample", "released", "unverified", "own"]
"""Origin of the sentences: this repository's sample, the paper's file, a file of the same name that
could not be verified, or the user's own data.
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


COUNTS = (
    Measure[IdiotsManifest]("idioms", lambda manifest: manifest.pies, decimals=0),
    Measure[IdiotsManifest]("sentences", lambda manifest: manifest.sentences, decimals=0),
    Measure[IdiotsManifest]("idiomatic", lambda manifest: manifest.idiomatic, decimals=0),
    Measure[IdiotsManifest]("distractors", lambda manifest: manifest.distractors, decimals=0),
)
"""Counts of section 3."""


def save_dataset(
    folder: str | Path,
    sentences: Sequence[IdiotsSentence],
    *,
    origin: Origin,
    verification: Verification = NOT_VERIFIED,
    limit: int | None = None,
) -> None:
    """Write sentences.jsonl and manifest.json to a folder.

    `limit` is the number of sentences to write (None for all); the manifest describes all.
    """
    idiomatic = sum(sentence.is_idiomatic for sentence in sentences)
    kinds = Counter(sentence.distractor_kind for sentence in sentences if sentence.distractor_kind)
    manifest = IdiotsManifest(
        **verification.model_dump(),
        origin=origin,
        sentences=len(sentences),
        idiomatic=idiomatic,
        distractors=len(sentences) - idiomatic,
        distractors_by_kind=dict(kinds),
        pies=len({sentence.pie_id for sentence in sentences}),
    )
    save_jsonl(Path(folder, "sentences.jsonl"), sentences[:limit])
    write_json(Path(folder, "manifest.json"), manifest.model_dump())


def count_problem(sentences: Sequence[IdiotsSentence]) -> str:
    """Return the first difference from the counts in the paper, or "" if they agree."""
    idiomatic = sum(sentence.is_idiomatic for sentence in sentences)
    idioms = len({sentence.pie_id for sentence in sentences})
    counts = (idioms, idiomatic, len(sentences) - idiomatic)
    for count, (kind, printed) in zip(counts, PRINTED_COUNTS.items(), strict=True):
        if count != printed:
            return f"{count} {kind}, the paper {printed}"
    return ""
