"""Fine-tune an encoder to tag idioms, resuming a killed job from its last epoch."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.jobs import job
from pieline.core.sidecars import write_digest_list
from pieline.models.entries import EncoderEntry
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.training.settings import TaggerTraining
from pieline.studies.jam.training.tagger import (
    TaggingData,
    fine_tune,
    load_tagger,
    make_deterministic,
)

with job(snakemake):
    checkpoint = Path(snakemake.output.log).with_name("checkpoint.pt")
    make_deterministic(1)
    seed = int(snakemake.wildcards.seed)
    tagger = load_tagger(EncoderEntry.from_spec(snakemake.params.spec), seed=seed)
    log = fine_tune(
        tagger,
        TaggingData(
            read_id10m(snakemake.input.train, split="train"),
            read_id10m(snakemake.input.dev, split="dev"),
        ),
        TaggerTraining.model_validate_json(snakemake.params.settings),
        seed=seed,
        identity=snakemake.params.spec,
        checkpoint=checkpoint,
    )
    tagger.save(snakemake.output.weights)
    write_digest_list(snakemake.output.weights, snakemake.output.digests)
    write_json(snakemake.output.log, log.model_dump())
    checkpoint.unlink(missing_ok=True)
