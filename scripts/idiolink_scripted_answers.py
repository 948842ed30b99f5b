"""Record the sample's scripted answers anew; to be run after a change to a prompt or to the script.

No rule calls it: recordings are made once, and the workflow reads them.
"""

import argparse
from pathlib import Path

from pieline.config import layered
from pieline.core.errors import run_command
from pieline.core.settings import checked
from pieline.core.yamls import read_yaml
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.studies.idiolink.settings import IdiolinkSettings
from pieline.studies.idiolink.study import IdiolinkStudy
from pieline.studies.idiolink.variants.scripted import record_script
from pieline.study import Run


def main() -> None:
    """Parse the command line and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the project")
    parser.add_argument("--output", type=Path, help="folder to write, instead of the recordings")
    it = parser.parse_args()

    raw = layered(read_yaml(it.root / "config.yaml"), it.root / "config" / "sample.yaml")
    settings = checked(IdiolinkSettings, raw["idiolink"], "config.yaml: idiolink")
    llm = checked(LLMSettings, raw["llm"], "config.yaml: llm")
    run = Run(load_registry(it.root / "models.yaml"), llm, root=it.root)
    study = IdiolinkStudy(settings, run)
    for path in record_script(study, it.output or Path(run.recordings())):
        print(path)


if __name__ == "__main__":
    run_command(main)
