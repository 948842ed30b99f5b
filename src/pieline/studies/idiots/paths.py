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
"""Name of a raw file that may contain the sentences."""
ARRAY = "idiots/idiots.json"
"""Name of the other raw file that may contain the sentences."""


def raw_name(study: ConfiguredStudy) -> str:
    """Return the raw file name of the sentences.

    The file is a JSON array in the sample, and in own data that has an array but no table. In
    all other cases, the file is a table.
    """
    own_array = study.project.own_data and not study.project.is_available(TABLE)
    is_array = study.project.is_sample or (own_array and study.project.is_available(ARRAY))
    return ARRAY if is_array else TABLE


def no_data(study: ConfiguredStudy) -> str:
    """Return why the sentences are missing; empty if they are available."""
    name = raw_name(study)
    is_available = study.project.data != "released" or study.project.is_available(name)
    return "" if is_available else f"the mirror has no {name}"
