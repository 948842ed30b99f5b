"""predictions: embeddings and runs."""


rule bm25_tune:
    """k1 and b by nDCG@10 on the validation split, with sentence queries.

    The paper reports one chosen point for its two query modes; it is the point of the sentence queries.
    """
    input:
        script=script("bm25_tune"),
        modules=modules("bm25_tune"),
        documents="results/datasets/idiolink/val/documents.jsonl",
        queries="results/datasets/idiolink/val/queries.jsonl",
    output:
        "results/predictions/idiolink/val/{model}/tuning.json",
    log:
        "logs/predictions/idiolink/val/{model}/tuning.log",
    wildcard_constraints:
        model=alternatives(entries_of("bm25")),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=20,
    params:
        k1=CONFIG.idiolink.bm25.k1,
        b=CONFIG.idiolink.bm25.b,
        top_k=CONFIG.idiolink.top_k,
    shell:
        "python {input.script} --documents {input.documents} --queries {input.queries}"
        " --query-mode sentence --k1 {params.k1} --b {params.b}"
        " --top-k {params.top_k} --output {output}"
        " 2> >(tee {log} >&2)"


rule bm25_search:
    """The best documents of each query by BM25."""
    input:
        script=script("bm25_search"),
        modules=modules("bm25_search"),
        documents="results/datasets/idiolink/{index}/documents.jsonl",
        queries="results/datasets/idiolink/{index}/queries.jsonl",
        tuning="results/predictions/idiolink/val/{model}/tuning.json",
    output:
        "results/predictions/idiolink/{index}/{model}/{query_mode}/seed-{seed}.run.gz",
    log:
        "logs/predictions/idiolink/{index}/{model}/{query_mode}/seed-{seed}.log",
    wildcard_constraints:
        model=alternatives(entries_of("bm25")),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        top_k=CONFIG.idiolink.top_k,
    shell:
        "python {input.script} --documents {input.documents} --queries {input.queries}"
        " --tuning {input.tuning} --query-mode {wildcards.query_mode} --top-k {params.top_k}"
        " --tag {wildcards.model} --output {output}"
        " 2> >(tee {log} >&2)"


rule embed_documents:
    """Document embeddings: once a model, whatever the query modes and index compositions."""
    input:
        script=script("embed_documents"),
        modules=modules("embed_documents"),
        documents="results/datasets/idiolink/{split}/documents.jsonl",
        weights=unpacked_weights,
    output:
        "results/predictions/idiolink/{split}/{model}/documents/seed-{seed}.npy",
    log:
        "logs/predictions/idiolink/{split}/{model}/documents/seed-{seed}.log",
    benchmark:
        "logs/benchmarks/idiolink/{split}/{model}/documents/seed-{seed}.tsv"
    wildcard_constraints:
        model=alternatives(entries_of("embedder")),
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        mem_mb=8000,
        runtime=120,
        gpu=gpus,
    params:
        spec=document_spec,
    shell:
        "python {input.script} --spec {params.spec:q} --weights {input.weights}"
        " --documents {input.documents} --threads {threads} --output {output}"
        " 2> >(tee {log} >&2)"


rule embed_queries:
    """Query embeddings in all four query modes from one loading of the model."""
    input:
        script=script("embed_queries"),
        modules=modules("embed_queries"),
        queries="results/datasets/idiolink/{split}/queries.jsonl",
        weights=unpacked_weights,
    output:
        expand(
            "results/predictions/idiolink/{{split}}/{{model}}/{mode}/seed-{{seed}}.npy",
            mode=["sentence", "span", "instruction_sentence", "instruction_span"],
        ),
    log:
        "logs/predictions/idiolink/{split}/{model}/queries/seed-{seed}.log",
    benchmark:
        "logs/benchmarks/idiolink/{split}/{model}/queries/seed-{seed}.tsv"
    wildcard_constraints:
        model=alternatives(entries_of("embedder")),
    conda:
        "../envs/gpu.yaml"
    threads: 8
    resources:
        mem_mb=8000,
        runtime=60,
        gpu=gpus,
    params:
        spec=execution_spec,
    shell:
        "python {input.script} --spec {params.spec:q} --weights {input.weights}"
        " --queries {input.queries} --threads {threads} --outputs {output}"
        " 2> >(tee {log} >&2)"


rule rank_by_embedding:
    """The best documents of each query by cosine similarity."""
    input:
        script=script("rank_by_embedding"),
        modules=modules("rank_by_embedding"),
        all_documents=lambda wildcards: (
            f"results/datasets/idiolink/{wildcards.index.split('-')[0]}/documents.jsonl"
        ),
        documents="results/datasets/idiolink/{index}/documents.jsonl",
        queries="results/datasets/idiolink/{index}/queries.jsonl",
        document_vectors=lambda wildcards: (
            f"results/predictions/idiolink/{wildcards.index.split('-')[0]}/"
            f"{wildcards.model}/documents/seed-{wildcards.seed}.npy"
        ),
        query_vectors=lambda wildcards: (
            f"results/predictions/idiolink/{wildcards.index.split('-')[0]}/"
            f"{wildcards.model}/{wildcards.query_mode}/seed-{wildcards.seed}.npy"
        ),
    output:
        "results/predictions/idiolink/{index}/{model}/{query_mode}/seed-{seed}.run.gz",
    log:
        "logs/predictions/idiolink/{index}/{model}/{query_mode}/seed-{seed}.rank.log",
    wildcard_constraints:
        model=alternatives(entries_of("embedder")),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        top_k=CONFIG.idiolink.top_k,
    shell:
        "python {input.script} --all-documents {input.all_documents} --documents {input.documents}"
        " --queries {input.queries} --document-vectors {input.document_vectors}"
        " --query-vectors {input.query_vectors} --top-k {params.top_k} --tag {wildcards.model}"
        " --output {output}"
        " 2> >(tee {log} >&2)"
