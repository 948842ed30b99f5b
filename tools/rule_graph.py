"""Convert Snakemake's rule graph to a readable one, with rule names and without implied arrows.

    snakemake --rulegraph mermaid-js all | python tools/rule_graph.py

The output is deterministic, unlike Snakemake's, whose order changes from call to call.
"""

import argparse
import re
import sys
from collections import defaultdict


def edges(mermaid: str) -> set[tuple[str, str]]:
    """Return the edges of Snakemake's graph as pairs of rule names."""
    names = dict(re.findall(r"^\s*(id\d+)\[(\w+)\]$", mermaid, flags=re.MULTILINE))
    arrows = re.findall(r"^\s*(id\d+) --> (id\d+)$", mermaid, flags=re.MULTILINE)
    return {(names[one], names[other]) for one, other in arrows}


def reduced(graph: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the transitive reduction of an acyclic graph."""
    after: dict[str, set[str]] = defaultdict(set)
    for one, other in graph:
        after[one].add(other)

    def reached(waiting: list[str]) -> set[str]:
        nodes: set[str] = set()
        while waiting:
            new = after.get(waiting.pop(), set()) - nodes
            nodes |= new
            waiting += new
        return nodes

    return {(one, other) for one, other in graph if other not in reached([*after[one] - {other}])}


def main() -> None:
    """Read Snakemake's graph from standard input and print the converted one."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    print("flowchart TB")
    for one, other in sorted(reduced(edges(sys.stdin.read()))):
        print(f"    {one} --> {other}")


if __name__ == "__main__":
    main()
