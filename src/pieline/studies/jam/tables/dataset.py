"""Build ID10M-JAM's Table 2: sizes of ID10M and ID10M-JAM."""

import pandas as pd

from pieline.core.records import load_records
from pieline.core.upstream import BY_COUNTS, SELF_VERIFIED
from pieline.reporting.displays import Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import Number, rows_of
from pieline.reporting.ours import OurNumbers
from pieline.reporting.tables import Cell, Column, Group, Head, Row, TableContent, headers
from pieline.studies.jam.metrics.statistics import ID10M, JAM, JamStatistics
from pieline.studies.jam.tables.common import code_of, data_notes, statistics_of

DATASETS = {"ID10M": ID10M, "ID10M-JAM": JAM}
"""Measures by printed name of a dataset."""


def statistics_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our counts of Table 2 and of the text.

    For ID10M-JAM, the test sentences are the originals in the dataset. Without variants, released
    originals are counted instead, because they equal the dataset's originals; counts of other
    originals remain unknown.
    """
    numbers = OurNumbers(inputs.study)
    for item, path in zip(load_records(inputs.metrics, JamStatistics), inputs.metrics, strict=True):
        verified = [SELF_VERIFIED] if item.data_note == BY_COUNTS else []
        for dataset, measures in DATASETS.items():
            obstacles = _obstacles(item, dataset)
            for measure in measures:
                numbers.add(
                    {"scope": dataset, "language": item.language},
                    [measure],
                    item,
                    files=[path],
                    obstacles=obstacles + (verified if measure.name == "test_variants" else []),
                )
    return numbers.frame()


def statistics(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 2, with the number of distinct PIEs."""
    columns = [
        Column("train_sentences", "# Sentences"),
        Column("test_sentences", "# Sentences"),
        Column("test_variants", "# Variants"),
        Column("unique_pies", "# PIEs"),
    ]
    records = load_records(inputs.metrics, JamStatistics)
    by_row = rows_of(numbers, ("scope", "language"))

    def cell(number: Number | None) -> Cell:
        return Cell(
            number, text=f"{number.ours:,.0f}" if number and number.ours is not None else ""
        )

    groups = (
        Group(
            tuple(
                Row(
                    (code_of(item.language),),
                    tuple(
                        cell(by_row[dataset, item.language].get(column.measure))
                        for column in columns
                    ),
                )
                for item in records
            ),
            dataset,
        )
        for dataset in DATASETS
    )
    return TableContent(
        heads=(
            (*headers(["", "", "Train"]), Head("Test", 2), Head("")),
            headers(["Dataset", "Language"], columns),
        ),
        groups=tuple(groups),
        caption="ID10M (original sentences) and ID10M-JAM, whose instances are hard variants. A"
        " dash marks what a dataset does not have or what was not computed. PIEs that differ only"
        " in case, spaces or punctuation count once.",
        notes=(*data_notes(*records), *inputs.notes),
    )


STATISTICS_TABLE = Table(
    "jam_statistics",
    "Table 2",
    "Sentences and variants of ID10M and ID10M-JAM.",
    statistics,
    statistics_of,
    statistics_numbers,
    printed=("jam_table2", "text_numbers"),
)


def _obstacles(item: JamStatistics, dataset: str) -> list[str]:
    """Return why the numbers of a dataset are not comparable with the printed ones."""
    if item.conditions.deviations:
        return list(item.conditions.deviations)
    if not item.originals_are_released:
        return ["sample data or other than the released originals"]
    if dataset == "ID10M-JAM" and item.dataset_is_released is False:
        return [item.data_note or f"{item.variants_source} variants, not the released ones"]
    return []
