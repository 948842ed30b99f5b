"""Write the provenance record of a run."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.jobs import job
from pieline.core.upstream import load_upstream
from pieline.results.numbers import summarize
from pieline.results.provenance import (
    RunDescription,
    describe_raw_files,
    load_licenses,
    make_provenance,
)
from pieline.results.run_results import read_results

with job(snakemake):
    run = RunDescription.model_validate_json(snakemake.params.run)
    results = read_results(snakemake.input.cells)
    data = run.config["data"]
    upstream = load_upstream(snakemake.input.upstream)
    licences = load_licenses(snakemake.input.licences)
    provenance = make_provenance(
        code=run.code,
        data=data,
        config=run.config,
        lock=snakemake.input.lock,
        raw_files=describe_raw_files(snakemake.input.raw, data, upstream, licences),
        models=run.models,
        predictions=snakemake.input.predictions,
        recordings=[path for path in map(Path, snakemake.params.recordings) if path.is_file()],
        outputs=[
            *results.all_files(),
            *results.metric_files(),
            *snakemake.input.reports,
        ],
    )
    write_json(snakemake.output[0], provenance.model_dump(mode="json"))
    # This is a run's last job, so that its terminal ends with these lines.
    if data == "sample":
        print("sample data: compared with no printed number")
    else:
        print("\n".join([summarize(results.numbers), *results.scores_of_others()]))
