"""Build ID10M-JAM's Table 2: sizes of ID10M and ID10M-JAM."""

from collections.abc import Callable
from dataclasses import replace

from pieline.core.records import load_records
from pieline.core.upstream import BY_COUNTS, SELF_VERIFIED
from pieline.reporting.columns import Column, Source, headers, row
from pieline.reporting.displays import Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import read_published
from pieline.reporting.tables import Group, Head, TableContent
from pieline.studies.jam import inputs as given
from pieline.studies.jam.metrics.statistics import JamStatistics
from pieline.studies.jam.settings import NO_VARIANTS
from pieline.studies.jam.tables.common import code_of, data_notes

ID10M, JAM = "ID10M", "ID10M-JAM"
PUBLISHED_IDS = {
    "unique_pies": "jam.pies_{language}",
    "literal": "jam.literal_originals_{language}",
    "filtered_originals": "jam.filtered_{language}",
    "literal_share": "jam.literal_share_{language}",
    "literal_share_id10m": "jam.literal_share_id10m_{language}",
}
"""Ids in published/text_numbers.csv of the numbers printed in the paper's text, by column name."""


def _identifier(name: str, language: str) -> str:
    """Return the id of a number printed in the text; empty if it is not printed there."""
    return PUBLISHED_IDS.get(name, "").format(language=language)


def _count(
    name: str,
    header: str,
    value: Callable[[JamStatistics], float | None],
    unknown: str = f"not run: {NO_VARIANTS}",
) -> Column[JamStatistics]:
    """Return a column of counts with thousands separators."""

    def details(source: Source[JamStatistics]) -> dict[str, str]:
        identifier = _identifier(name, source.key["language"])
        return {"number": name, "id": identifier, "metric": "value" if identifier else ""}

    return Column(
        name,
        header,
        value,
        unknown=unknown,
        details=details,
        text=lambda item: "" if (count := value(item)) is None else f"{count:,}",
    )


def _share(
    name: str, value: Callable[[JamStatistics], float | None], *, decimals: int
) -> Column[JamStatistics]:
    """Return a column of percentages, which is only in the CSV."""
    return replace(_count(name, "", value), decimals=decimals, text=lambda _: "")


def _sentences(name: str, header: str, of_originals: str, of_dataset: str) -> Column[JamStatistics]:
    """Return a column that counts items of the dataset.

    If there is no dataset, released originals are counted instead.
    """

    def value(item: JamStatistics) -> int | None:
        originals = item.originals_are_released and item.dataset_originals is None
        count: int | None = getattr(item, of_originals if originals else of_dataset)
        return count

    return _count(name, header, value)


TRAIN = _count(
    "train_sentences",
    "# Sentences",
    lambda item: item.raw_train_sentences,
    "there is no training file",
)
TEST = _count("test_sentences", "# Sentences", lambda item: item.raw_test_sentences)
ORIGINALS = _sentences("test_sentences", "# Sentences", "originals", "dataset_originals")
VARIANTS = _count("test_variants", "# Variants", lambda item: item.dataset_variants)
PIES = _sentences("unique_pies", "# PIEs", "unique_pies_originals", "unique_pies")
LITERAL = _sentences("literal", "", "literal", "dataset_literal")
LITERAL_SHARE = _share("literal_share", lambda item: item.literal_share, decimals=2)
ID10M_LITERAL_SHARE = replace(
    _share(
        "literal_share_id10m",
        lambda item: (
            100 * (item.raw_test_sentences - item.raw_test_with_idiom) / item.raw_test_sentences
        ),
        decimals=1,
    ),
    # Printed without decimals, so half a unit is 0.5 instead of 0.05.
    tolerance=lambda _: 0.45,
)
FILTERED = _count(
    "filtered_originals",
    "",
    # The release has only originals that passed variant validation, so the earlier count is
    # unknown.
    lambda item: None if item.originals_are_released else item.originals,
    "not published: the release holds what variant validation left",
)


def statistics(inputs: DisplayInputs) -> TableContent:
    """Return Table 2, with the number of distinct PIEs and the counts printed in the text.

    For ID10M-JAM, the test sentences are the originals in the dataset. Without variants, released
    originals are counted instead, because they equal the dataset's originals; counts of other
    originals remain unknown.
    """
    records = load_records(inputs.metrics, JamStatistics)
    printed = read_published(inputs.files["published"], ["dataset", "language"])
    text = read_published(inputs.files["text_numbers"], ["id"])
    groups = []
    for dataset in (ID10M, JAM):
        rows = []
        for item, path in zip(records, inputs.metrics, strict=True):
            ids = {name: (_identifier(name, item.language),) for name in PUBLISHED_IDS}
            in_text = {name: text[place]["value"] for name, place in ids.items() if place in text}
            key = {"dataset": dataset, "language": item.language}
            source = Source(
                key | dict.fromkeys(("number", "id", "metric"), ""),
                [item],
                (path,),
                in_text | printed.get((dataset, item.language), {}),
                _obstacles(item, dataset),
            )
            verifies = [SELF_VERIFIED] if item.data_note == BY_COUNTS else []
            verified = replace(source, obstacles=[*source.obstacles, *verifies])
            columns = {
                ID10M: [
                    *((TRAIN, source), (TEST, source), (VARIANTS, None), (PIES, None)),
                    (ID10M_LITERAL_SHARE, source),
                ],
                JAM: [
                    *((TRAIN, None), (ORIGINALS, source), (VARIANTS, verified)),
                    *((column, source) for column in (PIES, LITERAL, LITERAL_SHARE, FILTERED)),
                ],
            }
            rows.append(row((code_of(item.language),), columns[dataset]))
        groups.append(Group(tuple(rows), dataset))
    return TableContent(
        heads=(
            (*headers(["", "", "Train"]), Head("Test", 2), Head("")),
            headers(["Dataset", "Language"], [TRAIN, TEST, VARIANTS, PIES]),
        ),
        groups=tuple(groups),
        caption="ID10M (original sentences) and ID10M-JAM, whose instances are hard variants. A"
        " dash marks what a dataset does not have or what was not computed. PIEs that differ only"
        " in case, spaces or punctuation count once.",
        notes=(*data_notes(*records), *inputs.notes),
        decimals=0,
    )


STATISTICS_TABLE = Table(
    "jam_statistics",
    "Table 2",
    "Sentences and variants of ID10M and ID10M-JAM.",
    statistics,
    given.statistics,
    printed="jam_table2",
    text_numbers=True,
)


def _obstacles(item: JamStatistics, dataset: str) -> list[str]:
    """Return why the numbers of a dataset are not comparable with the printed ones."""
    if item.conditions.deviations:
        return list(item.conditions.deviations)
    if not item.originals_are_released:
        return ["sample data or other than the released originals"]
    if dataset == JAM and item.dataset_is_released is False:
        return [item.data_note or f"{item.variants_source} variants, not the released ones"]
    return []
