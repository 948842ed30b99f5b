"""predictions: embeddings and runs."""


rule bm25_tune:
    """k1 and b by nDCG@10 on the validation split, or on what a composition leaves of it."""
    input:
        script=script("bm25_tune"),
        dataset=lambda wildcards: IDIOLINK.tuned_on(wildcards.index),
    output:
        idiolink_paths.TUNING,
    log:
        log_of(idiolink_paths.TUNING),
    wildcard_constraints:
        model=IDIOLINK.run.constraint("bm25"),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(20),
    params:
        *modules("bm25_tune"),
        dataset=lambda wildcards, input: [os.path.dirname(path) for path in input.dataset[:1]],
        k1=IDIOLINK.bm25_points().k1,
        b=IDIOLINK.bm25_points().b,
    shell:
        "python {input.script:q} --dataset {params.dataset:q}"
        " --query-mode {wildcards.query_mode:q} --k1 {params.k1:q} --b {params.b:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule bm25_search:
    """The best documents of each query by BM25."""
    input:
        script=script("bm25_search"),
        documents=idiolink_paths.dataset("{index}")["documents"],
        queries=idiolink_paths.dataset("{index}")["queries"],
        tuning=lambda wildcards: IDIOLINK.tuning(
            wildcards.model, wildcards.index, wildcards.query_mode
        ),
    output:
        idiolink_paths.RUN,
    log:
        log_of(idiolink_paths.RUN),
    wildcard_constraints:
        model=IDIOLINK.run.constraint("bm25"),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(20),
    params:
        *modules("bm25_search"),
        top_k=IDIOLINK.settings.top_k,
    shell:
        "python {input.script:q} --documents {input.documents:q} --queries {input.queries:q}"
        " --tuning {input.tuning:q} --query-mode {wildcards.query_mode:q} --top-k {params.top_k:q}"
        " --tag {wildcards.model:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule embed_documents:
    """Document embeddings: once a model, whatever the query modes and index compositions."""
    input:
        script=script("embed_documents"),
        documents=idiolink_paths.dataset("{split}")["documents"],
        weights=lambda wildcards: IDIOLINK.weights(wildcards.model, wildcards.seed),
        local=lambda wildcards: IDIOLINK.run.weights_files(wildcards.model),
    output:
        vectors=idiolink_paths.VECTORS.replace("{texts}", "documents"),
        manifest=idiolink_paths.VECTORS_MANIFEST.replace("{texts}", "documents"),
    log:
        log_of(idiolink_paths.VECTORS.replace("{texts}", "documents")),
    benchmark:
        "logs/benchmarks/idiolink/{split}/{model}/documents/seed-{seed}.tsv"
    wildcard_constraints:
        model=IDIOLINK.embedder_constraint(),
    conda:
        "../envs/gpu.yaml"
    threads: IDIOLINK.settings.embedding_threads
    resources:
        mem_mb=growing(model_memory),
        runtime=growing(120),
        gpu=gpus,
        gpu_mem_mb=gpu_memory,
    params:
        *modules("embed_documents"),
        spec=lambda wildcards: IDIOLINK.embedder(wildcards.model).document_spec(),
    shell:
        "python {input.script:q} --spec {params.spec:q} --weights {input.weights:q}"
        " --documents {input.documents:q} --threads {threads} --output {output.vectors:q}"
        " 2> >(tee {log:q} >&2)"


rule embed_queries:
    """Query embeddings in all four query modes from one loading of the model."""
    input:
        script=script("embed_queries"),
        queries=idiolink_paths.dataset("{split}")["queries"],
        weights=lambda wildcards: IDIOLINK.weights(wildcards.model, wildcards.seed),
        local=lambda wildcards: IDIOLINK.run.weights_files(wildcards.model),
    output:
        vectors=expand(idiolink_paths.VECTORS, texts=IDIOLINK.query_modes, allow_missing=True),
        manifests=expand(
            idiolink_paths.VECTORS_MANIFEST, texts=IDIOLINK.query_modes, allow_missing=True
        ),
    log:
        log_of(idiolink_paths.VECTORS.replace("{texts}", "queries")),
    benchmark:
        "logs/benchmarks/idiolink/{split}/{model}/queries/seed-{seed}.tsv"
    wildcard_constraints:
        model=IDIOLINK.embedder_constraint(),
    conda:
        "../envs/gpu.yaml"
    threads: IDIOLINK.settings.embedding_threads
    resources:
        mem_mb=growing(model_memory),
        runtime=growing(60),
        gpu=gpus,
        gpu_mem_mb=gpu_memory,
    params:
        *modules("embed_queries"),
        spec=lambda wildcards: IDIOLINK.embedder(wildcards.model).execution_spec(),
    shell:
        "python {input.script:q} --spec {params.spec:q} --weights {input.weights:q}"
        " --queries {input.queries:q} --threads {threads} --outputs {output.vectors:q}"
        " 2> >(tee {log:q} >&2)"


rule rank_by_embedding:
    """The best documents of each query by cosine similarity."""
    input:
        script=script("rank_by_embedding"),
        all_documents=lambda wildcards: IDIOLINK.all_documents(wildcards.index),
        documents=idiolink_paths.dataset("{index}")["documents"],
        queries=idiolink_paths.dataset("{index}")["queries"],
        document_vectors=lambda wildcards: IDIOLINK.vectors(
            wildcards.index, wildcards.model, "documents", wildcards.seed
        ),
        query_vectors=lambda wildcards: IDIOLINK.vectors(
            wildcards.index, wildcards.model, wildcards.query_mode, wildcards.seed
        ),
    output:
        idiolink_paths.RUN,
    log:
        log_of(idiolink_paths.RUN),
    wildcard_constraints:
        model=IDIOLINK.embedder_constraint(),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        *modules("rank_by_embedding"),
        top_k=IDIOLINK.settings.top_k,
    shell:
        "python {input.script:q} --all-documents {input.all_documents:q} --documents {input.documents:q}"
        " --queries {input.queries:q} --document-vectors {input.document_vectors:q}"
        " --query-vectors {input.query_vectors:q} --top-k {params.top_k:q} --tag {wildcards.model:q}"
        " --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule idiots_review_cases:
    """The answers that found an idiom, for people to judge."""
    input:
        script=script("idiots_review_cases"),
        predictions=idiots_paths.PREDICTIONS,
        sentences=idiots_paths.SENTENCES,
        manifest=idiots_paths.MANIFEST,
    output:
        jsonl=idiots_paths.CASES,
        csv=idiots_paths.CASES_CSV,
    log:
        log_of(idiots_paths.CASES),
    wildcard_constraints:
        **IDIOTS.constraints(),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiots_review_cases"),
    shell:
        "python {input.script:q} --predictions {input.predictions:q}"
        ' --dataset "$(dirname {input.manifest:q})" --model {wildcards.model:q}'
        " --setting {wildcards.setting:q} --seed {wildcards.seed:q}"
        " --jsonl {output.jsonl:q} --csv {output.csv:q}"
        " 2> >(tee {log:q} >&2)"


rule tag_idioms:
    """The idioms that a fine-tuned encoder tags in every sentence."""
    input:
        script=script("tag_idioms"),
        weights=jam_paths.WEIGHTS,
        sentences=lambda wildcards: JAM.sentences(wildcards.language),
    output:
        jam_paths.PREDICTIONS.replace("{setting}", "fine_tuned"),
    log:
        log_of(jam_paths.PREDICTIONS.replace("{setting}", "fine_tuned")),
    wildcard_constraints:
        model=JAM.run.constraint("encoder"),
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
        spec=lambda wildcards: JAM.run.entry(wildcards.model).execution_spec(),
        words=JAM.settings.fine_tuning.input,
    shell:
        "python {input.script:q} --spec {params.spec:q} --weights {input.weights:q}"
        " --sentences {input.sentences:q} --words {params.words:q} --threads 1 --output {output:q}"
        " 2> >(tee {log:q} >&2)"


# What an encoder tags in the neutral variants of those that confused it.
use rule tag_idioms as tag_neutral with:
    input:
        script=script("tag_idioms"),
        weights=jam_paths.WEIGHTS,
        sentences=jam_paths.NEUTRAL_VARIANTS.replace("{setting}", "fine_tuned"),
    output:
        jam_paths.NEUTRAL_PREDICTIONS.replace("{setting}", "fine_tuned"),
    log:
        log_of(jam_paths.NEUTRAL_PREDICTIONS.replace("{setting}", "fine_tuned")),


rule take_jam_predictions:
    """Predictions made elsewhere, sentence by sentence, as the metrics read them."""
    input:
        script=script("take_jam_predictions"),
        file=lambda wildcards: JAM.taken_file(**wildcards),
        sentences=lambda wildcards: JAM.sentences(wildcards.language),
    output:
        jam_paths.PREDICTIONS,
    log:
        log_of(jam_paths.PREDICTIONS),
    wildcard_constraints:
        model=JAM.run.constraint("predictions"),
    conda:
        "../envs/core.yaml"
    params:
        *modules("take_jam_predictions"),
    shell:
        "python {input.script:q} --file {input.file:q} --sentences {input.sentences:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule take_idiots_predictions:
    """Predictions made elsewhere, sentence by sentence, as the metrics read them."""
    input:
        script=script("take_idiots_predictions"),
        file=lambda wildcards: IDIOTS.taken_file(**wildcards),
        sentences=idiots_paths.SENTENCES,
    output:
        idiots_paths.PREDICTIONS,
    log:
        log_of(idiots_paths.PREDICTIONS),
    wildcard_constraints:
        **IDIOTS.constraints("predictions"),
    conda:
        "../envs/llm.yaml"
    params:
        *modules("take_idiots_predictions"),
    shell:
        "python {input.script:q} --file {input.file:q} --sentences {input.sentences:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule take_idiolink_run:
    """A TREC run made elsewhere, cut to the documents that every run keeps."""
    input:
        script=script("take_idiolink_run"),
        file=lambda wildcards: IDIOLINK.taken_file(
            wildcards.model, wildcards.query_mode, wildcards.seed
        ),
        documents=idiolink_paths.dataset("{index}")["documents"],
        queries=idiolink_paths.dataset("{index}")["queries"],
    output:
        idiolink_paths.RUN,
    log:
        log_of(idiolink_paths.RUN),
    wildcard_constraints:
        model=IDIOLINK.run.constraint("predictions"),
        index="test",
    conda:
        "../envs/core.yaml"
    params:
        *modules("take_idiolink_run"),
        top_k=IDIOLINK.settings.top_k,
    shell:
        "python {input.script:q} --file {input.file:q} --documents {input.documents:q}"
        " --queries {input.queries:q} --top-k {params.top_k:q} --tag {wildcards.model:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"
