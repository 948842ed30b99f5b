"""Configuration, registry, studies, and helpers shared by all stages."""

import gc
import json
import os
import re
import shutil
import sys
from functools import cache
from inspect import signature
from itertools import chain
from pathlib import Path

# All paths are relative to the working directory, so that outputs do not depend on its location.
ROOT = Path(os.path.relpath(workflow.basedir))
LIBRARY = ROOT / "src"

# Lets scripts import the library.
sys.path.insert(0, str(LIBRARY))

from pieline.core.environment import set_reproducible_environment

# Must precede imports of other packages, which read variables.
set_reproducible_environment(LIBRARY)

from snakemake.common.configfile import load_configfile
from snakemake_interface_executor_plugins.settings import ExecMode

from pieline.beyond import paths as beyond_paths
from pieline.beyond.idiots import study as compared_runs
from pieline.beyond.jam.folds import FOLDS
from pieline.beyond.jam.study import added_texts
from pieline.config import layered, load_config, load_studies, name_source
from pieline.core.code import imports_of, modules_behind, source_of
from pieline.core.errors import UserError, exit_with
from pieline.core.sidecars import Expected, check_kept, move_old_sidecars, settings_of
from pieline.core.files import cached_sha256, check_writable, read_json
from pieline.core.yamls import read_yaml
from pieline.languages.registry import facts_of_language
from pieline.llm.obstacles import obstacles
from pieline.llm.recordings import answers_token
from pieline.models.registry import load_registry
from pieline.models.sizing import (
    uses_gpu,
    gpu_memory_mb,
    host_memory_mb,
    server_gpu_memory_mb,
    server_gpus,
    server_host_memory_mb,
)
from pieline.patches import check_plans, patch_snakemake, quote_interpreter
from pieline.results import run_files, run_models
from pieline.results.numbers import run_options
from pieline.results.report_labels import report_labels
from pieline.results.provenance import code_state
from pieline.results.run_report import RunReport
from pieline.studies.idiolink import files as idiolink_files
from pieline.studies.idiolink import models as idiolink_models
from pieline.studies.idiolink import paths as idiolink_paths
from pieline.studies.idiolink import runs as idiolink_runs
from pieline.studies.idiolink import tasks as idiolink_tasks
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiots import files as idiots_files
from pieline.studies.idiots import paths as idiots_paths
from pieline.studies.jam import files as jam_files
from pieline.studies.jam import paths as jam_paths
from pieline.studies.jam import runs as jam_runs
from pieline.studies.jam import tasks as jam_tasks
from pieline.studies.jam.settings import ADDED
from pieline.studies.jam.training.settings import FORMS
from pieline.project import alternatives

quote_interpreter()

# Planning creates many permanent objects, which Python would scan for garbage again and again.
gc.set_threshold(100_000)


def config_files():
    """Return the configuration files of this run; later ones take precedence."""
    named = workflow.overwrite_configfiles
    files = [*(file for file in workflow.configfiles if file not in named), *named]
    # An error names a file as seen from where the user is, which `--directory` is not.
    named_as = os.path.abspath if workflow.overwrite_workdir else os.path.relpath
    return [named_as(file) for file in files if os.path.exists(file)]


def settings_by_file():
    """Return the settings of this run by file; those of later files take precedence."""
    files = config_files()
    if config != raw_config:
        files.insert(0, ROOT / "config" / "sample.yaml")
    by_file = {str(file): load_configfile(file) for file in files}
    return by_file | {"--config": workflow.config_settings.config}


if workflow.exec_mode == ExecMode.DEFAULT:
    # Otherwise Snakemake fails with a traceback when it creates its own files.
    try:
        check_writable(".")
        move_old_sidecars()
    except UserError as error:
        exit_with(error)

try:
    MODELS = ROOT / "models.yaml"
    default_mirror = os.environ.get("PIELINE_MIRROR") if config.get("data") == "released" else None
    raw_config = config | {"mirror": config.get("mirror") or default_mirror}
    for file in config_files():
        # Rejects duplicate keys, of which Snakemake silently uses the last.
        read_json(file) if file.endswith(".json") else read_yaml(file)
    config = layered(raw_config, ROOT / "config" / "sample.yaml")
    CONFIG = load_config(config)
    REGISTRY = load_registry(MODELS)
    # Every study has rules, but a run makes only the outputs of the selected studies.
    EVERY_STUDY = load_studies(CONFIG, REGISTRY, ROOT)
    STUDIES = [EVERY_STUDY[name] for name in CONFIG.studies]
    PROJECT = STUDIES[0].project
    PROJECT.public_files
    # Not a param, so that changing the timeout or mode reruns nothing.
    LLM_SETTINGS = CONFIG.llm.for_jobs(ROOT, REGISTRY.values())
except UserError as error:
    exit_with(name_source(error, settings_by_file()))
except OSError as error:
    exit_with(error)

JAM, IDIOLINK, IDIOTS = EVERY_STUDY["jam"], EVERY_STUDY["idiolink"], EVERY_STUDY["idiots"]
TABLES = {table.name: table for study in EVERY_STUDY.values() for table in study.tables()}
FIGURES = {figure.name: figure for study in EVERY_STUDY.values() for figure in study.figures()}
ITEMS = {name: items for name, study in EVERY_STUDY.items() if (items := study.items())}
RUN_REPORT = RunReport(
    EVERY_STUDY,
    CONFIG,
    run_options(ROOT, workflow.overwrite_configfiles, workflow.config_settings.config),
)
LABELS = report_labels(EVERY_STUDY.values())


def check_results(dag):
    """Exit with an error if files that a planned run keeps are not what it would make."""
    jobs = set() if workflow.touch else set(dag.needrun_jobs())
    remade = {path for job in jobs for path in job.output}
    expected = {
        path: Expected(settings_of(job.params.items()), tuple(job.input))
        for job in set(dag.jobs) - jobs
        for path in job.output
    }
    try:
        RUN_REPORT.check_raw_files(remade)
        check_kept(expected, remade)
    except UserError as error:
        if workflow.touch:
            error = UserError(error.what, where=error.where, hint="leave out --touch")
        exit_with(error)


if workflow.exec_mode == ExecMode.DEFAULT:
    try:
        # The command line, because Snakemake's settings are not known yet.
        RUN_REPORT.check_targets(sys.argv)
    except UserError as error:
        exit_with(error)
    check_plans(workflow, check_results)


def show(lines):
    """Print lines to stderr."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def here(path):
    """Return the path of a project file relative to the working directory."""
    return str(ROOT / path)


def log_of(output):
    """Return the path of the log of the job that makes an output: its path, moved to logs/."""
    path = re.sub(r"(\.run\.gz|\.[a-z]+)$", "", output.removeprefix("results/"))
    return f"logs/{path}.log"


def benchmark_of(output):
    """Return the path of the benchmark of the job that makes an output."""
    return log_of(output).replace("logs/", "logs/benchmarks/", 1).replace(".log", ".tsv")


@cache
def modules(name, *named):
    """Return the path and digest of a script and of every library module that it depends on.

    If these strings are params of a rule, its jobs rerun when a file's content changes, and the
    reason for the rerun names the file. As inputs, the files would add sixty paths to each job.

    Args:
        name: Name of the script in scripts/, without suffix; None for a script that is a module.
        named: Objects (`module:name`) that the script loads by name, or the module of the script.
    """
    loaded_modules = [path.partition(":")[0] for path in named]
    files = []
    if name:
        script = ROOT / "scripts" / f"{name}.py"
        loaded_modules += imports_of(script)
        files.append(script)
    files += [source_of(module) for module in modules_behind(loaded_modules)]
    return [with_digest(file) for file in files]


def contents(*files):
    """Return a function for a param: the paths and digests of those files that no rule makes.

    With this param, an edited file reruns the job. Modification times do not suffice, because a new
    version of a file may be older. Each of `files` is a path, a list of paths, or a function of the
    wildcards that returns a path or a list of paths.
    """

    def is_made_by_no_rule(path):
        return not path.startswith("results/") and Path(path).is_file()

    def param(wildcards):
        paths = []
        for file in files:
            path_or_paths = file(wildcards) if callable(file) else file
            paths += [path_or_paths] if isinstance(path_or_paths, str) else path_or_paths or []
        return ", ".join(with_digest(Path(path)) for path in paths if is_made_by_no_rule(path))

    return param


CONDITIONS = dict(
    chain.from_iterable(study.conditions_by_pattern().items() for study in EVERY_STUDY.values())
)


def conditions_of(metrics):
    """Return a function for a param: the conditions of a metric file, given its path pattern.

    If the run is in an archive, these are the conditions that the archive states. A metric file that
    is not configured is not in the plan, so its conditions are computed from its path.
    """

    def param(wildcards):
        path = metrics.format(**wildcards)
        for study in STUDIES:
            if conditions := study.plan.conditions(path):
                return conditions.canonical()
        return CONDITIONS[metrics](**wildcards).canonical()

    return param


def asks_again(wildcards):
    """Return a param: whether this run replaces a model's recorded answers.

    If the job that asks for these answers fails, Snakemake deletes the job's output, but keeps the
    metrics computed from the old answers. Because of this param, the next run makes both again.
    """
    return CONFIG.llm.mode == "fresh" and PROJECT.entry(wildcards.model).kind == "llm"


def by_wildcards(function, **fixed):
    """Return a function of the wildcards for an input or a param, which calls `function`.

    Each required parameter of `function` gets the wildcard of the same name; the parameter `study`
    gets the study in whose package the function is. Arguments in `fixed` are passed on. If the
    function returns None, because a file does not apply, the input is an empty list. For example, in
    the job for German, `sentences=by_wildcards(jam_files.sentences)` is
    `jam_files.sentences(JAM, "german")`.
    """
    required = [
        parameter.name
        for parameter in signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.name not in fixed
    ]
    packages = function.__module__.split(".")
    study = next((EVERY_STUDY[name] for name in packages if name in EVERY_STUDY), None)

    def value(wildcards):
        arguments = dict(wildcards.items()) | {"study": study}
        try:
            result = function(**{name: arguments[name] for name in required}, **fixed)
        except UserError as error:
            exit_with(error)
        return [] if result is None else result

    return value


def modules_by(wildcard, name, named):
    """Return params with the `modules` of a script that loads a different object in each job.

    Args:
        wildcard: Name of the wildcard whose value determines the object.
        name: Name of the script in scripts/, without suffix.
        named: Object (`module:name`) by value of the wildcard.
    """
    by_value = {value: modules(name, path) for value, path in named.items()}
    shared = sorted(set.intersection(*map(set, by_value.values())))
    own = {
        value: [module for module in listed if module not in shared]
        for value, listed in by_value.items()
    }

    def own_module(position):
        def param(wildcards):
            of_job = own[wildcards[wildcard]]
            # A param cannot be omitted, but Snakemake ignores duplicates.
            return of_job[position] if position < len(of_job) else shared[0]

        return param

    # One function per position, not per module, because Snakemake calls every function for each job.
    longest = max(len(listed) for listed in own.values())
    return [*shared, *(own_module(position) for position in range(longest))]


@cache
def with_digest(path):
    """Return the path of a file relative to the project, and a short digest of its content."""
    digest = cached_sha256(path, Path(".snakemake/pieline_digests.json"))[:16]
    return f"{os.path.relpath(path, ROOT)} {digest}"


# Jobs watch this process id and end when the process does, even if it is killed.
os.environ.update(
    PIELINE_LLM_SETTINGS=LLM_SETTINGS.model_dump_json(), PIELINE_SNAKEMAKE=str(os.getpid())
)
# In a pipe, a library's progress bar would be one line of thousands of characters. Long steps
# report their progress with `pieline.core.progress`.
os.environ.setdefault("TQDM_DISABLE", "1")


LLM_TASKS = {
    spec.name: spec
    for spec in chain.from_iterable(study.llm_tasks() for study in EVERY_STUDY.values())
}
SHARE_SERVER = [name for name in PROJECT.names("llm") if REGISTRY[name].shares_server]
SERVED = alternatives(SHARE_SERVER)
CALLED = alternatives(set(PROJECT.names("llm")) - set(SHARE_SERVER))


@cache
def served_tasks(kind, model):
    """Return a served model's tasks of one kind by path of the recordings.

    The dictionary is empty if the model cannot be queried or does not share a server.
    """
    if model not in SHARE_SERVER or next(obstacles(REGISTRY[model], CONFIG.llm), None):
        return {}
    return {task.recordings: task for task in LLM_TASKS[kind].tasks() if task.model == model}


def question_files(kind):
    """Return a function for an input: the files that the questions of a task are made from."""
    return lambda wildcards: list(LLM_TASKS[kind].make(**wildcards).inputs.values())


def served_before(kind):
    """Return a function for an input: the marker of the job that serves the model of a task."""

    def marker(wildcards):
        task = LLM_TASKS[kind].make(**wildcards)
        is_served = task.recordings in served_tasks(kind, task.model)
        return [f"results/served/{kind}/{task.model}.txt"] if is_served else []

    return marker


def question_params(kind):
    """Return the params of a rule that runs `scripts/ask.py`, except its modules."""
    spec = LLM_TASKS[kind]
    return {
        "contents": contents(question_files(kind)),
        "kind": spec.task.path(),
        "task": lambda wildcards: spec.make(**wildcards).canonical(),
        "answers": lambda wildcards: state_of_answers(spec.make(**wildcards)),
        # Only the mode `fresh` replaces answers, so a change between other modes reruns no job.
        "fresh": CONFIG.llm.mode == "fresh",
    }


def state_of_answers(task):
    """Return the `answers_token` of a task.

    The token is kept in the environment, which the processes of jobs inherit. They could not compute
    it after a failed attempt, which deletes the sidecar.
    """
    output = next(iter(task.outputs.values()))
    known = json.loads(os.environ.get("PIELINE_ANSWERS", "{}"))
    if output not in known:
        known[output] = answers_token(output, task.recordings)
        edited = {path: token for path, token in known.items() if token}
        os.environ.update(PIELINE_ANSWERS=json.dumps(edited))
    return known[output]


def gpus(wildcards):
    """Return the number of GPUs (0 or 1) for a job of this model on a cluster."""
    return int(uses_gpu(idiolink_models.entry(IDIOLINK, wildcards.model)))


def gpu_memory(wildcards):
    """Return the GPU memory of a job of this model in MB, for the choice of a partition."""
    return gpu_memory_mb(idiolink_models.entry(IDIOLINK, wildcards.model)) * gpus(wildcards)


def model_memory(wildcards):
    """Return the main memory of a job of this model in MB."""
    return host_memory_mb(idiolink_models.entry(IDIOLINK, wildcards.model))


def training_memory(wildcards):
    """Return the main memory for training this model in MB."""
    return host_memory_mb(REGISTRY[wildcards.model], training=True)


def training_gpu_memory(wildcards):
    """Return the GPU memory for training this model in MB."""
    return gpu_memory_mb(REGISTRY[wildcards.model], training=True)


def growing(amount):
    """Return a function for a resource whose amount (memory or minutes) doubles at each retry."""

    def granted(wildcards, attempt):
        first = amount(wildcards) if callable(amount) else amount
        return first * 2 ** (attempt - 1)

    return granted


def displayed(wildcards):
    """Return the table, figure or items that the only wildcard of a job names."""
    ((kind, name),) = wildcards.items()
    return {"table": TABLES, "figure": FIGURES, "study": ITEMS}[kind][name]


def display_files(wildcards):
    """Return the input files of a table, a figure or items."""
    return RUN_REPORT.inputs_of(displayed(wildcards)).input_files()


def display_inputs(wildcards):
    """Return the `DisplayInputs` of a table, a figure or items as JSON."""
    return RUN_REPORT.display_inputs_json(displayed(wildcards))


def display_maker(wildcards):
    """Return the function that creates a table or a figure, as `module:function`."""
    return displayed(wildcards).maker


def external(study, field):
    """Return a function for a param: a field of the entry that names a run's prediction file."""

    def param(wildcards):
        setting = wildcards.get("setting") or wildcards.query_mode
        language = wildcards.get("language")
        return getattr(
            study.prediction_file(wildcards.model, setting, wildcards.seed, language), field
        )

    return param


def shown(path):
    """Mark an output for `snakemake --report`, under its study and with its place in the paper."""
    kinds = {"paper_tables/{table}.csv": "table", "paper_tables/figures/{figure}.png": "figure"}
    return report(
        path,
        caption=f"../templates/report/{kinds.get(path, 'run')}.rst",
        category=lambda wildcards: LABELS[path.format(**dict(wildcards.items()))][0],
        labels=lambda wildcards: LABELS[path.format(**dict(wildcards.items()))][1],
    )


# Of all rules; the rules that make a file for some models only constrain `model` themselves.
wildcard_constraints:
    **{name: jam_files.constraints(JAM)[name] for name in ("language", "setting")},
    **idiolink_models.wildcards(),
    seed=r"\d+",
