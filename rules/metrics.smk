"""metrics: one JSON a prediction file."""


rule idiolink_metrics:
    """R-Precision and nDCG@10 of a run: overall, by usage, subject and PIE."""
    input:
        script=script("idiolink_metrics"),
        modules=modules("idiolink_metrics"),
        run="results/predictions/idiolink/{index}/{model}/{query_mode}/seed-{seed}.run.gz",
        documents="results/datasets/idiolink/{index}/documents.jsonl",
        queries="results/datasets/idiolink/{index}/queries.jsonl",
        qrels="results/datasets/idiolink/{index}/qrels.txt",
        manifest="results/datasets/idiolink/{index}/manifest.json",
        tuning=lambda wildcards: (
            [f"results/predictions/idiolink/val/{wildcards.model}/tuning.json"]
            if REGISTRY[wildcards.model].kind == "bm25"
            else []
        ),
    output:
        "results/metrics/idiolink/{index}/{model}/{query_mode}/seed-{seed}.json",
    log:
        "logs/metrics/idiolink/{index}/{model}/{query_mode}/seed-{seed}.log",
    wildcard_constraints:
        model=alternatives(REGISTRY),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        top_k=CONFIG.idiolink.top_k,
    shell:
        "python {input.script} --run {input.run} --dataset $(dirname {input.manifest})"
        " --tuning {input.tuning}"
        " --model {wildcards.model} --query-mode {wildcards.query_mode} --seed {wildcards.seed}"
        " --depth {params.top_k} --output {output}"
        " 2> >(tee {log} >&2)"
