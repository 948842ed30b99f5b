"""Names of the files of the IdioLink study, and what its rules share."""

from pieline.studies.idiolink.training.settings import Hyperparameters, TrainingSettings

# A model of models.yaml, or one fine-tuned from it.
EMBEDDER = (
    rf"({alternatives(entries_of('embedder'))})"
    r"(\+(sentence|span|instruction_sentence|instruction_span)\+(paper|released))?"
)


# What a dataset's folder holds.
DATASET_FILES = ["documents.jsonl", "queries.jsonl", "qrels.txt", "manifest.json"]


def index_name(composition):
    """Name of the test index under an index composition: the full one is the split itself."""
    return "test" if composition == "full" else f"test-{composition}"


def modes_of(model):
    """Query modes in which a model is evaluated; BM25 takes no instruction."""
    if "+" in model:
        return evaluated_modes(model)
    takes_instructions = entry_of(model).kind != "bm25"
    return [
        mode
        for mode in CONFIG.idiolink.query_modes
        if takes_instructions or not mode.startswith("instruction")
    ]


def idiolink_metrics(composition, models=None):
    """Metric files of the models that the configuration names, for one index composition."""
    for model in CONFIG.idiolink.models if models is None else models:
        for mode in modes_of(model):
            yield (f"results/metrics/idiolink/{index_name(composition)}/{model}/{mode}/seed-0.json")


def idiolink_models(kind):
    """The models of a kind that the configuration names."""
    return [name for name in CONFIG.idiolink.models if REGISTRY[name].kind == kind]


def tuned_models():
    """Names of the fine-tuned models: model+training mode+loss."""
    tuning = CONFIG.idiolink.finetuning
    for model in tuning.models:
        for mode in tuning.train_modes:
            for loss in tuning.losses:
                yield f"{model}+{mode}+{loss}"


def evaluated_modes(model):
    """Query modes in which a fine-tuned model is evaluated (Table 5).

    Queries are written as in training; a model trained on spans is evaluated on spans only.
    """
    mode = model.split("+")[1]
    return [mode] if mode.endswith("span") else [mode, mode.replace("sentence", "span")]


def tuned_metrics(models=None):
    """Metric files of fine-tuned models: each mode and seed, on the whole test index."""
    for model in tuned_models() if models is None else models:
        for mode in evaluated_modes(model):
            for seed in CONFIG.idiolink.finetuning.seeds:
                yield f"results/metrics/idiolink/test/{model}/{mode}/seed-{seed}.json"


def significance_tests():
    """Files of the test between query modes, of each model that is run in several."""
    seeds = {model: [0] for model in CONFIG.idiolink.models}
    seeds |= {model: CONFIG.idiolink.finetuning.seeds for model in tuned_models()}
    for model, model_seeds in seeds.items():
        if len(modes_of(model)) > 1:
            for seed in model_seeds:
                yield f"results/metrics/idiolink/test/{model}/significance/seed-{seed}.json"


def altered_hyperparameters():
    """Names of the hyperparameters that the configuration sets otherwise than the paper."""
    chosen = CONFIG.idiolink.finetuning
    return [
        name
        for name, field in Hyperparameters.model_fields.items()
        if getattr(chosen, name) != field.default
    ]


def training_folder(model, seed):
    """Where a fine-tuned model's weights and log lie."""
    return f"results/training/idiolink/{model.replace('+', '/')}/seed-{seed}"


def encoder_weights(wildcards):
    """What a model's jobs load instead of its checkpoint: fine-tuned or unpacked weights."""
    if "+" in wildcards.model:
        return [f"{training_folder(wildcards.model, wildcards.seed)}/weights"]
    return unpacked_weights(wildcards)


def training_tuples(wildcards):
    """The tuples that a training takes."""
    source = CONFIG.idiolink.finetuning.tuples
    name = f"sampled-seed-{wildcards.seed}" if source == "sampled" else source
    return f"results/datasets/idiolink/train/tuples/{name}.jsonl"


def training_memory(wildcards):
    """Megabytes of main memory that a training of this model needs."""
    return host_memory_mb(REGISTRY[wildcards.model], training=True)


def training_gpu_memory(wildcards):
    """Megabytes of GPU memory that a training of this model needs."""
    return gpu_memory_mb(REGISTRY[wildcards.model], training=True)


def training_spec(wildcards):
    """What of an embedder's entry changes its training."""
    return REGISTRY[wildcards.model].training_spec(
        instructed=wildcards.train_mode.startswith("instruction")
    )


def training_settings(wildcards):
    """Hyperparameters of a training, as canonical JSON."""
    tuning = CONFIG.idiolink.finetuning
    shared = tuning.model_dump(include=set(Hyperparameters.model_fields))
    if wildcards.model in tuning.batch_sizes:
        shared["batch_size"] = tuning.batch_sizes[wildcards.model]
    settings = TrainingSettings(
        loss=wildcards.loss,
        train_mode=wildcards.train_mode,
        seed=wildcards.seed,
        **shared,
    )
    return json.dumps(settings.model_dump(), sort_keys=True)


def idiolink_targets(wildcards):
    """Tables and figures of the IdioLink study."""
    if "idiolink" not in CONFIG.studies:
        return []
    names = ["idiolink_zero_shot.tex", "figures/idiolink_modes.pdf"]
    if idiolink_models("bm25"):
        names.append("idiolink_bm25.tex")
    if set(CONFIG.idiolink.compositions) - {"full"}:
        names.append("idiolink_ablation.tex")
    if idiolink_models("embedder"):
        names.append("idiolink_gains.tex")
    if list(significance_tests()):
        names.append("idiolink_significance.tex")
    names.append("figures/idiolink_by_pie.pdf")
    if CONFIG.idiolink.finetuning.models:
        names += ["idiolink_finetuned.tex", "figures/idiolink_finetuning.pdf"]
    return [f"paper_tables/{name}" for name in names]


wildcard_constraints:
    split="train|val|test",
    index=r"(train|val|test)(-(lit_sim_sense|lit_idiom))?",
    composition="lit_sim_sense|lit_idiom",
    query_mode="sentence|span|instruction_sentence|instruction_span",
    train_mode="sentence|span|instruction_sentence|instruction_span",
    loss="paper|released",
