"""Stage predictions: embeddings, rankings, tags, and external predictions."""


rule bm25_tune:
    """Tune k1 and b by nDCG@10 on the validation split with the same index composition."""
    input:
        dataset=by_wildcards(idiolink_files.tuning_dataset),
    output:
        idiolink_paths.TUNING,
    log:
        log_of(idiolink_paths.TUNING),
    wildcard_constraints:
        model=IDIOLINK.project.constraint("bm25"),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(20),
    params:
        *modules("bm25_tune"),
        k1=idiolink_models.bm25_points(IDIOLINK).k1,
        b=idiolink_models.bm25_points(IDIOLINK).b,
    script:
        "../scripts/bm25_tune.py"


rule bm25_search:
    """Rank the documents for each query with BM25."""
    input:
        documents=idiolink_paths.dataset("{index}")["documents"],
        queries=idiolink_paths.dataset("{index}")["queries"],
        tuning=by_wildcards(idiolink_files.tuning),
    output:
        idiolink_paths.RUN,
    log:
        log_of(idiolink_paths.RUN),
    wildcard_constraints:
        model=IDIOLINK.project.constraint("bm25"),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(20),
    params:
        *modules("bm25_search"),
        top_k=IDIOLINK.settings.top_k,
    script:
        "../scripts/bm25_search.py"


rule embed:
    """Embed all documents, and the queries in all query modes, loading the model once."""
    input:
        documents=idiolink_paths.dataset("{split}")["documents"],
        queries=idiolink_paths.dataset("{split}")["queries"],
        weights=by_wildcards(idiolink_files.weights),
        local=by_wildcards(idiolink_files.weights_files),
    output:
        documents=idiolink_paths.VECTORS.replace("{texts}", "documents"),
        queries=expand(idiolink_paths.VECTORS, texts=QUERY_MODES, allow_missing=True),
    log:
        log_of(idiolink_paths.VECTORS.replace("{texts}", "documents")),
    benchmark:
        "logs/benchmarks/idiolink/{split}/{model}/embed/seed-{seed}.tsv"
    wildcard_constraints:
        model=idiolink_models.embedder_constraint(IDIOLINK),
    conda:
        "../envs/gpu.yaml"
    threads: IDIOLINK.settings.embedding_threads
    resources:
        mem_mb=growing(model_memory),
        runtime=growing(180),
        gpu=gpus,
        gpu_mem_mb=gpu_memory,
    params:
        *modules("embed"),
        contents=contents(by_wildcards(idiolink_files.weights_files)),
        spec=by_wildcards(idiolink_models.embedder_spec),
    script:
        "../scripts/embed.py"


rule rank_by_embedding:
    """Rank the documents for each query by cosine similarity, in all query modes."""
    input:
        all_documents=by_wildcards(idiolink_files.all_documents),
        documents=idiolink_paths.dataset("{index}")["documents"],
        queries=idiolink_paths.dataset("{index}")["queries"],
        document_vectors=by_wildcards(idiolink_files.vectors, texts="documents"),
        query_vectors=by_wildcards(idiolink_files.all_query_vectors),
    output:
        expand(idiolink_paths.RUN, query_mode=QUERY_MODES, allow_missing=True),
    log:
        log_of(idiolink_paths.RUN.replace("{query_mode}", "all")),
    wildcard_constraints:
        model=idiolink_models.embedder_constraint(IDIOLINK),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(20),
    params:
        *modules("rank_by_embedding"),
        top_k=IDIOLINK.settings.top_k,
    script:
        "../scripts/rank_by_embedding.py"


# Uses vectors from a provider, which exist only for query modes without spans.
use rule rank_by_embedding as rank_by_api_embedding with:
    input:
        all_documents=by_wildcards(idiolink_files.all_documents),
        documents=idiolink_paths.dataset("{index}")["documents"],
        queries=idiolink_paths.dataset("{index}")["queries"],
        document_vectors=by_wildcards(idiolink_files.vectors, texts="documents"),
        query_vectors=by_wildcards(idiolink_files.query_vectors),
    output:
        idiolink_paths.RUN,
    log:
        log_of(idiolink_paths.RUN),
    wildcard_constraints:
        model=alternatives(idiolink_models.api_embedders(IDIOLINK)),


rule rerank:
    """Re-rank the documents of a first-stage run with a cross-encoder."""
    input:
        documents=idiolink_paths.dataset("{index}")["documents"],
        queries=idiolink_paths.dataset("{index}")["queries"],
        first_stage=by_wildcards(idiolink_files.first_stage_run),
        local=by_wildcards(idiolink_files.weights_files),
    output:
        idiolink_paths.RUN,
    log:
        log_of(idiolink_paths.RUN),
    benchmark:
        "logs/benchmarks/idiolink/{index}/{model}/{query_mode}/seed-{seed}.tsv"
    wildcard_constraints:
        model=IDIOLINK.project.constraint("reranker"),
        query_mode="(instruction_)?sentence",
    conda:
        "../envs/gpu.yaml"
    # Floating-point sums depend on the number of threads.
    threads: 1
    resources:
        mem_mb=growing(model_memory),
        runtime=growing(180),
        gpu=gpus,
        gpu_mem_mb=gpu_memory,
    params:
        *modules("rerank"),
        contents=contents(by_wildcards(idiolink_files.weights_files)),
        spec=by_wildcards(PROJECT.execution_spec),
    script:
        "../scripts/rerank.py"


rule late_interaction:
    """Rank the documents for each query by MaxSim over token vectors, in all query modes."""
    input:
        documents=idiolink_paths.dataset("{index}")["documents"],
        queries=idiolink_paths.dataset("{index}")["queries"],
        local=by_wildcards(idiolink_files.weights_files),
    output:
        expand(idiolink_paths.RUN, query_mode=QUERY_MODES, allow_missing=True),
    log:
        log_of(idiolink_paths.RUN.replace("{query_mode}", "all")),
    benchmark:
        "logs/benchmarks/idiolink/{index}/{model}/late_interaction/seed-{seed}.tsv"
    wildcard_constraints:
        model=IDIOLINK.project.constraint("late_interaction"),
    conda:
        "../envs/gpu.yaml"
    # Floating-point sums depend on the number of threads.
    threads: 1
    resources:
        mem_mb=growing(model_memory),
        runtime=growing(180),
        gpu=gpus,
        gpu_mem_mb=gpu_memory,
    params:
        *modules("late_interaction"),
        contents=contents(by_wildcards(idiolink_files.weights_files)),
        spec=by_wildcards(PROJECT.execution_spec),
        top_k=IDIOLINK.settings.top_k,
    script:
        "../scripts/late_interaction.py"


rule idiots_review_cases:
    """Write the answers that found an idiom, for human judgment."""
    input:
        predictions=idiots_paths.PREDICTIONS,
        sentences=idiots_paths.SENTENCES,
    output:
        jsonl=idiots_paths.CASES,
        csv=idiots_paths.CASES_CSV,
    log:
        log_of(idiots_paths.CASES),
    wildcard_constraints:
        **idiots_files.constraints(IDIOTS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiots_review_cases"),
    script:
        "../scripts/idiots_review_cases.py"


rule tag_idioms:
    """Tag the idioms in every sentence with a fine-tuned encoder."""
    input:
        weights=[jam_paths.WEIGHTS_DIGESTS],
        folds=[],
        sentences=by_wildcards(jam_files.sentences),
    output:
        jam_paths.PREDICTIONS.replace("{setting}", "fine_tuned"),
    log:
        log_of(jam_paths.PREDICTIONS.replace("{setting}", "fine_tuned")),
    wildcard_constraints:
        model=JAM.project.constraint("encoder"),
    conda:
        "../envs/gpu.yaml"
    threads: 1
    resources:
        mem_mb=growing(model_memory),
        runtime=growing(30),
        gpu=gpus,
        gpu_mem_mb=gpu_memory,
    params:
        *modules("tag_idioms"),
        spec=by_wildcards(PROJECT.execution_spec),
        form=JAM.settings.form,
    script:
        "../scripts/tag_idioms.py"


# Tags neutral rewrites of the variants that confused the encoder.
use rule tag_idioms as tag_neutral with:
    input:
        weights=[jam_paths.WEIGHTS_DIGESTS],
        folds=[],
        sentences=jam_paths.NEUTRAL_VARIANTS.replace("{setting}", "fine_tuned"),
    output:
        jam_paths.NEUTRAL_PREDICTIONS.replace("{setting}", "fine_tuned"),
    log:
        log_of(jam_paths.NEUTRAL_PREDICTIONS.replace("{setting}", "fine_tuned")),


rule take_jam_predictions:
    """Import external predictions, one per sentence."""
    input:
        file=external(JAM, "file"),
        sentences=by_wildcards(jam_files.sentences),
    output:
        jam_paths.PREDICTIONS,
    log:
        log_of(jam_paths.PREDICTIONS),
    wildcard_constraints:
        model=JAM.project.constraint("predictions"),
    conda:
        "../envs/llm.yaml"
    params:
        *modules("take_jam_predictions"),
        contents=contents(external(JAM, "file")),
        format=external(JAM, "format"),
    script:
        "../scripts/take_jam_predictions.py"


rule take_idiots_predictions:
    """Import external predictions, one per sentence."""
    input:
        file=external(IDIOTS, "file"),
        sentences=idiots_paths.SENTENCES,
    output:
        idiots_paths.PREDICTIONS,
    log:
        log_of(idiots_paths.PREDICTIONS),
    wildcard_constraints:
        **idiots_files.constraints(IDIOTS, "predictions"),
    conda:
        "../envs/llm.yaml"
    params:
        *modules("take_idiots_predictions"),
        contents=contents(external(IDIOTS, "file")),
        format=external(IDIOTS, "format"),
    script:
        "../scripts/take_idiots_predictions.py"


rule take_idiolink_run:
    """Import an external TREC run, truncated to top_k documents per query."""
    input:
        file=external(IDIOLINK, "file"),
        documents=idiolink_paths.dataset("{index}")["documents"],
        queries=idiolink_paths.dataset("{index}")["queries"],
    output:
        idiolink_paths.RUN,
    log:
        log_of(idiolink_paths.RUN),
    wildcard_constraints:
        model=IDIOLINK.project.constraint("predictions"),
        index="test",
    conda:
        "../envs/core.yaml"
    params:
        *modules("take_idiolink_run"),
        contents=contents(external(IDIOLINK, "file")),
        format=external(IDIOLINK, "format"),
        top_k=IDIOLINK.settings.top_k,
    script:
        "../scripts/take_idiolink_run.py"


for extraction in (
    *run_files.archive_extractions(STUDIES),
    *idiolink_files.dataset_extractions(IDIOLINK),
):

    rule:
        """Take predictions of a model, or the files for scoring a dataset, from an archive."""
        # Outputs without wildcards take precedence over the rules that compute the same files.
        name:
            extraction.rule
        input:
            archive=ancient(extraction.archive),
        output:
            extraction.outputs,
        log:
            f"logs/archives/{extraction.rule}.log",
        localrule: True
        conda:
            "../envs/core.yaml"
        params:
            *modules("take_archived"),
            files=extraction.files,
            recordings=extraction.recordings,
        script:
            "../scripts/take_archived.py"
