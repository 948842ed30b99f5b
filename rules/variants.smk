"""variants: texts made from originals, by people or by models."""


rule jam_variants:
    """Validated variants of the sample or the release, checked automatically."""
    input:
        script=script("jam_variants"),
        originals="results/originals/jam/{language}.jsonl",
        variants=lambda wildcards: JAM.variants_file(wildcards.language),
    output:
        variants="results/variants/jam/{language}.jsonl",
        report="results/variants/jam/{language}.report.json",
    log:
        "logs/variants/jam/{language}.log",
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
        originals="results/originals/jam/{language}.jsonl",
        variants="results/variants/jam/{language}.jsonl",
    output:
        tasks="results/variants/jam/{language}.tasks.json",
        config="results/variants/jam/{language}.labelling.xml",
    log:
        "logs/variants/jam/{language}.tasks.log",
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
        texts=IDIOLINK.of_collections("results/variants/idiolink/{collection}.texts.jsonl"),
        verdicts=IDIOLINK.of_collections("results/variants/idiolink/{collection}.verdicts.jsonl"),
        splits="results/originals/idiolink/splits.json",
        corrections=IDIOLINK.corrections(),
    output:
        sheet="results/variants/idiolink/review.csv",
        tasks="results/variants/idiolink/review_tasks.json",
        labelling="results/variants/idiolink/review_labelling.xml",
    log:
        "logs/variants/idiolink/review.log",
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
            dataset="results/datasets/jam/{language}.jsonl",
            metrics="results/metrics/jam/{language}/{model}/{setting}/seed-{seed}.json",
            sample=here("data/sample/id10m/neutral/{language}.json"),
        output:
            variants="results/variants/jam_neutral/{language}/{model}/{setting}/seed-{seed}.jsonl",
            report="results/variants/jam_neutral/{language}/{model}/{setting}/seed-{seed}.report.json",
        log:
            "logs/variants/jam_neutral/{language}/{model}/{setting}/seed-{seed}.log",
        conda:
            "../envs/core.yaml"
        params:
            *modules("jam_neutral_sample"),
        shell:
            "python {input.script:q} --dataset {input.dataset:q} --metrics {input.metrics:q}"
            " --sample {input.sample:q} --output {output.variants:q} --report {output.report:q}"
            " 2> >(tee {log:q} >&2)"
