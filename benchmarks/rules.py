"""Print the CPU time of a finished run by rule.

    python benchmarks/rules.py [FOLDER]

reads the last line of each job's log below FOLDER/logs. For each rule, it prints the number of
jobs, their CPU-seconds, and how many of these passed before the script's own work (Python,
Snakemake's preamble, imports). For a resumed job, only its last process counts.
"""

import argparse
import re
from collections import defaultdict
from pathlib import Path

LINE = re.compile(r"(\w+): ([\d.]+) CPU-s, ([\d.]+) of them to start")
ROW = "{:32}{:>6}{:>10}{:>10}"


def main() -> None:
    """Read the logs and print the table, the most expensive rule first."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", metavar="FOLDER", nargs="?", type=Path, default=Path())
    jobs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for path in (parser.parse_args().folder / "logs").rglob("*.log"):
        last = path.read_text(encoding="utf-8").rstrip("\n").rpartition("\n")[2]
        if match := LINE.fullmatch(last):
            jobs[match[1]].append((float(match[2]), float(match[3])))
    if not jobs:
        parser.error("there are no logs of finished jobs below FOLDER/logs")
    every = [job for of_rule in jobs.values() for job in of_rule]
    rows = sorted(jobs.items(), key=lambda item: -sum(cpu for cpu, _ in item[1]))
    print(ROW.format("rule", "jobs", "CPU-s", "start"))
    for rule, of_rule in [*rows, ("all", every)]:
        cpu, start = map(sum, zip(*of_rule, strict=True))
        print(ROW.format(rule, len(of_rule), f"{cpu:.1f}", f"{start:.1f}"))


if __name__ == "__main__":
    main()
