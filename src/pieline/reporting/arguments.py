"""The command-line options that scripts of tables and figures share."""

import argparse
from pathlib import Path
from typing import Any

from pieline.reporting.models import load_descriptions

TABLE = ("template", "tex", "csv")
"""What every table takes and gives."""

FIGURE = ("style", "pdf", "png")
"""What every figure takes and gives."""

_OPTIONS: dict[str, dict[str, Any]] = {
    "metrics": {"type": Path, "nargs": "+", "help": "metric files, JSON"},
    "models": {"type": load_descriptions, "help": "descriptions of the models, as JSON"},
    "all-models": {
        "type": load_descriptions,
        "help": "descriptions of all of the paper's models, as JSON",
    },
    "published": {"type": Path, "help": "what the paper prints, CSV"},
    "text-numbers": {"type": Path, "help": "numbers that the paper's text prints, CSV"},
    "template": {"type": Path, "help": "jinja2 template"},
    "tex": {"type": Path, "help": "LaTeX to write"},
    "csv": {"type": Path, "help": "CSV to write"},
    "style": {"type": Path, "help": "matplotlib style"},
    "pdf": {"type": Path, "help": "PDF to write"},
    "png": {"type": Path, "help": "PNG to write"},
}


def report_parser(about: str | None, *options: str) -> argparse.ArgumentParser:
    """A parser of these options, all of which must be given; a script may add its own.

    Args:
        about: what the script does.
        options: names without dashes. `models` and `all-models` come as a list of
            `ModelDescription`, `metrics` as a list of paths, the others as a path.
    """
    parser = argparse.ArgumentParser(description=about)
    for option in options:
        parser.add_argument(f"--{option}", required=True, **_OPTIONS[option])
    return parser
