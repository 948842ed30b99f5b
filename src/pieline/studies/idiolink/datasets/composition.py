"""Counts of IdioLink's texts, in Table 1 and in the paper's text, and checks of the texts."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter

from pieline.core.conditions import NO_CONDITIONS, Conditions, MetricRecord
from pieline.core.measures import Measure
from pieline.core.records import Record
from pieline.studies.idiolink.datasets.checks import CheckResult, run_checks
from pieline.studies.idiolink.datasets.reading import LooseText
from pieline.studies.idiolink.originals.pairs import Candidate, released_exclusions
from pieline.studies.idiolink.originals.splits import gold_pies
from pieline.studies.idiolink.records import Usage

ROWS = ("train", "validation", "test_silver", "test_gold", "test", "total")
"""Rows of Table 1."""


class SplitCounts(Record):
    """Numbers of PIEs, queries and documents in one row of Table 1."""

    pies: int
    queries: int
    documents: int


class DatasetChecks(MetricRecord):
    """Counts of IdioLink's texts, and the results of the checks.

    Attributes:
        origin: Origin of the texts: `constructed` (by our construction) or `released_format` (the
            public files or the sample).
        sample: Whether the texts are this repository's sample data.
        released: Whether the digests of the files are the digests of the public files.
        counts: Counts in each row of Table 1, by row (see `ROWS`).
        gold_pies: PIEs whose test documents are all marked gold.
        marked_gold: Number of texts marked gold, by split and collection.
        domain_usage: Number of texts by collection, domain and usage, over all splits.
        candidate_pies: Number of PIEs on the authors' list of candidates; null if the list is not
            available.
        removed_pies: Number of candidate PIEs that are in no split; null if the list is not
            available.
        checks: Results of the checks, by check name.
    """

    origin: str
    sample: bool
    released: bool
    counts: dict[str, SplitCounts]
    gold_pies: list[str]
    marked_gold: dict[str, dict[str, int]]
    domain_usage: dict[str, dict[str, dict[str, int]]]
    candidate_pies: int | None = None
    removed_pies: int | None = None
    checks: dict[str, CheckResult]


_RELEVANT_TO_IDIOMATIC: tuple[Usage, ...] = ("idiomatic", "simplification", "sense")
"""Usages of the documents that are relevant to idiomatic queries."""


def _documents_per_pie(checks: DatasetChecks, usages: Collection[str]) -> float:
    """Return the mean number of documents with one of the usages per PIE, over all splits."""
    number_of_documents = 0
    for documents_by_usage in checks.domain_usage["documents"].values():
        number_of_documents += sum(documents_by_usage.get(usage, 0) for usage in usages)
    return number_of_documents / checks.counts["total"].pies


def _documents_per_pair(checks: DatasetChecks, usages: Collection[str]) -> float:
    """Return the mean number of documents with one of the usages per (PIE, domain) pair."""
    return _documents_per_pie(checks, usages) / len(checks.domain_usage["documents"])


def _mean(
    name: str, mean: Callable[[DatasetChecks, Collection[str]], float], *usages: Usage
) -> Measure[DatasetChecks]:
    """Return a measure called `name`; its value is `mean(checks, usages)`."""
    return Measure(name, lambda checks: mean(checks, usages))


def _gold_texts(checks: DatasetChecks) -> int:
    """Return the number of texts marked gold, in all splits."""
    return sum(sum(by_collection.values()) for by_collection in checks.marked_gold.values())


def _silver_texts(checks: DatasetChecks) -> int:
    """Return the number of texts in all splits that do not belong to a gold PIE."""
    total, gold = checks.counts["total"], checks.counts["test_gold"]
    return (total.documents + total.queries) - (gold.documents + gold.queries)


def _gold_share(checks: DatasetChecks) -> float:
    """Return the share of texts marked gold in all splits, in per cent."""
    total = checks.counts["total"]
    return 100 * _gold_texts(checks) / (total.documents + total.queries)


COUNTS = tuple(
    Measure[SplitCounts](name, attrgetter(name), decimals=0)
    for name in ("pies", "queries", "documents")
)
"""Measures in the columns of Table 1."""
IN_TEXT = (
    Measure[DatasetChecks](
        "domains", lambda checks: len(checks.domain_usage["documents"]), decimals=0
    ),
    Measure[DatasetChecks](
        "documents_per_pie",
        lambda checks: checks.counts["total"].documents / checks.counts["total"].pies,
    ),
    _mean("literal_documents_per_pie", _documents_per_pie, "literal"),
    _mean("idiomatic_documents_per_pie", _documents_per_pie, *_RELEVANT_TO_IDIOMATIC),
    _mean("documents_per_pair", _documents_per_pair, "literal", *_RELEVANT_TO_IDIOMATIC),
    _mean("literal_per_pair", _documents_per_pair, "literal"),
    *(_mean(f"{usage}_per_pair", _documents_per_pair, usage) for usage in _RELEVANT_TO_IDIOMATIC),
    *(_mean(f"{usage}_per_pie", _documents_per_pie, usage) for usage in _RELEVANT_TO_IDIOMATIC),
    # Each training query has one tuple (section 4.3).
    Measure[DatasetChecks](
        "training_tuples", lambda checks: checks.counts["train"].queries, decimals=0
    ),
    *(
        Measure[DatasetChecks](
            name,
            attrgetter(name),
            decimals=0,
            unknown="there is no released list of candidate PIEs",
        )
        for name in ("candidate_pies", "removed_pies")
    ),
    Measure[DatasetChecks]("silver_texts", _silver_texts, decimals=0),
    Measure[DatasetChecks]("gold_texts", _gold_texts, decimals=0),
    Measure[DatasetChecks]("gold_share", _gold_share, unit="%", decimals=1),
)
"""Measures that the text of sections 3.2.1, 3.2.2, 3.2.4 and 4.3 reports."""


def check_dataset(
    texts: Sequence[LooseText],
    *,
    origin: str,
    sample: bool,
    released: bool,
    computed_from: dict[str, str],
    candidates: Sequence[Candidate] | None = None,
    conditions: Conditions = NO_CONDITIONS,
) -> DatasetChecks:
    """Count the texts of all splits, and run all checks.

    Args:
        texts: Texts of all splits.
        origin: Origin of the texts, `constructed` or `released_format`.
        sample: Whether the texts are this repository's sample data.
        released: Whether the digests of the files are the digests of the public files.
        computed_from: Digests of the input files.
        candidates: The authors' list of candidate PIEs; None if it is not available.
        conditions: Settings that determine the counts.
    """
    test_documents = [
        text for text in texts if text.split == "test" and text.collection == "documents"
    ]
    gold = gold_pies((text.pie, text.is_gold) for text in test_documents)
    candidate_pies = removed_pies = None
    if candidates is not None:
        candidate_pies = len(candidates)
        removed_pies = len(released_exclusions(candidates, {text.pie for text in texts}))
    return DatasetChecks(
        origin=origin,
        sample=sample,
        released=released,
        counts=table_1(texts, gold),
        gold_pies=sorted(gold),
        marked_gold=_count_marked_gold(texts),
        domain_usage=_count_by_domain_and_usage(texts),
        candidate_pies=candidate_pies,
        removed_pies=removed_pies,
        checks=run_checks(texts),
        computed_from=computed_from,
        conditions=conditions,
    )


def _count_marked_gold(texts: Iterable[LooseText]) -> dict[str, dict[str, int]]:
    """Return the number of texts marked gold, by split and collection."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        counts[text.split][text.collection] += 1 if text.is_gold else 0
    return {split: dict(by_collection) for split, by_collection in counts.items()}


def _count_by_domain_and_usage(
    texts: Iterable[LooseText],
) -> dict[str, dict[str, dict[str, int]]]:
    """Return the number of texts, by collection, domain and usage."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for text in texts:
        counts[text.collection][text.subject][text.usage] += 1
    return {
        collection: {domain: dict(by_usage) for domain, by_usage in by_domain.items()}
        for collection, by_domain in counts.items()
    }


def table_1(texts: Iterable[LooseText], gold: set[str]) -> dict[str, SplitCounts]:
    """Count the PIEs, queries and documents in each row of Table 1; `gold` are the gold PIEs."""
    texts_by_row: Mapping[str, list[LooseText]] = {row: [] for row in ROWS}
    for text in texts:
        texts_by_row["total"].append(text)
        split_row = "validation" if text.split == "val" else text.split
        texts_by_row[split_row].append(text)
        if text.split == "test":
            test_row = "test_gold" if text.pie in gold else "test_silver"
            texts_by_row[test_row].append(text)
    return {
        row: SplitCounts(
            pies=len({text.pie for text in row_texts}),
            queries=sum(text.collection == "queries" for text in row_texts),
            documents=sum(text.collection == "documents" for text in row_texts),
        )
        for row, row_texts in texts_by_row.items()
    }
