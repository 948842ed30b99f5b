"""Fetch one raw file: from the sample, from a mirror folder, or by URL; check its digest."""

import argparse
import shutil
from pathlib import Path

from pieline.core.errors import UserError, run_command
from pieline.core.files import atomic_path
from pieline.core.upstream import copy_file, download, load_upstream


def main() -> None:
    """Parse the command line and fetch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--name", required=True, help="upstream name, e.g. idiolink/val/queries.json"
    )
    parser.add_argument("--upstream", type=Path, required=True, help="data/upstream.yaml")
    parser.add_argument("--sample", type=Path, nargs="?", help="sample file to take instead")
    parser.add_argument("--mirror", nargs="?", help="folder with the real files; none: download")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()

    if arguments.sample:
        with atomic_path(arguments.output) as temporary:
            shutil.copyfile(arguments.sample, temporary)
        return
    upstream = load_upstream(arguments.upstream).get(arguments.name)
    if upstream is None:
        mend = f"add it to {arguments.upstream}"
        raise UserError("no such upstream file", where=arguments.name, mend=mend)
    if arguments.mirror:
        source = Path(arguments.mirror) / arguments.name
        mend = (
            f"put the file there (expected SHA-256 {upstream.sha256}), or unset mirror to download"
        )
        copy_file(source, arguments.output, expected=upstream.sha256, mend=mend)
    else:
        download(upstream, arguments.output, name=arguments.name)


if __name__ == "__main__":
    run_command(main)
