"""The datasets stage: what the experiments read, as folders of validated files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pieline.core.files import write_json
from pieline.core.records import Record, load_jsonl, load_record, save_jsonl
from pieline.studies.idiolink.datasets.relevance import meaning_qrels, write_qrels
from pieline.studies.idiolink.raw.released import compose_index
from pieline.studies.idiolink.records import Document, Query

DATASET_FILES = ("documents.jsonl", "queries.jsonl", "qrels.txt", "manifest.json")
"""What a dataset's folder holds."""


class IdiolinkManifest(Record):
    """What an IdioLink dataset is.

    `released`: the raw files are, by their digests, those that the paper used.
    """

    split: str
    composition: str
    released: bool
    pies: int
    documents: int
    queries: int


@dataclass(frozen=True)
class IdiolinkDataset:
    """Documents and queries of one split under one index composition."""

    split: str
    composition: str
    released: bool
    documents: list[Document]
    queries: list[Query]

    def composed(self, composition: str) -> "IdiolinkDataset":
        """The same queries over an index that keeps the usages of a composition."""
        documents = compose_index(self.documents, composition)
        return IdiolinkDataset(self.split, composition, self.released, documents, self.queries)

    def save(self, folder: str | Path) -> None:
        """Write documents.jsonl, queries.jsonl, qrels.txt (TREC) and manifest.json."""
        documents, queries, qrels, manifest = self.files(folder)
        save_jsonl(documents, self.documents)
        save_jsonl(queries, self.queries)
        write_qrels(qrels, meaning_qrels(self.queries, self.documents))
        described = IdiolinkManifest(
            split=self.split,
            composition=self.composition,
            released=self.released,
            pies=len({text.pie for text in self.documents}),
            documents=len(self.documents),
            queries=len(self.queries),
        )
        write_json(manifest, described.model_dump())

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote.

        Raises:
            UserError: a file is missing or wrong; names file and line.
        """
        documents, queries, _, manifest = cls.files(folder)
        described = load_record(manifest, IdiolinkManifest)
        return cls(
            split=described.split,
            composition=described.composition,
            released=described.released,
            documents=load_jsonl(documents, Document),
            queries=load_jsonl(queries, Query),
        )

    @staticmethod
    def files(folder: str | Path) -> list[Path]:
        """Documents, queries, qrels and manifest in a dataset's folder."""
        return [Path(folder) / name for name in DATASET_FILES]
