"""Summary of a rehearsal: cells equal to the printed ones, claims, and errors not covered."""

from collections.abc import Iterable, Sequence

from pieline.core.records import Frozen
from pieline.results.claims.judgement import JudgedClaim
from pieline.results.comparison import COMPARED, ComparedCell

NOT_COVERED = (
    "Whether questions are the papers': stand-ins give the printed numbers for any question. Only"
    " the digest of a prompt file is compared with the papers' wording.",
    "Labels swapped by code that reads the data: stand-ins use the same labels, so the cells are"
    " equal. A file with swapped labels is rejected by its digest.",
    "A wrong split: runs are constructed to give the printed scores for any queries and documents."
    " A file of another split is rejected by its digest.",
    "Seeds that differ from the papers': each is mapped to one of theirs.",
    "Answers in forms that the parser does not support: stand-ins send only supported forms. Check"
    " how real models answer on recorded answers (snakemake answers).",
    "Outputs of weights: tiny models run the real jobs, but their numbers are not used.",
)
"""Errors that change no cell or claim of a rehearsal."""


class TableCount(Frozen):
    """Counts of a table's printed cells.

    Attributes:
        table: Name of the table's CSV.
        printed: Number of cells with a printed number.
        equal: Number of cells whose number equals the printed one.
        near: Number of other cells within rounding or sampling range.
        differing: All other compared cells, as `cell: our number for the printed number`.
        others: Cells that were not compared, as `cell: reason`.
    """

    table: str
    printed: int
    equal: int
    near: int
    differing: tuple[str, ...]
    others: tuple[str, ...]


def count_cells(cells: Iterable[ComparedCell]) -> list[TableCount]:
    """Count the printed cells of each table; the tables are in alphabetical order."""
    by_table: dict[str, list[ComparedCell]] = {}
    for cell in cells:
        if cell.printed:
            by_table.setdefault(cell.table, []).append(cell)
    counts = []
    for table, printed_cells in sorted(by_table.items()):
        compared = [cell for cell in printed_cells if cell.verdict in COMPARED or _is_equal(cell)]
        unequal = [cell for cell in compared if not _is_equal(cell)]
        differing = [cell for cell in unequal if cell.verdict == "not reproduced"]
        counts.append(
            TableCount(
                table=table,
                printed=len(printed_cells),
                equal=len(compared) - len(unequal),
                near=len(unequal) - len(differing),
                differing=tuple(
                    f"{cell.cell}: {cell.ours} for {cell.printed}" for cell in differing
                ),
                others=tuple(
                    f"{cell.cell}: {cell.reason}" for cell in printed_cells if cell not in compared
                ),
            )
        )
    return counts


def _is_equal(cell: ComparedCell) -> bool:
    """Return whether our number equals the printed one and, if it has metrics, is comparable."""
    if cell.metrics and not cell.comparable:
        return False
    try:
        return float(cell.ours) == float(cell.printed)
    except ValueError:
        return cell.ours == cell.printed


def differently_judged(claims: Sequence[JudgedClaim]) -> list[JudgedClaim]:
    """Return the claims with different verdicts on our numbers and on the printed ones."""
    return [claim for claim in claims if claim.ours.verdict != claim.printed.verdict]


def summary(counts: Sequence[TableCount], claims: Sequence[JudgedClaim]) -> str:
    """Summarize all cells and claims in one line."""
    equal, near, printed = (
        sum(getattr(count, name) for count in counts) for name in ("equal", "near", "printed")
    )
    alike = len(claims) - len(differently_judged(claims))
    return (
        f"{equal} of {printed} printed cells equal, {near} more within rounding or sampling range;"
        f" {alike} of {len(claims)} claims with the same verdict on our and on the printed numbers"
    )
