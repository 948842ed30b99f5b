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
        settings: Settings of requests to language models.
        models: Entry of each model to query, by name.
        available_inputs: Task inputs that can be made before any model is queried.
        on_papers_data: Whether the tasks use the complete data of the papers.
    """

    tasks: list[Task]
    settings: LLMSettings
    models: dict[str, LLMEntry]
    available_inputs: Collection[str]
    on_papers_data: bool

    def messages_on_missing_files(
        self, remade: Collection[str], options: Sequence[str]
    ) -> list[str]:
        """Return messages about missing files on which prompts depend.

        One message contains the command that makes the missing files that depend on no answers.
        Another message lists the missing files that are made from answers. Either message is left
        out if there are no such files.

        Args:
            remade: Files that count as missing because the run will recreate them.
            options: Options of snakemake that select the run.
        """
        missing = sorted({path for task in self.tasks for path in missing_inputs(task, remade)})
        can_be_made = [path for path in missing if path in self.available_inputs]
        need_answers = [path for path in missing if path not in self.available_inputs]
        messages = []
        if can_be_made:
            command = shlex.join(["snakemake", "--cores", "1", *options, "--", *can_be_made])
            messages.append(f"not known yet; first run: {command}")
        if need_answers:
            messages.append(f"not known until models have answered: {', '.join(need_answers)}")
        return messages


def planned_tasks(text: str, models: Path, root: Path) -> PlannedTasks:
    """Return the language model tasks of a configuration.

    Args:
        text: Complete configuration as JSON.
        models: Path of models.yaml.
        root: Project folder.

    Raises:
        UserError: The configuration or models.yaml is invalid.
    """
    config, registry, studies = _load(text, models, root)
    tasks: list[Task] = []
    entries: dict[str, LLMEntry] = {}
    for study in studies:
        for task in study.tasks():
            tasks.append(task)
            entries[task.model] = study.project.language_model(task.model)
    return PlannedTasks(
        tasks=tasks,
        settings=config.llm.for_jobs(root, registry.values()),
        models=entries,
        available_inputs={path for study in studies for path in study.question_inputs()},
        on_papers_data=config.data == "released" and config.limit is None,
    )


def planned_entries(text: str, models: Path, root: Path) -> dict[str, AnyEntry]:
    """Return the entries of all models that a configuration runs, trains, probes or queries.

    Models in the setting `leave_out`, and models whose runs all come from archives, are omitted.
    Arguments and errors are the same as in `planned_tasks`.
    """
    _, registry, studies = _load(text, models, root)
    entries: dict[str, AnyEntry] = {}
    for study in studies:
        omitted = {*getattr(study.settings, "leave_out", ()), *study.archived_models()}
        for name in study.models():
            if name not in omitted:
                entries[name] = registry[name]
    return entries


def _load(text: str, models: Path, root: Path) -> tuple[Config, Registry, Sequence[Study[Any]]]:
    """Load a configuration, the models, and the studies that the configuration names."""
    config = load_config(json.loads(text), where="--config")
    registry = load_registry(models)
    all_studies = load_studies(config, registry, root)
    return config, registry, [all_studies[name] for name in config.studies]
