"""Define the path patterns of the ID10M-JAM files for rules and modules."""

from pieline.core.sidecars import LIST_ENDING
from pieline.reporting.displays import ConfiguredStudy
from pieline.studies.jam.predictions.prompt_settings import FEW_SHOT
from pieline.studies.jam.predictions.records import BASELINES
from pieline.studies.jam.settings import BASELINE

RELEASED = "id10m-jam/{language}.json"
"""Path of the public originals, relative to results/raw and to a mirror."""
VALIDATED = "id10m-jam/variants/{language}.json"
"""Path of the public variants, relative to results/raw and to a mirror."""
RELEASED_ORIGINALS = f"results/raw/{RELEASED}"
RELEASED_VARIANTS = f"results/raw/{VALIDATED}"
SPLIT = "results/raw/id10m/{split}_{language}.tsv"
TEST_SPLIT = "results/raw/id10m/test_{language}.tsv"
DEV_SPLIT = "results/raw/id10m/dev_{language}.tsv"
TRAIN_SPLIT = "results/raw/id10m/train_{language}.tsv"

DECISIONS = "results/originals/jam/{language}.decisions.tsv"
ORIGINALS = "results/originals/jam/{language}.jsonl"
ORIGINALS_REPORT = "results/originals/jam/{language}.report.json"

VARIANTS = "results/variants/jam/{language}.jsonl"
VARIANTS_REPORT = "results/variants/jam/{language}.report.json"
LABELLING_TASKS = "results/variants/jam/{language}.tasks.json"
LABELLING = "results/variants/jam/{language}.labelling.xml"
NEUTRAL_VARIANTS = "results/variants/jam_neutral/{language}/{model}/{setting}/seed-{seed}.jsonl"
NEUTRAL_REPORT = "results/variants/jam_neutral/{language}/{model}/{setting}/seed-{seed}.report.json"
NEUTRAL_CONTEXTS = "results/variants/jam_neutral/{language}.jsonl"

DATASET = "results/datasets/jam/{language}.jsonl"
MANIFEST = "results/datasets/jam/{language}.manifest.json"
DISPUTED = "results/datasets/jam/{language}.disputed.tsv"
HUMAN_FORM = "results/datasets/jam/english.human_form.csv"
HUMAN_GUIDELINES = "results/datasets/jam/english.human_guidelines.txt"
HUMAN_TASKS = "results/datasets/jam/english.human_tasks.json"
HUMAN_LABELLING = "results/datasets/jam/english.human_labelling.xml"
TAGGING_TRAIN = "results/datasets/jam_tagging/{language}/train.tsv"
TAGGING_DEV = "results/datasets/jam_tagging/{language}/dev.tsv"

WEIGHTS = "results/training/jam/{language}/{model}/seed-{seed}/weights"
WEIGHTS_DIGESTS = f"{WEIGHTS}{LIST_ENDING}"
TRAINING_LOG = "results/training/jam/{language}/{model}/seed-{seed}/training.json"

PREDICTIONS = "results/predictions/jam/{language}/{model}/{setting}/seed-{seed}.jsonl"
NEUTRAL_PREDICTIONS = (
    "results/predictions/jam_neutral/{language}/{model}/{setting}/seed-{seed}.jsonl"
)

METRICS = "results/metrics/jam/{language}/{model}/{setting}/seed-{seed}.json"
STATISTICS = "results/metrics/jam/{language}/statistics.json"
HUMANS = "results/metrics/jam/english/humans.json"
NEUTRAL_METRICS = "results/metrics/jam_neutral/{language}/{model}/{setting}/seed-{seed}.json"
ATTENTION = "results/metrics/jam_attention/{language}/{model}.json"


def baselines(language: str) -> list[str]:
    """Return the paths of the metric files of a language's baselines."""
    # Baselines are not random, so the seed only completes the path.
    return [
        METRICS.format(language=language, model=name, setting=BASELINE, seed="0")
        for name in BASELINES
    ]


def prompt_files(study: ConfiguredStudy, setting: str) -> dict[str, str]:
    """Return the paths of a setting's prompt templates, by input name.

    The names are `prompt` and, for a setting with few-shot examples, `example`.
    """
    custom_prompt = study.settings.prompts.get(setting)
    if custom_prompt:
        return {"prompt": study.project.configured_file(custom_prompt.file)}
    folder = study.project.here("prompts/jam")
    if study.settings.form == "released":
        folder = f"{folder}/released"
    # With and without an enforced response format, the prompt is identical.
    template_name = setting.removesuffix("_schema")
    templates = {"prompt": f"{folder}/{template_name}.jinja"}
    if setting == FEW_SHOT:
        templates["example"] = f"{folder}/few_shot_example.jinja"
    return templates
