"""Stage paper: tables and figures of every study, and reports on the entire run."""


rule table:
    """Write a table: LaTeX in the paper's layout, CSV with printed numbers, HTML for the page."""
    input:
        templates=multiext(here("templates/table"), ".tex.jinja", ".html.jinja"),
        files=display_files,
    output:
        tex="paper_tables/{table}.tex",
        csv=shown("paper_tables/{table}.csv"),
        html="paper_tables/html/{table}.html",
    log:
        "logs/paper/{table}.log",
    wildcard_constraints:
        table=alternatives(TABLES),
    conda:
        "../envs/report.yaml"
    params:
        *modules_by("table", "table", {name: table.maker for name, table in TABLES.items()}),
        contents=contents(display_files),
        maker=display_maker,
        numbers=lambda wildcards: TABLES[wildcards.table].ours,
        inputs=display_inputs,
    script:
        "../scripts/table.py"


rule figure:
    """Draw a figure as PDF and PNG."""
    input:
        style=here("templates/pieline.mplstyle"),
        files=display_files,
    output:
        pdf="paper_tables/figures/{figure}.pdf",
        png=shown("paper_tables/figures/{figure}.png"),
    log:
        "logs/paper/figures/{figure}.log",
    wildcard_constraints:
        figure=alternatives(FIGURES),
    conda:
        "../envs/report.yaml"
    params:
        *modules_by("figure", "figure", {name: figure.maker for name, figure in FIGURES.items()}),
        contents=contents(display_files),
        maker=display_maker,
        inputs=display_inputs,
    script:
        "../scripts/figure.py"


rule items:
    """Write every prediction of a study's runs as a row, as Parquet and CSV."""
    input:
        files=display_files,
        predictions=lambda wildcards: ITEMS[wildcards.study].behind,
    output:
        parquet="results/items/{study}.parquet",
        csv="results/items/{study}.csv.gz",
    log:
        "logs/items/{study}.log",
    wildcard_constraints:
        study=alternatives(ITEMS),
    conda:
        "../envs/core.yaml"
    resources:
        runtime=growing(20),
    params:
        *modules_by("study", "items", {name: items.record for name, items in ITEMS.items()}),
        contents=contents(display_files),
        record=lambda wildcards: ITEMS[wildcards.study].record,
        inputs=display_inputs,
    script:
        "../scripts/items.py"


rule numbers:
    """Join all numbers of the run with the printed ones, and judge every claim."""
    input:
        claims=here("templates/claims.tex.jinja"),
        comparison=here("templates/comparison.tex.jinja"),
        published=run_files.published(PROJECT),
        catalogue=here("published/tables.yaml"),
        files=RUN_REPORT.numbers_inputs(),
    output:
        csv=shown("paper_tables/numbers.csv"),
        parquet="paper_tables/numbers.parquet",
        claims_json="paper_tables/claims.json",
        claims_csv=shown("paper_tables/claims.csv"),
        claims_tex="paper_tables/claims.tex",
        comparison_tex="paper_tables/comparison.tex",
    log:
        "logs/paper/numbers.log",
    conda:
        "../envs/report.yaml"
    params:
        *modules("numbers", *RUN_REPORT.makers_of_numbers()),
        contents=contents(run_files.published(PROJECT), RUN_REPORT.numbers_inputs()),
        results=lambda wildcards: RUN_REPORT.results.canonical(),
        names=run_models.names_by_printed(REGISTRY),
        tables=lambda wildcards: RUN_REPORT.tables_with_numbers(),
        requirements=lambda wildcards: RUN_REPORT.requirements(),
    script:
        "../scripts/numbers.py"


rule export:
    """Export the scores of all runs as one tidy CSV, one score per row."""
    input:
        metrics=run_files.metrics(STUDIES),
        numbers="paper_tables/numbers.csv",
    output:
        "results/export.csv",
    log:
        "logs/paper/export.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        *modules("export"),
        results=lambda wildcards: RUN_REPORT.results.canonical(),
        studies=lambda wildcards: {study.name: study.metrics() for study in STUDIES},
        asked=lambda wildcards: RUN_REPORT.configured_digests(run_files.metrics(STUDIES)),
    script:
        "../scripts/export.py"


rule export_runs:
    """Pack all runs of this configuration into one archive, for use without a GPU or API keys."""
    input:
        lambda wildcards: [
            run.metrics
            for study in STUDIES
            for run in study.plan
            if run.metrics in study.metrics()
        ],
    output:
        "results/runs.tar.zst",
    log:
        "logs/export_runs.log",
    localrule: True
    conda:
        "../envs/core.yaml"
    params:
        *modules("export_runs"),
        code=lambda wildcards: code_state(ROOT).commit,
    script:
        "../scripts/export_runs.py"


rule results_page:
    """Write the results page: claims, tables, figures, and the sentences behind each number."""
    input:
        template=here("templates/page.html.jinja"),
        parts=[here("templates/page.css"), here("templates/page.js")],
        catalogue=here("published/tables.yaml"),
        numbers="paper_tables/numbers.csv",
        claims="paper_tables/claims.json",
        figures=RUN_REPORT.results.files("png"),
        html=RUN_REPORT.results.files("html"),
        metrics=run_files.metrics(STUDIES),
        predictions=run_files.inputs_of_metrics(STUDIES),
        other_page=RUN_REPORT.linked_numbers(),
    output:
        page=shown("paper_tables/index.html"),
        details=directory("paper_tables/items"),
    log:
        "logs/paper/results_page.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(20),
    params:
        *modules("results_page", *RUN_REPORT.results.item_classes()),
        results=lambda wildcards: RUN_REPORT.results.canonical(),
        asked=lambda wildcards: RUN_REPORT.configured_digests(run_files.metrics(STUDIES)),
        models=run_models.described_models(STUDIES, PROJECT),
        absent=lambda wildcards: RUN_REPORT.absent(),
        depth=CONFIG.page.depth,
    script:
        "../scripts/results_page.py"


rule paper_source:
    """Write a LaTeX document with all tables and figures in the papers' order."""
    input:
        template=here("templates/paper.tex.jinja"),
        numbers="paper_tables/numbers.csv",
        tables=RUN_REPORT.results.files("csv"),
        latex=RUN_REPORT.results.files("tex"),
        figures=RUN_REPORT.results.files("pdf"),
        ledger=["paper_tables/claims.tex", "paper_tables/comparison.tex"],
    output:
        "paper_tables/paper.tex",
    log:
        "logs/paper/paper_source.log",
    conda:
        "../envs/report.yaml"
    params:
        *modules("paper_source"),
        results=lambda wildcards: RUN_REPORT.results.canonical(),
        models=run_models.model_records(STUDIES, REGISTRY),
    script:
        "../scripts/paper_source.py"


rule paper_pdf:
    """Compile the LaTeX document; it is a target only if pdflatex is installed."""
    input:
        source="paper_tables/paper.tex",
        latex=RUN_REPORT.results.files("tex"),
        figures=RUN_REPORT.results.files("pdf"),
        ledger=["paper_tables/claims.tex", "paper_tables/comparison.tex"],
    output:
        shown("paper_tables/paper.pdf"),
    log:
        "logs/paper/paper_pdf.log",
    conda:
        "../envs/report.yaml"
    params:
        *modules("paper_pdf"),
    script:
        "../scripts/paper_pdf.py"


rule provenance:
    """Write the provenance of the run's results."""
    input:
        upstream=PROJECT.upstream,
        licences=here("data/licences.yaml"),
        lock=here("envs/requirements.lock"),
        numbers="paper_tables/numbers.csv",
        raw=run_files.raw_files(STUDIES),
        metrics=run_files.metrics(STUDIES),
        predictions=run_files.inputs_of_metrics(STUDIES),
        tables=RUN_REPORT.results.files("csv"),
        latex=RUN_REPORT.results.files("tex"),
        html=RUN_REPORT.results.files("html"),
        figures=[*RUN_REPORT.results.files("png"), *RUN_REPORT.results.files("pdf")],
        reports=[
            "paper_tables/claims.csv",
            "paper_tables/claims.json",
            "paper_tables/numbers.csv",
            "paper_tables/numbers.parquet",
            "paper_tables/index.html",
            *run_files.items(STUDIES),
        ],
    output:
        "results/provenance.json",
    log:
        "logs/paper/provenance.log",
    conda:
        "../envs/report.yaml"
    params:
        *modules("provenance"),
        results=lambda wildcards: RUN_REPORT.results.canonical(),
        run=lambda wildcards: RUN_REPORT.description(),
        recordings=lambda wildcards: run_files.recordings(STUDIES),
    script:
        "../scripts/provenance.py"
