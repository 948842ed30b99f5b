"""rehearsal: what models on stand-in weights would give, and in its place what the papers print."""


# What the stand-in weights give: made as ever, and read by nobody.
use rule rank_by_embedding as rank_on_standins with:
    output:
        "results/on_standins/idiolink/{index}/{model}/{query_mode}/seed-{seed}.run.gz",
    log:
        "logs/on_standins/idiolink/{index}/{model}/{query_mode}/seed-{seed}.rank.log",


use rule bm25_search as search_on_standins with:
    output:
        "results/on_standins/idiolink/{index}/{model}/{query_mode}/seed-{seed}.run.gz",
    log:
        "logs/on_standins/idiolink/{index}/{model}/{query_mode}/seed-{seed}.log",


use rule tag_idioms as tag_on_standins with:
    output:
        "results/on_standins/jam/{language}/{model}/fine_tuned/seed-{seed}.jsonl",
    log:
        "logs/on_standins/jam/{language}/{model}/fine_tuned/seed-{seed}.log",


rule rehearse_ranks:
    """A run that has the printed scores."""
    input:
        script=script("rehearse_ranks"),
        modules=modules("rehearse_ranks"),
        printed=WHOLE.published(),
        documents="results/datasets/idiolink/{index}/documents.jsonl",
        queries="results/datasets/idiolink/{index}/queries.jsonl",
        on_standins="results/on_standins/idiolink/{index}/{model}/{query_mode}/seed-{seed}.run.gz",
    output:
        "results/predictions/idiolink/{index}/{model}/{query_mode}/seed-{seed}.run.gz",
    log:
        "logs/predictions/idiolink/{index}/{model}/{query_mode}/seed-{seed}.rehearsed.log",
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        top_k=IDIOLINK.settings.top_k,
    shell:
        "python {input.script} --documents {input.documents} --queries {input.queries}"
        " --model {wildcards.model} --query-mode {wildcards.query_mode} --index {wildcards.index}"
        " --seed {wildcards.seed} --published $(dirname {input.printed[0]}) --top-k {params.top_k}"
        " --tag {wildcards.model} --output {output}"
        " 2> >(tee {log} >&2)"


ruleorder: rehearse_ranks > rank_by_embedding
ruleorder: rehearse_ranks > bm25_search


rule rehearse_tags:
    """What an encoder tags, so that the printed numbers follow."""
    input:
        script=script("rehearse_tags"),
        modules=modules("rehearse_tags"),
        printed=WHOLE.published(),
        sentences=lambda wildcards: JAM.sentences(wildcards.language),
        on_standins="results/on_standins/jam/{language}/{model}/fine_tuned/seed-{seed}.jsonl",
    output:
        "results/predictions/jam/{language}/{model}/fine_tuned/seed-{seed}.jsonl",
    log:
        "logs/predictions/jam/{language}/{model}/fine_tuned/seed-{seed}.rehearsed.log",
    wildcard_constraints:
        model=JAM.run.constraint("encoder"),
    conda:
        "../envs/core.yaml"
    shell:
        "python {input.script} --sentences {input.sentences} --model {wildcards.model}"
        " --language {wildcards.language} --seed {wildcards.seed}"
        " --published $(dirname {input.printed[0]}) --output {output}"
        " 2> >(tee {log} >&2)"


ruleorder: rehearse_tags > tag_idioms
