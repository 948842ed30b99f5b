"""What a rehearsal shows: cells equal to the printed ones, claims judged alike, and its limits."""

from collections.abc import Iterable, Sequence

from pieline.core.records import Frozen
from pieline.results.claims.judgement import JudgedClaim
from pieline.results.comparison import COMPARED, ComparedCell

NOT_COVERED = (
    "Whether questions ask what the papers asked: stand-ins answer whatever is asked, from the"
    " printed numbers. Only the digest of a prompt file is compared with the papers' wording.",
    "Labels that a reader of the data swaps: stand-ins take the same labels, so the cells come"
    " out equal. A file with swapped labels is rejected by its digest.",
    "A wrong split: runs are made to give the printed scores on whatever queries and documents"
    " reach them. A file of another split is rejected by its digest.",
    "Other seeds than the papers': each is taken for one of theirs.",
    "Answers in forms that the parser was not written for: stand-ins send only forms that it reads."
    " How real models answer shows on recorded answers (snakemake answers).",
    "What weights compute: tiny models run the real jobs, and nobody looks at their numbers.",
)
"""Errors that leave every cell and claim of a rehearsal as it is."""


class TableCount(Frozen):
    """The printed cells of one table.

    Attributes:
        table: name of its CSV.
        printed: cells with a printed number.
        equal: of these, ours has the printed digits.
        near: of the others, ours is as near as rounding or sampling explains.
        differing: the rest of those that were compared.
        others: what was not compared, as `cell: reason`.
    """

    table: str
    printed: int
    equal: int
    near: int
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
        compared = [cell for cell in found if cell.verdict in COMPARED or _is_equal(cell)]
        unequal = [cell for cell in compared if not _is_equal(cell)]
        differing = [cell for cell in unequal if cell.verdict == "not reproduced"]
        counts.append(
            TableCount(
                table=table,
                printed=len(found),
                equal=len(compared) - len(unequal),
                near=len(unequal) - len(differing),
                differing=tuple(
                    f"{cell.cell}: {cell.ours} for {cell.printed}" for cell in differing
                ),
                others=tuple(
                    f"{cell.cell}: {cell.reason}" for cell in found if cell not in compared
                ),
            )
        )
    return counts


def _is_equal(cell: ComparedCell) -> bool:
    """Whether ours is the printed one, and not from other data, settings or prompts."""
    if cell.metrics and not cell.comparable:
        return False
    try:
        return float(cell.ours) == float(cell.printed)
    except ValueError:
        return cell.ours == cell.printed


def differently_judged(claims: Sequence[JudgedClaim]) -> list[JudgedClaim]:
    """The claims whose verdict on our numbers is another than on the printed ones."""
    return [claim for claim in claims if claim.ours.verdict != claim.printed.verdict]


def summary(counts: Sequence[TableCount], claims: Sequence[JudgedClaim]) -> str:
    """One line on all cells and all claims."""
    equal, near, printed = (
        sum(getattr(count, name) for count in counts) for name in ("equal", "near", "printed")
    )
    alike = len(claims) - len(differently_judged(claims))
    return (
        f"{equal} of {printed} printed cells equal, {near} more within rounding or sampling range;"
        f" {alike} of {len(claims)} claims judged on ours as on the printed numbers"
    )
