"""Record the sample's scripted answers anew; to be run after a change to a prompt or to the script.

No rule calls it: recordings are made once, and the workflow reads them.
"""

from pathlib import Path

from pieline.config import layered, load_config, load_studies
from pieline.core.program import Options, program
from pieline.core.yamls import read_yaml
from pieline.models.registry import load_registry
from pieline.studies.idiolink.study import IdiolinkStudy
from pieline.studies.idiolink.variants.scripted import record_script


@program(
    root=Path | None, output=(Path | None, "folder to write, instead of the recordings"),
)  # fmt: skip
def main(it: Options) -> None:
    """Record every answer."""
    root = it.root or Path()
    raw = layered(read_yaml(root / "config.yaml"), root / "config" / "sample.yaml")
    studies = load_studies(load_config(raw), load_registry(root / "models.yaml"), root)
    study = studies["idiolink"]
    assert isinstance(study, IdiolinkStudy)
    for path in record_script(study, it.output or Path(study.run.recordings())):
        print(path)
