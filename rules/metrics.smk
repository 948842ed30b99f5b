"""Stage metrics: one JSON file per prediction file."""


rule idiolink_metrics:
    """Compute R-Precision and nDCG@10: overall, by usage, by subject, by PIE and per query."""
    input:
        **idiolink_paths.scoring_files("{index}"),
        run=idiolink_paths.RUN,
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
        conditions=lambda wildcards: IDIOLINK.conditions_of(
            idiolink_paths.METRICS.format(**wildcards)
        ),
    script:
        "../scripts/idiolink_metrics.py"


rule idiots_metrics:
    """Score detection, True Positive Consistency and distractors of a run, with intervals."""
    input:
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
        contents=contents(IDIOTS.verdicts()),
        resamples=IDIOTS.settings.bootstrap_resamples,
        conditions=lambda wildcards: IDIOTS.conditions_of(idiots_paths.METRICS.format(**wildcards)),
    script:
        "../scripts/idiots_metrics.py"


rule idiots_bias:
    """Compute sensitivity and criterion of a model's settings; compare them with one setting."""
    input:
        runs=lambda wildcards: IDIOTS.compared(wildcards.model, idiots_paths.METRICS),
        predictions=lambda wildcards: IDIOTS.compared(wildcards.model, idiots_paths.PREDICTIONS),
        sentences=idiots_paths.SENTENCES,
    output:
        idiots_paths.BIAS,
    log:
        log_of(idiots_paths.BIAS),
    wildcard_constraints:
        model=IDIOTS.constraints()["model"],
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiots_bias"),
        against=IDIOTS.settings.prompts_against,
        permutations=IDIOTS.settings.permutations,
        resamples=IDIOTS.settings.bootstrap_resamples,
        conditions=lambda wildcards: IDIOTS.conditions_of(idiots_paths.BIAS.format(**wildcards)),
    script:
        "../scripts/idiots_bias.py"


rule jam_statistics:
    """Count the sentences left after each stage of ID10M-JAM."""
    input:
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
        conditions=lambda wildcards: JAM.conditions_of(jam_paths.STATISTICS.format(**wildcards)),
    script:
        "../scripts/jam_statistics.py"


rule jam_metrics:
    """Compute negative drift, accuracy, confusion classes and F1 of a run on ID10M-JAM."""
    input:
        predictions=jam_paths.PREDICTIONS,
        sentences=lambda wildcards: JAM.sentences(wildcards.language),
        manifest=lambda wildcards: JAM.manifest(wildcards.language),
        report=jam_paths.ORIGINALS_REPORT,
    output:
        jam_paths.METRICS,
    log:
        log_of(jam_paths.METRICS),
    wildcard_constraints:
        model=JAM.project.constraint("llm", "encoder", "predictions"),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_metrics"),
        scoring=JAM.settings.scoring,
        strict_majority=JAM.settings.confusion_votes == "strict_majority",
        conditions=lambda wildcards: JAM.conditions_of(jam_paths.METRICS.format(**wildcards)),
        resamples=JAM.settings.bootstrap_resamples,
    script:
        "../scripts/jam_metrics.py"


rule jam_baselines:
    """Score baselines without a model: never an idiom, always the PIE, and the majority."""
    input:
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
    script:
        "../scripts/jam_baselines.py"


rule idiolink_checks:
    """Count and check IdioLink data, constructed or released; report problems without failing."""
    input:
        upstream=RUN_REPORT.project.upstream,
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
        sample=IDIOLINK.project.is_sample,
        conditions=lambda wildcards: IDIOLINK.conditions_of(
            idiolink_paths.CHECKS.format(**wildcards)
        ),
    script:
        "../scripts/idiolink_checks.py"


rule idiolink_construction_metrics:
    """Count automatic validation and review outcomes, with their agreement on the gold PIEs."""
    input:
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
        contents=contents(IDIOLINK.corrections()),
        validator=IDIOLINK.settings.construction.validator,
        sample=IDIOLINK.project.is_sample,
        conditions=IDIOLINK.conditions_of(idiolink_paths.CONSTRUCTION_METRICS),
    script:
        "../scripts/idiolink_construction_metrics.py"


rule idiolink_significance:
    """Compare the query modes of one model by a paired randomization test over PIEs."""
    input:
        runs=lambda wildcards: IDIOLINK.tested_runs(wildcards.model, wildcards.seed),
        dataset=list(idiolink_paths.scoring_files("test").values()),
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
        conditions=lambda wildcards: IDIOLINK.conditions_of(
            idiolink_paths.SIGNIFICANCE.format(**wildcards)
        ),
    script:
        "../scripts/idiolink_significance.py"


rule idiolink_shortcuts:
    """Compute the partial correlation of word overlap and nDCG@10, and scores by overlap decile."""
    input:
        dataset=list(idiolink_paths.dataset("test").values()),
        run=idiolink_paths.RUN.replace("{index}", "test"),
    output:
        idiolink_paths.SHORTCUTS,
    log:
        log_of(idiolink_paths.SHORTCUTS),
    wildcard_constraints:
        model=IDIOLINK.ranker_constraint(),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_shortcuts"),
        top_k=IDIOLINK.settings.top_k,
        resamples=IDIOLINK.settings.bootstrap_resamples,
        conditions=lambda wildcards: IDIOLINK.conditions_of(
            idiolink_paths.SHORTCUTS.format(**wildcards)
        ),
    script:
        "../scripts/idiolink_shortcuts.py"


rule jam_neutral_metrics:
    """Count the confusing variants that still confuse with a neutral context (appendix G)."""
    input:
        predictions=jam_paths.NEUTRAL_PREDICTIONS,
        neutral=jam_paths.NEUTRAL_VARIANTS,
        metrics=jam_paths.METRICS,
    output:
        jam_paths.NEUTRAL_METRICS,
    log:
        log_of(jam_paths.NEUTRAL_METRICS),
    wildcard_constraints:
        model=JAM.project.constraint("llm", "encoder"),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_neutral_metrics"),
        conditions=lambda wildcards: JAM.conditions_of(
            jam_paths.NEUTRAL_METRICS.format(**wildcards)
        ),
        resamples=JAM.settings.bootstrap_resamples,
    script:
        "../scripts/jam_neutral_metrics.py"


rule jam_humans:
    """Compute accuracy and agreement of annotators on hard variants (ID10M-JAM, section 5.1)."""
    input:
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
        contents=contents(JAM.human_labels()),
        conditions=JAM.conditions_of(jam_paths.HUMANS),
    script:
        "../scripts/jam_humans.py"


rule jam_attention:
    """Measure attention from the PIE to its context in misleading and other variants."""
    input:
        weights=lambda wildcards: JAM.project.unpacked_weights(wildcards.model),
        model_files=lambda wildcards: JAM.project.weights_files(wildcards.model),
        sentences=jam_paths.DATASET,
        metrics=lambda wildcards: JAM.metrics_on(wildcards.language),
    output:
        jam_paths.ATTENTION,
    log:
        log_of(jam_paths.ATTENTION),
    benchmark:
        "logs/benchmarks/jam_attention/{language}/{model}.tsv"
    wildcard_constraints:
        model=JAM.project.constraint("causal_lm", "embedder"),
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
        contents=contents(lambda wildcards: JAM.project.weights_files(wildcards.model)),
        spec=lambda wildcards: JAM.weights_spec(wildcards.model),
        conditions=lambda wildcards: JAM.conditions_of(jam_paths.ATTENTION.format(**wildcards)),
        pairs=JAM.pairs,
        resamples=JAM.settings.bootstrap_resamples,
    script:
        "../scripts/jam_attention.py"
