"""IdioLink's Table 1, and the numbers of its construction."""

from collections import Counter

from pieline.core.records import load_record
from pieline.reporting.given import Given
from pieline.reporting.models import SAMPLE_NOTE
from pieline.reporting.printed import compare, read_published
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.idiolink.datasets.assembly import ConstructionMetrics
from pieline.studies.idiolink.datasets.composition import ROWS, DatasetChecks
from pieline.studies.idiolink.originals.released_list import FilterReport

ROW_LABELS = {
    "train": "Train",
    "validation": "Validation",
    "test_silver": "Test (silver)",
    "test_gold": "Test (gold)",
    "test": "Test (total)",
    "total": "Total",
}
COLUMNS = {"pies": "PIEs", "queries": "Queries", "documents": "Documents"}
_READINGS = {
    "paper": "every annotation is confident (paper)",
    "released": "any is confident, shares are of all (released code)",
    "confident_annotations": "confident annotations alone are counted",
    "any_confidence": "confidence does not matter",
}
"""What each reading of the filter asks (see `readings_of`)."""
CONSTRUCTED_NOTE = "Counted on a data set that this run constructed, not on the released one."


def obstacles_of(*, sample: bool, released: bool) -> list[str]:
    """What keeps counts from being comparable with the printed ones."""
    if released:
        return []
    if sample:
        return ["sample data, not the released IdioLink"]
    return ["constructed anew or altered, not the released IdioLink"]


def notes_of(*, sample: bool, released: bool) -> tuple[str, ...]:
    """What a table or figure says of its data, nothing of the released data."""
    if released:
        return ()
    return (SAMPLE_NOTE if sample else CONSTRUCTED_NOTE,)


def text_numbers(checks: DatasetChecks) -> dict[str, tuple[float, int]]:
    """Numbers of sections 3.2.2 and 3.2.4 that the texts themselves give, with their decimals.

    By id of published/text_numbers.csv. Texts that people checked are those marked gold.
    """
    total, usages = checks.counts["total"], Counter[str]()
    for of_domain in checks.domain_usage["documents"].values():
        usages.update(of_domain)
    gold = sum(sum(marked.values()) for marked in checks.marked_gold.values())
    return {
        "domains": (len(checks.domain_usage["documents"]), 0),
        "documents_per_pie": (total.documents / total.pies, 2),
        "literal_documents_per_pie": (usages["literal"] / total.pies, 2),
        "idiomatic_documents_per_pie": ((usages.total() - usages["literal"]) / total.pies, 2),
        "gold_texts": (gold, 0),
        "gold_share": (100 * gold / (total.documents + total.queries), 1),
    }


def dataset(given: Given) -> TableContent:
    """Table 1: PIEs, queries and documents of each split; the CSV has numbers of the text, too."""
    checks = load_record(given.metrics[0], DatasetChecks)
    printed = read_published(given.files["published"], ["split"])
    of_text = read_published(given.files["text_numbers"], ["id"])
    told = checks.released or checks.conditions.are_of_own_data
    obstacles = obstacles_of(sample=checks.sample, released=told)
    obstacles += checks.conditions.deviations

    def cell(row: str, column: str) -> Cell:
        ours: int = getattr(checks.counts[row], column)
        paper = printed.get((row,), {}).get(column)
        compared = compare(ours, paper, obstacles=obstacles, decimals=0)
        return Cell(Number({"split": row, "id": "", "metric": column}, compared, given.metrics))

    def of_the_text(name: str, ours: float, decimals: int) -> Number:
        paper = of_text.get((f"idiolink.{name}",), {}).get("value")
        compared = compare(ours, paper, obstacles=obstacles, decimals=decimals)
        key = {"split": "total", "id": f"idiolink.{name}", "metric": "value"}
        return Number(key, compared, given.metrics)

    rows = [Row((ROW_LABELS[row],), tuple(cell(row, column) for column in COLUMNS)) for row in ROWS]
    return TableContent(
        heads=((Head("Split"), *map(Head, COLUMNS.values())),),
        groups=(Group(tuple(rows[:-1])), Group(tuple(rows[-1:]))),
        caption="Overview of the IdioLink dataset. Test (total) is the sum of gold and silver.",
        notes=notes_of(sample=checks.sample, released=told),
        unseen=tuple(of_the_text(name, *found) for name, found in text_numbers(checks).items()),
        decimals=0,
        wide=False,
    )


def construction_numbers(
    metrics: ConstructionMetrics, report: FilterReport
) -> dict[str, tuple[str, float | None, int]]:
    """What each number of sections 3.2.1 to 3.2.4 is, our value and its decimals, by its id.

    Ids are those of published/text_numbers.csv, or none of them for what each reading of the filter
    keeps; shares are in per cent.
    """
    gold, silver = metrics.gold_corrections, metrics.silver
    agreed = metrics.agreement.model_dump() if metrics.agreement else {}
    against = "validation against people"
    numbers: dict[str, tuple[str, float | None, int]] = {
        "candidate_pies": ("PIEs that pass the filter", report.candidates, 0),
        **{
            f"kept_by_{name}": (f"PIEs kept if {_READINGS[name]}", kept, 0)
            for name, kept in report.kept_by_reading.items()
        },
        "removed_pies": ("PIEs removed by hand", report.failed.get("manual", 0), 0),
        "corrections": ("gold texts corrected", gold.corrected, 0),
        "span_corrections": ("only the span", gold.by_action.get("span_corrected", 0), 0),
        "usage_mismatches": ("usage mismatch", gold.by_cause.get("usage_mismatch", 0), 0),
        "ambiguous_texts": ("ambiguous", gold.by_cause.get("ambiguous", 0), 0),
        "rewritten_texts": ("rewritten for clarity", gold.by_cause.get("unclear", 0), 0),
        "corrected_sense": ("sense texts corrected", gold.by_usage.get("sense", 0), 0),
        "corrected_literal": ("literal texts corrected", gold.by_usage.get("literal", 0), 0),
        "validation_accuracy": (f"{against}: accuracy (%)", agreed.get("accuracy"), 2),
        "validation_macro_f1": (f"{against}: macro F1 (%)", agreed.get("macro_f1"), 2),
        "validation_valid_f1": (f"{against}: F1 of valid texts (%)", agreed.get("valid_f1"), 2),
        "missed_invalid": ("invalid texts judged valid", agreed.get("invalid_judged_valid"), 0),
        "missed_invalid_share": ("invalid texts judged valid (%)", agreed.get("missed"), 2),
        "silver_texts": ("silver texts", silver.texts, 0),
        "flagged": ("silver texts flagged", silver.flagged, 0),
        "flagged_share": ("silver texts flagged (%)", silver.flagged_share, 2),
        "confirmed": (
            "flagged texts that people confirmed",
            None if silver.awaiting else silver.confirmed,
            0,
        ),
        "confirmed_share": ("flagged texts that people confirmed (%)", silver.confirmed_share, 2),
        "gold_texts": ("texts that people looked at", metrics.gold_texts, 0),
    }
    # What has decimals is a share.
    return {
        name: (what, 100 * ours if decimals and ours is not None else ours, decimals)
        for name, (what, ours, decimals) in numbers.items()
    }


def construction(given: Given) -> TableContent:
    """The numbers of sections 3.2.1 to 3.2.4 beside the printed ones."""
    metrics = load_record(given.metrics[0], ConstructionMetrics)
    report = load_record(given.files["filter_report"], FilterReport)
    printed = read_published(given.files["published"], ["id"])
    # New texts by new models never are those that the paper counted.
    obstacles = obstacles_of(sample=metrics.sample, released=False)
    obstacles += metrics.conditions.deviations
    rows = []
    for name, (what, ours, decimals) in construction_numbers(metrics, report).items():
        paper = printed.get((f"idiolink.{name}",), {}).get("value")
        problems = obstacles if ours is not None else ["no person has judged it yet", *obstacles]
        compared = compare(ours, paper, obstacles=problems, decimals=decimals)
        key = {"id": f"idiolink.{name}", "metric": "value"}
        rows.append(Row((what,), (Cell(Number(key, compared, given.metrics)),)))
    notes = notes_of(sample=metrics.sample, released=False)
    if any("hand-written" in item.origins for item in metrics.generation.values()):
        notes += ("The models' answers are scripted by hand; no model gave them.",)
    return TableContent(
        heads=((Head("Number"), Head("this run")),),
        groups=(Group(tuple(rows)),),
        caption="Construction of IdioLink: selection of PIEs, automatic validation, and review by"
        " people.",
        notes=notes,
        wide=False,
    )
