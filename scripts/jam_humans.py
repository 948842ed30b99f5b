"""Score two annotators' labels of hard variants."""

from pieline.core.conditions import Conditions
from pieline.core.files import digests, write_json
from pieline.core.jobs import finish_job, start_job
from pieline.core.records import load_record
from pieline.studies.jam.datasets.dataset import JamManifest
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.humans import human_metrics, read_labels

start_job(snakemake)
labels = snakemake.input.labels
manifest = load_record(snakemake.input.manifest, JamManifest)
metrics = human_metrics(
    read_labels(*labels),
    load_sentences(snakemake.input.sentences),
    where=", ".join(map(str, labels)),
    released=manifest.is_released,
    data_note=manifest.data_note,
    conditions=Conditions.model_validate_json(snakemake.params.conditions),
    computed_from=digests([*labels, snakemake.input.sentences]),
)
write_json(snakemake.output[0], metrics.model_dump())
finish_job(snakemake)
