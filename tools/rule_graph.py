"""Turn Snakemake's rule graph into one that people can read: names for numbers, no implied arrows.

    snakemake --rulegraph mermaid-js all | python tools/rule_graph.py

The same workflow gives the same bytes; Snakemake's own order changes from call to call.
"""

import argparse
import re
import sys
from collections import defaultdict


def edges(mermaid: str) -> set[tuple[str, str]]:
    """The arrows of a graph that Snakemake drew, from rule to rule."""
    names = dict(re.findall(r"^\s*(id\d+)\[(\w+)\]$", mermaid, flags=re.MULTILINE))
    arrows = re.findall(r"^\s*(id\d+) --> (id\d+)$", mermaid, flags=re.MULTILINE)
    return {(names[one], names[other]) for one, other in arrows}


def reduced(graph: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """A graph without circles, less the arrows that a longer way implies."""
    after: dict[str, set[str]] = defaultdict(set)
    for one, other in graph:
        after[one].add(other)

    def reached(waiting: list[str]) -> set[str]:
        found: set[str] = set()
        while waiting:
            new = after.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return found

    return {(one, other) for one, other in graph if other not in reached([*after[one] - {other}])}


def main() -> None:
    """Read Snakemake's graph from standard input and print ours."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    print("flowchart TB")
    for one, other in sorted(reduced(edges(sys.stdin.read()))):
        print(f"    {one} --> {other}")


if __name__ == "__main__":
    main()
