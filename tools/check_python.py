"""Refuse a Python that the environment cannot be made with: another version, or one without pip."""

# What is too old to run the project must be able to run this.
from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Sequence


def problem(version: tuple[int, int], supported: str, modules: Sequence[str]) -> str | None:
    """What is wrong and how to fix it, or None.

    Args:
        version: major and minor number.
        supported: as in pyproject.toml, e.g. `>=3.11,<3.14`.
        modules: what is needed of the standard library; distributions leave some out.
    """
    lowest, above = (
        (int(major), int(minor)) for major, minor in re.findall(r"(\d+)\.(\d+)", supported)
    )
    this = f"Python {version[0]}.{version[1]}"
    if not lowest <= version < above:
        return f"{this} is not supported ({supported}); name another with PYTHON=…"
    if any(importlib.util.find_spec(name) is None for name in modules):
        return f"{this} cannot make an environment with pip; install the package python3-venv"
    return None


if __name__ == "__main__":
    sys.exit(problem(sys.version_info[:2], sys.argv[1], sys.argv[2:]))
