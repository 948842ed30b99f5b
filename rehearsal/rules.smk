"""Rehearsal: run models on stand-in weights, and replace their outputs with the printed numbers."""

ON_STANDINS = "results/on_standins/idiolink/{index}/{model}/{query_mode}/seed-{seed}.run.gz"
TAGS_ON_STANDINS = "results/on_standins/jam/{language}/{model}/fine_tuned/seed-{seed}.jsonl"


# The real jobs run on the stand-in weights, but their outputs are not used.
use rule rank_by_embedding as rank_on_standins with:
    output:
        expand(ON_STANDINS, query_mode=QUERY_MODES, allow_missing=True),
    log:
        "logs/on_standins/idiolink/{index}/{model}/seed-{seed}.rank.log",


use rule bm25_search as search_on_standins with:
    output:
        ON_STANDINS,
    log:
        "logs/on_standins/idiolink/{index}/{model}/{query_mode}/seed-{seed}.log",


use rule tag_idioms as tag_on_standins with:
    output:
        TAGS_ON_STANDINS,
    log:
        "logs/on_standins/jam/{language}/{model}/fine_tuned/seed-{seed}.log",


rule rehearse_ranks:
    """Write a run with the printed scores."""
    input:
        printed=RUN_REPORT.published(),
        documents=idiolink_paths.dataset("{index}")["documents"],
        queries=idiolink_paths.dataset("{index}")["queries"],
        on_standins=ON_STANDINS,
    output:
        idiolink_paths.RUN,
    log:
        log_of(idiolink_paths.RUN),
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        *modules("rehearse_ranks", folder="rehearsal/scripts"),
        top_k=IDIOLINK.settings.top_k,
        printed_as=lambda wildcards: IDIOLINK.project.entry(wildcards.model).published_as or "",
        seeds=lambda wildcards: (
            IDIOLINK.settings.finetuning.seeds if "+" in wildcards.model else [0]
        ),
    script:
        "scripts/rehearse_ranks.py"


ruleorder: rehearse_ranks > rank_by_embedding
ruleorder: rehearse_ranks > bm25_search


# BM25 is tuned on the generated corpora, and the result is replaced with the printed k1 and b.
use rule bm25_tune as tune_on_standins with:
    output:
        "results/on_standins/idiolink/{index}/{model}/{query_mode}/tuning.json",
    log:
        "logs/on_standins/idiolink/{index}/{model}/{query_mode}/tuning.log",


rule rehearse_tuning:
    """Write the printed k1 and b."""
    input:
        printed=RUN_REPORT.published(),
        on_standins="results/on_standins/idiolink/{index}/{model}/{query_mode}/tuning.json",
    output:
        idiolink_paths.TUNING,
    log:
        log_of(idiolink_paths.TUNING),
    wildcard_constraints:
        model=IDIOLINK.project.constraint("bm25"),
    conda:
        "../envs/core.yaml"
    params:
        *modules("rehearse_tuning", folder="rehearsal/scripts"),
        k1=IDIOLINK.settings.bm25.k1,
        b=IDIOLINK.settings.bm25.b,
    script:
        "scripts/rehearse_tuning.py"


ruleorder: rehearse_tuning > bm25_tune


rule rehearse_tags:
    """Write an encoder's predictions with the printed scores."""
    input:
        printed=[*RUN_REPORT.published(), here("rehearsal/answers/jam_runs.csv")],
        sentences=of_study(jam_files.sentences),
        on_standins=TAGS_ON_STANDINS,
    output:
        jam_paths.PREDICTIONS.replace("{setting}", "fine_tuned"),
    log:
        log_of(jam_paths.PREDICTIONS.replace("{setting}", "fine_tuned")),
    wildcard_constraints:
        model=JAM.project.constraint("encoder"),
    conda:
        "../envs/report.yaml"
    params:
        *modules("rehearse_tags", folder="rehearsal/scripts"),
        printed_as=lambda wildcards: REGISTRY[wildcards.model].published_as,
    script:
        "scripts/rehearse_tags.py"


ruleorder: rehearse_tags > tag_idioms


rule rehearse_labels:
    """Write two annotators' labels of hard variants (ID10M-JAM, section 5.1)."""
    input:
        printed=RUN_REPORT.published(),
        sentences=jam_files.sentences(JAM, "english"),
    output:
        jam_files.human_labels(JAM),
    log:
        "logs/on_standins/humans.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("rehearse_labels", folder="rehearsal/scripts"),
    script:
        "scripts/rehearse_labels.py"


rule rehearse_verdicts:
    """Write human verdicts on Llama 2's cases (IdioTS, section 5.2.1)."""
    input:
        printed=RUN_REPORT.published(),
        cases=f"results/predictions/idiots/llama-2-7b-chat/zero_shot/seed-{IDIOTS.settings.seeds[0]}.cases.jsonl",
    output:
        IDIOTS.settings.verdicts,
    log:
        "logs/on_standins/verdicts.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("rehearse_verdicts", folder="rehearsal/scripts"),
    script:
        "scripts/rehearse_verdicts.py"


rule rehearsal_page:
    """Write the page of the rehearsal: cells, claims and the bill."""
    input:
        template=here("rehearsal/templates/rehearsal.html.jinja"),
        style=here("templates/page.css"),
        models=MODELS,
        tables=RUN_REPORT.files("csv"),
        claims="paper_tables/claims.json",
    output:
        "paper_tables/rehearsal.html",
    log:
        "logs/paper/rehearsal.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("rehearsal_page", folder="rehearsal/scripts"),
        mark=RUN_REPORT.mark,
        size=CONFIG.rehearsal.size,
        recordings=LLM_SETTINGS.recordings_folder,
        state=REHEARSAL.folder,
    script:
        "scripts/rehearsal_page.py"
