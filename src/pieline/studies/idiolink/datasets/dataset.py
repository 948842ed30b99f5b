"""Datasets of the experiments, stored as folders of JSON Lines, qrels and manifests."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pieline.core.files import write_json, write_text
from pieline.core.records import Record, load_jsonl, load_record, save_jsonl
from pieline.studies.idiolink.raw import compose_index
from pieline.studies.idiolink.records import Document, JudgedMeaning, Meaning, Query

RELEVANT_USAGES: dict[str, frozenset[str]] = {
    "literal": frozenset({"literal"}),
    "idiomatic": frozenset({"idiomatic", "simplification", "sense"}),
}
"""Usages of the relevant documents, by usage of the query (section 3.1)."""

Qrels = dict[str, dict[str, int]]
"""Relevance by query id and document id; do not change the inner ones, which queries share."""


def meaning_qrels(queries: Iterable[Meaning], documents: Sequence[Meaning]) -> Qrels:
    """Return each query's documents with the same PIE and meaning (section 3.1)."""
    relevant: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for text in documents:
        for usage, usages in RELEVANT_USAGES.items():
            if text.usage in usages:
                relevant[text.pie, usage][text.id] = 1
    return {query.id: relevant[query.pie, query.usage] for query in queries}


def subject_qrels(queries: Iterable[Meaning], documents: Iterable[Meaning]) -> Qrels:
    """Return each query's documents with the same subject, to measure how topical a ranking is."""
    by_subject: dict[str, list[str]] = defaultdict(list)
    for text in documents:
        by_subject[text.subject].append(text.id)
    relevant = {subject: dict.fromkeys(names, 1) for subject, names in by_subject.items()}
    return {query.id: relevant.get(query.subject, {}) for query in queries}


def write_qrels(path: str | Path, qrels: Qrels) -> None:
    """Write qrels in TREC format (`query 0 document relevance`), sorted by both ids."""
    lines = (
        f"{query} 0 {document} {qrels[query][document]}\n"
        for query in sorted(qrels)
        for document in sorted(qrels[query])
    )
    write_text(path, "".join(lines))


class IdiolinkManifest(Record):
    """Description of an IdioLink dataset.

    `released` is true if the digests of the raw files match the paper's release.
    """

    split: str
    composition: str
    released: bool
    pies: int
    documents: int
    queries: int


@dataclass(frozen=True)
class Meanings:
    """Documents and queries of one split and index composition, possibly without their texts."""

    split: str
    composition: str
    released: bool
    documents: Sequence[Meaning]
    queries: Sequence[Meaning]

    @classmethod
    def load_meanings(cls, folder: str | Path) -> "Meanings":
        """Load the meanings from a dataset folder, which need not contain the texts.

        Raises:
            UserError: A file is missing or invalid.
        """
        meanings, manifest = cls.scoring_files(folder)
        described = load_record(manifest, IdiolinkManifest)
        rows = load_jsonl(meanings, JudgedMeaning)
        return Meanings(
            split=described.split,
            composition=described.composition,
            released=described.released,
            documents=[each for each in rows if each.text == "document"],
            queries=[each for each in rows if each.text == "query"],
        )

    @staticmethod
    def scoring_files(folder: str | Path) -> list[Path]:
        """Return the paths of the meanings and the manifest in a dataset folder."""
        return [Path(folder, "meanings.jsonl"), Path(folder, "manifest.json")]


@dataclass(frozen=True)
class IdiolinkDataset(Meanings):
    """Documents and queries of one split and index composition, with their texts."""

    documents: list[Document]
    queries: list[Query]

    def composed(self, composition: str) -> "IdiolinkDataset":
        """Return the same queries with only the documents of an index composition."""
        documents = compose_index(self.documents, composition)
        return IdiolinkDataset(self.split, composition, self.released, documents, self.queries)

    def save(self, folder: str | Path) -> None:
        """Save the documents, queries, meanings, qrels (TREC format) and manifest."""
        save_jsonl(Path(folder, "documents.jsonl"), self.documents)
        save_jsonl(Path(folder, "queries.jsonl"), self.queries)
        meanings, manifest = self.scoring_files(folder)
        save_jsonl(meanings, self._judged())
        qrels = meaning_qrels(self.queries, self.documents)
        write_qrels(Path(folder, "qrels.txt"), qrels)
        described = IdiolinkManifest(
            split=self.split,
            composition=self.composition,
            released=self.released,
            pies=len({text.pie for text in self.documents}),
            documents=len(self.documents),
            queries=len(self.queries),
        )
        write_json(manifest, described.model_dump())

    def _judged(self) -> list[JudgedMeaning]:
        """Return the documents, then the queries, without their texts."""
        fields = set(Meaning.model_fields)
        documents = [
            JudgedMeaning(text="document", **document.model_dump(include=fields))
            for document in self.documents
        ]
        queries = [
            JudgedMeaning(text="query", **query.model_dump(include=fields))
            for query in self.queries
        ]
        return documents + queries

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a saved dataset.

        Raises:
            UserError: A file is missing or invalid.
        """
        described = load_record(Path(folder, "manifest.json"), IdiolinkManifest)
        return cls(
            split=described.split,
            composition=described.composition,
            released=described.released,
            documents=load_jsonl(Path(folder, "documents.jsonl"), Document),
            queries=load_jsonl(Path(folder, "queries.jsonl"), Query),
        )
