"""Relevance judgments (qrels), based on meaning or on subject."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from pieline.core.files import write_text
from pieline.studies.idiolink.records import Meaning

RELEVANT_USAGES: dict[str, frozenset[str]] = {
    "literal": frozenset({"literal"}),
    "idiomatic": frozenset({"idiomatic", "simplification", "sense"}),
}
"""Usages of the relevant documents, by usage of the query (section 3.1)."""

Qrels = dict[str, dict[str, int]]
"""Relevance by query id and document id; queries may share a dictionary, so none may be changed."""


def meaning_qrels(queries: Iterable[Meaning], documents: Sequence[Meaning]) -> Qrels:
    """Return each query's documents with the same PIE and meaning (section 3.1)."""
    by_pie = defaultdict(list)
    for text in documents:
        by_pie[text.pie].append(text)

    @cache
    def relevant(pie: str, usage: str) -> dict[str, int]:
        return {text.id: 1 for text in by_pie[pie] if text.usage in RELEVANT_USAGES[usage]}

    return {query.id: relevant(query.pie, query.usage) for query in queries}


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
