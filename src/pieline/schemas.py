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
    """Return the text of each schema, by file name."""
    return {
        "config.schema.json": _format_schema(config_schema()),
        "models.schema.json": _format_schema(registry_schema()),
    }


def _format_schema(schema: Mapping[str, Any]) -> str:
    """Return a schema as JSON with one line per field and per definition."""
    definitions = {
        name: canonical_json(definition) for name, definition in schema.get("$defs", {}).items()
    }
    fields = {name: canonical_json(value) for name, value in schema.items()}
    fields["$defs"] = _one_field_per_line(definitions)
    return _one_field_per_line(fields) + "\n"


def _one_field_per_line(fields: Mapping[str, str]) -> str:
    """Return a JSON object with one line per field, given the JSON of each field's value."""
    lines = [f"{json.dumps(name)}:{fields[name]}" for name in sorted(fields)]
    return "{\n" + ",\n".join(lines) + "\n}"


def main() -> None:
    """Write the schemas to the folder given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, text in schemas().items():
        write_text(folder / name, text)


if __name__ == "__main__":
    run_command(main)
