"""Names of the files of the IdioLink study, and what its rules share."""


def index_name(composition):
    """Name of the test index under an index composition: the full one is the split itself."""
    return "test" if composition == "full" else f"test-{composition}"


def idiolink_metrics(composition, models=None):
    """Metric files of the models that the configuration names, for one index composition."""
    for model in CONFIG.idiolink.models if models is None else models:
        for mode in CONFIG.idiolink.query_modes:
            if REGISTRY[model].kind == "bm25" and mode.startswith("instruction"):
                continue
            yield (f"results/metrics/idiolink/{index_name(composition)}/{model}/{mode}/seed-0.json")


def idiolink_models(kind):
    """The models of a kind that the configuration names."""
    return [name for name in CONFIG.idiolink.models if REGISTRY[name].kind == kind]


def idiolink_targets(wildcards):
    """Tables and figures of the IdioLink study."""
    if "idiolink" not in CONFIG.studies:
        return []
    names = ["idiolink_zero_shot.tex", "figures/idiolink_modes.pdf"]
    if idiolink_models("bm25"):
        names.append("idiolink_bm25.tex")
    if set(CONFIG.idiolink.compositions) - {"full"}:
        names.append("idiolink_ablation.tex")
    return [f"paper_tables/{name}" for name in names]


wildcard_constraints:
    split="train|val|test",
    index=r"(train|val|test)(-(lit_sim_sense|lit_idiom))?",
    composition="lit_sim_sense|lit_idiom",
    query_mode="sentence|span|instruction_sentence|instruction_span",
