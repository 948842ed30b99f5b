"""Path patterns of the IdioTS files, used by rules and modules."""

SAMPLE_KINDS = "results/raw/idiots/distractor_kinds.csv"

PROMPT = "prompts/idiots/detect.jinja"
"""The paper's prompt, relative to the project."""

SENTENCES = "results/datasets/idiots/sentences.jsonl"
MANIFEST = "results/datasets/idiots/manifest.json"

PREDICTIONS = "results/predictions/idiots/{model}/{setting}/seed-{seed}.jsonl"
CASES = "results/predictions/idiots/{model}/{setting}/seed-{seed}.cases.jsonl"
CASES_CSV = "results/predictions/idiots/{model}/{setting}/seed-{seed}.cases.csv"

METRICS = "results/metrics/idiots/{model}/{setting}/seed-{seed}.json"
