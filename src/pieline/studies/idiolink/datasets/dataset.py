"""Datasets of the experiments, and relevance judgments (qrels)."""

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
"""Relevance by query id and document id. Queries with equal judgments share an inner dictionary, so
inner dictionaries must not be modified."""


def meaning_qrels(queries: Iterable[Meaning], documents: Sequence[Meaning]) -> Qrels:
    """Return qrels: a query's relevant documents have its PIE and its meaning (section 3.1)."""
    judgments_by_meaning: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for document in documents:
        for query_usage, document_usages in RELEVANT_USAGES.items():
            if document.usage in document_usages:
                judgments_by_meaning[document.pie, query_usage][document.id] = 1
    return {query.id: judgments_by_meaning[query.pie, query.usage] for query in queries}


def subject_qrels(queries: Iterable[Meaning], documents: Iterable[Meaning]) -> Qrels:
    """Return qrels: a query's relevant documents have its subject.

    Scores with these qrels measure how much a ranking depends on the topic.
    """
    judgments_by_subject: dict[str, dict[str, int]] = defaultdict(dict)
    for document in documents:
        judgments_by_subject[document.subject][document.id] = 1
    return {query.id: judgments_by_subject[query.subject] for query in queries}


def write_qrels(path: str | Path, qrels: Qrels) -> None:
    """Write qrels in TREC format (`query 0 document relevance`), sorted by both ids."""
    lines = (
        f"{query} 0 {document} {qrels[query][document]}\n"
        for query in sorted(qrels)
        for document in sorted(qrels[query])
    )
    write_text(path, "".join(lines))


class IdiolinkManifest(Record):
    """Description of an IdioLink dataset, with its numbers of PIEs, documents and queries.

    `released` states whether the raw files have the digests of the public files.
    """

    split: str
    composition: str
    released: bool
    pies: int
    documents: int
    queries: int


@dataclass(frozen=True)
class Meanings:
    """Documents and queries of one split and index composition, with only the fields for scoring.

    `released` states whether the raw files have the digests of the public files.
    """

    split: str
    composition: str
    released: bool
    documents: Sequence[Meaning]
    queries: Sequence[Meaning]

    @classmethod
    def load_meanings(cls, folder: str | Path) -> "Meanings":
        """Load documents and queries, with only the fields for scoring, from a dataset folder.

        Raises:
            UserError: A file is missing or invalid.
        """
        meanings_path, manifest_path = cls.scoring_files(folder)
        manifest = load_record(manifest_path, IdiolinkManifest)
        meanings = load_jsonl(meanings_path, JudgedMeaning)
        return Meanings(
            split=manifest.split,
            composition=manifest.composition,
            released=manifest.released,
            documents=[meaning for meaning in meanings if meaning.text == "document"],
            queries=[meaning for meaning in meanings if meaning.text == "query"],
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
        """Return a copy with all queries, but only the documents of an index composition."""
        documents = compose_index(self.documents, composition)
        return IdiolinkDataset(self.split, composition, self.released, documents, self.queries)

    def save(self, folder: str | Path) -> None:
        """Save the documents, queries, meanings, qrels (TREC format) and manifest in a folder."""
        save_jsonl(Path(folder, "documents.jsonl"), self.documents)
        save_jsonl(Path(folder, "queries.jsonl"), self.queries)
        meanings_path, manifest_path = self.scoring_files(folder)
        save_jsonl(meanings_path, self._meanings())
        write_qrels(Path(folder, "qrels.txt"), meaning_qrels(self.queries, self.documents))
        manifest = IdiolinkManifest(
            split=self.split,
            composition=self.composition,
            released=self.released,
            pies=len({text.pie for text in self.documents}),
            documents=len(self.documents),
            queries=len(self.queries),
        )
        write_json(manifest_path, manifest.model_dump())

    def _meanings(self) -> list[JudgedMeaning]:
        """Return the fields for scoring of all documents, followed by those of all queries."""
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
        """Load a dataset from the folder in which `save` saved it.

        Raises:
            UserError: A file is missing or invalid.
        """
        manifest = load_record(Path(folder, "manifest.json"), IdiolinkManifest)
        return cls(
            split=manifest.split,
            composition=manifest.composition,
            released=manifest.released,
            documents=load_jsonl(Path(folder, "documents.jsonl"), Document),
            queries=load_jsonl(Path(folder, "queries.jsonl"), Query),
        )
