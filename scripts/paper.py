"""Write one LaTeX document with all tables and figures, or compile it."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import parse_record
from pieline.results.displays import Displays
from pieline.results.paper import compile_pdf, write_paper_source
from pieline.results.provenance import parse_models


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    tasks = parser.add_subparsers(dest="task", required=True)
    source = tasks.add_parser("source", help="write the LaTeX")
    source.add_argument("--displays", required=True, help="JSON: tables and figures of the run")
    source.add_argument("--template", type=Path, required=True)
    source.add_argument("--models", required=True, help="JSON: the models of the run")
    source.add_argument("--data", required=True, help="sample or released")
    compiling = tasks.add_parser("compile", help="make the PDF")
    compiling.add_argument("--source", type=Path, required=True)
    for task in (source, compiling):
        task.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.task == "compile":
        compile_pdf(arguments.source, arguments.output)
        return
    write_paper_source(
        arguments.output,
        template=arguments.template,
        displays=parse_record(arguments.displays, Displays, option="--displays"),
        models=parse_models(arguments.models),
        data=arguments.data,
    )


if __name__ == "__main__":
    run_command(main)
