"""datasets: validated JSONL and qrels."""


rule idiolink_dataset:
    """Documents, queries and qrels of one split."""
    input:
        script=script("idiolink_dataset"),
        modules=modules("idiolink_dataset"),
        upstream=here("data/upstream.yaml"),
        documents="results/raw/idiolink/{split}/indexes.json",
        queries="results/raw/idiolink/{split}/queries.json",
    output:
        documents="results/datasets/idiolink/{split}/documents.jsonl",
        queries="results/datasets/idiolink/{split}/queries.jsonl",
        qrels="results/datasets/idiolink/{split}/qrels.txt",
        manifest="results/datasets/idiolink/{split}/manifest.json",
    log:
        "logs/datasets/idiolink/{split}.log",
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "python {input.script} --split {wildcards.split} --documents {input.documents}"
        " --queries {input.queries} --upstream {input.upstream}"
        " --output $(dirname {output.manifest})"
        " 2> >(tee {log} >&2)"


rule idiolink_composition:
    """A split whose index lacks some usages (the index-composition ablation)."""
    input:
        script=script("idiolink_composition"),
        modules=modules("idiolink_composition"),
        documents="results/datasets/idiolink/{split}/documents.jsonl",
        queries="results/datasets/idiolink/{split}/queries.jsonl",
        manifest="results/datasets/idiolink/{split}/manifest.json",
    output:
        documents="results/datasets/idiolink/{split}-{composition}/documents.jsonl",
        queries="results/datasets/idiolink/{split}-{composition}/queries.jsonl",
        qrels="results/datasets/idiolink/{split}-{composition}/qrels.txt",
        manifest="results/datasets/idiolink/{split}-{composition}/manifest.json",
    log:
        "logs/datasets/idiolink/{split}-{composition}.log",
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "python {input.script} --composition {wildcards.composition}"
        " --dataset $(dirname {input.manifest}) --output $(dirname {output.manifest})"
        " 2> >(tee {log} >&2)"
