"""Configuration, registry, studies, and the helpers that every stage uses."""

import json
import os
import re
import shutil
import sys
from functools import cache
from itertools import chain
from pathlib import Path

# Every path is relative to the working directory, so that no output depends on where the clone lies.
ROOT = Path(os.path.relpath(workflow.basedir))
LIBRARY = ROOT / "src"

# Scripts find the library.
sys.path.insert(0, str(LIBRARY))
os.environ.update(PYTHONPATH=os.path.abspath(LIBRARY))
PACKAGES = ("pieline",)

if config.get("rehearsal"):

    # Before anything that looks at the hub is imported.
    include: "../rehearsal/setup.smk"


from snakemake.common.configfile import load_configfile
from snakemake_interface_executor_plugins.settings import ExecMode

from pieline.config import layered, load_config, load_studies, name_source
from pieline.core.code import imports_of, modules_behind, source_of
from pieline.core.errors import UserError, exit_with
from pieline.core.evidence import evidence_of
from pieline.core.files import check_writable, remembered_sha256
from pieline.core.yamls import read_yaml
from pieline.languages.registry import language_names
from pieline.llm.obstacles import obstacles
from pieline.llm.recordings import answers_token
from pieline.models.registry import load_registry
from pieline.models.sizing import (
    asks_for_gpu,
    gpu_memory_mb,
    host_memory_mb,
    served_gpu_memory_mb,
    served_gpus,
    served_host_memory_mb,
)
from pieline.patches import patch_snakemake
from pieline.results.run_report import RunReport, code_state
from pieline.studies.idiolink import paths as idiolink_paths
from pieline.studies.idiots import paths as idiots_paths
from pieline.studies.jam import paths as jam_paths
from pieline.study import alternatives


def config_files():
    """The configuration files of this run; later ones take precedence."""
    named = workflow.overwrite_configfiles
    files = [*(file for file in workflow.configfiles if file not in named), *named]
    # In a rehearsal, paths count from another folder.
    return [os.path.relpath(file) for file in files if os.path.exists(file)]


def sources():
    """The settings of this run by the file that has them; later ones take precedence."""
    files = config_files()
    if config != given:
        files.insert(0, ROOT / "config" / "sample.yaml")
    by_file = {os.path.relpath(file): load_configfile(file) for file in files}
    return by_file | {"--config": workflow.config_settings.config}


try:
    if workflow.exec_mode == ExecMode.DEFAULT:
        # Snakemake's own files would be its first, and it tells with a traceback.
        check_writable(".")
    MODELS = ROOT / "models.yaml"
    usual_mirror = os.environ.get("PIELINE_MIRROR") if config.get("data") == "released" else None
    given = config | {"mirror": config.get("mirror") or usual_mirror}
    for file in config_files():
        # Snakemake takes the last of two equal keys.
        if not file.endswith(".json"):
            read_yaml(file)
    config = layered(given, ROOT / "config" / "sample.yaml")
    CONFIG = load_config(config)
    if CONFIG.rehearsal:
        REHEARSAL, CONFIG = put_in_place(CONFIG)
        MODELS = REHEARSAL.models
    REGISTRY = load_registry(MODELS)
    # Rules are there for every study; what a run makes is that of the chosen ones.
    EVERY_STUDY = load_studies(CONFIG, REGISTRY, ROOT)
    STUDIES = [EVERY_STUDY[name] for name in CONFIG.studies]
    STUDIES[0].run.public_files
    # No param, so that another timeout or mode of asking reruns nothing.
    LLM_SETTINGS = CONFIG.llm.for_jobs(ROOT, REGISTRY.values())
except UserError as error:
    exit_with(name_source(error, sources()))
except OSError as error:
    exit_with(error)

JAM, IDIOLINK, IDIOTS = EVERY_STUDY["jam"], EVERY_STUDY["idiolink"], EVERY_STUDY["idiots"]
TABLES = {table.name: table for study in EVERY_STUDY.values() for table in study.tables()}
FIGURES = {figure.name: figure for study in EVERY_STUDY.values() for figure in study.figures()}
ITEMS = {name: items for name, study in EVERY_STUDY.items() if (items := study.items())}
RUN_REPORT = RunReport(EVERY_STUDY, CONFIG)
if workflow.exec_mode == ExecMode.DEFAULT and not Path(".snakemake/metadata").is_dir():
    # Snakemake knows nothing of results that were copied here without its own folder.
    try:
        RUN_REPORT.check_settings()
    except UserError as error:
        exit_with(error)


def jam_variants_of(wildcards):
    """The variants that this run has; others may lie there from a run on other data."""
    try:
        return JAM.variants_of(wildcards.language)
    except UserError as error:
        exit_with(error)


def show(lines):
    """Print lines that belong to no job."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def here(path):
    """A file of the project, as seen from the working directory."""
    return str(ROOT / path)


def log_of(output):
    """The log of the job that makes an output: the same path below logs/, without its ending."""
    path = re.sub(r"(\.run\.gz|\.[a-z]+)$", "", output.removeprefix("results/"))
    return f"logs/{path}.log"


@cache
def modules(name, *named, folder="scripts"):
    """A script and the library modules that it imports, directly or not, or loads by name.

    `named` are paths `module:name`; a script that is a module itself is named there, and `name` is
    None. Each file is given with a digest of its content, as a param of the rule: its content
    decides what a change makes stale, the reason for a rerun names it, and no job has sixty more
    input files.
    """
    scripts = [ROOT / folder / f"{name}.py"] if name else []
    loaded = [path.partition(":")[0] for path in named]
    loaded += chain.from_iterable(imports_of(script, PACKAGES) for script in scripts)
    sources = [*scripts, *map(source_of, modules_behind(loaded, PACKAGES))]
    return [f"{os.path.relpath(path, ROOT)} {digest(path)}" for path in sources]


def contents(files):
    """A param with the content of files that are made by no rule; yours may have old time stamps.

    `files` is a path, a list of paths or a function of the wildcards that gives either.
    """

    def param(wildcards):
        found = files(wildcards) if callable(files) else files
        paths = [found] if isinstance(found, str) else found
        return ", ".join(
            f"{os.path.relpath(path, ROOT)} {digest(Path(path))}"
            for path in paths
            if not path.startswith("results/") and Path(path).is_file()
        )

    return param


def modules_by(wildcard, name, named):
    """The `modules` of a rule whose wildcard says which of these its script loads by name."""
    each = {value: modules(name, path) for value, path in named.items()}

    def where_loaded(entry):
        def param(wildcards):
            own = each[wildcards[wildcard]]
            # No param can be left out, but to Snakemake they are a set.
            return entry if entry in own else own[0]

        return param

    return [where_loaded(entry) for entry in sorted(set(chain.from_iterable(each.values())))]


@cache
def digest(path):
    """A digest of a file's content, short enough to be shown."""
    return remembered_sha256(path, Path(".snakemake/pieline_digests.json"))[:16]


# A job ends when this process does, even if it is killed.
os.environ.update(
    PIELINE_LLM_SETTINGS=LLM_SETTINGS.model_dump_json(), PIELINE_SNAKEMAKE=str(os.getpid())
)
# What libraries draw of their own would be one line of thousands of characters in a pipe; what takes
# long is told by `pieline.core.progress`.
os.environ.setdefault("TQDM_DISABLE", "1")


LLM_TASKS = {
    asking.name: asking
    for asking in chain.from_iterable(study.llm_tasks() for study in EVERY_STUDY.values())
}
SHARE_SERVER = [name for name in JAM.run.names("llm") if REGISTRY[name].shares_server]


def by_place(asking):
    """How a kind of question is split into rules (name, kind, which models), by where models are.

    What reads the answers of served models stands apart. In one group of jobs on a cluster, no
    question to a provider could be asked before all GPUs are done.
    """
    every = JAM.run.names("llm")
    if asking.constraints.get("model") != JAM.run.constraint("llm"):
        return [(asking.name, asking, {})]
    others = alternatives(set(every) - set(SHARE_SERVER))
    return [
        (asking.name, asking, {"model": others}),
        (f"{asking.name}_served", asking, {"model": alternatives(SHARE_SERVER)}),
    ]


@cache
def served_tasks(asking, model):
    """What the run asks one served model of a kind, by recordings; nothing where it cannot be asked."""
    if model not in SHARE_SERVER or next(obstacles(REGISTRY[model], CONFIG.llm), None):
        return {}
    return {task.recordings: task for task in LLM_TASKS[asking].tasks() if task.model == model}


def state_of_answers(asking, wildcards):
    """The `answers_token` of a task; a job's own process, which has no evidence left, inherits it."""
    evidence = asking.evidence.format(**wildcards)
    known = json.loads(os.environ.get("PIELINE_ANSWERS", "{}"))
    if evidence not in known:
        known[evidence] = answers_token(evidence, asking.make(**wildcards).recordings)
        edited = {path: token for path, token in known.items() if token}
        os.environ.update(PIELINE_ANSWERS=json.dumps(edited))
    return known[evidence]


def served_before(asking, task):
    """The mark that a task's answers are recorded, where a job of its own asks for them all."""
    is_served = task.recordings in served_tasks(asking, task.model)
    return [f"results/served/{asking}/{task.model}.txt"] if is_served else []


def gpus(wildcards):
    """GPUs that a job of this model asks a cluster for."""
    return int(asks_for_gpu(IDIOLINK.run.entry(wildcards.model)))


def gpu_memory(wildcards):
    """Megabytes of GPU memory that a job of this model needs; for you to choose a partition by."""
    return gpu_memory_mb(IDIOLINK.run.entry(wildcards.model)) * gpus(wildcards)


def model_memory(wildcards):
    """Megabytes of main memory that a job of this model needs."""
    return host_memory_mb(IDIOLINK.run.entry(wildcards.model))


def training_memory(wildcards):
    """Megabytes of main memory that a training of this model needs."""
    return host_memory_mb(REGISTRY[wildcards.model], training=True)


def training_gpu_memory(wildcards):
    """Megabytes of GPU memory that a training of this model needs."""
    return gpu_memory_mb(REGISTRY[wildcards.model], training=True)


def growing(amount):
    """Memory or minutes of a job, doubled at each retry: a cluster kills what exceeds its limits."""

    def granted(wildcards, attempt):
        first = amount(wildcards) if callable(amount) else amount
        return first * 2 ** (attempt - 1)

    return granted


def shown(path):
    """An output that `snakemake --report` shows below its study, with its place in the paper."""
    kinds = {"paper_tables/{table}.csv": "table", "paper_tables/figures/{figure}.png": "figure"}
    return report(
        path,
        caption=f"../templates/report/{kinds.get(path, 'whole')}.rst",
        category=lambda wildcards: RUN_REPORT.category(path.format(**dict(wildcards.items()))),
        labels=lambda wildcards: RUN_REPORT.labels(path.format(**dict(wildcards.items()))),
    )


wildcard_constraints:
    seed=r"\d+",
