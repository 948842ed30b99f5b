"""Names of the files of the IdioTS study, and what its rules share."""

IDIOTS_SETTINGS = ["zero_shot", "zero_shot_schema"]


def idiots_runs(pattern):
    """A file name for each run of the study: model, setting, seed."""
    return expand(
        pattern,
        model=CONFIG.idiots.models,
        setting=CONFIG.idiots.settings,
        seed=CONFIG.idiots.seeds,
    )


def idiots_kinds(wildcards):
    """The file that marks the distractors, if there is one."""
    if CONFIG.data == "sample":
        return ["results/raw/idiots/distractor_kinds.csv"]
    return [CONFIG.idiots.distractor_kinds] if CONFIG.idiots.distractor_kinds else []


def idiots_verdicts(wildcards):
    """The cases that people judged, if there are any."""
    return [CONFIG.idiots.verdicts] if CONFIG.idiots.verdicts else []


def idiots_recordings(model):
    """The recorded answers of a model: no output of any rule, so that nothing deletes them."""
    return here(Path(CONFIG.llm.recordings_folder) / "idiots" / f"{model}.jsonl")


def idiots_llm_jobs():
    """The language-model jobs of the study (see `pieline.llm.jobs`)."""
    if "idiots" not in CONFIG.studies:
        return []
    return [
        {
            "study": "idiots",
            "model": model,
            "dataset": "results/datasets/idiots",
            "prompt": here("prompts/idiots/detect.jinja"),
            "setting": setting,
            "seed": seed,
            "parameters": CONFIG.idiots.parameters.model_dump(),
            "recordings": idiots_recordings(model),
        }
        for model in CONFIG.idiots.models
        for setting in CONFIG.idiots.settings
        for seed in CONFIG.idiots.seeds
    ]


def idiots_llm_inputs():
    """What the questions of the study are made from."""
    if "idiots" not in CONFIG.studies:
        return []
    return [
        "results/datasets/idiots/sentences.jsonl",
        "results/datasets/idiots/manifest.json",
        here("prompts/idiots/detect.jinja"),
    ]


def idiots_targets(wildcards):
    """Tables, figure and cases to judge of the IdioTS study."""
    if "idiots" not in CONFIG.studies:
        return []
    return [
        *expand(
            "paper_tables/idiots_{table}.tex", table=["detection", "consistency", "distractors"]
        ),
        "paper_tables/figures/idiots_recall_specificity.pdf",
        *idiots_runs("results/predictions/idiots/{model}/{setting}/seed-{seed}.cases.jsonl"),
    ]
