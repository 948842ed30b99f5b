"""Count and check IdioLink data, generated or released; list what is found and never fail on it."""

from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.files import digests, write_json
from pieline.core.program import Options, program
from pieline.core.upstream import is_released, load_upstream
from pieline.studies.idiolink.datasets.composition import check_dataset
from pieline.studies.idiolink.datasets.loose import read_loosely


@program(
    data=(Path, "folder with a folder per split"), splits=(list[str], "those that there are"),
    origin=(str, "name of the data"), sample=bool,
    upstream=Path, conditions=Conditions, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    texts, files = read_loosely([(split, it.data / split) for split in it.splits])
    names = {f"idiolink/{path.relative_to(it.data)}": path for path in files}
    report = check_dataset(
        texts,
        origin=it.origin,
        sample=it.sample,
        released=is_released(names, load_upstream(it.upstream)),
        computed_from=digests(files),
        conditions=it.conditions,
    )
    write_json(it.output, report.model_dump())
