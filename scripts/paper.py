"""Write one LaTeX document with all tables and figures, or compile it."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.program import add_options
from pieline.results.displays import Displays
from pieline.results.paper import compile_pdf, write_paper_source
from pieline.results.provenance import parse_models


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    tasks = parser.add_subparsers(dest="task", required=True)
    add_options(
        tasks.add_parser("source", help="write the LaTeX"),
        displays=Displays, template=Path, models=(parse_models, "models of the run, as JSON"),
        data=(str, "sample, released or own"), output=Path,
    )  # fmt: skip
    compiling = tasks.add_parser("compile", help="make the PDF")
    add_options(compiling, source=(Path, "the LaTeX"), output=Path)
    it = parser.parse_args()
    if it.task == "compile":
        compile_pdf(it.source, it.output)
    else:
        write_paper_source(
            it.output, template=it.template, displays=it.displays, models=it.models, data=it.data
        )


if __name__ == "__main__":
    run_command(main)
