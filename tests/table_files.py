"""Tables as the files that the workflow writes."""

from pathlib import Path

from support import ROOT

from pieline.reporting.printed import read_comparisons
from pieline.reporting.tables import TableContent, write_table


def table_rows(content: TableContent, folder: Path) -> list[dict[str, str]]:
    """Write a table in a folder in all forms, and return the rows of its CSV."""
    files = {end: folder / f"table.{end}" for end in ("tex", "csv", "html")}
    write_table("table", content, templates=ROOT / "templates", **files)
    return read_comparisons(files["csv"])
