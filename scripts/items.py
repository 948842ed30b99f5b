"""Write what each run of a study says of each sentence or query, as Parquet and as CSV."""

from pieline.core.jobs import start_log
from pieline.core.named import named
from pieline.reporting.evidence import check_metrics
from pieline.reporting.given import Given
from pieline.reporting.items import write_items

start_log(snakemake.log[0])
record = named(snakemake.params.record)
given = Given.model_validate_json(snakemake.params.given)
check_metrics(given.metrics, given.asked)
write_items(
    record,
    record.of(given),
    parquet=snakemake.output.parquet,
    csv=snakemake.output.csv,
)
