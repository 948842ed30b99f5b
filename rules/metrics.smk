"""metrics: one JSON a prediction file."""


rule idiolink_metrics:
    """R-Precision and nDCG@10 of a run: overall, by usage, subject and PIE, and of each query."""
    input:
        script=script("idiolink_metrics"),
        run=idiolink_paths.RUN,
        documents=idiolink_paths.dataset("{index}")["documents"],
        queries=idiolink_paths.dataset("{index}")["queries"],
        qrels=idiolink_paths.dataset("{index}")["qrels"],
        manifest=idiolink_paths.dataset("{index}")["manifest"],
        tuning=lambda wildcards: IDIOLINK.tuning(
            wildcards.model, wildcards.index, wildcards.query_mode
        ),
    output:
        metrics=idiolink_paths.METRICS,
        queries=idiolink_paths.QUERY_SCORES,
    log:
        log_of(idiolink_paths.METRICS),
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
        'python {input.script:q} --run {input.run:q} --dataset "$(dirname {input.manifest:q})"'
        " --tuning {input.tuning:q}"
        " --model {wildcards.model:q} --query-mode {wildcards.query_mode:q} --seed {wildcards.seed:q}"
        " --depth {params.top_k:q} --resamples {params.resamples:q} --conditions {params.conditions:q}"
        " --output {output.metrics:q} --queries {output.queries:q}"
        " 2> >(tee {log:q} >&2)"


rule idiots_metrics:
    """Detection, True Positive Consistency and distractors of a run, with intervals."""
    input:
        script=script("idiots_metrics"),
        predictions=idiots_paths.PREDICTIONS,
        sentences=idiots_paths.SENTENCES,
        manifest=idiots_paths.MANIFEST,
        verdicts=IDIOTS.verdicts(),
    output:
        idiots_paths.METRICS,
    log:
        log_of(idiots_paths.METRICS),
    wildcard_constraints:
        **IDIOTS.constraints(),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiots_metrics"),
        resamples=IDIOTS.settings.bootstrap_resamples,
        conditions=lambda wildcards: IDIOTS.conditions(wildcards.model, wildcards.setting),
    shell:
        "python {input.script:q} --predictions {input.predictions:q}"
        ' --dataset "$(dirname {input.manifest:q})" --verdicts {input.verdicts:q}'
        " --model {wildcards.model:q} --setting {wildcards.setting:q} --seed {wildcards.seed:q}"
        " --resamples {params.resamples:q} --conditions {params.conditions:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule jam_statistics:
    """Counts of what each stage of ID10M-JAM left."""
    input:
        script=script("jam_statistics"),
        originals=jam_paths.ORIGINALS,
        report=jam_paths.ORIGINALS_REPORT,
        train=lambda wildcards: JAM.training_file(wildcards.language),
        manifest=lambda wildcards: JAM.manifest(wildcards.language),
    output:
        jam_paths.STATISTICS,
    log:
        log_of(jam_paths.STATISTICS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_statistics"),
        conditions=JAM.data_conditions(),
    shell:
        "python {input.script:q} --originals {input.originals:q} --report {input.report:q}"
        " --train {input.train:q} --manifest {input.manifest:q}"
        " --conditions {params.conditions:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule jam_metrics:
    """Negative drift, accuracy, confusion classes and F1 of a run on ID10M-JAM."""
    input:
        script=script("jam_metrics"),
        predictions=jam_paths.PREDICTIONS,
        sentences=lambda wildcards: JAM.sentences(wildcards.language),
        manifest=lambda wildcards: JAM.manifest(wildcards.language),
        report=jam_paths.ORIGINALS_REPORT,
    output:
        jam_paths.METRICS,
    log:
        log_of(jam_paths.METRICS),
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
        "python {input.script:q} --predictions {input.predictions:q} --sentences {input.sentences:q}"
        " --manifest {input.manifest:q} --report {input.report:q} --model {wildcards.model:q}"
        " --setting {wildcards.setting:q} --seed {wildcards.seed:q} --scoring {params.scoring:q}"
        " --resamples {params.resamples:q} --conditions {params.conditions:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule jam_baselines:
    """Scores of what needs no model: no idiom anywhere, the PIE everywhere, the majority."""
    input:
        script=script("jam_baselines"),
        sentences=jam_paths.DATASET,
        manifest=jam_paths.MANIFEST,
    output:
        JAM.baselines("{language}"),
    log:
        log_of(jam_paths.STATISTICS.replace("statistics", "baselines")),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_baselines"),
        scoring=JAM.settings.scoring,
        conditions=JAM.baseline_conditions(),
        resamples=JAM.settings.bootstrap_resamples,
    shell:
        "python {input.script:q} --sentences {input.sentences:q} --manifest {input.manifest:q}"
        " --scoring {params.scoring:q} --resamples {params.resamples:q}"
        " --conditions {params.conditions:q} --outputs {output:q}"
        " 2> >(tee {log:q} >&2)"


rule idiolink_checks:
    """Counts and checks of IdioLink data, constructed or released: lists, and never fails."""
    input:
        script=script("idiolink_checks"),
        upstream=WHOLE.run.upstream,
        data=lambda wildcards: IDIOLINK.checked_files(wildcards.origin),
    output:
        idiolink_paths.CHECKS,
    log:
        log_of(idiolink_paths.CHECKS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_checks"),
        folder=lambda wildcards: IDIOLINK.data_folder(wildcards.origin),
        splits=lambda wildcards: IDIOLINK.splits(wildcards.origin),
        sample=IDIOLINK.sample_flag(),
        conditions=lambda wildcards: IDIOLINK.data_conditions(wildcards.origin),
    shell:
        "python {input.script:q} --data {params.folder:q} --splits {params.splits:q}"
        " --origin {wildcards.origin:q} {params.sample} --upstream {input.upstream:q}"
        " --conditions {params.conditions:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule idiolink_construction_metrics:
    """Automatic validation and review in numbers, and how far both agree on the gold PIEs."""
    input:
        script=script("idiolink_construction_metrics"),
        texts=IDIOLINK.of_collections(idiolink_paths.TEXTS),
        reports=IDIOLINK.of_collections(idiolink_paths.TEXTS_REPORT),
        verdicts=IDIOLINK.of_collections(idiolink_paths.VERDICTS),
        splits=idiolink_paths.SPLITS_FILE,
        corrections=IDIOLINK.corrections(),
    output:
        idiolink_paths.CONSTRUCTION_METRICS,
    log:
        log_of(idiolink_paths.CONSTRUCTION_METRICS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_construction_metrics"),
        validator=IDIOLINK.settings.construction.validator,
        sample=IDIOLINK.sample_flag(),
        conditions=IDIOLINK.data_conditions("constructed"),
    shell:
        "python {input.script:q} --texts {input.texts:q} --reports {input.reports:q}"
        " --verdicts {input.verdicts:q} --splits {input.splits:q}"
        " --corrections {input.corrections:q} --validator {params.validator:q} {params.sample}"
        " --conditions {params.conditions:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule idiolink_significance:
    """Paired randomisation test over PIEs between the query modes of one model."""
    input:
        script=script("idiolink_significance"),
        runs=lambda wildcards: IDIOLINK.tested_runs(wildcards.model, wildcards.seed),
        dataset=IDIOLINK.dataset("test"),
    output:
        idiolink_paths.SIGNIFICANCE,
    log:
        log_of(idiolink_paths.SIGNIFICANCE),
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
        "python {input.script:q} --runs {input.runs:q} --depth {params.top_k:q}"
        ' --dataset "$(dirname {input.dataset[0]:q})" --model {wildcards.model:q} --seed {wildcards.seed:q}'
        " --permutations {params.permutations:q} --resamples {params.resamples:q}"
        " --conditions {params.conditions:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule jam_neutral_metrics:
    """How many confusing variants stay confusing with a neutral context (appendix G)."""
    input:
        script=script("jam_neutral_metrics"),
        predictions=jam_paths.NEUTRAL_PREDICTIONS,
        neutral=jam_paths.NEUTRAL_VARIANTS,
        metrics=jam_paths.METRICS,
    output:
        jam_paths.NEUTRAL_METRICS,
    log:
        log_of(jam_paths.NEUTRAL_METRICS),
    wildcard_constraints:
        model=JAM.run.constraint("llm", "encoder"),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_neutral_metrics"),
        conditions=lambda wildcards: JAM.neutral_conditions(wildcards.model, wildcards.setting),
        resamples=JAM.settings.bootstrap_resamples,
    shell:
        "python {input.script:q} --predictions {input.predictions:q} --neutral {input.neutral:q}"
        " --metrics {input.metrics:q} --resamples {params.resamples:q}"
        " --conditions {params.conditions:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule jam_humans:
    """Accuracy and agreement of two people on hard variants (section 5.1)."""
    input:
        script=script("jam_humans"),
        labels=JAM.human_labels(),
        sentences=jam_paths.DATASET.format(language="english"),
        manifest=jam_paths.MANIFEST.format(language="english"),
    output:
        jam_paths.HUMANS,
    log:
        log_of(jam_paths.HUMANS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_humans"),
        conditions=JAM.data_conditions(),
    shell:
        "python {input.script:q} --labels {input.labels:q} --sentences {input.sentences:q}"
        " --manifest {input.manifest:q} --conditions {params.conditions:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule jam_attention:
    """Attention from the PIE to its context, in variants that mislead and that do not."""
    input:
        script=script("jam_attention"),
        weights=lambda wildcards: JAM.run.unpacked_weights(wildcards.model),
        model_files=lambda wildcards: JAM.run.weights_files(wildcards.model),
        sentences=jam_paths.DATASET,
        metrics=lambda wildcards: JAM.metrics_on(wildcards.language),
    output:
        jam_paths.ATTENTION,
    log:
        log_of(jam_paths.ATTENTION),
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
        "python {input.script:q} --spec {params.spec:q} --weights {input.weights:q}"
        " --model {wildcards.model:q} --sentences {input.sentences:q} --metrics {input.metrics:q}"
        " --pairs {params.pairs:q} --threads 1 --resamples {params.resamples:q}"
        " --conditions {params.conditions:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"
