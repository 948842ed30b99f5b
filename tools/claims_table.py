"""Update the table of claims in docs/reviewers.md from published/claims.yaml.

    python tools/claims_table.py [DOCUMENT]

Each claim that `make verify` decides has its own row; the others share one row per printed table.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from pieline.archives.manifest import read_archive
from pieline.core.errors import pluralize, run_command
from pieline.core.files import read_text, write_text
from pieline.results.claims.claim import Claim, load_claims
from pieline.results.claims.judgement import judge_on_printed
from pieline.results.claims.tables import TEXT_NUMBERS as TEXT
from pieline.results.claims.tables import load_catalogue, load_printed

PUBLISHED = Path(__file__).parents[1] / "published"
HEADER = (
    "| claim | command | requires | time | in the shipped archive | where to look"
    " | expected result |"
)
ARCHIVE = PUBLISHED.parent / "data/archives/idiolink.tar.zst"
PAPERS = {"jam": "ID10M-JAM", "idiots": "IdioTS", "idiolink": "IdioLink"}
CHAT = (
    "API keys for OpenAI, Google and Together, recorded answers of retired models; a GPU for the"
    " encoders"
)
SERVED = "a GPU that can serve a 7-billion-parameter model"
BUILT = "MAGPIE (downloaded), API keys for Google and OpenAI, reviewers"
GRID = "snakemake --profile profiles/paper"
CONSTRUCTION = f"{GRID} --config 'idiolink={{construction: {{enabled: true}}}}'"
NEEDS = {
    ("jam", TEXT): f"{CHAT}; annotators",
    ("jam", "jam_table2"): "the released variants (downloaded)",
    ("jam", "jam_table3"): CHAT,
    ("jam", "jam_table5"): CHAT,
    ("jam", "jam_table6"): CHAT,
    ("idiots", TEXT): "the released sentences (downloaded)",
    ("idiots", "idiots_table1"): SERVED,
    ("idiots", "idiots_table2"): f"{SERVED}; human judges",
    ("idiots", "idiots_table3"): SERVED,
    ("idiolink", TEXT): BUILT,
    ("idiolink", "idiolink_table1"): BUILT,
    ("idiolink", "idiolink_table2"): "a GPU for embedders of up to 9 billion parameters",
    ("idiolink", "idiolink_table5"): "a GPU that can train models of up to 1 billion parameters",
}
"""Requirements that `make verify` does not meet, by paper and last printed table of a claim."""


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the rows: first the claims that `make verify` decides, then the others by table."""
    catalogue = load_catalogue(PUBLISHED / "tables.yaml")
    printed = load_printed(PUBLISHED, catalogue)
    archived = set(archived_tables())
    claims = [claim for claim in load_claims(PUBLISHED / "claims.yaml") if claim.is_counted]
    findings = {claim.id: judge_on_printed(claim, catalogue, printed) for claim in claims}
    for claim in claims:
        if claim.verify:
            remark = f". {claim.remark}" if claim.remark else ""
            yield (
                f"{PAPERS[claim.paper]} {claim.section}: {claim.says}",
                "`make verify`",
                "two cores",
                "3 CPU-min",
                "yes" if {number.table for number in claim.numbers.values()} <= archived else "no",
                f"`{claim.id}`",
                f"{claim.verify} (printed: {findings[claim.id].found}){remark}",
            )
    for paper, name in PAPERS.items():
        waiting = [claim for claim in claims if claim.paper == paper and not claim.verify]
        for table, group in groupby(sorted(waiting, key=_last), _last):
            verdicts = Counter(findings[claim.id].verdict for claim in group)
            needs = NEEDS[paper, table]
            ours = catalogue[table].ours
            files = [file for file in ours.files if file.startswith(paper)] if ours else []
            yield (
                f"{name}, {catalogue[table].number}: {pluralize(verdicts.total(), 'claim')}",
                f"`{CONSTRUCTION if needs == BUILT else GRID}`",
                needs,
                "`estimate_cost`",
                "no",
                ", ".join(f"`{file}`" for file in files),
                f"printed numbers: {verdicts['holds']} hold, {verdicts['fails']} fail",
            )


def archived_tables() -> Iterator[str]:
    """Yield, for each shipped run, the printed table that contains its model."""
    for metrics in read_archive(ARCHIVE).runs:
        model = Path(metrics).parts[4]
        yield {"bm25": "idiolink_bm25", "sbert": "idiolink_table2"}.get(model, "idiolink_table5")


def _last(claim: Claim) -> str:
    """Return the last printed table that a claim uses, or the text if it uses none."""
    tables = {number.table for number in claim.numbers.values()} - {TEXT}
    return max(tables, default=TEXT)


def main() -> None:
    """Replace the table in the document."""
    document = Path(sys.argv[1]) if sys.argv[1:] else PUBLISHED.parent / "docs/reviewers.md"
    lines = read_text(document).splitlines()
    first = lines.index(HEADER)
    table = [HEADER, "|---|---|---|---|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows())]
    after = [line for line in lines[first:] if not line.startswith("|")]
    write_text(document, "\n".join([*lines[:first], *table, *after, ""]))


if __name__ == "__main__":
    run_command(main)
