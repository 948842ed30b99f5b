"""Names of the files of IdioLink's construction, and what its rules share."""

CONSTRUCTION = CONFIG.idiolink.construction
COLLECTIONS = ["documents", "queries"]
SAMPLE_FLAG = "--sample" if CONFIG.data == "sample" else ""


def magpie_file():
    """The MAGPIE file that PIEs are selected from."""
    name = "MAGPIE_sample" if CONFIG.data == "sample" else "MAGPIE_unfiltered"
    return f"results/raw/magpie/{name}.jsonl"


def released_indexes():
    """The documents of every split as released."""
    return [f"results/raw/idiolink/{split}/indexes.json" for split in ("train", "val", "test")]


def released_candidates(wildcards):
    """The released list of candidate PIEs, where it can be had."""
    name = "idiolink/MAGPIE_SOURCE_IDIOMS.csv"
    if CONFIG.data == "sample":
        return []
    if CONFIG.mirror and not os.path.exists(os.path.join(CONFIG.mirror, name)):
        return []
    return [f"results/raw/{name}"]


def construction_exclusions(wildcards):
    """PIEs removed by hand: the user's file, the sample's, or what the released files imply."""
    if CONSTRUCTION.exclusions:
        return CONSTRUCTION.exclusions
    if CONFIG.data == "sample":
        return here("data/sample/magpie/exclusions.tsv")
    return "results/originals/idiolink/exclusions.tsv"


def construction_corrections(wildcards):
    """What people decided about the generated texts, if there is anything."""
    if CONSTRUCTION.corrections:
        return [CONSTRUCTION.corrections]
    if CONFIG.data == "sample":
        return [here("data/sample/idiolink_construction/corrections.csv")]
    return []


def pie_options():
    """What decides which PIEs and pairs are left, as one canonical text."""
    fields = {"semantics", "thresholds", "pies", "domains"}
    return json.dumps(CONSTRUCTION.model_dump(include=fields), sort_keys=True)


def construction_writer(collection):
    """The model that writes a collection."""
    return CONSTRUCTION.index_writer if collection == "documents" else CONSTRUCTION.query_writer


def construction_parameters():
    """Request parameters of all roles, as one canonical text."""
    return json.dumps(CONSTRUCTION.parameters.model_dump(), sort_keys=True)


def construction_recordings(model, task):
    """A file of recorded answers: no output of any rule, so that nothing deletes it."""
    folder = Path(CONFIG.llm.recordings_folder) / "idiolink_construction"
    return here(folder / model / f"{task}.jsonl")


def construction_texts(kind):
    """The generated texts, or what belongs to them, of both collections."""
    return expand(
        "results/variants/idiolink/{collection}.{kind}", collection=COLLECTIONS, kind=kind
    )


def construction_llm_jobs():
    """The language-model jobs that write texts (see `pieline.llm.jobs`).

    Validation is not among them: its questions hold texts that are not written yet.
    """
    if not constructs():
        return []
    return [
        {
            "study": "idiolink_construction",
            "model": construction_writer(collection),
            "dataset": "results/originals/idiolink/pairs.jsonl",
            "prompt": here(f"prompts/idiolink/{collection}.jinja"),
            "setting": collection,
            "seed": 0,
            "parameters": CONSTRUCTION.parameters.model_dump(),
            "recordings": construction_recordings(
                construction_writer(collection), f"write_{collection}"
            ),
        }
        for collection in COLLECTIONS
    ]


def construction_llm_inputs():
    """What the questions of the writers are made from."""
    return sorted({job[name] for job in construction_llm_jobs() for name in ("dataset", "prompt")})


def constructs():
    """Whether this run constructs the data set."""
    return "idiolink" in CONFIG.studies and CONFIG.constructs_idiolink


def described_origin():
    """The data that Table 1 describes: what was constructed, else the released files."""
    return "constructed" if constructs() else "released_format"


def checked_files(wildcards):
    """The texts of every split, of an origin."""
    return [
        f"{data_folder(wildcards.origin)}/{split}/{name}.json"
        for split in ("train", "val", "test")
        for name in ("indexes", "queries")
    ]


def data_folder(origin):
    """Where the texts of an origin are, in the released format."""
    if origin == "constructed":
        return "results/datasets/idiolink/constructed"
    return "results/raw/idiolink"


def experiment_texts(name):
    """A file of the texts that the experiments take."""
    return f"{data_folder(CONFIG.idiolink.dataset)}/{{split}}/{name}.json"


def construction_targets(wildcards):
    """Table 1, checks and figure; with the construction its numbers and what people should review."""
    if "idiolink" not in CONFIG.studies:
        return []
    names = [
        "paper_tables/idiolink_dataset.tex",
        "paper_tables/figures/idiolink_domains.pdf",
        "results/metrics/idiolink/checks/released_format.json",
    ]
    if constructs():
        names += [
            "paper_tables/idiolink_construction.tex",
            "results/metrics/idiolink/checks/constructed.json",
            "results/variants/idiolink/review.csv",
        ]
    return names


wildcard_constraints:
    collection="documents|queries",
    origin="constructed|released_format",
