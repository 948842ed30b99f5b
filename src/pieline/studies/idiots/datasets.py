"""The IdioTS dataset: sentences.jsonl and manifest.json in one folder."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pieline.core.files import write_json
from pieline.core.records import Frozen, load_jsonl, load_record, save_jsonl
from pieline.studies.idiots.records import IdiotsSentence

Origin = Literal["sample", "released", "unverified", "own"]
"""Where the sentences come from: this repository's sample; the file that the paper used, by its
digest; a file that is said to be that one but cannot be checked; or the user."""


class IdiotsManifest(Frozen):
    """What an IdioTS dataset is; the paper's has 250 sentences, 164 idiomatic, and 93 idioms."""

    origin: Origin
    sentences: int
    idiomatic: int
    distractors: int
    distractors_by_kind: dict[str, int]
    pies: int


@dataclass(frozen=True)
class IdiotsDataset:
    """Sentences, and where they come from."""

    origin: Origin
    sentences: list[IdiotsSentence]

    def save(self, folder: str | Path) -> None:
        """Write sentences.jsonl and manifest.json."""
        sentences, manifest = self.files(folder)
        idiomatic = sum(sentence.is_idiomatic for sentence in self.sentences)
        kinds = Counter(
            sentence.distractor_kind for sentence in self.sentences if sentence.distractor_kind
        )
        described = IdiotsManifest(
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
        """Read what `save` wrote.

        Raises:
            UserError: a file is missing or wrong; names file and line.
        """
        sentences, manifest = cls.files(folder)
        described = load_record(manifest, IdiotsManifest)
        return cls(described.origin, load_jsonl(sentences, IdiotsSentence))

    @staticmethod
    def files(folder: str | Path) -> tuple[Path, Path]:
        """Sentences and manifest in a dataset's folder."""
        place = Path(folder)
        return place / "sentences.jsonl", place / "manifest.json"
