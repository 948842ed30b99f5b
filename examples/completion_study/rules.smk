rule completion_metrics:
    """Compute the accuracy of a model."""
    input:
        EVERY_STUDY["completion"].predictions,
    output:
        EVERY_STUDY["completion"].scores,
    log:
        log_of(EVERY_STUDY["completion"].scores),
    conda:
        "../../../../envs/core.yaml"
    params:
        *modules(None, "pieline.studies.completion.score"),
        conditions=conditions_of(EVERY_STUDY["completion"].scores),
    script:
        "score.py"
