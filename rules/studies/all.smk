"""What stands above the studies: which tables, figures and metrics a run makes, and what shows them."""

import shutil
import subprocess
from itertools import chain

from pieline.results.claims.tables import PAPERS
from pieline.results.artifacts import load_artifacts

# What is no table or figure of a paper: where it stands in the report, and what it shows.
WITHOUT_PLACE = {
    "claims": ("Ledger", "The papers' claims, judged on the printed numbers and on ours."),
    "comparison": ("Comparison", "Every cell of ours beside the printed one."),
    "index": (
        "Results page",
        "Everything on one page, and the way from a number to its sentences.",
    ),
    "paper": ("Document", "All tables and figures in the papers' order."),
    "jam_runs": ("not in the paper", "Every run with its seeds and intervals."),
    "idiolink_by_pie": ("not in the paper", "R-Precision and nDCG@10 of each PIE."),
}


def study_targets(wildcards):
    """Everything that the studies of the configuration make: all functions called …_targets."""
    above = {"study_targets", "artifact_targets"}
    names = sorted(name for name in globals() if name.endswith("_targets") and name not in above)
    return list(chain.from_iterable(globals()[name](wildcards) for name in names))


def tables_of_the_run(wildcards):
    """The CSVs that set our numbers beside the printed ones."""
    return [
        str(Path(name).with_suffix(".csv"))
        for name in study_targets(wildcards)
        if name.startswith("paper_tables/") and name.endswith(".tex")
    ]


def latex_of_the_run(wildcards):
    """The LaTeX of the same tables."""
    return [str(Path(name).with_suffix(".tex")) for name in tables_of_the_run(wildcards)]


def figures_of_the_run(wildcards, suffix=".png"):
    """The figures, as PNG or PDF."""
    return [
        str(Path(name).with_suffix(suffix))
        for name in study_targets(wildcards)
        if name.startswith("paper_tables/figures/")
    ]


def metrics_of_the_run(wildcards):
    """The metric files that numbers of tables come from."""
    names = []
    made = set(study_targets(wildcards))
    if "jam" in CONFIG.studies:
        names += [*jam_statistics(), *jam_metrics_files()]
    if "paper_tables/jam_humans.tex" in made:
        names.append("results/metrics/jam/english/humans.json")
    if "paper_tables/jam_neutral.tex" in made:
        names.append(jam_neutral_run(wildcards))
    if "paper_tables/jam_attention.tex" in made:
        names.append(jam_attention_file(wildcards))
    if "idiots" in CONFIG.studies:
        names += idiots_runs("results/metrics/idiots/{model}/{setting}/seed-{seed}.json")
    if "idiolink" in CONFIG.studies:
        for composition in CONFIG.idiolink.compositions:
            names += idiolink_metrics(composition)
        names += [*tuned_metrics(), *significance_tests()]
        names.append(f"results/metrics/idiolink/checks/{described_origin()}.json")
    if "paper_tables/idiolink_construction.tex" in made:
        names.append("results/metrics/idiolink/construction.json")
    return names


def behind_the_metrics(wildcards):
    """Predictions and datasets of the metric files, which the results page shows."""
    names = set()
    for metric in metrics_of_the_run(wildcards):
        _, _, study, *parts = Path(metric).with_suffix("").parts
        predictions = Path("results", "predictions", study, *parts)
        if not parts[-1].startswith("seed-"):
            continue
        if study == "idiolink" and "significance" not in parts:
            names.add(f"{predictions}.run.gz")
            names.update(f"results/datasets/idiolink/{parts[0]}/{name}" for name in DATASET_FILES)
        elif study == "idiots":
            names.add(f"{predictions}.jsonl")
            names.add("results/datasets/idiots/sentences.jsonl")
        elif study == "jam":
            names.add(f"{predictions}.jsonl")
            names.add(jam_sentences(SimpleNamespace(language=parts[0])))
    return sorted(names)


def raw_files_of_the_run(wildcards):
    """The raw files that the configuration's results come from."""
    names = []
    if "jam" in CONFIG.studies:
        few_shot = SimpleNamespace(setting="few_shot_sc_cotbest")
        for few_shot.language in CONFIG.jam.languages:
            names.append(f"results/raw/id10m/test_{few_shot.language}.tsv")
            names += jam_training_file(few_shot)
            if jam_decisions_are_derived():
                names.append(f"results/raw/id10m-jam/{few_shot.language}.json")
            if CONFIG.jam.variants.source == "released":
                names.append(jam_variants_file(few_shot))
            if jam_runs("{seed}", few_shot.language, ["encoder"]):
                names.append(f"results/raw/id10m/dev_{few_shot.language}.tsv")
                names += jam_train_split(few_shot)
            if few_shot.setting in jam_runs("{setting}", few_shot.language, ["llm"]):
                names += jam_examples(few_shot)
    if "idiots" in CONFIG.studies:
        names += ["results/raw/idiots/idiots.json", *idiots_kinds(wildcards)]
    if "idiolink" in CONFIG.studies:
        names += checked_files(SimpleNamespace(origin="released_format"))
        if CONFIG.idiolink.finetuning.models and CONFIG.idiolink.finetuning.tuples == "released":
            names.append("results/raw/idiolink/train/triplets_train_full.jsonl")
        if constructs():
            names += [magpie_file(), *released_candidates(wildcards)]
    return sorted({name for name in names if name.startswith("results/raw/")})


def models_of_the_run():
    """The entries that the configuration names, as far as a reader needs them."""
    fields = {"label", "kind", "checkpoint", "revision", "package", "licence"}
    by_study = {
        "jam": CONFIG.jam.models,
        "idiots": CONFIG.idiots.models,
        "idiolink": CONFIG.idiolink.models + CONFIG.idiolink.finetuning.models,
    }
    names = {name for study in CONFIG.studies for name in by_study[study]}
    if constructs():
        names |= {CONSTRUCTION.index_writer, CONSTRUCTION.query_writer, CONSTRUCTION.validator}
    if "jam" in CONFIG.studies and CONFIG.jam.attention:
        names.add(CONFIG.jam.attention.model)
    return [
        {"name": name}
        | {field: getattr(REGISTRY[name], field, None) for field in fields}
        | ({"checkpoint": REGISTRY[name].litellm_id} if REGISTRY[name].kind == "llm" else {})
        for name in sorted(names)
    ]


def git(*arguments):
    """What git says of the project, or None outside a clone."""
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def run_description(wildcards):
    """Code, configuration and models of the run, as one canonical text."""
    is_clone = (ROOT / ".git").exists()
    commit = git("rev-parse", "HEAD") if is_clone else None
    code = {
        "commit": commit,
        "day": git("show", "--no-patch", "--format=%cs", "HEAD") if commit else None,
        "modified": bool(git("status", "--porcelain", "--untracked-files=no")) if commit else None,
    }
    described = {
        "code": code,
        # Where the mirror lies says nothing of the results; the digests of the raw files do.
        "config": CONFIG.model_dump(mode="json", exclude={"mirror"}),
        "models": models_of_the_run(),
        "workflow": "Snakefile" if ROOT == Path(".") else None,
    }
    return json.dumps(described, sort_keys=True)


def recordings_of_the_run(wildcards):
    """Files of recorded answers that the run's predictions come from, as far as they exist."""
    return sorted({job["recordings"] for job in json.loads(llm_jobs())})


def latex_is_installed():
    """Whether this machine can compile the PDF; clusters and reviewers may do without."""
    return shutil.which("pdflatex") is not None


def printed_numbers():
    """The files of published/."""
    return sorted(here(f"published/{path.name}") for path in (ROOT / "published").iterdir())


def artifact_targets(wildcards):
    """What shows the whole run."""
    return [
        "paper_tables/claims.tex",
        "paper_tables/comparison.tex",
        "paper_tables/index.html",
        "paper_tables/paper.pdf" if latex_is_installed() else "paper_tables/paper.tex",
        "results/provenance.json",
    ]


ARTIFACTS = {
    (item.name, item.kind): item for item in load_artifacts(ROOT / "templates" / "artifacts.yaml")
}


def shown(path):
    """An output that `snakemake --report` shows below its study, with its place in the paper."""
    kind = {".csv": "table", ".png": "figure"}.get(Path(path).suffix, "whole")

    def study(wildcards):
        name = Path(path.format(**dict(wildcards.items()))).stem
        found = [study for study in PAPERS if name.startswith(f"{study}_")]
        return PAPERS[found[0]] if found else "The whole artifact"

    def labels(wildcards):
        name = Path(path.format(**dict(wildcards.items()))).stem
        item = ARTIFACTS.get((name, kind))
        told = (item.place, item.caption) if item else WITHOUT_PLACE[name]
        return {"place": told[0], "shows": told[1], "as": Path(path).suffix.strip(".").upper()}

    return report(path, caption=f"../templates/report/{kind}.rst", category=study, labels=labels)
