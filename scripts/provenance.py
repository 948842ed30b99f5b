"""Write the provenance of a run: the configuration, the packages and the digests of files."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.jobs import job
from pieline.core.upstream import load_upstream
from pieline.reporting.numbers import read_numbers
from pieline.results.provenance import (
    RunDescription,
    describe_raw_files,
    load_licenses,
    make_provenance,
)
from pieline.results.run_results import RunResults

with job(snakemake):
    run = RunDescription.model_validate_json(snakemake.params.run)
    results = RunResults.model_validate_json(snakemake.params.results)
    numbers = read_numbers(snakemake.input.numbers)
    upstream = load_upstream(snakemake.input.upstream)
    licences = load_licenses(snakemake.input.licences)
    recordings = [path for path in map(Path, snakemake.params.recordings) if path.is_file()]
    metric_files = sorted({path for number in numbers for path in number.files})
    provenance = make_provenance(
        run,
        lock=snakemake.input.lock,
        raw_files=describe_raw_files(snakemake.input.raw, run.data, upstream, licences),
        predictions=snakemake.input.predictions,
        recordings=recordings,
        outputs=[*results.all_files(), *metric_files, *snakemake.input.reports],
    )
    write_json(snakemake.output[0], provenance.model_dump(mode="json"))
