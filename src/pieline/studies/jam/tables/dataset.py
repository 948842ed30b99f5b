"""ID10M-JAM's Table 2 (sizes of ID10M and ID10M-JAM) and the figure of what filtering leaves."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pieline.languages.registry import find
from pieline.reporting.latex import render_table
from pieline.reporting.models import SAMPLE_NOTE
from pieline.reporting.printed import Comparison, compare, read_published, write_comparisons
from pieline.studies.jam.metrics.statistics import JamStatistics

ID10M, JAM = "ID10M", "ID10M-JAM"
PUBLISHED_IDS = {
    "unique_pies": "jam.pies_{language}",
    "literal": "jam.literal_originals_{language}",
    "filtered_originals": "jam.filtered_{language}",
}
"""Numbers that the paper's text prints, by their name in published/text_numbers.csv."""

_SENTENCES, _VARIANTS = "#2171b5", "#d95f0e"
_REASONS = {
    "ambiguous": "ambiguous",
    "wrong_label": "wrong label",
    "several_pies": "several PIEs",
    "translation_appended": "translation appended",
    "typo": "typo",
    "not_recorded": "without published reason",
}


def write_statistics_table(
    statistics: Sequence[JamStatistics],
    *,
    published: str | Path,
    text_numbers: str | Path,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """Table 2, with the number of different PIEs, and the counts that the text prints.

    The test sentences of ID10M-JAM are those of the dataset. Without variants they are the released
    originals, which are the dataset's; the numbers of any other originals stay unknown.

    Args:
        statistics: one a language.
        published: the printed table.
        text_numbers: numbers printed in the text.
        template: LaTeX template.
        tex: LaTeX output.
        csv: CSV output.
    """
    printed = read_published(published, ["dataset", "language"])
    text = read_published(text_numbers, ["id"])
    rows, comparisons = [], []
    for item in statistics:
        for dataset, numbers in _numbers(item).items():
            obstacles = _obstacles(item, dataset)
            row = printed.get((dataset, item.language), {})
            for name, ours in numbers.items():
                key = {"dataset": dataset, "language": item.language, "number": name}
                identifier = PUBLISHED_IDS.get(name, "").format(language=item.language)
                value = row.get(name, text.get((identifier,), {}).get("value"))
                problems = [*_why_unknown(item, name, ours), *obstacles]
                comparisons.append((key, compare(ours, value, obstacles=problems)))
    for dataset in (ID10M, JAM):
        for item in statistics:
            numbers = _numbers(item)[dataset]
            rows.append(
                {
                    "dataset": dataset if item is statistics[0] else "",
                    "language": find(item.language).code.upper(),
                    "train": _text(numbers.get("train_sentences")),
                    "test": _text(numbers["test_sentences"]),
                    "variants": _text(numbers.get("test_variants")),
                    "pies": _text(numbers.get("unique_pies")),
                }
            )
    write_comparisons(csv, _sorted(comparisons), decimals=0)
    released = all(item.originals_are_released for item in statistics)
    render_table(template, tex, rows=rows, note="" if released else SAMPLE_NOTE)


def draw_flow(statistics: Sequence[JamStatistics]) -> Figure:
    """Bars of the sentences and variants that each room leaves, one panel a language."""
    figure, axes = plt.subplots(
        1,
        len(statistics),
        figsize=(3.6 * len(statistics), 2.9),
        layout="constrained",
        squeeze=False,
    )
    for axis, item in zip(axes[0], statistics, strict=True):
        _draw_language(axis, item)
    handles = [mpl.patches.Patch(color=colour) for colour in (_SENTENCES, _VARIANTS)]
    figure.legend(handles, ["sentences", "hard variants"], loc="outside upper center", ncols=2)
    if not all(item.originals_are_released for item in statistics):
        figure.supxlabel(SAMPLE_NOTE, fontsize=6, color="#666666")
    return figure


def _draw_language(axis: Axes, item: JamStatistics) -> None:
    bars = [
        ("raw test split", item.raw_test_sentences, _SENTENCES, ""),
        ("originals", item.originals, _SENTENCES, _removed(item.dropped)),
        ("variants", item.candidate_variants, _VARIANTS, ""),
        ("valid", item.valid_variants, _VARIANTS, ""),
        ("kept variants", item.dataset_variants, _VARIANTS, ""),
        ("kept originals", item.dataset_originals, _SENTENCES, _too_few(item)),
    ]
    longest = max(count or 0 for _, count, _, _ in bars)
    for row, (_, count, colour, remark) in enumerate(bars):
        axis.barh(row, count or 0, height=0.6, color=colour)
        text = "unknown" if count is None else str(count)
        axis.text((count or 0) + longest * 0.02, row, text, va="center", fontsize=7)
        # Beside a short bar, within a long one.
        place, ink = (count or 0) + longest * (0.05 + 0.04 * len(text)), "#555555"
        if place > longest / 2:
            place, ink = longest * 0.02, "white"
        axis.text(place, row, remark, va="center", fontsize=5.5, color=ink)
    axis.set_yticks(range(len(bars)), [name for name, *_ in bars])
    axis.invert_yaxis()
    axis.set(title=item.language.capitalize(), xlim=(0, longest * 1.15))
    axis.grid(axis="y", visible=False)


def _removed(reasons: Mapping[str, int]) -> str:
    parts = [f"{count} {_REASONS[reason]}" for reason, count in sorted(reasons.items())]
    # Two a line, so that the remark stays within its panel.
    lines = [", ".join(parts[start : start + 2]) for start in range(0, len(parts), 2)]
    return "dropped: " + ",\n".join(lines) if parts else ""


def _too_few(item: JamStatistics) -> str:
    if item.dataset_originals is None:
        return ""
    lost = item.originals - item.dataset_originals
    return f"{lost} with too few\nvalid variants" if lost else ""


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
    if not item.originals_are_released:
        return ["sample data or own decisions, not the released originals"]
    if dataset == JAM and item.dataset_is_released is False:
        return [f"{item.variants_source} variants, not the released ones"]
    return []


def _why_unknown(item: JamStatistics, name: str, ours: int | None) -> list[str]:
    if ours is not None:
        return []
    if name == "filtered_originals":
        return ["not published: the release holds what variant validation left"]
    if name == "train_sentences":
        return ["the training file is not in the mirror"]
    return ["not run: jam.variants.source is none"]


def _text(count: int | None) -> str:
    return "--" if count is None else f"{count:,}"


def _sorted(
    comparisons: Iterable[tuple[dict[str, str], Comparison]],
) -> list[tuple[dict[str, str], Comparison]]:
    """ID10M first, as in the printed table."""
    return sorted(comparisons, key=lambda row: row[0]["dataset"] == JAM)
