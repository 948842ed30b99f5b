"""Names of the files of the ID10M-JAM study's data, and what its rules share."""


def jam_decisions(wildcards):
    """What decides on each raw sentence: the user's file, the sample's, or one that is derived."""
    if CONFIG.jam.decisions:
        return os.path.join(CONFIG.jam.decisions, f"{wildcards.language}.tsv")
    if CONFIG.data == "sample":
        return here(f"data/sample/id10m/decisions/{wildcards.language}.tsv")
    return f"results/originals/jam/{wildcards.language}.decisions.tsv"


def jam_decisions_are_derived():
    """Whether the decisions come from the released originals."""
    return CONFIG.data == "released" and not CONFIG.jam.decisions


def jam_variants_file(wildcards):
    """The file with validated variants: the sample's or the released one."""
    if CONFIG.jam.variants.source == "sample":
        return here(f"data/sample/id10m/variants/{wildcards.language}.json")
    return f"results/raw/id10m-jam/variants/{wildcards.language}.json"


def jam_training_file(wildcards):
    """ID10M's training split, if it can be had: a mirror may lack it."""
    name = f"id10m/train_{wildcards.language}.tsv"
    if CONFIG.mirror and not os.path.exists(os.path.join(CONFIG.mirror, name)):
        return []
    return [f"results/raw/{name}"]


def jam_manifest(wildcards):
    """The dataset's manifest, unless the study stops at the originals."""
    if CONFIG.jam.variants.source == "none":
        return []
    return [f"results/datasets/jam/{wildcards.language}.manifest.json"]


def jam_annotations(wildcards):
    """Label Studio exports for a language."""
    return CONFIG.jam.variants.annotations.get(wildcards.language, [])


def jam_adjudications(wildcards):
    """Decisions on disputed variants of a language, if there are any."""
    path = CONFIG.jam.variants.adjudications.get(wildcards.language)
    return [path] if path else []


def jam_checks():
    """Bounds of the automatic checks, as one canonical text."""
    return json.dumps(CONFIG.jam.variants.checks.model_dump(), sort_keys=True)


def jam_selection():
    """How valid variants are selected, as one canonical text."""
    settings = CONFIG.jam.variants
    chosen = settings.model_dump(include={"review", "min_valid", "kept", "seed"})
    return json.dumps(chosen | {"checks": settings.checks.model_dump()}, sort_keys=True)


def jam_generation():
    """How a model is asked for variants, as one canonical text."""
    settings = CONFIG.jam.variants
    generation = {
        "count": settings.generated,
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
        "seed": settings.generation_seed,
    }
    return json.dumps(generation, sort_keys=True)


def jam_recordings(*parts):
    """A file of recorded answers: no output of any rule, so that nothing deletes it."""
    return here(Path(CONFIG.llm.recordings_folder).joinpath(*parts))


def jam_generation_jobs():
    """The language-model jobs that write variants (see `pieline.llm.jobs`)."""
    if "jam" not in CONFIG.studies or CONFIG.jam.variants.source != "generated":
        return []
    model = CONFIG.jam.variants.model
    return [
        {
            "study": "jam_variants",
            "model": model,
            "dataset": f"results/originals/jam/{language}.jsonl",
            "prompt": here("prompts/jam/generate_variants.jinja"),
            "setting": "generate",
            "seed": CONFIG.jam.variants.generation_seed or 0,
            "parameters": json.loads(jam_generation()),
            "recordings": jam_recordings("jam_variants", language, f"{model}.jsonl"),
        }
        for language in CONFIG.jam.languages
    ]


def jam_generation_inputs():
    """What the questions for variants are made from."""
    return [job["dataset"] for job in jam_generation_jobs()]


def jam_statistics():
    """Statistics of all languages."""
    return expand("results/metrics/jam/{language}/statistics.json", language=CONFIG.jam.languages)


def jam_targets(wildcards):
    """Datasets (or originals), Table 2 and the flow figure."""
    if "jam" not in CONFIG.studies:
        return []
    names = ["paper_tables/jam_statistics.tex", "paper_tables/figures/jam_flow.pdf"]
    room = "originals" if CONFIG.jam.variants.source == "none" else "datasets"
    return names + [f"results/{room}/jam/{language}.jsonl" for language in CONFIG.jam.languages]


wildcard_constraints:
    language=alternatives(known_languages()),
