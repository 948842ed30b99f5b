"""Score two annotators' labels of hard variants."""

from pieline.core.jobs import job
from pieline.core.records import load_record
from pieline.studies.jam.datasets import JamManifest
from pieline.studies.jam.metrics.humans import human_metrics, read_labels
from pieline.studies.jam.records import load_sentences

with job(snakemake) as j:
    labels = snakemake.input.labels
    manifest = load_record(snakemake.input.manifest, JamManifest)
    sentences = load_sentences(snakemake.input.sentences)
    judged = read_labels(*labels)
    if snakemake.params.limit:
        known = {sentence.id for sentence in sentences}
        judged = [label for label in judged if label.variant_id in known]
    metrics = human_metrics(
        judged,
        sentences,
        where=", ".join(map(str, labels)),
        released=manifest.is_released,
        data_note=manifest.data_note,
        conditions=j.conditions,
        computed_from=j.digests(labels, snakemake.input.sentences),
    )
    j.write(metrics)
