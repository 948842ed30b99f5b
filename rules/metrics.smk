"""Stage metrics: one JSON file per prediction file."""


rule idiolink_metrics:
    """Compute R-Precision and nDCG@10: overall, by usage, by subject, by PIE and per query."""
    input:
        **idiolink_paths.scoring_files("{index}"),
        run=idiolink_paths.RUN,
        tuning=by_wildcards(idiolink_files.tuning),
    output:
        metrics=idiolink_paths.METRICS,
        queries=idiolink_paths.QUERY_SCORES,
    log:
        log_of(idiolink_paths.METRICS),
    wildcard_constraints:
        model=idiolink_models.ranker_constraint(IDIOLINK),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_metrics"),
        top_k=IDIOLINK.settings.top_k,
        resamples=IDIOLINK.settings.bootstrap_resamples,
        conditions=conditions_of(idiolink_paths.METRICS),
    script:
        "../scripts/idiolink_metrics.py"


rule idiots_metrics:
    """Score detection, True Positive Consistency and distractors of a run, with intervals."""
    input:
        predictions=idiots_paths.PREDICTIONS,
        sentences=idiots_paths.SENTENCES,
        manifest=idiots_paths.MANIFEST,
        verdicts=IDIOTS.settings.verdicts or [],
    output:
        idiots_paths.METRICS,
    log:
        log_of(idiots_paths.METRICS),
    wildcard_constraints:
        **idiots_files.constraints(IDIOTS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiots_metrics"),
        contents=contents(IDIOTS.settings.verdicts),
        resamples=IDIOTS.settings.bootstrap_resamples,
        conditions=conditions_of(idiots_paths.METRICS),
        fresh=asks_again,
    script:
        "../scripts/idiots_metrics.py"


rule jam_statistics:
    """Count the sentences left after each stage of ID10M-JAM."""
    input:
        originals=jam_paths.ORIGINALS,
        report=jam_paths.ORIGINALS_REPORT,
        train=by_wildcards(jam_files.training_file),
        manifest=by_wildcards(jam_files.manifest),
    output:
        jam_paths.STATISTICS,
    log:
        log_of(jam_paths.STATISTICS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_statistics"),
        conditions=conditions_of(jam_paths.STATISTICS),
    script:
        "../scripts/jam_statistics.py"


rule jam_metrics:
    """Compute negative drift, accuracy, confusion classes and F1 of a run on ID10M-JAM."""
    input:
        predictions=jam_paths.PREDICTIONS,
        sentences=by_wildcards(jam_files.sentences),
        manifest=by_wildcards(jam_files.manifest),
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
        strict_majority=JAM.settings.form == "released",
        conditions=conditions_of(jam_paths.METRICS),
        fresh=asks_again,
        resamples=JAM.settings.bootstrap_resamples,
    script:
        "../scripts/jam_metrics.py"


rule jam_baselines:
    """Score baselines without a model: never an idiom, always the PIE, and the majority."""
    input:
        sentences=jam_paths.DATASET,
        manifest=jam_paths.MANIFEST,
    output:
        jam_paths.baselines("{language}"),
    log:
        log_of(jam_paths.STATISTICS.replace("statistics", "baselines")),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_baselines"),
        scoring=JAM.settings.scoring,
        conditions=jam_runs.baseline_conditions(JAM).canonical(),
        resamples=JAM.settings.bootstrap_resamples,
    script:
        "../scripts/jam_baselines.py"


rule idiolink_checks:
    """Count and check IdioLink data, constructed or released; report problems without failing."""
    input:
        upstream=PROJECT.upstream,
        data=by_wildcards(idiolink_files.checked_files),
        candidates=by_wildcards(idiolink_files.counted_candidates),
    output:
        idiolink_paths.CHECKS,
    log:
        log_of(idiolink_paths.CHECKS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_checks"),
        folder=by_wildcards(idiolink_files.data_folder),
        splits=by_wildcards(idiolink_models.splits),
        sample=IDIOLINK.project.is_sample,
        conditions=conditions_of(idiolink_paths.CHECKS),
    script:
        "../scripts/idiolink_checks.py"


rule idiolink_construction_metrics:
    """Count automatic validation and review outcomes, with their agreement on the gold PIEs."""
    input:
        texts=idiolink_files.of_collections(idiolink_paths.TEXTS),
        reports=idiolink_files.of_collections(idiolink_paths.TEXTS_REPORT),
        verdicts=idiolink_files.of_collections(idiolink_paths.VERDICTS),
        splits=idiolink_paths.SPLITS_FILE,
        corrections=by_wildcards(idiolink_files.corrections),
    output:
        idiolink_paths.CONSTRUCTION_METRICS,
    log:
        log_of(idiolink_paths.CONSTRUCTION_METRICS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_construction_metrics"),
        contents=contents(by_wildcards(idiolink_files.corrections)),
        validator=IDIOLINK.settings.construction.validator,
        sample=IDIOLINK.project.is_sample,
        conditions=conditions_of(idiolink_paths.CONSTRUCTION_METRICS),
    script:
        "../scripts/idiolink_construction_metrics.py"


rule idiolink_significance:
    """Compare the query modes of one model by a paired randomization test over PIEs."""
    input:
        runs=by_wildcards(idiolink_runs.tested_runs),
        dataset=list(idiolink_paths.scoring_files("test").values()),
    output:
        idiolink_paths.SIGNIFICANCE,
    log:
        log_of(idiolink_paths.SIGNIFICANCE),
    wildcard_constraints:
        model=idiolink_models.ranker_constraint(IDIOLINK),
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
        conditions=conditions_of(idiolink_paths.SIGNIFICANCE),
    script:
        "../scripts/idiolink_significance.py"


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
        conditions=conditions_of(jam_paths.NEUTRAL_METRICS),
        fresh=asks_again,
        resamples=JAM.settings.bootstrap_resamples,
    script:
        "../scripts/jam_neutral_metrics.py"


rule jam_humans:
    """Compute accuracy and agreement of annotators on hard variants (ID10M-JAM, section 5.1)."""
    input:
        labels=jam_files.human_labels(JAM),
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
        limit=CONFIG.limit,
        contents=contents(jam_files.human_labels(JAM)),
        conditions=conditions_of(jam_paths.HUMANS),
    script:
        "../scripts/jam_humans.py"


rule jam_attention:
    """Measure attention from the PIE to its context in misleading and other variants."""
    input:
        weights=by_wildcards(PROJECT.unpacked_weights),
        model_files=by_wildcards(PROJECT.weights_files),
        sentences=jam_paths.DATASET,
        metrics=by_wildcards(jam_files.metrics_on),
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
        contents=contents(by_wildcards(PROJECT.weights_files)),
        spec=by_wildcards(jam_tasks.weights_spec),
        conditions=conditions_of(jam_paths.ATTENTION),
        resamples=JAM.settings.bootstrap_resamples,
    script:
        "../scripts/jam_attention.py"
