"""Table 1 of IdioLink, and the table of construction statistics."""

import pandas as pd

from pieline.core.records import load_record
from pieline.reporting.displays import Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE
from pieline.reporting.numbers import rows_of
from pieline.reporting.ours import OurNumbers
from pieline.reporting.tables import Column, Group, TableContent, headers, number_row
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.datasets.assembly import CONSTRUCTION, ConstructionMetrics
from pieline.studies.idiolink.datasets.composition import COUNTS, IN_TEXT, DatasetChecks
from pieline.studies.idiolink.originals.released_list import FILTER, FilterReport

ROW_LABELS = {
    "train": "Train",
    "validation": "Validation",
    "test_silver": "Test (silver)",
    "test_gold": "Test (gold)",
    "test": "Test (total)",
    "total": "Total",
}
COLUMNS = [
    Column("pies", "PIEs"),
    Column("queries", "Queries"),
    Column("documents", "Documents"),
]
_AGAINST = "validation against reviewers"
CONSTRUCTION_LABELS = {
    "candidate_pies": "PIEs that pass the filter",
    "kept_by_any_confidence": "PIEs kept if confidence does not matter",
    "kept_by_confident_annotations": "PIEs kept if only confident annotations count",
    "kept_by_paper": "PIEs kept if every annotation is confident (paper)",
    "kept_by_released": "PIEs kept if any annotation is confident and shares are of all"
    " (released code)",
    "removed_pies": "PIEs removed manually",
    "corrections": "gold texts corrected",
    "span_corrections": "only the span",
    "usage_mismatches": "usage mismatch",
    "ambiguous_texts": "ambiguous",
    "rewritten_texts": "rewritten for clarity",
    "corrected_sense": "sense texts corrected",
    "corrected_literal": "literal texts corrected",
    "validation_accuracy": f"{_AGAINST}: accuracy (%)",
    "validation_macro_f1": f"{_AGAINST}: macro F1 (%)",
    "validation_valid_f1": f"{_AGAINST}: F1 of valid texts (%)",
    "missed_invalid": "invalid texts judged valid",
    "missed_invalid_share": "invalid texts judged valid (%)",
    "silver_texts": "silver texts",
    "flagged": "silver texts flagged",
    "flagged_share": "silver texts flagged (%)",
    "confirmed": "flagged texts confirmed by reviewers",
    "confirmed_share": "flagged texts confirmed by reviewers (%)",
    "gold_texts": "texts reviewed by humans",
}
"""Labels of the measures of the construction, in order."""
CONSTRUCTED_NOTE = "Counted on a dataset that this run constructed, not on the released one."


def about_data(*, sample: bool, released: bool) -> tuple[list[str], tuple[str, ...]]:
    """Return the reasons why counts are not comparable with the paper's, and notes on the data."""
    if released:
        return [], ()
    if sample:
        return ["sample data, not the released IdioLink"], (SAMPLE_NOTE,)
    return ["newly constructed or altered, not the released IdioLink"], (CONSTRUCTED_NOTE,)


def about_texts(checks: DatasetChecks) -> tuple[list[str], tuple[str, ...]]:
    """Return what `about_data` returns for the checked texts."""
    is_paper_or_own = checks.released or checks.conditions.are_of_own_data
    return about_data(sample=checks.sample, released=is_paper_or_own)


def dataset_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our counts by split (Table 1), and those in the text."""
    checks = load_record(inputs.metrics[0], DatasetChecks)
    obstacles = [*about_texts(checks)[0], *checks.conditions.deviations]
    numbers = OurNumbers(inputs.study)
    for split in ROW_LABELS:
        of_split, files = checks.counts[split], inputs.metrics
        numbers.add({"scope": split}, COUNTS, of_split, files=files, obstacles=obstacles)
    numbers.add({"scope": "total"}, IN_TEXT, checks, files=inputs.metrics, obstacles=obstacles)
    return numbers.frame()


def dataset(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 1: PIEs, queries and documents by split."""
    by_split = rows_of(numbers, ("scope",))
    rows = [number_row((label,), COLUMNS, by_split[split,]) for split, label in ROW_LABELS.items()]
    return TableContent(
        heads=(headers(["Split"], COLUMNS),),
        groups=(Group(tuple(rows[:-1])), Group(tuple(rows[-1:]))),
        caption="Overview of the IdioLink dataset. Test (total) is the sum of gold and silver.",
        notes=about_texts(load_record(inputs.metrics[0], DatasetChecks))[1],
        wide=False,
    )


DATASET_TABLE = Table(
    "idiolink_dataset",
    "Table 1",
    "Size of the IdioLink dataset.",
    dataset,
    given.data_checks,
    dataset_numbers,
    printed=("idiolink_table1", "text_numbers"),
)


def construction_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of sections 3.2.1 to 3.2.4."""
    metrics = load_record(inputs.metrics[0], ConstructionMetrics)
    report = load_record(inputs.files["filter_report"], FilterReport)
    # Newly generated texts always differ from the paper's.
    obstacles, _ = about_data(sample=metrics.sample, released=False)
    obstacles += metrics.conditions.deviations
    numbers = OurNumbers(inputs.study)
    keys = {"scope": "constructed"}
    numbers.add(keys, FILTER, report, files=inputs.metrics, obstacles=obstacles)
    numbers.add(keys, CONSTRUCTION, metrics, files=inputs.metrics, obstacles=obstacles)
    return numbers.frame()


def construction(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the numbers in sections 3.2.1 to 3.2.4, with the printed numbers."""
    metrics = load_record(inputs.metrics[0], ConstructionMetrics)
    (of_run,) = rows_of(numbers, ()).values()
    rows = [
        number_row((label,), [Column(measure, "this run")], of_run)
        for measure, label in CONSTRUCTION_LABELS.items()
    ]
    _, notes = about_data(sample=metrics.sample, released=False)
    if any("hand-written" in item.origins for item in metrics.generation.values()):
        notes += ("The models' answers are hand-written; no model produced them.",)
    return TableContent(
        heads=(headers(["Number", "this run"]),),
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
    construction_numbers,
    printed=("text_numbers",),
)
