"""What a configuration plans to ask language models, for programs that are handed one."""

import json
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pieline.config import Config, load_config, load_studies
from pieline.core.errors import UserError
from pieline.llm.estimates import missing_inputs
from pieline.llm.settings import LLMSettings
from pieline.llm.task import Task
from pieline.models.llm import LLMEntry
from pieline.models.registry import AnyEntry, Registry, load_registry
from pieline.study import Study


class Planned(NamedTuple):
    """What a configuration plans to ask.

    Attributes:
        tasks: all of them.
        settings: how they may be asked.
        models: the models that are asked, by name.
        made_unasked: inputs of tasks that can be made before anything is asked.
    """

    tasks: list[Task]
    settings: LLMSettings
    models: dict[str, LLMEntry]
    made_unasked: Collection[str]

    def not_made(self, remade: Collection[str]) -> list[str]:
        """The files without which some questions are not known: a line each way to get them.

        Args:
            remade: files that the run makes anew.
        """
        missing = sorted({path for task in self.tasks for path in missing_inputs(task, remade)})
        before = [path for path in missing if path in self.made_unasked]
        after = [path for path in missing if path not in self.made_unasked]
        lines = []
        if before:
            command = f"snakemake --cores 1 -- {shlex.join(before)}"
            lines.append(f"not known before this, with the options of this run: {command}")
        if after:
            lines.append(f"not known before models have answered: {', '.join(after)}")
        return lines


def planned_tasks(text: str, models: Path, root: Path) -> Planned:
    """What a configuration plans to ask.

    Args:
        text: the whole configuration, as JSON.
        models: models.yaml.
        root: folder of the project.

    Raises:
        UserError: configuration or models are wrong.
    """
    config, registry, studies = _configured(text, models, root)
    planned = [
        (task, study.run.language_model(task.model)) for study in studies for task in study.tasks()
    ]
    return Planned(
        tasks=[task for task, _ in planned],
        settings=config.llm.for_jobs(root, registry.values()),
        models={task.model: entry for task, entry in planned},
        made_unasked={path for study in studies for path in study.questions_made_from()},
    )


def planned_entries(text: str, models: Path, root: Path) -> dict[str, AnyEntry]:
    """The models that the studies of a configuration run, train, look into or ask, by name.

    Those that it leaves out, or takes from archives, are not among them.
    Takes and raises the same as `planned_tasks`.
    """
    _, registry, studies = _configured(text, models, root)
    return {
        name: registry[name]
        for study in studies
        for name in study.models()
        if name not in {*getattr(study.settings, "leave_out", ()), *study.taken_models()}
    }


def _configured(
    text: str, models: Path, root: Path
) -> tuple[Config, Registry, Sequence[Study[Any]]]:
    """A configuration, the models that exist, and the studies that it names."""
    try:
        raw = json.loads(text)
    except ValueError:
        raise UserError("not JSON", where="--config", hint="pass the configuration") from None
    config = load_config(raw, where="--config")
    registry = load_registry(models)
    every_study = load_studies(config, registry, root)
    return config, registry, [every_study[name] for name in config.studies]
