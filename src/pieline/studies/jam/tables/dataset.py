"""ID10M-JAM's Table 2: sizes of ID10M and ID10M-JAM."""

from pieline.core.records import load_records
from pieline.core.upstream import BY_COUNTS, SELF_VERIFIED
from pieline.reporting.given import Given
from pieline.reporting.printed import compare, read_published
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.jam.metrics.statistics import JamStatistics
from pieline.studies.jam.tables.common import code_of, data_notes, heads

ID10M, JAM = "ID10M", "ID10M-JAM"
PUBLISHED_IDS = {
    "unique_pies": "jam.pies_{language}",
    "literal": "jam.literal_originals_{language}",
    "filtered_originals": "jam.filtered_{language}",
}
"""Numbers that the paper's text prints, by their name in published/text_numbers.csv."""
_COLUMNS = {
    "train_sentences": "# Sentences",
    "test_sentences": "# Sentences",
    "test_variants": "# Variants",
    "unique_pies": "# PIEs",
}


def statistics(given: Given) -> TableContent:
    """Table 2, with the number of different PIEs, and the counts that the text prints.

    The test sentences of ID10M-JAM are those of the dataset. Without variants they are the released
    originals, which are the dataset's; the numbers of any other originals stay unknown.
    """
    found = load_records(given.metrics, JamStatistics)
    printed = read_published(given.files["published"], ["dataset", "language"])
    text = read_published(given.files["text_numbers"], ["id"])
    groups = []
    for dataset in (ID10M, JAM):
        rows = []
        for item, source in zip(found, given.metrics, strict=True):
            row = printed.get((dataset, item.language), {})
            numbers = {}
            for name, ours in _numbers(item)[dataset].items():
                identifier = PUBLISHED_IDS.get(name, "").format(language=item.language)
                of_paper = row.get(name, text.get((identifier,), {}).get("value"))
                problems = [*_why_unknown(item, name, ours), *_obstacles(item, dataset)]
                if name == "test_variants" and item.data_note == BY_COUNTS:
                    problems.append(SELF_VERIFIED)
                numbers[name] = Number(
                    {
                        **{"dataset": dataset, "language": item.language, "number": name},
                        **{"id": identifier, "metric": "value" if identifier else ""},
                    },
                    compare(ours, of_paper, obstacles=problems),
                    (source,),
                )
            rows.append(
                Row(
                    (code_of(item.language),),
                    tuple(_cell(numbers.get(name)) for name in _COLUMNS),
                    unseen=tuple(item for name, item in numbers.items() if name not in _COLUMNS),
                )
            )
        groups.append(Group(tuple(rows), dataset))
    return TableContent(
        heads=(
            (*heads("", "", "Train"), Head("Test", 2), Head("")),
            heads("Dataset", "Language", *_COLUMNS.values()),
        ),
        groups=tuple(groups),
        caption="ID10M (original sentences) and ID10M-JAM, whose instances are hard variants. A"
        " dash marks what a dataset does not have or what was not computed.",
        notes=(*data_notes(*found), *given.notes),
        decimals=0,
    )


def _cell(number: Number | None) -> Cell:
    """A count with its thousands apart."""
    ours = number.comparison.ours if number else None
    return Cell(number, text="" if ours is None else f"{ours:,.0f}")


def _numbers(item: JamStatistics) -> dict[str, dict[str, int | None]]:
    """Numbers of the table by dataset and name."""
    known = item.dataset_originals is not None
    originals_count = item.originals_are_released and not known
    return {
        ID10M: {
            "train_sentences": item.raw_train_sentences,
            "test_sentences": item.raw_test_sentences,
        },
        JAM: {
            "test_sentences": item.originals if originals_count else item.dataset_originals,
            "test_variants": item.dataset_variants,
            "unique_pies": item.unique_pies_originals if originals_count else item.unique_pies,
            "literal": item.literal if originals_count else item.dataset_literal,
            # The release has only what later validation left: the first filtering is not recorded.
            "filtered_originals": None if item.originals_are_released else item.originals,
        },
    }


def _obstacles(item: JamStatistics, dataset: str) -> list[str]:
    """Why the numbers of a dataset cannot be compared with the printed ones."""
    if item.conditions.are_of_own_data:
        return list(item.conditions.deviations)
    if not item.originals_are_released:
        return ["sample data or other than the released originals"]
    if dataset == JAM and item.dataset_is_released is False:
        return [item.data_note or f"{item.variants_source} variants, not the released ones"]
    return []


def _why_unknown(item: JamStatistics, name: str, ours: int | None) -> list[str]:
    if ours is not None:
        return []
    if name == "filtered_originals":
        return ["not published: the release holds what variant validation left"]
    if name == "train_sentences":
        return ["there is no training file"]
    return ["not run: jam.variants.source is none"]
