"""Write the JSON schemas of config.yaml and models.yaml: `python -m pieline.schemas FOLDER`."""

import argparse
from pathlib import Path

import yaml

from pieline.config import config_schema
from pieline.core.errors import run_command
from pieline.core.files import write_text
from pieline.models.registry import registry_schema

HEAD = "# Made by `python -m pieline.schemas schemas` from the library's settings; do not edit.\n"


def schemas() -> dict[str, str]:
    """Text of each schema by file name."""
    made = {"config.schema.yaml": config_schema(), "models.schema.yaml": registry_schema()}
    return {
        name: HEAD + yaml.safe_dump(schema, sort_keys=True, allow_unicode=True, width=100)
        for name, schema in made.items()
    }


def main() -> None:
    """Parse the command line and write the schemas."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, text in schemas().items():
        write_text(folder / name, text)


if __name__ == "__main__":
    run_command(main)
