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
        csv=shown("paper_tables/idiolink_zero_shot.csv"),
    log:
        "logs/paper/idiolink_zero_shot.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
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
        csv=shown("paper_tables/idiolink_bm25.csv"),
    log:
        "logs/paper/idiolink_bm25.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
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
        csv=shown("paper_tables/idiolink_ablation.csv"),
    log:
        "logs/paper/idiolink_ablation.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described(CONFIG.idiolink.models),
    shell:
        "python {input.script} --metrics {input.metrics} --models {params.models:q}"
        " --template {input.template} --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule idiolink_finetuned:
    """IdioLink's Table 5: four training configurations, two metrics, means over seeds."""
    input:
        script=script("idiolink_finetuned_table"),
        modules=modules("idiolink_finetuned_table"),
        template=here("templates/idiolink_finetuned.tex.jinja"),
        published=here("published/idiolink_table5.csv"),
        metrics=list(tuned_metrics()),
    output:
        tex="paper_tables/idiolink_finetuned.tex",
        csv=shown("paper_tables/idiolink_finetuned.csv"),
    log:
        "logs/paper/idiolink_finetuned.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described(entries_of("embedder")),
        altered=altered_hyperparameters(),
    shell:
        "python {input.script} --metrics {input.metrics} --models {params.models:q}"
        " --altered {params.altered} --published {input.published}"
        " --template {input.template} --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule idiolink_finetuning_figure:
    """IdioLink's Figure 3: zero-shot beside fine-tuned in each query mode."""
    input:
        script=script("idiolink_finetuning_figure"),
        modules=modules("idiolink_finetuning_figure"),
        style=here("templates/pieline.mplstyle"),
        zero_shot=list(idiolink_metrics("full", idiolink_models("embedder"))),
        fine_tuned=list(tuned_metrics()),
    output:
        pdf="paper_tables/figures/idiolink_finetuning.pdf",
        png=shown("paper_tables/figures/idiolink_finetuning.png"),
    log:
        "logs/paper/idiolink_finetuning.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described(CONFIG.idiolink.finetuning.models),
    shell:
        "python {input.script} --zero-shot {input.zero_shot} --fine-tuned {input.fine_tuned}"
        " --models {params.models:q} --style {input.style} --pdf {output.pdf} --png {output.png}"
        " 2> >(tee {log} >&2)"


rule idiolink_gains:
    """What instructions, spans and both gain on average over models (IdioLink, section 6)."""
    input:
        script=script("idiolink_gains_table"),
        modules=modules("idiolink_gains_table"),
        template=here("templates/idiolink_gains.tex.jinja"),
        published=here("published/text_numbers.csv"),
        metrics=list(idiolink_metrics("full", idiolink_models("embedder"))),
    output:
        tex="paper_tables/idiolink_gains.tex",
        csv=shown("paper_tables/idiolink_gains.csv"),
    log:
        "logs/paper/idiolink_gains.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described(idiolink_models("embedder")),
        published_models=described(entries_of("embedder")),
    shell:
        "python {input.script} --metrics {input.metrics} --models {params.models:q}"
        " --all-models {params.published_models:q} --published {input.published}"
        " --template {input.template} --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule idiolink_by_pie:
    """Which PIEs are hard: scores by PIE, model and query mode."""
    input:
        script=script("idiolink_by_pie"),
        modules=modules("idiolink_by_pie"),
        style=here("templates/pieline.mplstyle"),
        metrics=[*idiolink_metrics("full"), *tuned_metrics()],
    output:
        csv=shown("paper_tables/idiolink_by_pie.csv"),
        pdf="paper_tables/figures/idiolink_by_pie.pdf",
        png=shown("paper_tables/figures/idiolink_by_pie.png"),
    log:
        "logs/paper/idiolink_by_pie.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    shell:
        "python {input.script} --metrics {input.metrics} --style {input.style}"
        " --csv {output.csv} --pdf {output.pdf} --png {output.png}"
        " 2> >(tee {log} >&2)"


rule idiolink_significance_table:
    """Which differences between query modes are more than chance."""
    input:
        script=script("idiolink_significance_table"),
        modules=modules("idiolink_significance_table"),
        template=here("templates/idiolink_significance.tex.jinja"),
        tests=list(significance_tests()),
    output:
        tex="paper_tables/idiolink_significance.tex",
        csv=shown("paper_tables/idiolink_significance.csv"),
    log:
        "logs/paper/idiolink_significance.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described([*CONFIG.idiolink.models, *CONFIG.idiolink.finetuning.models]),
    shell:
        "python {input.script} --tests {input.tests} --models {params.models:q}"
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
        png=shown("paper_tables/figures/idiolink_modes.png"),
    log:
        "logs/paper/idiolink_modes.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described(CONFIG.idiolink.models),
    shell:
        "python {input.script} --metrics {input.metrics} --models {params.models:q}"
        " --style {input.style} --pdf {output.pdf} --png {output.png}"
        " 2> >(tee {log} >&2)"


rule idiots_table:
    """IdioTS's Tables 1 to 3: detection, True Positive Consistency, distractors."""
    input:
        script=script("idiots_table"),
        modules=modules("idiots_table"),
        template=here("templates/idiots_{table}.tex.jinja"),
        published=lambda wildcards: here(
            "published/idiots_table"
            f"{dict(detection=1, consistency=2, distractors=3)[wildcards.table]}.csv"
        ),
        metrics=lambda wildcards: idiots_runs(
            "results/metrics/idiots/{model}/{setting}/seed-{seed}.json"
        ),
    output:
        tex="paper_tables/idiots_{table}.tex",
        csv=shown("paper_tables/idiots_{table}.csv"),
    log:
        "logs/paper/idiots_{table}.log",
    wildcard_constraints:
        table="detection|consistency|distractors",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described(CONFIG.idiots.models),
        all_models=described(entries_of("llm")),
    shell:
        "python {input.script} --table {wildcards.table} --metrics {input.metrics}"
        " --models {params.models:q} --all-models {params.all_models:q}"
        " --published {input.published} --template {input.template}"
        " --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule idiots_figure:
    """Recall against specificity of each run."""
    input:
        script=script("idiots_figure"),
        modules=modules("idiots_figure"),
        style=here("templates/pieline.mplstyle"),
        published=here("published/idiots_table1.csv"),
        metrics=lambda wildcards: idiots_runs(
            "results/metrics/idiots/{model}/{setting}/seed-{seed}.json"
        ),
    output:
        pdf="paper_tables/figures/idiots_recall_specificity.pdf",
        png=shown("paper_tables/figures/idiots_recall_specificity.png"),
    log:
        "logs/paper/idiots_recall_specificity.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described(CONFIG.idiots.models),
    shell:
        "python {input.script} --metrics {input.metrics} --models {params.models:q}"
        " --published {input.published} --style {input.style}"
        " --pdf {output.pdf} --png {output.png}"
        " 2> >(tee {log} >&2)"


rule claims:
    """The papers' claims, judged on the printed numbers and on ours."""
    input:
        script=script("claims"),
        modules=modules("claims"),
        template=here("templates/claims.tex.jinja"),
        published=printed_numbers(),
        catalogue=here("published/tables.yaml"),
        tables=tables_of_the_run,
    output:
        json="paper_tables/claims.json",
        csv=shown("paper_tables/claims.csv"),
        tex="paper_tables/claims.tex",
    log:
        "logs/paper/claims.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described(REGISTRY),
    shell:
        "python {input.script} --published $(dirname {input.catalogue}) --tables {input.tables}"
        " --models {params.models:q} --template {input.template}"
        " --json {output.json} --csv {output.csv} --tex {output.tex}"
        " 2> >(tee {log} >&2)"


rule comparison:
    """Every reproduced cell beside the printed one, over all tables."""
    input:
        script=script("comparison"),
        modules=modules("comparison"),
        template=here("templates/comparison.tex.jinja"),
        tables=tables_of_the_run,
    output:
        csv=shown("paper_tables/comparison.csv"),
        tex="paper_tables/comparison.tex",
    log:
        "logs/paper/comparison.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    shell:
        "python {input.script} --tables {input.tables} --template {input.template}"
        " --csv {output.csv} --tex {output.tex}"
        " 2> >(tee {log} >&2)"


rule jam_statistics_table:
    """ID10M-JAM's Table 2: sizes of ID10M and ID10M-JAM, with the number of different PIEs."""
    input:
        script=script("jam_statistics_table"),
        modules=modules("jam_statistics_table"),
        template=here("templates/jam_statistics.tex.jinja"),
        published=here("published/jam_table2.csv"),
        text_numbers=here("published/text_numbers.csv"),
        statistics=jam_statistics(),
    output:
        tex="paper_tables/jam_statistics.tex",
        csv=shown("paper_tables/jam_statistics.csv"),
    log:
        "logs/paper/jam_statistics.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    shell:
        "python {input.script} --statistics {input.statistics} --published {input.published}"
        " --text-numbers {input.text_numbers} --template {input.template}"
        " --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule jam_flow_figure:
    """What filtering, generation and validation leave of ID10M."""
    input:
        script=script("jam_flow_figure"),
        modules=modules("jam_flow_figure"),
        style=here("templates/pieline.mplstyle"),
        statistics=jam_statistics(),
    output:
        pdf="paper_tables/figures/jam_flow.pdf",
        png=shown("paper_tables/figures/jam_flow.png"),
    log:
        "logs/paper/jam_flow.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    shell:
        "python {input.script} --statistics {input.statistics} --style {input.style}"
        " --pdf {output.pdf} --png {output.png}"
        " 2> >(tee {log} >&2)"


rule idiolink_dataset_table:
    """IdioLink's Table 1: PIEs, queries and documents of each split."""
    input:
        script=script("idiolink_dataset_table"),
        modules=modules("idiolink_dataset_table"),
        template=here("templates/idiolink_dataset.tex.jinja"),
        published=here("published/idiolink_table1.csv"),
        checks=f"results/metrics/idiolink/checks/{described_origin()}.json",
    output:
        tex="paper_tables/idiolink_dataset.tex",
        csv=shown("paper_tables/idiolink_dataset.csv"),
    log:
        "logs/paper/idiolink_dataset.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    shell:
        "python {input.script} --checks {input.checks} --published {input.published}"
        " --template {input.template} --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule idiolink_construction_table:
    """The numbers of IdioLink's construction (sections 3.2.1 to 3.2.4)."""
    input:
        script=script("idiolink_construction_table"),
        modules=modules("idiolink_construction_table"),
        template=here("templates/idiolink_construction.tex.jinja"),
        published=here("published/text_numbers.csv"),
        metrics="results/metrics/idiolink/construction.json",
        filter_report="results/originals/idiolink/filter_report.json",
    output:
        tex="paper_tables/idiolink_construction.tex",
        csv=shown("paper_tables/idiolink_construction.csv"),
    log:
        "logs/paper/idiolink_construction.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    shell:
        "python {input.script} --metrics {input.metrics} --filter-report {input.filter_report}"
        " --published {input.published} --template {input.template} --tex {output.tex}"
        " --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule idiolink_domains_figure:
    """Texts of IdioLink by domain and usage."""
    input:
        script=script("idiolink_domains_figure"),
        modules=modules("idiolink_domains_figure"),
        style=here("templates/pieline.mplstyle"),
        checks=f"results/metrics/idiolink/checks/{described_origin()}.json",
    output:
        pdf="paper_tables/figures/idiolink_domains.pdf",
        png=shown("paper_tables/figures/idiolink_domains.png"),
    log:
        "logs/paper/idiolink_domains.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    shell:
        "python {input.script} --checks {input.checks} --style {input.style}"
        " --pdf {output.pdf} --png {output.png}"
        " 2> >(tee {log} >&2)"


rule results_page:
    """The results page: ledger, tables, figures, and the way from a number to its sentences."""
    input:
        script=script("results_page"),
        modules=modules("results_page"),
        artifacts=here("templates/artifacts.yaml"),
        template=here("templates/page.html.jinja"),
        parts=[here("templates/page.css"), here("templates/page.js")],
        claims="paper_tables/claims.json",
        tables=tables_of_the_run,
        figures=figures_of_the_run,
        metrics=metrics_of_the_run,
        behind=behind_the_metrics,
    output:
        shown("paper_tables/index.html"),
    log:
        "logs/paper/results_page.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(20),
    params:
        models=described(REGISTRY),
        shown=CONFIG.page.items,
        depth=CONFIG.page.depth,
    shell:
        "python {input.script} --artifacts {input.artifacts} --template {input.template}"
        " --tables {input.tables} --figures {input.figures} --claims {input.claims}"
        " --metrics {input.metrics} --models {params.models:q} --items {params.shown}"
        " --depth {params.depth} --output {output}"
        " 2> >(tee {log} >&2)"


rule jam_results_table:
    """ID10M-JAM's Table 3 (drift), 5 (usage) or 6 (confusion)."""
    input:
        script=script("jam_results_table"),
        modules=modules("jam_results_table"),
        template=here("templates/jam_{table}.tex.jinja"),
        layout=here("templates/jam_results.tex.jinja"),
        published=lambda wildcards: here(f"published/jam_table{JAM_TABLES[wildcards.table]}.csv"),
        metrics=lambda wildcards: jam_metrics_files(),
    output:
        tex="paper_tables/jam_{table}.tex",
        csv=shown("paper_tables/jam_{table}.csv"),
    log:
        "logs/paper/jam_{table}.log",
    wildcard_constraints:
        table=alternatives(JAM_TABLES),
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described(JAM_ALL_MODELS),
    shell:
        "python {input.script} --table {wildcards.table} --metrics {input.metrics}"
        " --models {params.models:q} --published {input.published} --template {input.template}"
        " --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule jam_runs_table:
    """Every run of ID10M-JAM with its intervals, and McNemar's test of every two."""
    input:
        script=script("jam_runs_table"),
        modules=modules("jam_runs_table"),
        template=here("templates/jam_pairs.tex.jinja"),
        metrics=lambda wildcards: jam_metrics_files(),
    output:
        runs=shown("paper_tables/jam_runs.csv"),
        pairs=shown("paper_tables/jam_pairs.csv"),
        tex="paper_tables/jam_pairs.tex",
    log:
        "logs/paper/jam_runs.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described(JAM_ALL_MODELS),
    shell:
        "python {input.script} --metrics {input.metrics} --models {params.models:q}"
        " --template {input.template} --runs-csv {output.runs} --pairs-csv {output.pairs}"
        " --pairs-tex {output.tex}"
        " 2> >(tee {log} >&2)"


rule jam_figures:
    """ID10M-JAM's Figures 2, 3 and 6, and what the text says of them."""
    input:
        script=script("jam_figures"),
        modules=modules("jam_figures"),
        style=here("templates/pieline.mplstyle"),
        template=here("templates/jam_text.tex.jinja"),
        text_numbers=here("published/text_numbers.csv"),
        metrics=lambda wildcards: jam_metrics_files(),
    output:
        accuracy=[
            "paper_tables/figures/jam_accuracy_vs_drift.pdf",
            shown("paper_tables/figures/jam_accuracy_vs_drift.png"),
        ],
        confused=[
            "paper_tables/figures/jam_confused_models.pdf",
            shown("paper_tables/figures/jam_confused_models.png"),
        ],
        mixed=[
            "paper_tables/figures/jam_all_vs_mixed.pdf",
            shown("paper_tables/figures/jam_all_vs_mixed.png"),
        ],
        tex="paper_tables/jam_text.tex",
        csv=shown("paper_tables/jam_text.csv"),
    log:
        "logs/paper/jam_figures.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described(JAM_ALL_MODELS),
    shell:
        "python {input.script} --metrics {input.metrics} --models {params.models:q}"
        " --text-numbers {input.text_numbers} --style {input.style} --template {input.template}"
        " --accuracy {output.accuracy} --confused {output.confused} --mixed {output.mixed}"
        " --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule jam_humans_table:
    """ID10M-JAM's human baseline."""
    input:
        script=script("jam_humans_table"),
        modules=modules("jam_humans_table"),
        template=here("templates/jam_humans.tex.jinja"),
        text_numbers=here("published/text_numbers.csv"),
        metrics="results/metrics/jam/english/humans.json",
    output:
        tex="paper_tables/jam_humans.tex",
        csv=shown("paper_tables/jam_humans.csv"),
    log:
        "logs/paper/jam_humans.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    shell:
        "python {input.script} --metrics {input.metrics} --text-numbers {input.text_numbers}"
        " --template {input.template} --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule jam_neutral_table:
    """ID10M-JAM's neutral-context ablation."""
    input:
        script=script("jam_neutral_table"),
        modules=modules("jam_neutral_table"),
        template=here("templates/jam_neutral.tex.jinja"),
        text_numbers=here("published/text_numbers.csv"),
        metrics=jam_neutral_run,
    output:
        tex="paper_tables/jam_neutral.tex",
        csv=shown("paper_tables/jam_neutral.csv"),
    log:
        "logs/paper/jam_neutral.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=described(JAM_ALL_MODELS),
    shell:
        "python {input.script} --metrics {input.metrics} --models {params.models:q}"
        " --text-numbers {input.text_numbers} --template {input.template}"
        " --tex {output.tex} --csv {output.csv}"
        " 2> >(tee {log} >&2)"


rule jam_attention_table:
    """ID10M-JAM's attention analysis with Figure 7."""
    input:
        script=script("jam_attention_table"),
        modules=modules("jam_attention_table"),
        template=here("templates/jam_attention.tex.jinja"),
        style=here("templates/pieline.mplstyle"),
        metrics=jam_attention_file,
    output:
        tex="paper_tables/jam_attention.tex",
        csv=shown("paper_tables/jam_attention.csv"),
        pdf="paper_tables/figures/jam_attention.pdf",
        png=shown("paper_tables/figures/jam_attention.png"),
    log:
        "logs/paper/jam_attention.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=lambda wildcards: described([CONFIG.jam.attention.model]),
    shell:
        "python {input.script} --metrics {input.metrics} --models {params.models:q}"
        " --template {input.template} --style {input.style} --tex {output.tex}"
        " --csv {output.csv} --pdf {output.pdf} --png {output.png}"
        " 2> >(tee {log} >&2)"


rule paper_source:
    """One LaTeX document with all tables and figures in the papers' order."""
    input:
        script=script("paper"),
        modules=modules("paper"),
        artifacts=here("templates/artifacts.yaml"),
        template=here("templates/paper.tex.jinja"),
        tables=tables_of_the_run,
        latex=latex_of_the_run,
        figures=lambda wildcards: figures_of_the_run(wildcards, ".pdf"),
        ledger=["paper_tables/claims.tex", "paper_tables/comparison.tex"],
    output:
        "paper_tables/paper.tex",
    log:
        "logs/paper/paper_source.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        models=lambda wildcards: json.dumps(models_of_the_run(), sort_keys=True),
        data=CONFIG.data,
    shell:
        "python {input.script} source --artifacts {input.artifacts} --template {input.template}"
        " --tables {input.tables} --figures {input.figures} --models {params.models:q}"
        " --data {params.data} --output {output}"
        " 2> >(tee {log} >&2)"


rule paper_pdf:
    """The same document compiled; needs pdflatex and is no target where there is none."""
    input:
        script=script("paper"),
        modules=modules("paper"),
        source="paper_tables/paper.tex",
        latex=latex_of_the_run,
        figures=lambda wildcards: figures_of_the_run(wildcards, ".pdf"),
        ledger=["paper_tables/claims.tex", "paper_tables/comparison.tex"],
    output:
        shown("paper_tables/paper.pdf"),
    log:
        "logs/paper/paper_pdf.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    shell:
        "python {input.script} compile --source {input.source} --output {output}"
        " 2> >(tee {log} >&2)"


rule provenance:
    """What decided the run's results, as JSON and as an RO-Crate."""
    input:
        script=script("provenance"),
        modules=modules("provenance"),
        upstream=here("data/upstream.yaml"),
        licences=here("data/licences.yaml"),
        lock=here("envs/requirements.lock"),
        raw=raw_files_of_the_run,
        metrics=metrics_of_the_run,
        tables=tables_of_the_run,
        latex=latex_of_the_run,
        figures=figures_of_the_run,
        figure_pdfs=lambda wildcards: figures_of_the_run(wildcards, ".pdf"),
        whole=[
            "paper_tables/claims.csv",
            "paper_tables/claims.json",
            "paper_tables/comparison.csv",
            "paper_tables/index.html",
        ],
    output:
        json="results/provenance.json",
        crate="ro-crate-metadata.json",
    log:
        "logs/paper/provenance.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        run=run_description,
        recordings=recordings_of_the_run,
    shell:
        "python {input.script} --run {params.run:q} --raw {input.raw}"
        " --recordings {params.recordings} --upstream {input.upstream}"
        " --licences {input.licences} --lock {input.lock}"
        " --outputs {input.metrics} {input.tables} {input.latex} {input.figures}"
        " {input.figure_pdfs} {input.whole} --json {output.json} --crate {output.crate}"
        " 2> >(tee {log} >&2)"
