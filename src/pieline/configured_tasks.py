"""Collect the language model tasks and models that a configuration uses."""

import json
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pieline.config import Config, load_config, load_studies
from pieline.llm.estimates import missing_inputs
from pieline.llm.settings import LLMSettings
from pieline.llm.task import Task
from pieline.models.llm import LLMEntry
from pieline.models.registry import AnyEntry, Registry, load_registry
from pieline.study import Study


class PlannedTasks(NamedTuple):
    """Language model tasks of a configuration.

    Attributes:
        tasks: All tasks.
        settings: Settings of the language model calls.
        models: Entries of the models to query, by name.
        available_inputs: Task inputs that can be made before any model is queried.
        on_papers_data: Whether the tasks use the papers' data, and all of it.
    """

    tasks: list[Task]
    settings: LLMSettings
    models: dict[str, LLMEntry]
    available_inputs: Collection[str]
    on_papers_data: bool

    def missing_files(self, remade: Collection[str], options: Sequence[str]) -> list[str]:
        """Return messages about missing files on which task prompts depend.

        One message contains the command that makes the files that need no answers; the other lists
        the files that are made from answers. A message without files is omitted.

        Args:
            remade: Files that count as missing because the run will recreate them.
            options: Options of snakemake that select the run.
        """
        missing = sorted({path for task in self.tasks for path in missing_inputs(task, remade)})
        before = [path for path in missing if path in self.available_inputs]
        after = [path for path in missing if path not in self.available_inputs]
        lines = []
        if before:
            command = shlex.join(["snakemake", "--cores", "1", *options, "--", *before])
            lines.append(f"not known yet; first run: {command}")
        if after:
            lines.append(f"not known until models have answered: {', '.join(after)}")
        return lines


def planned_tasks(text: str, models: Path, root: Path) -> PlannedTasks:
    """Return the language model tasks of a configuration.

    Args:
        text: The complete configuration as JSON.
        models: Path of models.yaml.
        root: Project folder.

    Raises:
        UserError: The configuration or models.yaml is invalid.
    """
    config, registry, studies = _configured(text, models, root)
    planned = [
        (task, study.project.language_model(task.model))
        for study in studies
        for task in study.tasks()
    ]
    return PlannedTasks(
        tasks=[task for task, _ in planned],
        settings=config.llm.for_jobs(root, registry.values()),
        models={task.model: entry for task, entry in planned},
        available_inputs={path for study in studies for path in study.question_inputs()},
        on_papers_data=config.data == "released" and config.limit is None,
    )


def planned_entries(text: str, models: Path, root: Path) -> dict[str, AnyEntry]:
    """Return the entries of all models that a configuration runs, trains, probes or queries.

    Models that are left out, or whose runs all come from archives, are not included.
    Arguments and errors are the same as in `planned_tasks`.
    """
    _, registry, studies = _configured(text, models, root)
    return {
        name: registry[name]
        for study in studies
        for name in study.models()
        if name not in {*getattr(study.settings, "leave_out", ()), *study.archived_models()}
    }


def _configured(
    text: str, models: Path, root: Path
) -> tuple[Config, Registry, Sequence[Study[Any]]]:
    """Load a configuration, the model registry, and the studies that the configuration names."""
    config = load_config(json.loads(text), where="--config")
    registry = load_registry(models)
    every_study = load_studies(config, registry, root)
    return config, registry, [every_study[name] for name in config.studies]
