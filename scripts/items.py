"""Write what each run of a study says of each sentence or query, as Parquet and as CSV."""

from pathlib import Path

from pieline.core.named import named
from pieline.core.program import Options, program
from pieline.reporting.given import Given
from pieline.reporting.items import write_items


@program(
    record=(str, "module:class of a row"), given=Given, parquet=(Path, "Parquet to write"),
    csv=(Path, "gzipped CSV to write"),
)  # fmt: skip
def main(it: Options) -> None:
    record = named(it.record)
    write_items(record, record.of(it.given), parquet=it.parquet, csv=it.csv)
