"""Analyses beyond the papers, in the order of their stages (docs/beyond.md)."""


rule jam_fold_data:
    """Write training data of encoders with texts of other PIEs, by fold (docs/beyond.md)."""
    input:
        train=jam_paths.TAGGING_TRAIN,
        added=by_wildcards(added_texts),
    output:
        train=expand(beyond_paths.FOLD_TRAIN, fold=range(FOLDS), allow_missing=True),
        folds=beyond_paths.FOLDS_FILE,
    log:
        log_of(beyond_paths.FOLDS_FILE),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_fold_data"),
    script:
        "../scripts/jam_fold_data.py"


# Trains one encoder per fold, also on texts of the other folds' PIEs.
use rule fine_tune_tagger as fine_tune_fold with:
    input:
        train=beyond_paths.FOLD_TRAIN,
        dev=jam_paths.TAGGING_DEV,
        model_files=by_wildcards(PROJECT.weights_files),
    output:
        weights=directory(beyond_paths.FOLD_WEIGHTS),
        digests=beyond_paths.FOLD_WEIGHTS_DIGESTS,
        log=beyond_paths.FOLD_LOG,
    log:
        log_of(beyond_paths.FOLD_LOG),
    benchmark:
        "logs/benchmarks/jam/{language}/{model}/training/{setting}/fold-{fold}/seed-{seed}.tsv"


# Tags each sentence with the encoder that was not trained on its PIE.
use rule tag_idioms as tag_by_fold with:
    input:
        weights=expand(beyond_paths.FOLD_WEIGHTS_DIGESTS, fold=range(FOLDS), allow_missing=True),
        folds=beyond_paths.FOLDS_FILE,
        sentences=by_wildcards(jam_files.sentences),
    output:
        jam_paths.PREDICTIONS,
    log:
        log_of(jam_paths.PREDICTIONS),
    wildcard_constraints:
        model=JAM.project.constraint("encoder"),
        setting=alternatives(ADDED),


rule idiots_bias:
    """Compute sensitivity and criterion of a model's settings; compare them with one setting."""
    input:
        runs=by_wildcards(compared_runs.compared_metrics),
        predictions=by_wildcards(compared_runs.compared_predictions),
        sentences=idiots_paths.SENTENCES,
    output:
        beyond_paths.BIAS,
    log:
        log_of(beyond_paths.BIAS),
    wildcard_constraints:
        model=idiots_files.constraints(IDIOTS)["model"],
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiots_bias"),
        against=IDIOTS.beyond.prompts_against,
        permutations=IDIOTS.settings.permutations,
        resamples=IDIOTS.settings.bootstrap_resamples,
        conditions=conditions_of(beyond_paths.BIAS),
    script:
        "../scripts/idiots_bias.py"


rule idiolink_shortcuts:
    """Compute the partial correlation of word overlap and nDCG@10, and scores by overlap decile."""
    input:
        dataset=list(idiolink_paths.dataset("test").values()),
        run=idiolink_paths.RUN.replace("{index}", "test"),
    output:
        beyond_paths.SHORTCUTS,
    log:
        log_of(beyond_paths.SHORTCUTS),
    wildcard_constraints:
        model=idiolink_models.ranker_constraint(IDIOLINK),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_shortcuts"),
        top_k=IDIOLINK.settings.top_k,
        resamples=IDIOLINK.settings.bootstrap_resamples,
        conditions=conditions_of(beyond_paths.SHORTCUTS),
    script:
        "../scripts/idiolink_shortcuts.py"
