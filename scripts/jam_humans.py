"""Score two annotators' labels of hard variants."""

from pieline.core.jobs import job
from pieline.core.records import load_record
from pieline.studies.jam.datasets import JamManifest
from pieline.studies.jam.metrics.humans import human_metrics, read_labels
from pieline.studies.jam.records import load_sentences

with job(snakemake) as j:
    label_files = snakemake.input.labels
    manifest = load_record(snakemake.input.manifest, JamManifest)
    sentences = load_sentences(snakemake.input.sentences)
    human_labels = read_labels(*label_files)
    if snakemake.params.limit:
        sentence_ids = {sentence.id for sentence in sentences}
        human_labels = [label for label in human_labels if label.variant_id in sentence_ids]
    metrics = human_metrics(
        human_labels,
        sentences,
        where=", ".join(map(str, label_files)),
        released=manifest.is_released,
        data_note=manifest.data_note,
        conditions=j.conditions,
        computed_from=j.digests(label_files, snakemake.input.sentences),
    )
    j.write(metrics)
