"""Style and reproducible output of figures."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from pieline.core.files import atomic_path


def use_style(path: str | Path) -> None:
    """Select matplotlib's non-interactive backend and a style file over matplotlib's defaults."""
    mpl.use("Agg")
    # A matplotlibrc in the working directory takes precedence over every environment variable.
    mpl.rcdefaults()
    plt.style.use(path)


def save_figure(figure: Figure, *, pdf: str | Path, png: str | Path, mark: str = "") -> None:
    """Write a figure as PDF and PNG without timestamps, atomically, and close it.

    Args:
        figure: Figure to write.
        pdf: PDF output.
        png: PNG output.
        mark: Small text below the figure.
    """
    if mark:
        figure.text(
            1, 0, mark, ha="right", va="bottom", fontsize=5, color="#666666", in_layout=False
        )
    with atomic_path(pdf) as temporary:
        metadata = {"CreationDate": None, "Producer": None, "Creator": None}
        figure.savefig(temporary, format="pdf", metadata=metadata)
    with atomic_path(png) as temporary:
        figure.savefig(temporary, format="png", metadata={"Software": None})
    plt.close(figure)
