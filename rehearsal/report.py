"""What a rehearsal shows: cells equal to the printed ones, claims judged alike, the bill."""

from collections.abc import Iterable, Sequence

from pieline.core.records import Frozen
from pieline.results.claims.judgement import JudgedClaim
from pieline.results.comparison import COMPARED, ComparedCell

_NEAR = "rounding or sampling range"


class TableCount(Frozen):
    """The printed cells of one table.

    Attributes:
        table: name of its CSV.
        printed: cells with a printed number.
        equal: of these, ours has the printed digits.
        reproduced: of the others, ours is as near as rounding or sampling explains.
        differing: the rest of those that were compared.
        others: what was not compared, as `cell: reason`.
    """

    table: str
    printed: int
    equal: int
    reproduced: int
    differing: tuple[str, ...]
    others: tuple[str, ...]


def count_cells(cells: Iterable[ComparedCell]) -> list[TableCount]:
    """The printed cells by table, in alphabetical order."""
    by_table: dict[str, list[ComparedCell]] = {}
    for cell in cells:
        if cell.printed:
            by_table.setdefault(cell.table, []).append(cell)
    counts = []
    for table, found in sorted(by_table.items()):
        # Statements are not judged; one that says what the paper says is equal all the same.
        compared = [cell for cell in found if cell.verdict in COMPARED or _is_equal(cell)]
        unequal = [cell for cell in compared if not _is_equal(cell)]
        counts.append(
            TableCount(
                table=table,
                printed=len(found),
                equal=len(compared) - len(unequal),
                reproduced=sum(cell.verdict in COMPARED - {"not reproduced"} for cell in unequal),
                differing=tuple(
                    f"{cell.cell}: {cell.ours} for {cell.printed}"
                    for cell in unequal
                    if cell.verdict == "not reproduced"
                ),
                others=tuple(
                    f"{cell.cell}: {cell.reason}" for cell in found if cell not in compared
                ),
            )
        )
    return counts


def _is_equal(cell: ComparedCell) -> bool:
    try:
        return float(cell.ours) == float(cell.printed)
    except ValueError:
        return cell.ours == cell.printed


def judged_otherwise(claims: Sequence[JudgedClaim]) -> list[JudgedClaim]:
    """The claims whose verdict on our numbers is another than on the printed ones."""
    return [claim for claim in claims if claim.ours.verdict != claim.printed.verdict]


def said(counts: Sequence[TableCount], claims: Sequence[JudgedClaim]) -> list[str]:
    """A line on each table that is not equal, and one on all tables and on all claims."""
    lines = [
        f"{count.table}: {count.equal} of {count.printed} cells equal, {count.reproduced} more"
        f" within {_NEAR}, {len(count.differing)} not reproduced,"
        f" {len(count.others)} not compared"
        for count in counts
        if count.equal < count.printed
    ]
    printed = sum(count.printed for count in counts)
    equal = sum(count.equal for count in counts)
    within = sum(count.reproduced for count in counts)
    lines.append(f"all tables: {equal} of {printed} cells equal, {within} more within {_NEAR}")
    alike = len(claims) - len(judged_otherwise(claims))
    lines.append(f"{alike} of {len(claims)} claims judged on ours as on the printed numbers")
    return lines
