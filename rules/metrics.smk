"""metrics: one JSON a prediction file."""


rule idiolink_metrics:
    """R-Precision and nDCG@10 of a run: overall, by usage, subject and PIE, and of each query."""
    input:
        script=script("idiolink_metrics"),
        run="results/predictions/idiolink/{index}/{model}/{query_mode}/seed-{seed}.run.gz",
        documents="results/datasets/idiolink/{index}/documents.jsonl",
        queries="results/datasets/idiolink/{index}/queries.jsonl",
        qrels="results/datasets/idiolink/{index}/qrels.txt",
        manifest="results/datasets/idiolink/{index}/manifest.json",
        tuning=lambda wildcards: IDIOLINK.tuning(
            wildcards.model, wildcards.index, wildcards.query_mode
        ),
    output:
        metrics="results/metrics/idiolink/{index}/{model}/{query_mode}/seed-{seed}.json",
        queries="results/metrics/idiolink/{index}/{model}/{query_mode}/seed-{seed}.queries.csv",
    log:
        "logs/metrics/idiolink/{index}/{model}/{query_mode}/seed-{seed}.log",
    wildcard_constraints:
        model=IDIOLINK.ranker_constraint(),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_metrics"),
        top_k=IDIOLINK.settings.top_k,
        resamples=IDIOLINK.settings.bootstrap_resamples,
        conditions=lambda wildcards: IDIOLINK.conditions(wildcards.model),
    shell:
        "python {input.script} --run {input.run} --dataset $(dirname {input.manifest})"
        " --tuning {input.tuning}"
        " --model {wildcards.model} --query-mode {wildcards.query_mode} --seed {wildcards.seed}"
        " --depth {params.top_k} --resamples {params.resamples} --conditions {params.conditions:q}"
        " --output {output.metrics} --queries {output.queries}"
        " 2> >(tee {log} >&2)"


rule idiots_metrics:
    """Detection, True Positive Consistency and distractors of a run, with intervals."""
    input:
        script=script("idiots_metrics"),
        predictions="results/predictions/idiots/{model}/{setting}/seed-{seed}.jsonl",
        sentences="results/datasets/idiots/sentences.jsonl",
        manifest="results/datasets/idiots/manifest.json",
        verdicts=IDIOTS.verdicts(),
    output:
        "results/metrics/idiots/{model}/{setting}/seed-{seed}.json",
    log:
        "logs/metrics/idiots/{model}/{setting}/seed-{seed}.log",
    wildcard_constraints:
        **IDIOTS.constraints(),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiots_metrics"),
        resamples=IDIOTS.settings.bootstrap_resamples,
        conditions=lambda wildcards: IDIOTS.conditions(wildcards.model, wildcards.setting),
    shell:
        "python {input.script} --predictions {input.predictions}"
        " --dataset $(dirname {input.manifest}) --verdicts {input.verdicts}"
        " --model {wildcards.model} --setting {wildcards.setting} --seed {wildcards.seed}"
        " --resamples {params.resamples} --conditions {params.conditions:q} --output {output}"
        " 2> >(tee {log} >&2)"


rule jam_statistics:
    """Counts of what each stage of ID10M-JAM left."""
    input:
        script=script("jam_statistics"),
        originals="results/originals/jam/{language}.jsonl",
        report="results/originals/jam/{language}.report.json",
        train=lambda wildcards: JAM.training_file(wildcards.language),
        manifest=lambda wildcards: JAM.manifest(wildcards.language),
    output:
        "results/metrics/jam/{language}/statistics.json",
    log:
        "logs/metrics/jam/{language}/statistics.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_statistics"),
        train=lambda wildcards, input: f"--train {input.train}" if input.train else "",
        manifest=lambda wildcards, input: f"--manifest {input.manifest}" if input.manifest else "",
        conditions=JAM.data_conditions(),
    shell:
        "python {input.script} --originals {input.originals} --report {input.report}"
        " {params.train} {params.manifest} --conditions {params.conditions:q} --output {output}"
        " 2> >(tee {log} >&2)"


rule jam_metrics:
    """Negative drift, accuracy, confusion classes and F1 of a run on ID10M-JAM."""
    input:
        script=script("jam_metrics"),
        predictions="results/predictions/jam/{language}/{model}/{setting}/seed-{seed}.jsonl",
        sentences=lambda wildcards: JAM.sentences(wildcards.language),
        manifest=lambda wildcards: JAM.manifest(wildcards.language),
        report="results/originals/jam/{language}.report.json",
    output:
        "results/metrics/jam/{language}/{model}/{setting}/seed-{seed}.json",
    log:
        "logs/metrics/jam/{language}/{model}/{setting}/seed-{seed}.log",
    wildcard_constraints:
        model=JAM.run.constraint("llm", "encoder", "predictions"),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_metrics"),
        scoring=JAM.settings.scoring,
        conditions=lambda wildcards: JAM.conditions(wildcards.model, wildcards.setting),
        resamples=JAM.settings.bootstrap_resamples,
    shell:
        "python {input.script} --predictions {input.predictions} --sentences {input.sentences}"
        " --manifest {input.manifest} --report {input.report} --model {wildcards.model}"
        " --setting {wildcards.setting} --seed {wildcards.seed} --scoring {params.scoring}"
        " --resamples {params.resamples} --conditions {params.conditions:q} --output {output}"
        " 2> >(tee {log} >&2)"


rule jam_baselines:
    """Scores of what needs no model: no idiom anywhere, the PIE everywhere, the majority."""
    input:
        script=script("jam_baselines"),
        sentences="results/datasets/jam/{language}.jsonl",
        manifest="results/datasets/jam/{language}.manifest.json",
    output:
        JAM.baselines("{language}"),
    log:
        "logs/metrics/jam/{language}/baselines.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_baselines"),
        scoring=JAM.settings.scoring,
        conditions=JAM.baseline_conditions(),
        resamples=JAM.settings.bootstrap_resamples,
    shell:
        "python {input.script} --sentences {input.sentences} --manifest {input.manifest}"
        " --scoring {params.scoring} --resamples {params.resamples}"
        " --conditions {params.conditions:q} --outputs {output}"
        " 2> >(tee {log} >&2)"


rule idiolink_checks:
    """Counts and checks of IdioLink data, constructed or released: lists, and never fails."""
    input:
        script=script("idiolink_checks"),
        upstream=WHOLE.run.upstream,
        data=lambda wildcards: IDIOLINK.checked_files(wildcards.origin),
    output:
        "results/metrics/idiolink/checks/{origin}.json",
    log:
        "logs/metrics/idiolink/checks/{origin}.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_checks"),
        folder=lambda wildcards: IDIOLINK.data_folder(wildcards.origin),
        splits=lambda wildcards: IDIOLINK.splits(wildcards.origin),
        sample=IDIOLINK.sample_flag(),
        conditions=lambda wildcards: IDIOLINK.data_conditions(wildcards.origin),
    shell:
        "python {input.script} --data {params.folder} --splits {params.splits}"
        " --origin {wildcards.origin} {params.sample} --upstream {input.upstream}"
        " --conditions {params.conditions:q} --output {output}"
        " 2> >(tee {log} >&2)"


rule idiolink_construction_metrics:
    """Automatic validation and review in numbers, and how far both agree on the gold PIEs."""
    input:
        script=script("idiolink_construction_metrics"),
        texts=IDIOLINK.of_collections("results/variants/idiolink/{collection}.texts.jsonl"),
        reports=IDIOLINK.of_collections("results/variants/idiolink/{collection}.report.json"),
        verdicts=IDIOLINK.of_collections("results/variants/idiolink/{collection}.verdicts.jsonl"),
        splits="results/originals/idiolink/splits.json",
        corrections=IDIOLINK.corrections(),
    output:
        "results/metrics/idiolink/construction.json",
    log:
        "logs/metrics/idiolink/construction.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_construction_metrics"),
        validator=IDIOLINK.settings.construction.validator,
        sample=IDIOLINK.sample_flag(),
        conditions=IDIOLINK.data_conditions("constructed"),
    shell:
        "python {input.script} --texts {input.texts} --reports {input.reports}"
        " --verdicts {input.verdicts} --splits {input.splits}"
        " --corrections {input.corrections} --validator {params.validator} {params.sample}"
        " --conditions {params.conditions:q} --output {output}"
        " 2> >(tee {log} >&2)"


rule idiolink_significance:
    """Paired randomisation test over PIEs between the query modes of one model."""
    input:
        script=script("idiolink_significance"),
        runs=lambda wildcards: IDIOLINK.tested_runs(wildcards.model, wildcards.seed),
        dataset=IDIOLINK.dataset("test"),
    output:
        "results/metrics/idiolink/test/{model}/significance/seed-{seed}.json",
    log:
        "logs/metrics/idiolink/test/{model}/significance/seed-{seed}.log",
    wildcard_constraints:
        model=IDIOLINK.ranker_constraint(),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(20),
    params:
        *modules("idiolink_significance"),
        permutations=IDIOLINK.settings.permutations,
        top_k=IDIOLINK.settings.top_k,
        resamples=IDIOLINK.settings.bootstrap_resamples,
        conditions=lambda wildcards: IDIOLINK.conditions(wildcards.model),
    shell:
        "python {input.script} --runs {input.runs} --depth {params.top_k}"
        " --dataset $(dirname {input.dataset[0]}) --model {wildcards.model} --seed {wildcards.seed}"
        " --permutations {params.permutations} --resamples {params.resamples}"
        " --conditions {params.conditions:q} --output {output}"
        " 2> >(tee {log} >&2)"


rule jam_neutral_metrics:
    """How many confusing variants stay confusing with a neutral context (appendix G)."""
    input:
        script=script("jam_neutral_metrics"),
        predictions="results/predictions/jam_neutral/{language}/{model}/{setting}/seed-{seed}.jsonl",
        neutral="results/variants/jam_neutral/{language}/{model}/{setting}/seed-{seed}.jsonl",
        metrics="results/metrics/jam/{language}/{model}/{setting}/seed-{seed}.json",
    output:
        "results/metrics/jam_neutral/{language}/{model}/{setting}/seed-{seed}.json",
    log:
        "logs/metrics/jam_neutral/{language}/{model}/{setting}/seed-{seed}.log",
    wildcard_constraints:
        model=JAM.run.constraint("llm", "encoder"),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_neutral_metrics"),
        conditions=lambda wildcards: JAM.neutral_conditions(wildcards.model, wildcards.setting),
        resamples=JAM.settings.bootstrap_resamples,
    shell:
        "python {input.script} --predictions {input.predictions} --neutral {input.neutral}"
        " --metrics {input.metrics} --resamples {params.resamples}"
        " --conditions {params.conditions:q} --output {output}"
        " 2> >(tee {log} >&2)"


rule jam_humans:
    """Accuracy and agreement of two people on hard variants (section 5.1)."""
    input:
        script=script("jam_humans"),
        labels=JAM.human_labels(),
        sentences="results/datasets/jam/english.jsonl",
        manifest="results/datasets/jam/english.manifest.json",
    output:
        "results/metrics/jam/english/humans.json",
    log:
        "logs/metrics/jam/english/humans.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_humans"),
        conditions=JAM.data_conditions(),
    shell:
        "python {input.script} --labels {input.labels} --sentences {input.sentences}"
        " --manifest {input.manifest} --conditions {params.conditions:q} --output {output}"
        " 2> >(tee {log} >&2)"


rule jam_attention:
    """Attention from the PIE to its context, in variants that mislead and that do not."""
    input:
        script=script("jam_attention"),
        weights=lambda wildcards: JAM.run.unpacked_weights(wildcards.model),
        model_files=lambda wildcards: JAM.run.weights_files(wildcards.model),
        sentences="results/datasets/jam/{language}.jsonl",
        metrics=lambda wildcards: JAM.metrics_on(wildcards.language),
    output:
        "results/metrics/jam_attention/{language}/{model}.json",
    log:
        "logs/metrics/jam_attention/{language}/{model}.log",
    benchmark:
        "logs/benchmarks/jam_attention/{language}/{model}.tsv"
    wildcard_constraints:
        model=JAM.run.constraint("causal_lm", "embedder"),
    conda:
        "../envs/gpu.yaml"
    threads: 1
    resources:
        mem_mb=growing(model_memory),
        runtime=growing(60),
        gpu=gpus,
        gpu_mem_mb=gpu_memory,
    params:
        *modules("jam_attention"),
        spec=lambda wildcards: JAM.weights_spec(wildcards.model),
        conditions=lambda wildcards: JAM.attention_conditions(wildcards.model),
        pairs=JAM.pairs,
        resamples=JAM.settings.bootstrap_resamples,
    shell:
        "python {input.script} --spec {params.spec:q} --weights {input.weights}"
        " --model {wildcards.model} --sentences {input.sentences} --metrics {input.metrics}"
        " --pairs {params.pairs} --threads 1 --resamples {params.resamples}"
        " --conditions {params.conditions:q} --output {output}"
        " 2> >(tee {log} >&2)"
