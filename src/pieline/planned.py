"""What a configuration plans to ask language models, for programs that are handed one."""

import json
from pathlib import Path
from typing import NamedTuple

from pieline.config import load_config, load_studies
from pieline.core.errors import UserError
from pieline.llm.settings import LLMSettings
from pieline.llm.task import Task
from pieline.models.registry import Registry, load_registry


class Planned(NamedTuple):
    """All tasks of a configuration, how they may be asked, and the models that exist."""

    tasks: list[Task]
    settings: LLMSettings
    registry: Registry


def planned_tasks(text: str, models: Path, root: Path) -> Planned:
    """What a configuration plans to ask.

    Args:
        text: the whole configuration, as JSON.
        models: models.yaml.
        root: folder of the project.

    Raises:
        UserError: configuration or models are wrong.
    """
    try:
        raw = json.loads(text)
    except ValueError:
        raise UserError("not JSON", where="--config", mend="pass the configuration") from None
    config = load_config(raw, where="--config")
    registry = load_registry(models)
    studies = load_studies(config, registry, root)
    tasks = [task for name in config.studies for task in studies[name].tasks()]
    folder = root / config.llm.recordings_folder
    settings = config.llm.model_copy(update={"recordings_folder": folder})
    return Planned(tasks, settings, registry)
