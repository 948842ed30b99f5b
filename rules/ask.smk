"""Everything that language models are asked, whatever the study: one rule for each kind of task."""

import atexit

from pieline.llm.estimates import check as check_answers, notices
from pieline.llm.task import load_task

for name, asking, models in chain.from_iterable(map(by_place, LLM_TASKS.values())):

    rule:
        name:
            name
        input:
            files=lambda wildcards, make=asking.make: list(make(**wildcards).inputs.values()),
            served=lambda wildcards, asking=asking: served_before(
                asking.name, asking.make(**wildcards)
            ),
        output:
            **asking.outputs,
            evidence=asking.evidence,
        log:
            f"logs/{asking.first_output()}.log",
        benchmark:
            f"logs/benchmarks/{asking.first_output()}.tsv"
        wildcard_constraints:
            **asking.constraints | models,
        conda:
            "../envs/llm.yaml"
        threads: lambda wildcards, make=asking.make: make(**wildcards).entry().threads
        resources:
            mem_mb=growing(8000),
            runtime=growing(asking.minutes),
        params:
            *modules("ask", asking.task.path()),
            contents=contents(lambda wildcards, make=asking.make: make(**wildcards).inputs.values()),
            kind=asking.task.path(),
            task=lambda wildcards, make=asking.make: make(**wildcards).canonical(),
            answers=lambda wildcards, asking=asking: state_of_answers(asking, wildcards),
            # Another mode reads the same answers, except this one.
            fresh=CONFIG.llm.mode == "fresh",
        script:
            "../scripts/ask.py"


rule serve:
    """All that a run asks one served model of a kind, with one start of its server."""
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
        # Gone when the runs have been read, so that a server is thought of only for missing answers.
        temp("results/served/{asking}/{model}.txt"),
    log:
        "logs/served/{asking}/{model}.log",
    benchmark:
        "logs/benchmarks/served/{asking}/{model}.tsv"
    wildcard_constraints:
        asking=alternatives(LLM_TASKS),
        model=alternatives(SHARE_SERVER),
    conda:
        "../envs/serve.yaml"
    threads: lambda wildcards: REGISTRY[wildcards.model].threads
    resources:
        gpu=lambda wildcards: server_gpus(REGISTRY[wildcards.model]),
        # A cluster may spread GPUs over nodes, and one server cannot use those of several.
        nodes=1,
        gpu_mem_mb=lambda wildcards: server_gpu_memory_mb(REGISTRY[wildcards.model]),
        mem_mb=growing(lambda wildcards: server_host_memory_mb(REGISTRY[wildcards.model])),
        runtime=growing(lambda wildcards: LLM_TASKS[wildcards.asking].minutes),
    params:
        recordings=lambda wildcards: list(served_tasks(**wildcards)),
        config=CONFIG.model_dump_json(),
        root=ROOT,
    script:
        "../scripts/serve.py"


rule estimate_cost:
    """What is left to ask and to run: tokens, dollars, jobs, GPU-hours, downloads, disk; asks nothing."""
    input:
        models=MODELS,
    log:
        "logs/estimate_cost.log",
    localrule: True
    conda:
        "../envs/llm.yaml"
    params:
        epochs={
            "fine_tune": IDIOLINK.settings.finetuning.max_epochs,
            "fine_tune_tagger": JAM.settings.fine_tuning.epochs,
        },
        config=CONFIG.model_dump_json(),
        root=ROOT,
    script:
        "../scripts/estimate_cost.py"


rule check:
    """One error that lists all keys, weights and recordings that are missing; asks nothing."""
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
    """How recorded answers were read, by model: forms, rules and examples, unreadable ones first."""
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
    # After the plan, whose end is what a terminal shows.
    atexit.register(lambda: show(RUN_REPORT.left_out()))


onerror:
    # A mark may stand for runs that lack answers; without it they are asked for again.
    shutil.rmtree("results/served", ignore_errors=True)


onstart:
    patch_snakemake(workflow)
    if CONFIG.rehearsal:
        REHEARSAL.start(CONFIG, REGISTRY)
    # Before any job starts, and so before money is spent: all that is missing.
    jobs = list(workflow.dag.needrun_jobs())
    # These say themselves which models cannot be asked.
    if {job.rule.name for job in jobs} - {"estimate_cost", "check"}:
        show(RUN_REPORT.left_out())
    asking = [
        load_task(job.params.kind, job.params.task)
        for job in jobs
        if "task" in job.params.keys()
    ]
    remade = {path for job in jobs for path in job.output}
    show(notices(asking, REGISTRY, LLM_SETTINGS, remade))
    try:
        check_answers(asking, LLM_SETTINGS, remade)
    except UserError as error:
        if not workflow.execution_settings.keep_going:
            exit_with(error)
        # What needs no answers is made all the same; the jobs that cannot ask fail by themselves.
        print(f"error: {error}", file=sys.stderr, flush=True)
