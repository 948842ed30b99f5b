"""The structure of the library: imports never point up, so packages have no cycles."""

import ast
import subprocess
import sys
from collections import Counter

import grimp
import pytest
from support import ROOT

from pieline.config import EXTENDED
from pieline.core.code import imports_of, modules_behind, source_of
from pieline.core.imports import import_object

LIBRARY = ROOT / "src" / "pieline"
LAYERS = [
    "core",
    "languages",
    "models",
    "llm",
    "archives",
    "reporting",
    "project",
    "plan",
    "reuse",
    "study",
    "patches",
    "studies",
    "beyond",
    "config",
    "results",
    "configured_tasks",
    "resources",
]
"""From bottom to top; programs (cli, schemas) are above all layers."""
STAGES = ["raw", "originals", "variants", "datasets", "training", "predictions", "metrics"]
GPU_SCRIPTS = [
    "embed", "rank_by_embedding", "fine_tune", "fine_tune_tagger",
    "tag_idioms", "training_tuples", "bm25_search", "bm25_tune", "rerank", "late_interaction",
]  # fmt: skip


GRAPH = grimp.build_graph("pieline", cache_dir=None)
"""Import graph of the library, including imports under `TYPE_CHECKING`."""


def modules() -> set[str]:
    """Return all modules of the library by their dotted name below `pieline`."""
    return {name.partition(".")[2] for name in GRAPH.modules}


def imports(module: str) -> set[str]:
    """Return the library modules that a module imports, also inside functions."""
    imported = GRAPH.find_modules_directly_imported_by(f"pieline.{module}" if module else "pieline")
    return {name.partition(".")[2] for name in imported}


def package(module: str) -> str:
    """Return the package of a module: its study, or else its layer."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "studies" and len(parts) > 1 else parts[0]


def test_no_import_points_up() -> None:
    assert {name.split(".")[0] for name in modules()} - {""} >= set(LAYERS)
    up = [
        f"{name} imports {other}"
        for name in modules()
        for other in imports(name)
        if (layer := name.split(".")[0]) in LAYERS
        and (other.split(".")[0] not in LAYERS
             or LAYERS.index(other.split(".")[0]) > LAYERS.index(layer))
    ]  # fmt: skip
    assert up == []


def test_the_library_does_not_import_the_rehearsal() -> None:
    graph = grimp.build_graph("pieline", "rehearsal", cache_dir=None)
    assert graph.find_modules_directly_imported_by("rehearsal.bill")
    assert {
        (name, other)
        for name in GRAPH.modules
        for other in graph.find_modules_directly_imported_by(name)
        if other.partition(".")[0] == "rehearsal"
    } == set()


def test_studies_and_results_are_independent() -> None:
    for name in modules():
        own = package(name)
        for other in imports(name):
            if own.startswith("studies."):
                assert not package(other).startswith("studies.") or package(other) == own, (
                    f"{name} imports {other}"
                )
            if own == "results":
                assert not other.startswith(("studies.", "beyond.")), f"{name} imports {other}"


@pytest.mark.parametrize("study", ["jam", "idiots", "idiolink"])
def test_modules_of_a_study_are_named_after_the_stages(study: str) -> None:
    """Also check that no stage imports from a later one."""
    folder = LIBRARY / "studies" / study
    own = {path.stem for path in folder.iterdir() if not path.name.startswith("_")}
    besides = {
        *("study", "settings", "paths", "records", "bio", "verdicts", "items"),
        *("runs", "files", "models", "tasks", "inputs"),
    }
    assert own - besides <= {*STAGES, "tables", "figures"}
    order = {stage: place for place, stage in enumerate([*STAGES, "tables", "figures"])}
    # Early stopping needs a metric, so training may import metrics that need no other stage.
    allowed = {("training", "metrics"), ("training", "predictions"), ("datasets", "metrics")}
    backward = [
        f"{name} imports {other}"
        for name in modules()
        if name.startswith(f"studies.{study}.")
        for other in imports(name)
        if other.startswith(f"studies.{study}.")
        and (a := name.split(".")[2]) in order
        and (b := other.split(".")[2]) in order
        and order[b] > order[a]
        and (a, b) not in allowed
    ]
    assert backward == []


@pytest.mark.parametrize("script", GPU_SCRIPTS)
def test_a_gpu_job_reaches_neither_languages_nor_language_models(script: str) -> None:
    reached = modules_behind(imports_of(ROOT / "scripts" / f"{script}.py"))
    layers = {name.split(".")[1] for name in reached if name != "pieline"}
    assert layers & {"languages", "llm", "study", "config"} == set()
    assert "pieline.models.registry" not in reached


PLANNING = {
    *("pieline.config", "pieline.configured_tasks", "pieline.plan", "pieline.project"),
    *("pieline.resources", "pieline.reuse", "pieline.study", "pieline.results.run_report"),
    *(f"pieline.studies.{study}.{module}" for study in ("jam", "idiots", "idiolink")
      for module in ("study", "runs", "files", "models", "tasks")),
}  # fmt: skip
"""Modules that decide what to run. No job's code may depend on them: a change would rerun it."""
PLANNING_SCRIPTS = {"answers", "check", "estimate_cost", "serve", "weights"}
"""Scripts of jobs about a whole configuration, which have no results."""


def _job_modules() -> dict[str, set[str]]:
    """Return the modules that each job starts from, by script or by object loaded by name."""
    scripts = {
        path.stem: set(imports_of(path))
        for path in (ROOT / "scripts").glob("*.py")
        if path.stem not in PLANNING_SCRIPTS
    }
    displays = {
        display.maker: {each.partition(":")[0] for each in (display.maker, display.ours)}
        for study in EXTENDED.values()
        for display in study.displays
    }
    tasks = {
        name: {name}
        for name in GRAPH.modules
        if (
            "pieline.llm.task" in GRAPH.find_modules_directly_imported_by(name)
            and name.startswith("pieline.studies.")
        )
        or name.endswith(".items")
    }
    return scripts | displays | tasks


def test_no_job_depends_on_planning() -> None:
    started = _job_modules()
    assert {"ask", "table", "pieline.studies.jam.predictions.prompting"} <= started.keys()
    assert PLANNING - {"pieline.studies.jam.models", "pieline.studies.idiots.models"} <= set(
        GRAPH.modules
    )
    reached = {name: PLANNING & {*modules_behind(modules)} for name, modules in started.items()}
    assert {name: planning for name, planning in reached.items() if planning} == {}


def test_no_two_modules_of_a_layer_share_a_name() -> None:
    names = [name for name in modules() if name.split(".")[0] in {"llm", "results"}]
    last = [name.rsplit(".", 1)[-1] for name in names]
    assert sorted(last) == sorted(set(last))


def test_all_metric_files_state_their_inputs_in_the_same_way() -> None:
    declaring = {
        node.name
        for module in GRAPH.modules
        for node in ast.walk(ast.parse(source_of(module).read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        and {"conditions", "computed_from"}
        <= {part.target.id for part in node.body
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)}
    }  # fmt: skip
    # Functions that make metric files get these fields as `Evidence`.
    assert declaring == {"MetricRecord", "Evidence"}


def test_no_two_classes_share_a_name() -> None:
    names = Counter(
        node.name
        for module in sorted(GRAPH.modules)
        for node in ast.parse(source_of(module).read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == set()


@pytest.mark.parametrize("name", ["idiots", "idiolink", "jam"])
def test_a_job_finds_the_function_of_each_display(name: str) -> None:
    displays = EXTENDED[name].displays
    assert displays
    assert all(import_object(each.maker) is each.make for each in displays)
    names = Counter((each.kind, each.name) for each in displays)
    assert max(names.values()) == 1


def test_planning_imports_no_package_that_only_jobs_need() -> None:
    """The audit hook of filelock slows down each file access of a process."""
    code = (
        "import sys; from pieline.config import study_classes; study_classes()\n"
        "import pieline.llm.recordings, pieline.results.run_report\n"
        "sys.exit(', '.join({'filelock', 'matplotlib', 'torch'} & sys.modules.keys()) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
