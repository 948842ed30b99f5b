"""Questions to language models: one rule per kind, all with the same script."""

import atexit

from pieline.llm.estimates import check as check_answers, notices
from pieline.llm.task import load_task


rule jam_generate_variants:
    """Write hard variants of the originals with a language model, and review them."""
    input:
        files=question_files("jam_generate_variants"),
        served=served_before("jam_generate_variants"),
    output:
        variants=jam_paths.VARIANTS,
        report=jam_paths.VARIANTS_REPORT,
    log:
        log_of(jam_paths.VARIANTS),
    benchmark:
        benchmark_of(jam_paths.VARIANTS)
    wildcard_constraints:
        language=jam_files.written_constraint(JAM),
    conda:
        "../envs/llm.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        *modules("ask", LLM_TASKS["jam_generate_variants"].task.path()),
        **question_params("jam_generate_variants"),
    script:
        "../scripts/ask.py"


rule prompt_idioms:
    """Ask a model which idioms each sentence contains."""
    input:
        files=question_files("prompt_idioms"),
        served=served_before("prompt_idioms"),
    output:
        predictions=jam_paths.PREDICTIONS,
    log:
        log_of(jam_paths.PREDICTIONS),
    benchmark:
        benchmark_of(jam_paths.PREDICTIONS)
    wildcard_constraints:
        model=CALLED,
    conda:
        "../envs/llm.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        *modules("ask", LLM_TASKS["prompt_idioms"].task.path()),
        **question_params("prompt_idioms"),
    script:
        "../scripts/ask.py"


# Served models have separate rules: in a common group of cluster jobs, queries to providers would
# wait for all GPU jobs.
use rule prompt_idioms as prompt_idioms_served with:
    wildcard_constraints:
        model=SERVED,


if JAM.settings.variants.model:

    rule jam_neutral_variants:
        """Write neutral variants for the hard ones that confused a model (appendix G)."""
        input:
            files=question_files("jam_neutral_variants"),
            served=served_before("jam_neutral_variants"),
        output:
            variants=jam_paths.NEUTRAL_VARIANTS,
            report=jam_paths.NEUTRAL_REPORT,
        log:
            log_of(jam_paths.NEUTRAL_VARIANTS),
        benchmark:
            benchmark_of(jam_paths.NEUTRAL_VARIANTS)
        wildcard_constraints:
            model=JAM.project.constraint("llm", "encoder"),
        conda:
            "../envs/llm.yaml"
        resources:
            mem_mb=growing(8000),
            runtime=growing(60),
        params:
            *modules("ask", LLM_TASKS["jam_neutral_variants"].task.path()),
            **question_params("jam_neutral_variants"),
        script:
            "../scripts/ask.py"

    rule jam_neutral_contexts:
        """Write a neutral variant for each hard one, for prompts with neutral contexts."""
        input:
            files=question_files("jam_neutral_contexts"),
            served=served_before("jam_neutral_contexts"),
        output:
            variants=jam_paths.NEUTRAL_CONTEXTS,
            report=jam_paths.NEUTRAL_CONTEXTS.replace(".jsonl", ".report.json"),
        log:
            log_of(jam_paths.NEUTRAL_CONTEXTS),
        benchmark:
            benchmark_of(jam_paths.NEUTRAL_CONTEXTS)
        conda:
            "../envs/llm.yaml"
        resources:
            mem_mb=growing(8000),
            runtime=growing(60),
        params:
            *modules("ask", LLM_TASKS["jam_neutral_contexts"].task.path()),
            **question_params("jam_neutral_contexts"),
        script:
            "../scripts/ask.py"


rule prompt_neutral:
    """Ask a model which idioms the neutral variants contain."""
    input:
        files=question_files("prompt_neutral"),
        served=served_before("prompt_neutral"),
    output:
        predictions=jam_paths.NEUTRAL_PREDICTIONS,
    log:
        log_of(jam_paths.NEUTRAL_PREDICTIONS),
    benchmark:
        benchmark_of(jam_paths.NEUTRAL_PREDICTIONS)
    wildcard_constraints:
        model=CALLED,
    conda:
        "../envs/llm.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(120),
    params:
        *modules("ask", LLM_TASKS["prompt_neutral"].task.path()),
        **question_params("prompt_neutral"),
    script:
        "../scripts/ask.py"


use rule prompt_neutral as prompt_neutral_served with:
    wildcard_constraints:
        model=SERVED,


rule idiots_detect:
    """Ask a model whether each sentence contains an idiom, and which."""
    input:
        files=question_files("idiots_detect"),
        served=served_before("idiots_detect"),
    output:
        predictions=idiots_paths.PREDICTIONS,
    log:
        log_of(idiots_paths.PREDICTIONS),
    benchmark:
        benchmark_of(idiots_paths.PREDICTIONS)
    wildcard_constraints:
        model=CALLED,
        setting=idiots_files.constraints(IDIOTS)["setting"],
    conda:
        "../envs/llm.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        *modules("ask", LLM_TASKS["idiots_detect"].task.path()),
        **question_params("idiots_detect"),
    script:
        "../scripts/ask.py"


use rule idiots_detect as idiots_detect_served with:
    wildcard_constraints:
        model=SERVED,
        setting=idiots_files.constraints(IDIOTS)["setting"],


rule idiolink_generate:
    """Write the documents or queries of IdioLink with a language model."""
    input:
        files=question_files("idiolink_generate"),
        served=served_before("idiolink_generate"),
    output:
        texts=idiolink_paths.TEXTS,
        report=idiolink_paths.TEXTS_REPORT,
    log:
        log_of(idiolink_paths.TEXTS),
    benchmark:
        benchmark_of(idiolink_paths.TEXTS)
    wildcard_constraints:
        collection=alternatives(idiolink_models.COLLECTIONS),
    conda:
        "../envs/llm.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        *modules("ask", LLM_TASKS["idiolink_generate"].task.path()),
        **question_params("idiolink_generate"),
    script:
        "../scripts/ask.py"


rule idiolink_validate:
    """Validate the generated texts with a language model."""
    input:
        files=question_files("idiolink_validate"),
        served=served_before("idiolink_validate"),
    output:
        verdicts=idiolink_paths.VERDICTS,
    log:
        log_of(idiolink_paths.VERDICTS),
    benchmark:
        benchmark_of(idiolink_paths.VERDICTS)
    wildcard_constraints:
        collection=alternatives(idiolink_models.COLLECTIONS),
    conda:
        "../envs/llm.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        *modules("ask", LLM_TASKS["idiolink_validate"].task.path()),
        **question_params("idiolink_validate"),
    script:
        "../scripts/ask.py"


rule idiolink_embed:
    """Embed documents or queries with the model of a provider."""
    input:
        files=question_files("idiolink_embed"),
        served=served_before("idiolink_embed"),
    output:
        vectors=idiolink_paths.API_VECTORS,
    log:
        log_of(idiolink_paths.API_VECTORS),
    benchmark:
        benchmark_of(idiolink_paths.API_VECTORS)
    wildcard_constraints:
        model=alternatives(idiolink_models.api_embedders(IDIOLINK)),
        texts=alternatives(["documents", *idiolink_tasks.TEXT_MODES]),
    conda:
        "../envs/llm.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        *modules("ask", LLM_TASKS["idiolink_embed"].task.path()),
        **question_params("idiolink_embed"),
    script:
        "../scripts/ask.py"


rule serve:
    """Ask one served model all of a run's questions of one kind, starting its server once."""
    input:
        models=MODELS,
        files=lambda wildcards: sorted(
            set(
                chain.from_iterable(
                    task.inputs.values() for task in served_tasks(**wildcards).values()
                )
            )
        ),
    output:
        # Temporary, so that the server is started again only if answers are missing.
        temp("results/served/{kind}/{model}.txt"),
    log:
        "logs/served/{kind}/{model}.log",
    benchmark:
        "logs/benchmarks/served/{kind}/{model}.tsv"
    wildcard_constraints:
        kind=alternatives(LLM_TASKS),
        model=alternatives(SHARE_SERVER),
    conda:
        "../envs/llm.yaml"
    resources:
        gpu=lambda wildcards: server_gpus(REGISTRY[wildcards.model]),
        # A cluster may spread GPUs over nodes, but a server needs all of them on one node.
        nodes=1,
        gpu_mem_mb=lambda wildcards: server_gpu_memory_mb(REGISTRY[wildcards.model]),
        mem_mb=growing(lambda wildcards: server_host_memory_mb(REGISTRY[wildcards.model])),
        runtime=growing(240),
    params:
        recordings=lambda wildcards: list(served_tasks(**wildcards)),
        config=CONFIG.model_dump_json(),
        root=ROOT,
    script:
        "../scripts/serve.py"


rule estimate_cost:
    """Estimate the remaining tokens, dollars, jobs and downloads; ask no model."""
    input:
        models=MODELS,
    log:
        "logs/estimate_cost.log",
    localrule: True
    conda:
        "../envs/llm.yaml"
    params:
        config=CONFIG.model_dump_json(),
        root=ROOT,
        options=RUN_REPORT.options,
    script:
        "../scripts/estimate_cost.py"


rule check:
    """Report all missing keys, weights and recordings in one error; ask no model."""
    input:
        models=MODELS,
    log:
        "logs/check.log",
    localrule: True
    conda:
        "../envs/llm.yaml"
    params:
        config=CONFIG.model_dump_json(),
        root=ROOT,
        options=RUN_REPORT.options,
    script:
        "../scripts/check.py"


rule answers:
    """Print how each model's recorded answers were parsed, with examples, unreadable ones first."""
    input:
        models=MODELS,
    log:
        "logs/answers.log",
    localrule: True
    conda:
        "../envs/llm.yaml"
    params:
        config=CONFIG.model_dump_json(),
        root=ROOT,
    script:
        "../scripts/answers.py"


if workflow.output_settings.dryrun:
    # Printed after the plan, so that it is visible at the end of the output.
    atexit.register(lambda: show(RUN_REPORT.left_out()))


onerror:
    # A marker file may cover tasks that lack answers; removing it makes the next run ask for them.
    shutil.rmtree("results/served", ignore_errors=True)


onsuccess:
    shutil.rmtree("results/served", ignore_errors=True)
    if ends_run:
        show(RUN_REPORT.closing_lines(shutil.get_terminal_size((160, 24)).columns))


onstart:
    try:
        patch_snakemake(workflow)
    except UserError as error:
        exit_with(error)
    # Report everything that is missing before any job starts and money is spent.
    jobs = list(workflow.dag.needrun_jobs())
    global ends_run
    ends_run = any("results/provenance.json" in job.output for job in jobs)
    # These two rules report the models that are left out themselves.
    if {job.rule.name for job in jobs} - {"estimate_cost", "check"}:
        show(RUN_REPORT.left_out())
    tasks = [
        load_task(job.params.kind, job.params.task)
        for job in jobs
        if "task" in job.params.keys()
    ]
    remade = {path for job in jobs for path in job.output}
    show(notices(tasks, REGISTRY, LLM_SETTINGS, remade))
    try:
        check_answers(tasks, LLM_SETTINGS, remade)
    except UserError as error:
        if not workflow.execution_settings.keep_going:
            exit_with(error)
        # Jobs that need no answers still run; the jobs that cannot ask their model will fail.
        print(f"error: {error}", file=sys.stderr, flush=True)
