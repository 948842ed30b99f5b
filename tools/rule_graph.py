"""Convert Snakemake's rule graph to a readable one, with rule names and without implied arrows.

    snakemake --rulegraph mermaid-js all | python tools/rule_graph.py

The output is deterministic, unlike Snakemake's, whose order changes from call to call.
"""

import argparse
import sys
from collections import defaultdict

from pieline.results.trace import rule_graph


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
    before = rule_graph(sys.stdin.read())
    edges = {(one, other) for other, rules in before.items() for one in rules}
    for one, other in sorted(reduced(edges)):
        print(f"    {one} --> {other}")


if __name__ == "__main__":
    main()
