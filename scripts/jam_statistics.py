"""Count the sentences left after each stage of ID10M-JAM."""

from pieline.core.files import read_json
from pieline.core.jobs import job, optional
from pieline.core.records import load_jsonl, load_record
from pieline.studies.jam.datasets import JamManifest
from pieline.studies.jam.metrics.statistics import jam_statistics
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.records import Original

with job(snakemake) as j:
    train = optional(snakemake.input.train)
    manifest = optional(snakemake.input.manifest)
    statistics = jam_statistics(
        read_json(snakemake.input.report),
        load_jsonl(snakemake.input.originals, Original),
        train_sentences=len(read_id10m(train, split="train")) if train else None,
        manifest=load_record(manifest, JamManifest) if manifest else None,
        conditions=j.conditions,
        computed_from=j.digests(
            snakemake.input.originals,
            snakemake.input.report,
            snakemake.input.train,
            snakemake.input.manifest,
        ),
    )
    j.write(statistics)
