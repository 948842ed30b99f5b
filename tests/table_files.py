"""Tables as the files that the workflow writes."""

import csv
from collections.abc import Mapping
from pathlib import Path

from support import ROOT

from pieline.reporting.displays import Display
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import StatedText, rounded
from pieline.reporting.tables import TableContent, make_table, write_table


def with_printed(table: Display, inputs: DisplayInputs) -> DisplayInputs:
    """Return the inputs of a table with its name and the printed numbers, as a study makes them."""
    names = [f"{name}.csv" for name in table.printed]
    names += ["tables.yaml", "schema.yaml"] if names else []
    files = {Path(name).stem: str(ROOT / "published" / name) for name in names}
    named = {"display": table.name, "otherwise": table.otherwise}
    return inputs.model_copy(update={**named, "files": {**inputs.files, **files}})


def content_of(table: Display, inputs: DisplayInputs) -> TableContent:
    """Return the content of a table."""
    return make_table(table.make, table.numbers, inputs)[0]


def table_rows(table: Display, inputs: DisplayInputs, folder: Path) -> list[dict[str, str]]:
    """Write a table in a folder in all forms, and return the rows of its CSV."""
    files = {end: folder / f"table.{end}" for end in ("tex", "csv", "html")}
    content, numbers = make_table(table.make, table.numbers, inputs)
    write_table("table", content, numbers, templates=ROOT / "templates", **files)
    with files["csv"].open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def shown_number(row: Mapping[str, str]) -> str:
    """Return our number in a row of a CSV with its decimals; empty if it is unknown."""
    return rounded(float(row["ours"]), int(row["decimals"])) if row["ours"] else ""


def statements(content: TableContent) -> dict[tuple[str, str], StatedText]:
    """Return the stated texts of a table by the first label of the row and the header."""
    heads = [head.text for head in content.heads[-1]][content.label_columns :]
    return {
        (row.labels[0], head): cell.stated
        for group in content.groups
        for row in group.rows
        for head, cell in zip(heads, row.cells, strict=True)
        if cell.stated
    }
