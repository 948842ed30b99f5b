"""pieline: raw corpora to every table and figure of three papers on idiomatic expressions."""

import os

from snakemake.utils import min_version

min_version("9.27")


configfile: os.path.relpath(os.path.join(workflow.basedir, "config.yaml"))


include: "rules/common.smk"
include: "rules/studies/idiolink.smk"
include: "rules/raw.smk"
include: "rules/datasets.smk"
include: "rules/predictions.smk"
include: "rules/metrics.smk"
include: "rules/paper.smk"


rule all:
    default_target: True
    input:
        idiolink_targets,
    localrule: True
