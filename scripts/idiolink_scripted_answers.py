"""Record the sample's scripted answers anew; to be run after a change to a prompt or to the script.

No rule calls it: recordings are made once, and the workflow reads them.
"""

import argparse
from pathlib import Path

from pieline.config import load_config
from pieline.core.errors import run_command
from pieline.core.yamls import read_yaml
from pieline.models.registry import load_registry
from pieline.studies.idiolink.variants.roles import record_script


def main() -> None:
    """Parse the command line and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the project")
    parser.add_argument("--output", type=Path, help="folder to write, instead of the recordings")
    it = parser.parse_args()

    registry = load_registry(it.root / "models.yaml")
    config = load_config(read_yaml(it.root / "config.yaml"), registry)
    output = it.output or it.root / config.llm.recordings_folder / "idiolink_construction"
    for path in record_script(it.root, config.idiolink.construction, registry, output):
        print(path)


if __name__ == "__main__":
    run_command(main)
