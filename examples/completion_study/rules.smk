from pieline.studies.completion import study as completion


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
