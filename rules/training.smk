"""Stage training: fine-tuned weights."""


rule sampled_tuples:
    """Draw one training tuple per query at random (IdioLink, section 4.3)."""
    input:
        documents=idiolink_paths.dataset("{split}")["documents"],
        queries=idiolink_paths.dataset("{split}")["queries"],
        released=[],
    output:
        idiolink_paths.SAMPLED_TUPLES,
    log:
        log_of(idiolink_paths.SAMPLED_TUPLES),
    conda:
        "../envs/core.yaml"
    params:
        *modules("training_tuples"),
        seed=lambda wildcards: int(wildcards.seed),
    script:
        "../scripts/training_tuples.py"


# The mined tuples that the authors released.
use rule sampled_tuples as released_tuples with:
    input:
        documents=idiolink_paths.dataset("{split}")["documents"],
        queries=idiolink_paths.dataset("{split}")["queries"],
        released=[idiolink_paths.RELEASED_TUPLES],
    output:
        idiolink_paths.MINED_TUPLES,
    log:
        log_of(idiolink_paths.MINED_TUPLES),
    params:
        seed=None,


rule fine_tune:
    """Fine-tune one embedder by contrastive learning; keep the weights of the best epoch.

    A killed job leaves a checkpoint next to the output folder; the next job resumes from it.
    """
    input:
        tuples=by_wildcards(idiolink_files.tuples),
        train=idiolink_files.dataset("train"),
        validation=idiolink_files.dataset("val"),
        weights=by_wildcards(PROJECT.unpacked_weights),
        local=by_wildcards(idiolink_files.weights_files),
    output:
        weights=directory(idiolink_paths.WEIGHTS),
        digests=idiolink_paths.WEIGHTS_DIGESTS,
        log=idiolink_paths.TRAINING_LOG,
    log:
        log_of(idiolink_paths.TRAINING_LOG),
    benchmark:
        "logs/benchmarks/idiolink/training/{model}/{train_mode}/{loss}/seed-{seed}.tsv"
    wildcard_constraints:
        model=IDIOLINK.project.constraint("embedder"),
    conda:
        "../envs/gpu.yaml"
    threads: IDIOLINK.settings.finetuning.threads
    resources:
        mem_mb=growing(training_memory),
        runtime=growing(240),
        gpu=1,
        gpu_mem_mb=training_gpu_memory,
    params:
        *modules("fine_tune"),
        contents=contents(by_wildcards(idiolink_files.weights_files)),
        spec=by_wildcards(idiolink_models.training_spec),
        settings=by_wildcards(idiolink_models.training_settings),
        threads=IDIOLINK.settings.finetuning.threads,
    script:
        "../scripts/fine_tune.py"


rule fine_tune_tagger:
    """Fine-tune an encoder to tag idioms (ID10M-JAM, appendix D).

    A killed job leaves a checkpoint next to the output folder; the next job resumes from it.
    """
    input:
        train=jam_paths.TAGGING_TRAIN,
        dev=jam_paths.TAGGING_DEV,
        model_files=by_wildcards(PROJECT.weights_files),
    output:
        weights=directory(jam_paths.WEIGHTS),
        digests=jam_paths.WEIGHTS_DIGESTS,
        log=jam_paths.TRAINING_LOG,
    log:
        log_of(jam_paths.TRAINING_LOG),
    benchmark:
        "logs/benchmarks/jam/{language}/{model}/training/seed-{seed}.tsv"
    wildcard_constraints:
        model=JAM.project.constraint("encoder"),
    conda:
        "../envs/gpu.yaml"
    # Floating-point sums, and so the weights, depend on the number of threads.
    threads: 1
    resources:
        mem_mb=growing(training_memory),
        runtime=growing(360),
        gpu=gpus,
        gpu_mem_mb=lambda wildcards: training_gpu_memory(wildcards) * gpus(wildcards),
    params:
        *modules("fine_tune_tagger"),
        contents=contents(by_wildcards(PROJECT.weights_files)),
        spec=by_wildcards(PROJECT.execution_spec),
        settings=jam_tasks.tagging_settings(JAM),
    script:
        "../scripts/fine_tune_tagger.py"
