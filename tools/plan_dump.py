"""Print the plan of configurations as sorted JSON, without running a job.

Two dumps of the same configurations show how a change of the code affects the plan: targets, metric
files with their conditions, the files behind them, runs that are left out, archived runs, and the
questions' recordings, inputs and parameters.

    python tools/plan_dump.py > before.json             # the default and all files in config/
    python tools/plan_dump.py config/paper.yaml --mirror FOLDER
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pieline.config import layered, load_config, load_studies
from pieline.core.conditions import Conditions
from pieline.core.errors import UserError
from pieline.core.yamls import merge, read_yaml
from pieline.models.registry import load_registry
from pieline.plan import Run
from pieline.study import Study

ROOT = Path(__file__).parents[1]
PARTIAL = {"sample.yaml"}
"""Files in config/ that are not configurations of their own."""


def dump(study: Study[Any]) -> dict[str, Any]:
    """Return the plan of a study."""
    plan = study.plan
    runs = {run.metrics: run for run in plan}
    metrics = sorted({*study.metrics(), *(run.metrics for run in plan)})
    tasks = sorted(study.tasks(), key=lambda task: task.recordings)
    return {
        "targets": sorted(study.targets()),
        "raw": sorted(study.raw_files()),
        "left out": {run.metrics: run.impossible_because for run in plan if run.impossible_because},
        "metrics": {path: dump_metrics(plan.conditions(path), runs.get(path)) for path in metrics},
        "tasks": {task.recordings: json.loads(task.model_dump_json()) for task in tasks},
        "tables": {table.name: list(study.shown[table].metrics) for table in study.tables()},
        "figures": {figure.name: list(study.shown[figure].metrics) for figure in study.figures()},
    }


def dump_metrics(conditions: Conditions | None, run: Run | None) -> dict[str, Any]:
    """Return what a plan states about a metric file, which may have no run."""
    return {
        "conditions": conditions.model_dump(mode="json") if conditions else None,
        "behind": list(run.behind) if run and not run.impossible_because else [],
        "archive": run.archive.name if run and run.archive else None,
    }


def plan(file: Path | None, mirror: str | None) -> dict[str, Any]:
    """Return the plan of a configuration file over config.yaml; None is config.yaml alone.

    Raises:
        UserError: The configuration is invalid.
    """
    raw = read_yaml(ROOT / "config.yaml")
    raw = merge(raw, read_yaml(file)) if file else raw
    if mirror and raw.get("data") == "released":
        raw = raw | {"mirror": mirror}
    config = load_config(layered(raw, ROOT / "config" / "sample.yaml"))
    studies = load_studies(config, load_registry(Path("models.yaml")), Path())
    return {name: dump(studies[name]) for name in config.studies}


def main() -> None:
    """Print the plans of the named configurations."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="default: config.yaml and config/")
    parser.add_argument("--mirror", help="folder with the public files")
    args = parser.parse_args()
    every = sorted(path for path in (ROOT / "config").glob("*.yaml") if path.name not in PARTIAL)
    plans: dict[str, Any] = {}
    for file in args.files or [None, *every]:
        try:
            plans[file.name if file else "default"] = plan(file, args.mirror)
        except UserError as error:
            sys.exit(str(error))
    print(json.dumps(plans, indent=1, sort_keys=True, ensure_ascii=False))


if __name__ == "__main__":
    main()
