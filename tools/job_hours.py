"""Sum the jobs and hours in benchmark files by kind, for planning the next run.

Usage: python tools/job_hours.py logs/benchmarks
"""

import argparse
import csv
from collections import defaultdict
from pathlib import Path


def seconds(path: Path) -> float:
    """Return the wall-clock time in a job's benchmark file, in seconds."""
    with path.open(encoding="utf-8") as stream:
        return sum(float(row["s"]) for row in csv.DictReader(stream, delimiter="\t"))


def main() -> None:
    """Print the table of jobs and hours."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of benchmark files")
    parser.add_argument("--depth", type=int, default=3, help="folder levels per kind")
    arguments = parser.parse_args()

    times: defaultdict[str, list[float]] = defaultdict(list)
    for path in sorted(arguments.folder.rglob("*.tsv")):
        kind = "/".join(path.relative_to(arguments.folder).parts[:-1][: arguments.depth])
        times[kind].append(seconds(path))
    print(f"{'':40}{'jobs':>6}{'hours':>9}{'longest':>9}")
    for kind, durations in times.items():
        print(
            f"{kind:40}{len(durations):6}{sum(durations) / 3600:9.2f}{max(durations) / 3600:9.2f}"
        )


if __name__ == "__main__":
    main()
