"""Write what each run of a study says of each sentence or query, as Parquet and as CSV."""

from pieline.core.imports import import_object
from pieline.core.jobs import start_log
from pieline.reporting.evidence import check_metrics
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.items import write_items

start_log(snakemake.log[0])
record = import_object(snakemake.params.record)
inputs = DisplayInputs.model_validate_json(snakemake.params.inputs)
check_metrics(inputs.metrics, inputs.asked)
write_items(
    record,
    record.of(inputs),
    parquet=snakemake.output.parquet,
    csv=snakemake.output.csv,
)
