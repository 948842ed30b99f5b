"""variants: texts made from originals, by people or by models."""

if JAM.settings.variants.source != "generated":

    rule jam_variants:
        """Validated variants of the sample or the release, checked automatically."""
        input:
            script=script("jam_variants"),
            modules=modules("jam_variants"),
            originals="results/originals/jam/{language}.jsonl",
            variants=lambda wildcards: JAM.variants_file(wildcards.language),
        output:
            "results/variants/jam/{language}.jsonl",
        log:
            "logs/variants/jam/{language}.log",
        conda:
            "../envs/core.yaml"
        params:
            source=JAM.settings.variants.source,
            checks=JAM.checks(),
        shell:
            "python {input.script} --originals {input.originals} --variants {input.variants}"
            " --source {params.source} --checks {params.checks:q} --output {output}"
            " 2> >(tee {log} >&2)"


rule jam_label_studio:
    """Tasks and labelling configuration for people who validate variants in Label Studio."""
    input:
        script=script("jam_label_studio"),
        modules=modules("jam_label_studio"),
        originals="results/originals/jam/{language}.jsonl",
        variants="results/variants/jam/{language}.jsonl",
    output:
        tasks="results/variants/jam/{language}.tasks.json",
        config="results/variants/jam/{language}.labelling.xml",
    log:
        "logs/variants/jam/{language}.tasks.log",
    conda:
        "../envs/core.yaml"
    shell:
        "python {input.script} --originals {input.originals} --variants {input.variants}"
        " --tasks {output.tasks} --config {output.config}"
        " 2> >(tee {log} >&2)"


rule idiolink_generate:
    """Documents or queries of every (PIE, domain) pair, as a model wrote them."""
    input:
        script=script("idiolink_generate"),
        modules=modules("idiolink_generate"),
        pairs="results/originals/idiolink/pairs.jsonl",
        prompt=here("prompts/idiolink/{collection}.jinja"),
    output:
        texts="results/variants/idiolink/{collection}.texts.jsonl",
        report="results/variants/idiolink/{collection}.report.json",
    log:
        "logs/variants/idiolink/{collection}.texts.log",
    benchmark:
        "logs/benchmarks/idiolink/{collection}.texts.tsv"
    conda:
        "../envs/llm.yaml"
    threads: lambda wildcards: REGISTRY[construction_writer(wildcards.collection)].threads
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        model=lambda wildcards: construction_writer(wildcards.collection),
        spec=lambda wildcards: REGISTRY[construction_writer(wildcards.collection)].execution_spec(),
        parameters=construction_parameters(),
        attempts=CONSTRUCTION.attempts,
        # Another mode reads the same answers, except this one.
        fresh=CONFIG.llm.mode == "fresh",
        recordings=lambda wildcards: construction_recordings(
            construction_writer(wildcards.collection), f"write_{wildcards.collection}"
        ),
    shell:
        "python {input.script} --collection {wildcards.collection} --pairs {input.pairs}"
        " --spec {params.spec:q} --model {params.model} --parameters {params.parameters:q}"
        ' --attempts {params.attempts} --prompt {input.prompt} --settings "$PIELINE_LLM_SETTINGS"'
        " --recordings {params.recordings:q} --output {output.texts} --report {output.report}"
        " 2> >(tee {log} >&2)"


rule idiolink_validate:
    """The validating model's votes on generated texts, and the majority."""
    input:
        script=script("idiolink_validate"),
        modules=modules("idiolink_validate"),
        texts="results/variants/idiolink/{collection}.texts.jsonl",
        prompt=here("prompts/idiolink/validate.jinja"),
    output:
        "results/variants/idiolink/{collection}.verdicts.jsonl",
    log:
        "logs/variants/idiolink/{collection}.verdicts.log",
    benchmark:
        "logs/benchmarks/idiolink/{collection}.verdicts.tsv"
    conda:
        "../envs/llm.yaml"
    threads: REGISTRY[CONSTRUCTION.validator].threads
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        model=CONSTRUCTION.validator,
        spec=REGISTRY[CONSTRUCTION.validator].execution_spec(),
        parameters=construction_parameters(),
        runs=CONSTRUCTION.runs,
        fresh=CONFIG.llm.mode == "fresh",
        recordings=lambda wildcards: construction_recordings(
            CONSTRUCTION.validator, f"validate_{wildcards.collection}"
        ),
    shell:
        "python {input.script} --texts {input.texts} --spec {params.spec:q}"
        " --model {params.model} --parameters {params.parameters:q} --runs {params.runs}"
        ' --prompt {input.prompt} --settings "$PIELINE_LLM_SETTINGS"'
        " --recordings {params.recordings:q} --output {output}"
        " 2> >(tee {log} >&2)"


rule idiolink_review:
    """The flagged texts and those of the gold PIEs, for people: a sheet, and Label Studio's files."""
    input:
        script=script("idiolink_review"),
        modules=modules("idiolink_review"),
        texts=construction_texts("texts.jsonl"),
        verdicts=construction_texts("verdicts.jsonl"),
        splits="results/originals/idiolink/splits.json",
        corrections=construction_corrections,
    output:
        sheet="results/variants/idiolink/review.csv",
        tasks="results/variants/idiolink/review_tasks.json",
        labelling="results/variants/idiolink/review_labelling.xml",
    log:
        "logs/variants/idiolink/review.log",
    conda:
        "../envs/core.yaml"
    shell:
        "python {input.script} --texts {input.texts} --verdicts {input.verdicts}"
        " --splits {input.splits} --corrections {input.corrections} --sheet {output.sheet}"
        " --tasks {output.tasks} --labelling {output.labelling}"
        " 2> >(tee {log} >&2)"


if JAM.run.is_sample and not JAM.settings.variants.model:

    rule jam_neutral_sample:
        """The sample's neutral variant for each hard one that confused a model (appendix G)."""
        input:
            script=script("jam_neutral_sample"),
            modules=modules("jam_neutral_sample"),
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
        shell:
            "python {input.script} --dataset {input.dataset} --metrics {input.metrics}"
            " --sample {input.sample} --output {output.variants} --report {output.report}"
            " 2> >(tee {log} >&2)"
