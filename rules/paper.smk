"""paper: LaTeX tables and figures, each with a CSV that sets our numbers beside the printed ones."""


rule idiolink_zero_shot:
    """IdioLink's Table 2: four query modes, two metrics, two groups of models."""
    input:
        script=script("idiolink_zero_shot_table"),
        modules=modules("idiolink_zero_shot_table"),
        template=here("templates/idiolink_zero_shot.tex.jinja"),
        published=here("published/idiolink_table2.csv"),
        metrics=lambda wildcards: list(idiolink_metrics("full", idiolink_models("embedder"))),
    output:
        tex="paper_tables/idiolink_zero_shot.tex",
        csv="paper_tables/idiolink_zero_shot.csv",
    log:
        "logs/paper/idiolink_zero_shot.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        models=described(idiolink_models("embedder")),
        published_models=described(entries_of("embedder")),
    shell:
        "python {input.script} --metrics {input.metrics} --models {params.models:q}"
        " --all-models {params.published_models:q} --published {input.published}"
        " --template {input.template} --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule idiolink_bm25:
    """IdioLink's appendix E: BM25 by sentence and by span."""
    input:
        script=script("idiolink_bm25_table"),
        modules=modules("idiolink_bm25_table"),
        template=here("templates/idiolink_bm25.tex.jinja"),
        published=here("published/idiolink_bm25.csv"),
        metrics=lambda wildcards: list(idiolink_metrics("full", idiolink_models("bm25"))),
    output:
        tex="paper_tables/idiolink_bm25.tex",
        csv="paper_tables/idiolink_bm25.csv",
    log:
        "logs/paper/idiolink_bm25.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "python {input.script} --metrics {input.metrics} --published {input.published}"
        " --template {input.template} --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule idiolink_ablation:
    """The index-composition ablation: the same queries over an index without some usages."""
    input:
        script=script("idiolink_ablation_table"),
        modules=modules("idiolink_ablation_table"),
        template=here("templates/idiolink_ablation.tex.jinja"),
        metrics=lambda wildcards: [
            name
            for composition in CONFIG.idiolink.compositions
            for name in idiolink_metrics(composition)
        ],
    output:
        tex="paper_tables/idiolink_ablation.tex",
        csv="paper_tables/idiolink_ablation.csv",
    log:
        "logs/paper/idiolink_ablation.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        models=described(CONFIG.idiolink.models),
    shell:
        "python {input.script} --metrics {input.metrics} --models {params.models:q}"
        " --template {input.template} --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule idiolink_modes_figure:
    """nDCG@10 and R-Precision of each model in the four query modes."""
    input:
        script=script("idiolink_modes_figure"),
        modules=modules("idiolink_modes_figure"),
        style=here("templates/pieline.mplstyle"),
        metrics=lambda wildcards: list(idiolink_metrics("full")),
    output:
        pdf="paper_tables/figures/idiolink_modes.pdf",
        png="paper_tables/figures/idiolink_modes.png",
    log:
        "logs/paper/idiolink_modes.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        models=described(CONFIG.idiolink.models),
    shell:
        "python {input.script} --metrics {input.metrics} --models {params.models:q}"
        " --style {input.style} --pdf {output.pdf} --png {output.png}"
        " 2> >(tee {log} >&2)"
