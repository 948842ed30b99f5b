"""Write the JSON schemas of config.yaml and models.yaml for editors.

Usage: `python -m pieline.schemas schemas`.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pieline.config import config_schema
from pieline.core.errors import run_command
from pieline.core.files import canonical_json, write_text
from pieline.models.registry import registry_schema


def schemas() -> dict[str, str]:
    """Return the text of each schema by file name, with one definition per line."""
    by_name = {"config.schema.json": config_schema(), "models.schema.json": registry_schema()}
    return {name: _lines(schema) for name, schema in by_name.items()}


def _lines(schema: Mapping[str, Any]) -> str:
    parts = {name: canonical_json(value) for name, value in schema.items() if name != "$defs"}
    definitions = [
        f"{json.dumps(name)}:{canonical_json(value)}"
        for name, value in sorted(schema.get("$defs", {}).items())
    ]
    parts["$defs"] = "{\n" + ",\n".join(definitions) + "\n}"
    return (
        "{\n" + ",\n".join(f"{json.dumps(name)}:{parts[name]}" for name in sorted(parts)) + "\n}\n"
    )


def main() -> None:
    """Write the schemas to the folder given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, text in schemas().items():
        write_text(folder / name, text)


if __name__ == "__main__":
    run_command(main)
