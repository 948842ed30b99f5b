"""Count the sentences left after each stage of ID10M-JAM."""

from pieline.core.conditions import Conditions
from pieline.core.files import digests, read_json, write_json
from pieline.core.jobs import finish_job, optional, start_job
from pieline.core.records import load_jsonl, load_record
from pieline.studies.jam.datasets.dataset import JamManifest
from pieline.studies.jam.metrics.statistics import jam_statistics
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.records import Original

start_job(snakemake)
train = optional(snakemake.input.train)
manifest = optional(snakemake.input.manifest)
files = [
    path for path in (snakemake.input.originals, snakemake.input.report, train, manifest) if path
]
statistics = jam_statistics(
    read_json(snakemake.input.report),
    load_jsonl(snakemake.input.originals, Original),
    train_sentences=len(read_id10m(train, split="train")) if train else None,
    manifest=load_record(manifest, JamManifest) if manifest else None,
    conditions=Conditions.model_validate_json(snakemake.params.conditions),
    computed_from=digests(files),
)
write_json(snakemake.output[0], statistics.model_dump())
finish_job(snakemake)
