"""language models: what asking would cost and whether it can be done, before anything is asked."""


rule estimate_cost:
    """Calls, tokens and dollars by model, less what is recorded; asks nothing."""
    input:
        script=script("estimate_cost"),
        modules=modules("estimate_cost"),
        models=here("models.yaml"),
        questions=llm_inputs,
    log:
        "logs/estimate_cost.log",
    localrule: True
    conda:
        "../envs/llm.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        jobs=lambda wildcards: llm_jobs(),
    shell:
        'python {input.script} --jobs {params.jobs:q} --settings "$PIELINE_LLM_SETTINGS"'
        " --models {input.models} 2> >(tee {log} >&2)"


rule check:
    """One error that lists all keys, weights and recordings that are missing; asks nothing."""
    input:
        script=script("check_llm"),
        modules=modules("check_llm"),
        models=here("models.yaml"),
        questions=llm_inputs,
    log:
        "logs/check.log",
    localrule: True
    conda:
        "../envs/llm.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        jobs=lambda wildcards: llm_jobs(),
    shell:
        'python {input.script} --jobs {params.jobs:q} --settings "$PIELINE_LLM_SETTINGS"'
        " --models {input.models} 2> >(tee {log} >&2)"
