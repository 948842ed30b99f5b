"""Questions to language models in all studies: one rule per kind of task."""

import atexit

from pieline.llm.estimates import check as check_answers, notices
from pieline.llm.task import load_task

for name, spec, models in chain.from_iterable(map(rules_of_task, LLM_TASKS.values())):

    rule:
        name:
            name
        input:
            files=lambda wildcards, make=spec.make: list(make(**wildcards).inputs.values()),
            served=lambda wildcards, spec=spec: served_before(spec.name, spec.make(**wildcards)),
        output:
            **spec.outputs,
        log:
            f"logs/{spec.first_output()}.log",
        benchmark:
            f"logs/benchmarks/{spec.first_output()}.tsv"
        wildcard_constraints:
            **spec.constraints | models,
        conda:
            "../envs/llm.yaml"
        threads: lambda wildcards, make=spec.make: make(**wildcards).entry().threads
        resources:
            mem_mb=growing(8000),
            runtime=growing(spec.minutes),
        params:
            *modules("ask", spec.task.path()),
            contents=contents(lambda wildcards, make=spec.make: make(**wildcards).inputs.values()),
            kind=spec.task.path(),
            task=lambda wildcards, make=spec.make: make(**wildcards).canonical(),
            answers=lambda wildcards, spec=spec: state_of_answers(spec, wildcards),
            # Only the mode `fresh` replaces answers, so a change between other modes reruns no job.
            fresh=CONFIG.llm.mode == "fresh",
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
    threads: lambda wildcards: REGISTRY[wildcards.model].threads
    resources:
        gpu=lambda wildcards: server_gpus(REGISTRY[wildcards.model]),
        # A cluster may spread GPUs over nodes, but a server needs all of them on one node.
        nodes=1,
        gpu_mem_mb=lambda wildcards: server_gpu_memory_mb(REGISTRY[wildcards.model]),
        mem_mb=growing(lambda wildcards: server_host_memory_mb(REGISTRY[wildcards.model])),
        runtime=growing(lambda wildcards: LLM_TASKS[wildcards.kind].minutes),
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


onstart:
    try:
        patch_snakemake(workflow)
    except UserError as error:
        exit_with(error)
    # Report everything that is missing before any job starts and money is spent.
    jobs = list(workflow.dag.needrun_jobs())
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
