"""pieline: raw corpora to every table and figure of three papers on idiomatic expressions."""

import os

from snakemake.utils import min_version

min_version("9.27")


report: "templates/report/workflow.rst"


configfile: os.path.relpath(os.path.join(workflow.basedir, "config.yaml"))


include: "rules/common.smk"
include: "rules/studies/jam.smk"
include: "rules/studies/jam_experiments.smk"
include: "rules/studies/idiolink.smk"
include: "rules/studies/idiolink_construction.smk"
include: "rules/studies/idiots.smk"
include: "rules/studies/all.smk"
include: "rules/studies/language_models.smk"
include: "rules/raw.smk"
include: "rules/originals.smk"
include: "rules/variants.smk"
include: "rules/datasets.smk"
include: "rules/training.smk"
include: "rules/predictions.smk"
include: "rules/metrics.smk"
include: "rules/paper.smk"
include: "rules/language_models.smk"


rule all:
    default_target: True
    input:
        jam_targets,
        jam_experiment_targets,
        idiolink_targets,
        construction_targets,
        idiots_targets,
        artifact_targets,
    localrule: True
