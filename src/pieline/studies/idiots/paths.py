"""Path patterns of the IdioTS files, and the choice of the raw file with the sentences."""

from pieline.reporting.displays import ConfiguredStudy

SAMPLE_KINDS = "results/raw/idiots/distractor_kinds.csv"

PROMPT = "prompts/idiots/detect.jinja"
"""The paper's prompt, relative to the project."""

SENTENCES = "results/datasets/idiots/sentences.jsonl"
MANIFEST = "results/datasets/idiots/manifest.json"

PREDICTIONS = "results/predictions/idiots/{model}/{setting}/seed-{seed}.jsonl"
CASES = "results/predictions/idiots/{model}/{setting}/seed-{seed}.cases.jsonl"
CASES_CSV = "results/predictions/idiots/{model}/{setting}/seed-{seed}.cases.csv"

METRICS = "results/metrics/idiots/{model}/{setting}/seed-{seed}.json"

TABLE = "idiots/idioms_sentences.tsv"
"""Name of the raw file with the sentences in the public data, a TSV table."""
ARRAY = "idiots/idiots.json"
"""Name of the raw file with the sentences in the sample, a JSON array."""


def raw_name(study: ConfiguredStudy) -> str:
    """Return the name of the raw file with the sentences.

    The user's own data may contain `TABLE` or `ARRAY`. If it contains both, `TABLE` is used.
    """
    project = study.project
    if project.is_sample:
        return ARRAY
    if project.own_data and not project.is_available(TABLE) and project.is_available(ARRAY):
        return ARRAY
    return TABLE


def no_data_reason(study: ConfiguredStudy) -> str:
    """Return the reason why the sentences are missing; empty if they are available."""
    name = raw_name(study)
    is_missing = study.project.data == "released" and not study.project.is_available(name)
    return f"the mirror has no {name}" if is_missing else ""
