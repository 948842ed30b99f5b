"""Score two people's labels of hard variants."""

from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.files import digests, write_json
from pieline.core.program import Options, program
from pieline.studies.jam.datasets.dataset import load_manifest
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.humans import human_metrics, read_labels


@program(
    labels=(list[Path], "CSV of both, or what each filled in"), sentences=Path, manifest=Path,
    conditions=Conditions, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    manifest = load_manifest(it.manifest)
    metrics = human_metrics(
        read_labels(*it.labels),
        load_sentences(it.sentences),
        where=", ".join(map(str, it.labels)),
        released=manifest.is_released,
        data_note=manifest.data_note,
        conditions=it.conditions,
        computed_from=digests([*it.labels, it.sentences]),
    )
    write_json(it.output, metrics.model_dump())
