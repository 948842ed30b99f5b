"""Write the provenance record of a run, and the same as an RO-Crate."""

from pathlib import Path

from pieline import __version__
from pieline.core.files import write_json
from pieline.core.program import Options, program
from pieline.core.upstream import load_upstream
from pieline.results.comparison import metric_files
from pieline.results.crate import ro_crate
from pieline.results.displays import Displays
from pieline.results.provenance import (
    RunDescription,
    described_raw_files,
    load_licences,
    make_provenance,
)


@program(
    run=(RunDescription, "code, configuration, models and workflow, as JSON"),
    raw=(list[Path] | None, "raw files"), displays=Displays,
    recordings=(list[Path] | None, "recorded answers; missing ones are left out"),
    others=(list[Path] | None, "outputs besides these"), upstream=Path,
    licences=(Path, "data/licences.yaml"), lock=(Path, "envs/requirements.lock"), json=Path,
    crate=(Path, "RO-Crate to write"),
)  # fmt: skip
def main(it: Options) -> None:
    run, data = it.run, it.run.config["data"]
    upstream, licences = load_upstream(it.upstream), load_licences(it.licences)
    provenance = make_provenance(
        code=run.code,
        data=data,
        config=run.config,
        lock=it.lock,
        raw_files=described_raw_files(it.raw, data, upstream, licences),
        models=run.models,
        recordings=[path for path in it.recordings if path.is_file()],
        outputs=[*it.displays.all_files(), *metric_files(it.displays.files("csv")), *it.others],
    )
    write_json(it.json, provenance.model_dump(mode="json"))
    write_json(it.crate, ro_crate(provenance, version=__version__, workflow=run.workflow))
