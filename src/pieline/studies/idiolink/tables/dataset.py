"""Table 1 of IdioLink, and the table of construction statistics."""

from collections.abc import Callable, Collection
from operator import attrgetter
from typing import Any, NamedTuple

from pieline.core.records import load_record
from pieline.reporting.columns import Column, Source, headers, row, text_cell
from pieline.reporting.displays import Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE
from pieline.reporting.printed import per_cent, read_published
from pieline.reporting.tables import Group, Head, Row, TableContent
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.datasets.assembly import ConstructionMetrics
from pieline.studies.idiolink.datasets.composition import DatasetChecks, SplitCounts
from pieline.studies.idiolink.originals.released_list import FilterReport
from pieline.studies.idiolink.records import Usage

ROW_LABELS = {
    "train": "Train",
    "validation": "Validation",
    "test_silver": "Test (silver)",
    "test_gold": "Test (gold)",
    "test": "Test (total)",
    "total": "Total",
}
COLUMNS = [
    Column[SplitCounts]("pies", "PIEs", attrgetter("pies"), decimals=0),
    Column[SplitCounts]("queries", "Queries", attrgetter("queries"), decimals=0),
    Column[SplitCounts]("documents", "Documents", attrgetter("documents"), decimals=0),
]
_AGAINST = "validation against reviewers"
_IDIOMATIC: tuple[Usage, ...] = ("idiomatic", "simplification", "sense")
"""Usages of the documents that are relevant to idiomatic queries."""
_NO_LIST = "there is no released list of candidate PIEs"
_UNJUDGED = "not yet reviewed by humans"
CONSTRUCTED_NOTE = "Counted on a dataset that this run constructed, not on the released one."


def about_data(*, sample: bool, released: bool) -> tuple[list[str], tuple[str, ...]]:
    """Return the reasons why counts are not comparable with the paper's, and notes on the data."""
    if released:
        return [], ()
    if sample:
        return ["sample data, not the released IdioLink"], (SAMPLE_NOTE,)
    return ["newly constructed or altered, not the released IdioLink"], (CONSTRUCTED_NOTE,)


def _per_pie(checks: DatasetChecks, usages: Collection[str]) -> float:
    """Return the mean number of documents with these usages per PIE."""
    documents = sum(
        number
        for of_domain in checks.domain_usage["documents"].values()
        for usage, number in of_domain.items()
        if usage in usages
    )
    return documents / checks.counts["total"].pies


def _per_pair(checks: DatasetChecks, usages: Collection[str]) -> float:
    """Return the mean number of documents with these usages per pair of PIE and domain."""
    return _per_pie(checks, usages) / len(checks.domain_usage["documents"])


def _mean(
    name: str, per: Callable[[DatasetChecks, Collection[str]], float], *usages: Usage
) -> Column[DatasetChecks]:
    """Return a column with a mean number of documents."""
    return Column(name, "", lambda checks: per(checks, usages), decimals=2)


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


IN_TEXT = [
    Column[DatasetChecks](
        "domains", "", lambda checks: len(checks.domain_usage["documents"]), decimals=0
    ),
    Column[DatasetChecks](
        "documents_per_pie",
        "",
        lambda checks: checks.counts["total"].documents / checks.counts["total"].pies,
        decimals=2,
    ),
    _mean("literal_documents_per_pie", _per_pie, "literal"),
    _mean("idiomatic_documents_per_pie", _per_pie, *_IDIOMATIC),
    _mean("documents_per_pair", _per_pair, "literal", *_IDIOMATIC),
    _mean("literal_per_pair", _per_pair, "literal"),
    *(_mean(f"{usage}_per_pair", _per_pair, usage) for usage in _IDIOMATIC),
    *(_mean(f"{usage}_per_pie", _per_pie, usage) for usage in _IDIOMATIC),
    # Each training query has one tuple (section 4.3).
    Column[DatasetChecks](
        "training_tuples", "", lambda checks: checks.counts["train"].queries, decimals=0
    ),
    Column[DatasetChecks](
        "candidate_pies", "", attrgetter("candidate_pies"), decimals=0, unknown=_NO_LIST
    ),
    Column[DatasetChecks](
        "removed_pies", "", attrgetter("removed_pies"), decimals=0, unknown=_NO_LIST
    ),
    Column[DatasetChecks]("silver_texts", "", _silver, decimals=0),
    Column[DatasetChecks]("gold_texts", "", _gold, decimals=0),
    Column[DatasetChecks]("gold_share", "", _gold_share, decimals=1),
]
"""Numbers in the text of sections 3.2.1, 3.2.2, 3.2.4 and 4.3, which are only in the CSV."""


def dataset(inputs: DisplayInputs) -> TableContent:
    """Build Table 1: PIEs, queries and documents by split; the CSV adds the counts in `IN_TEXT`."""
    checks = load_record(inputs.metrics[0], DatasetChecks)
    printed = read_published(inputs.files["published"], ["split"])
    of_text = read_published(inputs.files["text_numbers"], ["id"])
    is_paper_or_own = checks.released or checks.conditions.are_of_own_data
    obstacles, notes = about_data(sample=checks.sample, released=is_paper_or_own)
    obstacles += checks.conditions.deviations
    rows = []
    for split, label in ROW_LABELS.items():
        source = Source(
            key={"split": split, "id": ""},
            records=[checks.counts[split]],
            files=inputs.metrics,
            printed=printed.get((split,), {}),
            obstacles=obstacles,
        )
        rows.append(row((label,), [(column, source) for column in COLUMNS]))
    total = Source({"split": "total"}, [checks], inputs.metrics, obstacles=obstacles)
    in_text = [text_cell(column, total, "idiolink", of_text) for column in IN_TEXT]
    return TableContent(
        heads=(headers(["Split"], COLUMNS),),
        groups=(Group(tuple(rows[:-1])), Group(tuple(rows[-1:]))),
        caption="Overview of the IdioLink dataset. Test (total) is the sum of gold and silver.",
        notes=notes,
        unseen=tuple(number for cell in in_text for number in cell.numbers()),
        decimals=0,
        wide=False,
    )


DATASET_TABLE = Table(
    "idiolink_dataset",
    "Table 1",
    "Size of the IdioLink dataset.",
    dataset,
    given.data_checks,
    printed="idiolink_table1",
    text_numbers=True,
)


class ConstructionNumbers(NamedTuple):
    """Records with the numbers of sections 3.2.1 to 3.2.4."""

    metrics: ConstructionMetrics
    report: FilterReport


def _count(
    name: str, label: str, value: Callable[[ConstructionNumbers], int | None]
) -> Column[ConstructionNumbers]:
    return Column(name, label, value, decimals=0, unknown=_UNJUDGED)


def _share(
    name: str, label: str, value: Callable[[ConstructionNumbers], float | None]
) -> Column[ConstructionNumbers]:
    """Return a column for a fraction, in percent."""
    return Column(
        name,
        f"{label} (%)",
        lambda records: per_cent(value(records)),
        decimals=2,
        unknown=_UNJUDGED,
    )


def _kept(reading: str, label: str) -> Column[ConstructionNumbers]:
    return _count(
        f"kept_by_{reading}",
        f"PIEs kept if {label}",
        lambda records: records.report.kept_by_reading[reading],
    )


def _agreement(field: str) -> Callable[[ConstructionNumbers], Any]:
    """Return a getter of an agreement field, which returns None if there is no agreement."""
    return lambda records: getattr(records.metrics.agreement, field, None)


CONSTRUCTION = [
    _count(
        "candidate_pies", "PIEs that pass the filter", lambda records: records.report.candidates
    ),
    _kept("any_confidence", "confidence does not matter"),
    _kept("confident_annotations", "only confident annotations count"),
    _kept("paper", "every annotation is confident (paper)"),
    _kept("released", "any annotation is confident and shares are of all (released code)"),
    _count(
        "removed_pies",
        "PIEs removed manually",
        lambda records: records.report.failed.get("manual", 0),
    ),
    _count(
        "corrections",
        "gold texts corrected",
        lambda records: records.metrics.gold_corrections.corrected,
    ),
    _count(
        "span_corrections",
        "only the span",
        lambda records: records.metrics.gold_corrections.by_action.get("span_corrected", 0),
    ),
    _count(
        "usage_mismatches",
        "usage mismatch",
        lambda records: records.metrics.gold_corrections.by_cause.get("usage_mismatch", 0),
    ),
    _count(
        "ambiguous_texts",
        "ambiguous",
        lambda records: records.metrics.gold_corrections.by_cause.get("ambiguous", 0),
    ),
    _count(
        "rewritten_texts",
        "rewritten for clarity",
        lambda records: records.metrics.gold_corrections.by_cause.get("unclear", 0),
    ),
    _count(
        "corrected_sense",
        "sense texts corrected",
        lambda records: records.metrics.gold_corrections.by_usage.get("sense", 0),
    ),
    _count(
        "corrected_literal",
        "literal texts corrected",
        lambda records: records.metrics.gold_corrections.by_usage.get("literal", 0),
    ),
    _share("validation_accuracy", f"{_AGAINST}: accuracy", _agreement("accuracy")),
    _share("validation_macro_f1", f"{_AGAINST}: macro F1", _agreement("macro_f1")),
    _share(
        "validation_valid_f1",
        f"{_AGAINST}: F1 of valid texts",
        _agreement("valid_f1"),
    ),
    _count("missed_invalid", "invalid texts judged valid", _agreement("invalid_judged_valid")),
    _share("missed_invalid_share", "invalid texts judged valid", _agreement("missed")),
    _count("silver_texts", "silver texts", lambda records: records.metrics.silver.texts),
    _count("flagged", "silver texts flagged", lambda records: records.metrics.silver.flagged),
    _share(
        "flagged_share",
        "silver texts flagged",
        lambda records: records.metrics.silver.flagged_share,
    ),
    _count(
        "confirmed",
        "flagged texts confirmed by reviewers",
        lambda records: (
            None if records.metrics.silver.awaiting else records.metrics.silver.confirmed
        ),
    ),
    _share(
        "confirmed_share",
        "flagged texts confirmed by reviewers",
        lambda records: records.metrics.silver.confirmed_share,
    ),
    _count("gold_texts", "texts reviewed by humans", lambda records: records.metrics.gold_texts),
]
"""Numbers of sections 3.2.1 to 3.2.4. The names are ids in published/text_numbers.csv, except for
the readings of the filter (see `readings_of`), which the paper does not report.
"""


def construction(inputs: DisplayInputs) -> TableContent:
    """Build the table of the numbers in sections 3.2.1 to 3.2.4, with the printed numbers."""
    metrics = load_record(inputs.metrics[0], ConstructionMetrics)
    records = ConstructionNumbers(metrics, load_record(inputs.files["filter_report"], FilterReport))
    printed = read_published(inputs.files["published"], ["id"])
    # Newly generated texts always differ from the paper's.
    obstacles, notes = about_data(sample=metrics.sample, released=False)
    obstacles += metrics.conditions.deviations
    source = Source({}, [records], inputs.metrics, obstacles=obstacles)
    rows = [
        Row((column.header,), (text_cell(column, source, "idiolink", printed),))
        for column in CONSTRUCTION
    ]
    if any("hand-written" in item.origins for item in metrics.generation.values()):
        notes += ("The models' answers are hand-written; no model produced them.",)
    return TableContent(
        heads=((Head("Number"), Head("this run")),),
        groups=(Group(tuple(rows)),),
        caption="Construction of IdioLink: selection of PIEs, automatic validation, and human"
        " review.",
        notes=notes,
        wide=False,
    )


CONSTRUCTION_TABLE = Table(
    "idiolink_construction",
    "Sections 3.2.1 to 3.2.4",
    "Statistics of the dataset's construction.",
    construction,
    given.construction,
    printed="text_numbers",
)
