"""What a configuration plans to ask language models, for programs that are handed one."""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

from pieline.config import load_config, load_studies
from pieline.core.errors import UserError
from pieline.llm.settings import LLMSettings
from pieline.llm.task import Task
from pieline.models.registry import Registry, load_registry


def planned_parser(about: str | None) -> argparse.ArgumentParser:
    """A parser of the options that `planned_tasks` takes.

    Args:
        about: what the program does.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--config", required=True, help="the whole configuration, as JSON")
    parser.add_argument("--models", type=Path, required=True, help="models.yaml")
    parser.add_argument("--root", type=Path, required=True, help="folder of the project")
    return parser


class Planned(NamedTuple):
    """All tasks of a configuration, how they may be asked, and the models that exist."""

    tasks: list[Task]
    settings: LLMSettings
    registry: Registry


def planned_tasks(options: argparse.Namespace) -> Planned:
    """What a configuration plans to ask.

    Raises:
        UserError: an option is wrong.
    """
    try:
        raw = json.loads(options.config)
    except ValueError:
        raise UserError("not JSON", where="--config", mend="pass the configuration") from None
    config = load_config(raw, where="--config")
    registry = load_registry(options.models)
    studies = load_studies(config, registry, options.root)
    tasks = [task for name in config.studies for task in studies[name].tasks()]
    folder = options.root / config.llm.recordings_folder
    settings = config.llm.model_copy(update={"recordings_folder": folder})
    return Planned(tasks, settings, registry)
