"""Names of the files of the ID10M-JAM experiments, and what their rules share."""

from types import SimpleNamespace

from pieline.studies.jam.predictions.prompting import is_asked, prompt_file
from pieline.studies.jam.training.settings import TaggingSettings

JAM_PROMPT_SETTINGS = ["zero_shot", "zero_shot_schema", "few_shot_sc_cotbest"]

# The paper's table by the name of ours.
JAM_TABLES = {"drift": 3, "usage": 5, "confusion": 6}
JAM_ALL_MODELS = [*entries_of("llm"), *entries_of("encoder")]

JAM_PROMPTED = alternatives(entries_of("llm"))
JAM_TAGGED = alternatives(entries_of("encoder"))


def jam_models(kind):
    """The models of a kind that the configuration names."""
    return [name for name in CONFIG.jam.models if REGISTRY[name].kind == kind]


def jam_runs(pattern, language=None, kinds=("llm", "encoder")):
    """A file name for each run: language, model, setting and seed."""
    runs = []
    for name in CONFIG.jam.models:
        entry = REGISTRY[name]
        if entry.kind not in kinds:
            continue
        for spoken in [language] if language else CONFIG.jam.languages:
            if entry.kind == "encoder":
                settings = ["fine_tuned"] if spoken in entry.languages else []
                seeds = CONFIG.jam.fine_tuning.seeds
            else:
                settings = [name for name in CONFIG.jam.settings if is_asked(entry, name)]
                seeds = CONFIG.jam.seeds_by_model.get(name, CONFIG.jam.seeds)
            runs += expand(pattern, language=spoken, model=name, setting=settings, seed=seeds)
    return runs


def jam_metrics_files(language=None, kinds=("llm", "encoder")):
    """Metric files of all runs that the configuration names."""
    return jam_runs(
        "results/metrics/jam/{language}/{model}/{setting}/seed-{seed}.json",
        language=language,
        kinds=kinds,
    )


def jam_sentences(wildcards):
    """The sentences to predict: the dataset, or the originals where there are no variants."""
    room = "originals" if CONFIG.jam.variants.source == "none" else "datasets"
    return f"results/{room}/jam/{wildcards.language}.jsonl"


def jam_train_split(wildcards):
    """The file that encoders learn from, as far as it is ID10M's train split."""
    if CONFIG.jam.train_split == "dev":
        return []
    return [f"results/raw/id10m/train_{wildcards.language}.tsv"]


def jam_examples(wildcards):
    """The file that a prompt's examples are drawn from, if the setting has examples."""
    if wildcards.setting != "few_shot_sc_cotbest":
        return []
    return [f"results/raw/id10m/{CONFIG.jam.train_split}_{wildcards.language}.tsv"]


def jam_tagging_settings():
    """Hyperparameters of encoders, as canonical JSON."""
    settings = CONFIG.jam.fine_tuning.model_dump(include=set(TaggingSettings.model_fields))
    return json.dumps(settings, sort_keys=True)


def jam_prompts(wildcards):
    """The templates of a setting."""
    names = [prompt_file(wildcards.setting)]
    if wildcards.setting == "few_shot_sc_cotbest":
        names.append("few_shot_example.jinja")
    return [here(f"prompts/jam/{name}") for name in names]


def jam_prompt_parameters(setting):
    """How a setting asks."""
    few_shot = setting == "few_shot_sc_cotbest"
    return (CONFIG.jam.few_shot if few_shot else CONFIG.jam.zero_shot).model_dump()


def jam_prompt_recordings(study, language, model, setting, seed):
    """Recorded answers of one run. A file a run: where a provider accepts no seed, runs with
    different seeds ask the same questions and must not share their answers."""
    return jam_recordings(study, language, model, f"{setting}-seed-{seed}.jsonl")


def jam_prompt_jobs():
    """The language-model jobs of the experiments (see `pieline.llm.jobs`)."""
    if "jam" not in CONFIG.studies:
        return []
    jobs = []
    for name in jam_runs("{language}/{model}/{setting}/{seed}", kinds=["llm"]):
        language, model, setting, seed = name.split("/")
        wildcards = SimpleNamespace(language=language, setting=setting)
        train = jam_examples(wildcards)
        jobs.append(
            {
                "study": "jam",
                "model": model,
                "dataset": jam_sentences(wildcards),
                "prompt": jam_prompts(wildcards)[0],
                "setting": setting,
                "seed": int(seed),
                "parameters": jam_prompt_parameters(setting)
                | ({"train": train[0]} if train else {}),
                "recordings": jam_prompt_recordings("jam", language, model, setting, seed),
            }
        )
    return jobs


def jam_prompt_inputs():
    """What the questions of the experiments are made from."""
    jobs = jam_prompt_jobs()
    files = [job[key] for job in jobs for key in ("dataset", "prompt")]
    files += [job["parameters"]["train"] for job in jobs if "train" in job["parameters"]]
    return sorted(set(files))


def jam_human_labels(wildcards):
    """Two people's labels of variants; the sample's are simulated."""
    if CONFIG.jam.humans:
        return CONFIG.jam.humans
    return here("data/sample/id10m/humans/english_simulated.csv")


def jam_neutral_run(wildcards):
    """The metric file of the neutral-context ablation."""
    run = CONFIG.jam.neutral
    return (
        f"results/metrics/jam_neutral/{run.language}/{run.model}/{run.setting}/seed-{run.seed}.json"
    )


def jam_attention_file(wildcards):
    """The metric file of the attention analysis."""
    analysis = CONFIG.jam.attention
    return f"results/metrics/jam_attention/{analysis.language}/{analysis.model}.json"


def jam_experiment_targets(wildcards):
    """Tables and figures of the experiments, as far as the configuration has what they need."""
    jam = CONFIG.jam
    if "jam" not in CONFIG.studies or not jam.models:
        return []
    if jam.variants.source == "none":
        return jam_metrics_files()
    names = [*(f"jam_{table}.tex" for table in JAM_TABLES), "jam_pairs.tex", "jam_text.tex"]
    names += [
        f"figures/jam_{figure}.pdf"
        for figure in ("accuracy_vs_drift", "confused_models", "all_vs_mixed")
    ]
    if "english" in jam.languages and (jam.humans or jam.variants.source == "sample"):
        names.append("jam_humans.tex")
    if jam.neutral:
        names.append("jam_neutral.tex")
    if jam.attention:
        names += ["jam_attention.tex", "figures/jam_attention.pdf"]
    return [f"paper_tables/{name}" for name in names]


wildcard_constraints:
    setting="zero_shot|zero_shot_schema|few_shot_sc_cotbest|fine_tuned",
