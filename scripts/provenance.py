"""Write the provenance record of a run, and the same as an RO-Crate."""

import argparse
from pathlib import Path

from pieline import __version__
from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.core.records import parse_record
from pieline.core.upstream import load_upstream
from pieline.results.comparison import metric_files
from pieline.results.displays import Displays
from pieline.results.provenance import (
    RunDescription,
    described_raw_files,
    load_licences,
    make_provenance,
    ro_crate,
)


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True, help="JSON: code, config, models, workflow")
    parser.add_argument("--raw", type=Path, nargs="*", default=[], help="raw files")
    parser.add_argument(
        "--recordings",
        type=Path,
        nargs="*",
        default=[],
        help="missing ones are left out",
    )
    parser.add_argument("--displays", required=True, help="JSON: tables and figures of the run")
    parser.add_argument("--others", type=Path, nargs="*", default=[], help="outputs besides those")
    parser.add_argument("--upstream", type=Path, required=True)
    parser.add_argument("--licences", type=Path, required=True)
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--crate", type=Path, required=True)
    arguments = parser.parse_args()
    run = parse_record(arguments.run, RunDescription, option="--run")
    displays = parse_record(arguments.displays, Displays, option="--displays")
    data = run.config["data"]
    upstream, licences = load_upstream(arguments.upstream), load_licences(arguments.licences)
    provenance = make_provenance(
        code=run.code,
        data=data,
        config=run.config,
        lock=arguments.lock,
        raw_files=described_raw_files(arguments.raw, data, upstream, licences),
        models=run.models,
        recordings=[path for path in arguments.recordings if path.is_file()],
        outputs=[
            *displays.all_files(),
            *metric_files(displays.files("csv")),
            *arguments.others,
        ],
    )
    write_json(arguments.json, provenance.model_dump(mode="json"))
    write_json(arguments.crate, ro_crate(provenance, version=__version__, workflow=run.workflow))


if __name__ == "__main__":
    run_command(main)
