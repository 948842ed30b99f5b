"""Record the sample's scripted answers anew; to be run after a change to a prompt or to the script.

No rule calls it: recordings are made once, and the workflow reads them.
"""

from pathlib import Path

from pieline.config import layered
from pieline.core.program import Options, program
from pieline.core.settings import checked
from pieline.core.yamls import read_yaml
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.studies.idiolink.settings import IdiolinkSettings
from pieline.studies.idiolink.study import IdiolinkStudy
from pieline.studies.idiolink.variants.scripted import record_script
from pieline.study import Run


@program(
    root=Path | None, output=(Path | None, "folder to write, instead of the recordings"),
)  # fmt: skip
def main(it: Options) -> None:
    root = it.root or Path()
    raw = layered(read_yaml(root / "config.yaml"), root / "config" / "sample.yaml")
    settings = checked(IdiolinkSettings, raw["idiolink"], "config.yaml: idiolink")
    llm = checked(LLMSettings, raw["llm"], "config.yaml: llm")
    run = Run(load_registry(root / "models.yaml"), llm, root=root)
    study = IdiolinkStudy(settings, run)
    for path in record_script(study, it.output or Path(run.recordings())):
        print(path)
