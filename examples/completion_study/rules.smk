rule completion_metrics:
    """Compute the accuracy of a model."""
    input:
        "results/predictions/completion/{model}.jsonl",
    output:
        "results/metrics/completion/{model}.json",
    log:
        log_of("results/metrics/completion/{model}.json"),
    conda:
        "../../../../envs/core.yaml"
    params:
        *modules(None, "pieline.studies.completion.score"),
        conditions=conditions_of("results/metrics/completion/{model}.json"),
    script:
        "score.py"
