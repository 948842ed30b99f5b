"""PIEs that were removed by hand as the released files imply, with what they tell as reason."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_text
from pieline.studies.idiolink.originals.released_list import (
    read_candidates,
    released_exclusions,
    used_pies,
)


def main() -> None:
    """Parse the command line and derive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=Path, required=True, help="MAGPIE_SOURCE_IDIOMS.csv")
    parser.add_argument(
        "--documents", type=Path, nargs="+", required=True, help="indexes.json of every split"
    )
    parser.add_argument("--output", type=Path, required=True, help="TSV file")
    arguments = parser.parse_args()

    candidates = read_candidates(arguments.candidates)
    exclusions = released_exclusions(candidates, used_pies(arguments.documents))
    lines = [f"{pie}\t{reason}\n" for pie, reason in sorted(exclusions.items())]
    write_text(arguments.output, "".join(["pie\treason\n", *lines]))


if __name__ == "__main__":
    run_command(main)
