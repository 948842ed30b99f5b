"""Style and reproducible output of figures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from pieline.core.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN_WIDTH = 3.3
"""Width of figures in one column of the papers, in inches."""
PAGE_WIDTH = 6.8
"""Width of figures that span both columns, in inches."""
SMALLEST = 6.0
"""Smallest font size in points. Figures are printed without scaling."""


def use_style(path: str | Path) -> None:
    """Reset matplotlib to defaults, select a backend without windows, and apply a style file."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    # A matplotlibrc in the working directory takes precedence over every environment variable.
    mpl.rcdefaults()
    plt.style.use(path)


def add_notes(figure: Figure, notes: Iterable[str]) -> None:
    """Add notes below a figure, wrapped to the figure's width, and increase the figure's height."""
    # At the smallest font size, about 23 characters fit in an inch; 22 leaves a margin.
    characters_per_line = int(22 * figure.get_figwidth())
    lines = [line for note in notes for line in wrap(note, characters_per_line)]
    line_height = 0.1  # inches
    figure.set_figheight(figure.get_figheight() + line_height * len(lines))
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=SMALLEST, color="#555555")


def save_figure(figure: Figure, *, pdf: str | Path, png: str | Path, mark: str = "") -> None:
    """Write a figure atomically as PDF and PNG, without timestamps, and close the figure.

    Args:
        figure: Figure to write.
        pdf: Path of the PDF file.
        png: Path of the PNG file.
        mark: Notice to print in small type below the figure; empty for no notice.
    """
    import matplotlib.pyplot as plt

    if mark:
        # (1, 0) is the lower right corner of the figure.
        notice = figure.text(1, 0, mark, ha="right", va="bottom", color="#555555")
        notice.set(fontsize=SMALLEST, in_layout=False)
    with atomic_path(pdf) as temporary:
        metadata = {"CreationDate": None, "Producer": None, "Creator": None}
        figure.savefig(temporary, format="pdf", metadata=metadata)
    with atomic_path(png) as temporary:
        figure.savefig(temporary, format="png", metadata={"Software": None})
    plt.close(figure)
