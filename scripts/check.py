"""Stop with one error if nothing can give the answers of some language model."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.llm.estimates import check
from pieline.planned import planned_tasks


@program(config=str, models=(Path, "models.yaml"), root=Path)
def main(it: Options) -> None:
    planned = planned_tasks(it.config, it.models, it.root)
    unknown = planned.not_made()
    check(planned.tasks, planned.settings, unknown)
    print("; ".join(["no key, weights or recordings are known to be missing", *unknown]))
