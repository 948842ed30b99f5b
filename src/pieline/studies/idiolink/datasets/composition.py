"""Counts of IdioLink's data: Table 1, and the texts by domain and usage."""

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
    """Counts in one row of Table 1."""

    pies: int
    queries: int
    documents: int


class DatasetChecks(MetricRecord):
    """Counts and check results of IdioLink's data.

    Attributes:
        origin: Origin of the texts, `constructed` or `released_format`.
        sample: Whether the texts are this repository's sample data.
        released: Whether the files' digests match the paper's release.
        counts: Rows of Table 1, by name.
        gold_pies: PIEs whose test documents are all marked gold.
        marked_gold: Number of texts marked gold, by split and collection.
        domain_usage: Number of texts by collection, domain and usage, over all splits.
        candidate_pies: Number of PIEs on the released list of candidates; None without the list.
        removed_pies: Number of these PIEs that are in no split; None without the list.
        checks: Check results by name.
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


_IDIOMATIC: tuple[Usage, ...] = ("idiomatic", "simplification", "sense")
"""Usages of the documents that are relevant to idiomatic queries."""


def _per_pie(checks: DatasetChecks, usages: Collection[str]) -> float:
    """Return the mean number of documents with these usages per PIE."""
    documents = 0
    for by_usage in checks.domain_usage["documents"].values():
        documents += sum(by_usage.get(usage, 0) for usage in usages)
    return documents / checks.counts["total"].pies


def _per_pair(checks: DatasetChecks, usages: Collection[str]) -> float:
    """Return the mean number of documents with these usages per pair of PIE and domain."""
    return _per_pie(checks, usages) / len(checks.domain_usage["documents"])


def _mean(
    name: str, per: Callable[[DatasetChecks, Collection[str]], float], *usages: Usage
) -> Measure[DatasetChecks]:
    """Return the measure of a mean number of documents."""
    return Measure(name, lambda checks: per(checks, usages))


def _gold(checks: DatasetChecks) -> int:
    """Return the total number of texts marked gold."""
    return sum(sum(marked.values()) for marked in checks.marked_gold.values())


def _silver(checks: DatasetChecks) -> int:
    """Return the total number of texts outside the test split's gold PIEs."""
    total, gold = checks.counts["total"], checks.counts["test_gold"]
    return total.documents + total.queries - gold.documents - gold.queries


def _gold_share(checks: DatasetChecks) -> float:
    total = checks.counts["total"]
    return 100 * _gold(checks) / (total.documents + total.queries)


COUNTS = tuple(
    Measure[SplitCounts](name, attrgetter(name), decimals=0)
    for name in ("pies", "queries", "documents")
)
"""Measures of Table 1."""
IN_TEXT = (
    Measure[DatasetChecks](
        "domains", lambda checks: len(checks.domain_usage["documents"]), decimals=0
    ),
    Measure[DatasetChecks](
        "documents_per_pie",
        lambda checks: checks.counts["total"].documents / checks.counts["total"].pies,
    ),
    _mean("literal_documents_per_pie", _per_pie, "literal"),
    _mean("idiomatic_documents_per_pie", _per_pie, *_IDIOMATIC),
    _mean("documents_per_pair", _per_pair, "literal", *_IDIOMATIC),
    _mean("literal_per_pair", _per_pair, "literal"),
    *(_mean(f"{usage}_per_pair", _per_pair, usage) for usage in _IDIOMATIC),
    *(_mean(f"{usage}_per_pie", _per_pie, usage) for usage in _IDIOMATIC),
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
    Measure[DatasetChecks]("silver_texts", _silver, decimals=0),
    Measure[DatasetChecks]("gold_texts", _gold, decimals=0),
    Measure[DatasetChecks]("gold_share", _gold_share, unit="%", decimals=1),
)
"""Measures in the text of sections 3.2.1, 3.2.2, 3.2.4 and 4.3, over the whole dataset."""


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
    """Count the texts of all splits, and the candidate PIEs if given, and run all checks."""
    used = {text.pie for text in texts}
    gold = gold_pies(
        (text.pie, text.is_gold)
        for text in texts
        if (text.split, text.collection) == ("test", "documents")
    )
    marked: dict[str, Counter[str]] = defaultdict(Counter)
    usages: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for text in texts:
        marked[text.split][text.collection] += text.is_gold
        usages[text.collection][text.subject][text.usage] += 1
    return DatasetChecks(
        origin=origin,
        sample=sample,
        released=released,
        counts=table_1(texts, gold),
        gold_pies=sorted(gold),
        marked_gold={split: dict(counts) for split, counts in marked.items()},
        domain_usage={
            collection: {domain: dict(counts) for domain, counts in domains.items()}
            for collection, domains in usages.items()
        },
        candidate_pies=None if candidates is None else len(candidates),
        removed_pies=None if candidates is None else len(released_exclusions(candidates, used)),
        checks=run_checks(texts),
        computed_from=computed_from,
        conditions=conditions,
    )


def table_1(texts: Iterable[LooseText], gold: set[str]) -> dict[str, SplitCounts]:
    """Count the PIEs, queries and documents in each row of Table 1."""
    rows: Mapping[str, list[LooseText]] = {row: [] for row in ROWS}
    for text in texts:
        rows["total"].append(text)
        rows["validation" if text.split == "val" else text.split].append(text)
        if text.split == "test":
            rows["test_gold" if text.pie in gold else "test_silver"].append(text)
    return {
        row: SplitCounts(
            pies=len({text.pie for text in members}),
            queries=sum(text.collection == "queries" for text in members),
            documents=sum(text.collection == "documents" for text in members),
        )
        for row, members in rows.items()
    }
