"""variants: texts made from originals, by people or by models."""


rule jam_variants:
    """Validated variants of the sample or the release, checked automatically."""
    input:
        script=script("jam_variants"),
        originals=jam_paths.ORIGINALS,
        variants=lambda wildcards: JAM.variants_file(wildcards.language),
    output:
        variants=jam_paths.VARIANTS,
        report=jam_paths.VARIANTS_REPORT,
    log:
        log_of(jam_paths.VARIANTS),
    wildcard_constraints:
        language=JAM.validated_languages(),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_variants"),
        source=JAM.settings.variants.source,
        checks=JAM.checks(),
    shell:
        "python {input.script:q} --originals {input.originals:q} --variants {input.variants:q}"
        " --source {params.source:q} --checks {params.checks:q} --output {output.variants:q}"
        " --report {output.report:q}"
        " 2> >(tee {log:q} >&2)"


rule jam_label_studio:
    """Tasks and labelling configuration for people who validate variants in Label Studio."""
    input:
        script=script("jam_label_studio"),
        originals=jam_paths.ORIGINALS,
        variants=jam_paths.VARIANTS,
    output:
        tasks=jam_paths.LABELLING_TASKS,
        config=jam_paths.LABELLING,
    log:
        log_of(jam_paths.LABELLING_TASKS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_label_studio"),
    shell:
        "python {input.script:q} --originals {input.originals:q} --variants {input.variants:q}"
        " --tasks {output.tasks:q} --config {output.config:q}"
        " 2> >(tee {log:q} >&2)"


rule idiolink_review:
    """The flagged texts and those of the gold PIEs, for people: a sheet, and Label Studio's files."""
    input:
        script=script("idiolink_review"),
        texts=IDIOLINK.of_collections(idiolink_paths.TEXTS),
        verdicts=IDIOLINK.of_collections(idiolink_paths.VERDICTS),
        splits=idiolink_paths.SPLITS_FILE,
        corrections=IDIOLINK.corrections(),
    output:
        sheet=idiolink_paths.REVIEW,
        tasks=idiolink_paths.REVIEW_TASKS,
        labelling=idiolink_paths.REVIEW_LABELLING,
    log:
        log_of(idiolink_paths.REVIEW),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_review"),
    shell:
        "python {input.script:q} --texts {input.texts:q} --verdicts {input.verdicts:q}"
        " --splits {input.splits:q} --corrections {input.corrections:q} --sheet {output.sheet:q}"
        " --tasks {output.tasks:q} --labelling {output.labelling:q}"
        " 2> >(tee {log:q} >&2)"


if JAM.run.is_sample and not JAM.settings.variants.model:

    rule jam_neutral_sample:
        """The sample's neutral variant for each hard one that confused a model (appendix G)."""
        input:
            script=script("jam_neutral_sample"),
            dataset=jam_paths.DATASET,
            metrics=jam_paths.METRICS,
            sample=here("data/sample/id10m/neutral/{language}.json"),
        output:
            variants=jam_paths.NEUTRAL_VARIANTS,
            report=jam_paths.NEUTRAL_REPORT,
        log:
            log_of(jam_paths.NEUTRAL_VARIANTS),
        conda:
            "../envs/core.yaml"
        params:
            *modules("jam_neutral_sample"),
        shell:
            "python {input.script:q} --dataset {input.dataset:q} --metrics {input.metrics:q}"
            " --sample {input.sample:q} --output {output.variants:q} --report {output.report:q}"
            " 2> >(tee {log:q} >&2)"
