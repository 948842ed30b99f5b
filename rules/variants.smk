"""variants: texts made from originals, by people or by models."""

if CONFIG.jam.variants.source == "generated":

    rule jam_generate_variants:
        """Variants that a model wrote and validated (two calls an original)."""
        input:
            script=script("jam_generate_variants"),
            modules=modules("jam_generate_variants"),
            originals="results/originals/jam/{language}.jsonl",
            prompts=expand(here("prompts/jam/{name}_variants.jinja"), name=["generate", "review"]),
        output:
            variants="results/variants/jam/{language}.jsonl",
            report="results/variants/jam/{language}.report.json",
        log:
            "logs/variants/jam/{language}.log",
        benchmark:
            "logs/benchmarks/jam/{language}/variants.tsv"
        conda:
            "../envs/llm.yaml"
        threads: REGISTRY[CONFIG.jam.variants.model].threads
        resources:
            mem_mb=growing(4000),
            runtime=growing(240),
        params:
            model=CONFIG.jam.variants.model,
            spec=REGISTRY[CONFIG.jam.variants.model].execution_spec(),
            generation=jam_generation(),
            checks=jam_checks(),
            # Another mode reads the same answers, except this one.
            fresh=CONFIG.llm.mode == "fresh",
            recordings=lambda wildcards: jam_recordings(
                "jam_variants", wildcards.language, f"{CONFIG.jam.variants.model}.jsonl"
            ),
        shell:
            "python {input.script} --originals {input.originals} --spec {params.spec:q}"
            " --model {params.model} --generation {params.generation:q}"
            " --prompts $(dirname {input.prompts[0]}) --checks {params.checks:q}"
            ' --settings "$PIELINE_LLM_SETTINGS" --recordings {params.recordings:q}'
            " --output {output.variants} --report {output.report}"
            " 2> >(tee {log} >&2)"

else:

    rule jam_variants:
        """Validated variants of the sample or the release, checked automatically."""
        input:
            script=script("jam_variants"),
            modules=modules("jam_variants"),
            originals="results/originals/jam/{language}.jsonl",
            variants=jam_variants_file,
        output:
            "results/variants/jam/{language}.jsonl",
        log:
            "logs/variants/jam/{language}.log",
        conda:
            "../envs/core.yaml"
        resources:
            mem_mb=growing(1000),
            runtime=growing(10),
        params:
            source=CONFIG.jam.variants.source,
            checks=jam_checks(),
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


if CONFIG.jam.variants.model:

    rule jam_neutral_variants:
        """A neutral variant for each hard one that confused a model (appendix G)."""
        input:
            script=script("jam_neutral_variants"),
            modules=modules("jam_neutral_variants"),
            dataset="results/datasets/jam/{language}.jsonl",
            metrics="results/metrics/jam/{language}/{model}/{setting}/seed-{seed}.json",
            prompt=here("prompts/jam/neutral_variants.jinja"),
        output:
            variants="results/variants/jam_neutral/{language}/{model}/{setting}/seed-{seed}.jsonl",
            report="results/variants/jam_neutral/{language}/{model}/{setting}/seed-{seed}.report.json",
        log:
            "logs/variants/jam_neutral/{language}/{model}/{setting}/seed-{seed}.log",
        benchmark:
            "logs/benchmarks/jam_neutral/{language}/{model}/{setting}/seed-{seed}.tsv"
        conda:
            "../envs/llm.yaml"
        threads: REGISTRY[CONFIG.jam.variants.model].threads
        resources:
            mem_mb=growing(4000),
            runtime=growing(60),
        params:
            writer=CONFIG.jam.variants.model,
            spec=REGISTRY[CONFIG.jam.variants.model].execution_spec(),
            generation=jam_generation(),
            fresh=CONFIG.llm.mode == "fresh",
            recordings=lambda wildcards: jam_recordings(
                "jam_neutral",
                wildcards.language,
                CONFIG.jam.variants.model,
                f"{wildcards.model}-{wildcards.setting}-{wildcards.seed}.jsonl",
            ),
        shell:
            "python {input.script} --dataset {input.dataset} --metrics {input.metrics}"
            " --spec {params.spec:q} --model {params.writer} --generation {params.generation:q}"
            ' --prompts $(dirname {input.prompt}) --settings "$PIELINE_LLM_SETTINGS"'
            " --recordings {params.recordings:q} --output {output.variants}"
            " --report {output.report}"
            " 2> >(tee {log} >&2)"


rule idiolink_review:
    """The flagged texts and those of the gold PIEs, for people: a sheet, and Label Studio's files."""
    input:
        script=script("idiolink_review"),
        modules=modules("idiolink_review"),
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
    shell:
        "python {input.script} --texts {input.texts} --verdicts {input.verdicts}"
        " --splits {input.splits} --corrections {input.corrections} --sheet {output.sheet}"
        " --tasks {output.tasks} --labelling {output.labelling}"
        " 2> >(tee {log} >&2)"


if CONFIG.data == "sample" and not CONFIG.jam.variants.model:

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
        resources:
            mem_mb=growing(1000),
            runtime=growing(10),
        shell:
            "python {input.script} --dataset {input.dataset} --metrics {input.metrics}"
            " --sample {input.sample} --output {output.variants} --report {output.report}"
            " 2> >(tee {log} >&2)"
