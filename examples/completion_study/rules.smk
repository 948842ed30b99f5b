from pieline.studies.completion import study as completion


rule completion_ask:
    """Ask a model to complete the idioms."""
    input:
        files=question_files("completion_ask"),
        served=served_before("completion_ask"),
    output:
        predictions=completion.PREDICTIONS,
    log:
        log_of(completion.PREDICTIONS),
    wildcard_constraints:
        model=PROJECT.constraint("llm"),
    conda:
        "../../../../envs/llm.yaml"
    params:
        *modules("ask", LLM_TASKS["completion_ask"].task.path()),
        **question_params("completion_ask"),
    script:
        "../../../../scripts/ask.py"


rule completion_metrics:
    """Compute the accuracy of a model."""
    input:
        completion.PREDICTIONS,
    output:
        completion.SCORES,
    log:
        log_of(completion.SCORES),
    conda:
        "../../../../envs/core.yaml"
    params:
        *modules(None, "pieline.studies.completion.score"),
        conditions=conditions_of(completion.SCORES),
    script:
        "score.py"
