"""Reject a Python or a folder in which the environment cannot work."""

# This program must also run on Python versions that are too old for the project.
from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path


def problem(version: tuple[int, int], supported: str, modules: Sequence[str]) -> str | None:
    """Return an error message with a hint, or None if the Python can create the environment.

    Args:
        version: Major and minor version.
        supported: Supported versions as in pyproject.toml, e.g. `>=3.11,<3.14`.
        modules: Required modules of the standard library; some distributions omit them.
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


def folder_problem(folder: str) -> str | None:
    """Return an error message with a hint, or None if the environment can be in the folder.

    Spaces and quotes work. Environments and their programs cannot have the other characters in
    their path, and Snakemake expands braces.
    """
    found = re.search('[{}:"$`\\\\\n]', folder)
    return f"the path of this folder contains {found[0]!r}: {folder}; rename it" if found else None


if __name__ == "__main__":
    python = problem(sys.version_info[:2], sys.argv[1], sys.argv[2:])
    sys.exit(python or folder_problem(str(Path.cwd())))
