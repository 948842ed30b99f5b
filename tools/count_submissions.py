"""Count the jobs of a dry run and their submissions to a cluster.

Usage: snakemake --profile profiles/slurm --configfile config/paper.yaml -np all \
    | python tools/count_submissions.py
"""

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

GROUP = re.compile(r"^(?:\[.*\] )?Group job (\w+) \(jobs in lexicogr\. order\):$")
RULE = re.compile(r"^( *)(?:local)?(?:rule|checkpoint) (\w+):$")


def local_rules() -> set[str]:
    """Return the names of the rules that run locally (a dry run does not mark them)."""
    root = Path(__file__).parents[1]
    files = [root / "Snakefile", *root.glob("rules/*.smk")]
    texts = [path.read_text() for path in files]
    rules = [part for text in texts for part in re.split(r"^ *rule (?=\w+:)", text, flags=re.M)]
    return {rule.split(":")[0] for rule in rules if re.search(r"^ +localrule: True$", rule, re.M)}


def main() -> None:
    """Read a dry run from standard input and print the table of counts."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    jobs: Counter[str] = Counter()
    submissions: Counter[str] = Counter()
    local, place = local_rules(), ""
    for line in sys.stdin:
        if group := GROUP.match(line.rstrip()):
            place = f"group {group[1]}"
            submissions[place] += 1
        elif rule := RULE.match(line.rstrip()):
            indent, name = rule.groups()
            if not indent:
                place = "(local)" if name in local else f"rule {name}"
                submissions[place] += name not in local
            jobs[place] += 1
    print(f"{'':28}{'jobs':>8}{'submissions':>13}")
    for place in sorted(jobs):
        print(f"{place:28}{jobs[place]:8,}{submissions[place]:13,}")
    print(f"{'all':28}{sum(jobs.values()):8,}{sum(submissions.values()):13,}")


if __name__ == "__main__":
    main()
