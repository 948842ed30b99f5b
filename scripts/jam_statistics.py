"""Count what each stage of ID10M-JAM left."""

from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.files import digests, read_json, write_json
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.jam.datasets.dataset import load_manifest
from pieline.studies.jam.metrics.statistics import jam_statistics
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.records import Original


@program(
    originals=Path, report=Path, train=Path | None, manifest=Path | None, conditions=Conditions,
    output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    files = [path for path in (it.originals, it.report, it.train, it.manifest) if path]
    statistics = jam_statistics(
        read_json(it.report),
        load_jsonl(it.originals, Original),
        train_sentences=len(read_id10m(it.train, split="train")) if it.train else None,
        manifest=load_manifest(it.manifest) if it.manifest else None,
        conditions=it.conditions,
        computed_from=digests(files),
    )
    write_json(it.output, statistics.model_dump())
