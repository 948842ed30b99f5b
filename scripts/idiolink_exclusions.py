"""PIEs that were removed by hand as the released files imply, with what they tell as reason."""

from pathlib import Path

from pieline.core.files import write_text
from pieline.core.program import Options, program
from pieline.studies.idiolink.originals.released_list import (
    read_candidates,
    released_exclusions,
    used_pies,
)


@program(
    candidates=(Path, "MAGPIE_SOURCE_IDIOMS.csv"),
    documents=(list[Path], "indexes.json of every split"), output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    candidates = read_candidates(it.candidates)
    exclusions = released_exclusions(candidates, used_pies(it.documents))
    lines = [f"{pie}\t{reason}\n" for pie, reason in sorted(exclusions.items())]
    write_text(it.output, "".join(["pie\treason\n", *lines]))
