"""What became of every number that the papers print: the denominator is all of published/.

Which numbers count, and as what, is in published/tables.yaml.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import get_args

from pieline.core.errors import pluralize
from pieline.core.files import write_text
from pieline.core.records import Frozen
from pieline.core.tables import read_table
from pieline.reporting.printed import VERDICTS, number_in, read_printed
from pieline.results.claims.tables import TEXT_NUMBERS, Kind, OurCell, OurNumbers, PrintedTable
from pieline.results.comparison import COMPARED

STATES = (*VERDICTS.values(), "not comparable", "not run")
"""What can become of a printed number."""
NOWHERE = "nothing in this project computes it"
NO_NUMBER = "no number of the papers is of these data"
REAL_DATA = "the papers' data in place of the sample"
UNPUBLISHED = "something that was never published"
_JOIN = " + "


class PrintedNumber(Frozen):
    """A number of a paper, and ours.

    Attributes:
        paper: its study.
        place: in the paper ("Table 2", "Section 5").
        file: our CSV in paper_tables/, without ending; empty if nothing computes the number.
        what: its row and column, or what the text says it is.
        kind: `score`, `count` or `parameter`.
        model: as printed, if its row is that of a model.
        ours: empty if there is none.
        verdict: one of `STATES`.
        reason: why it was not compared.
        needs: what it takes to compare it.
    """

    paper: str
    place: str
    file: str
    what: str
    kind: str
    model: str
    printed: str
    ours: str
    verdict: str
    reason: str
    needs: tuple[str, ...]


def account_for(
    folder: Path,
    catalogue: Mapping[str, PrintedTable],
    ours: OurNumbers,
    *,
    absent: Mapping[str, str],
    models: Mapping[str, str],
    mark: str = "",
    general_need: str = "",
) -> list[PrintedNumber]:
    """Find what became of every printed number.

    Args:
        folder: published/.
        catalogue: the printed tables.
        ours: our cells of those that were made.
        absent: why other CSVs of ours were not made, by name.
        models: what a run of a model takes, by its printed name.
        mark: what every reason of this run begins with.
        general_need: what every number takes.
    """
    numbers = []
    for name, table in catalogue.items():
        for row in read_printed(folder / f"{name}.csv"):
            is_text, model = name == TEXT_NUMBERS, row.get("model", "")
            file = row["table"] if is_text else table.ours.files[0] if table.ours else ""
            key = tuple(row[column] for column in table.keys)
            kinds = {"value": row["kind"]} if is_text else table.kinds
            for column, printed in row.items():
                kind = kinds.get(column, table.kind)
                if not kind or column in table.keys or number_in(printed) is None:
                    continue
                cell = ours.get(name, {}).get((key, column))
                if cell is None:
                    why = absent.get(file, f"{file}.csv has no such row") if file else NOWHERE
                    cell = OurCell(None, comparable=False, reason=why)
                is_compared = cell.verdict in COMPARED
                reason = _first_reason(cell.reason, mark)
                needs = [general_need, *table.needs.get(file, ()), models.get(model, "")]
                if not file:
                    needs = ["a way to compute them, which this project does not have"]
                elif reason.startswith("not published"):
                    needs = [UNPUBLISHED]
                numbers.append(
                    PrintedNumber(
                        paper=row["study"] if is_text else str(table.paper),
                        place=f"Section {row['section']}" if is_text else table.number,
                        file=file,
                        what=row["what"] if is_text else _in_words(*key, column),
                        kind=kind,
                        model=model,
                        printed=printed,
                        ours="" if cell.value is None else f"{cell.value:g}",
                        verdict=cell.verdict,
                        reason="" if is_compared else reason,
                        needs=() if is_compared else tuple(filter(None, needs)),
                    )
                )
    return numbers


def summarize(numbers: Sequence[PrintedNumber]) -> str:
    """The line that counts all of them."""
    if not numbers:
        return NO_NUMBER
    none = "" if kinds_of(numbers) else "none reproduced, "
    return f"of {len(numbers):,} printed numbers {none}{describe(numbers)}"


def describe(numbers: Sequence[PrintedNumber]) -> str:
    """How many have which verdict, and the kinds of those that were reproduced."""
    counts = Counter(number.verdict for number in numbers)
    kinds = {"reproduced": f" ({kinds_of(numbers)})"}
    return ", ".join(
        f"{counts[state]:,} {state}{kinds.get(state, '')}" for state in STATES if counts[state]
    )


def kinds_of(numbers: Iterable[PrintedNumber]) -> str:
    """How many of those that were reproduced are scores, counts and parameters."""
    counts = Counter(number.kind for number in numbers if number.verdict == "reproduced")
    return ", ".join(pluralize(counts[kind], kind) for kind in get_args(Kind) if counts[kind])


def ranked(texts: Iterable[str]) -> Counter[str]:
    """How often each text occurs, the commonest first."""
    counted = Counter(texts)
    return Counter(dict(sorted(counted.items(), key=lambda item: (-item[1], item[0]))))


def write_numbers(path: str | Path, numbers: Iterable[PrintedNumber]) -> None:
    """Write one number a line as CSV."""
    text = StringIO()
    table = csv.DictWriter(text, PrintedNumber.model_fields, lineterminator="\n")
    table.writeheader()
    table.writerows(number.model_dump() | {"needs": _JOIN.join(number.needs)} for number in numbers)
    write_text(path, text.getvalue())


def read_numbers(path: str | Path) -> list[PrintedNumber]:
    """Read such a CSV.

    Raises:
        UserError: it is none.
    """
    hint = "name printed_numbers.csv of paper_tables/"
    rows = read_table(path, list(PrintedNumber.model_fields), hint=hint)
    return [
        PrintedNumber.model_validate(
            row | {"needs": tuple(filter(None, row["needs"].split(_JOIN)))}
        )
        for _, row in rows
    ]


def _in_words(*key: str) -> str:
    return ", ".join(key).replace("_pct", "").replace("_", " ")


def _first_reason(reason: str, mark: str) -> str:
    first = reason.removeprefix(mark).strip().partition("; ")[0]
    return first.removeprefix("not run: ").removeprefix("not made: ")
