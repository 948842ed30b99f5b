"""Write every prediction of a study's runs as a row, as Parquet and CSV."""

from pieline.core.imports import import_object
from pieline.core.jobs import job
from pieline.reporting.evidence import check_metrics
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.items import write_items

with job(snakemake) as j:
    record = import_object(snakemake.params.record)
    inputs = DisplayInputs.model_validate_json(snakemake.params.inputs)
    check_metrics(inputs.metrics, inputs.digests, j.known)
    write_items(
        record,
        record.of(inputs),
        parquet=snakemake.output.parquet,
        csv=snakemake.output.csv,
    )
