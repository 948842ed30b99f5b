"""pieline: every table and figure of three papers on idiomatic expressions, from raw corpora."""

import os

from snakemake.utils import min_version

min_version("9.27")


report: "templates/report/workflow.rst"


configfile: os.path.relpath(os.path.join(workflow.basedir, "config.yaml"))


include: "rules/common.smk"
include: "rules/raw.smk"
include: "rules/originals.smk"
include: "rules/variants.smk"
include: "rules/datasets.smk"
include: "rules/training.smk"
include: "rules/predictions.smk"
include: "rules/metrics.smk"
include: "rules/beyond.smk"
include: "rules/ask.smk"
include: "rules/paper.smk"


for study in EVERY_STUDY.values():
    for rules_file in study.rules_files():

        include: rules_file


rule all:
    default_target: True
    input:
        # A list, because Snakemake drops the first element of an iterator.
        [target for study in STUDIES for target in study.targets()],
        RUN_REPORT.targets(),
    localrule: True
