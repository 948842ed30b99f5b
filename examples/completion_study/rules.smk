rule completion_metrics:
    """How many idioms a model completes."""
    input:
        EVERY_STUDY["completion"].predictions,
    output:
        EVERY_STUDY["completion"].scores,
        evidence=evidence_of(EVERY_STUDY["completion"].scores),
    log:
        log_of(EVERY_STUDY["completion"].scores),
    conda:
        "../../../../envs/core.yaml"
    params:
        *modules(None, "pieline.studies.completion.score"),
        conditions=lambda wildcards: EVERY_STUDY["completion"].conditions(wildcards.model),
    script:
        "score.py"
