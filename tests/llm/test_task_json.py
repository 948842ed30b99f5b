"""Test that tasks survive the JSON that rules pass to the script."""

import json
from typing import Any

import pytest
from support import ROOT

from pieline.config import layered, load_config
from pieline.configured_tasks import planned_tasks
from pieline.core.yamls import read_yaml
from pieline.llm.task import load_task

FEW_SHOT = {"jam": {"few_shot": {"examples": 2, "samples": 3}}}
GENERATED = {"jam": {"variants": {"source": "generated", "model": "gemini-2.5-pro"}}}


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("config.yaml", {}),
        ("config/paper.yaml", {}),
        ("config/released.yaml", {}),
        ("config/paper.yaml", FEW_SHOT),
        ("config/paper.yaml", GENERATED),
    ],
)
def test_every_task_survives_json(name: str, changed: dict[str, Any]) -> None:
    raw = read_yaml(ROOT / name)
    for study, settings in changed.items():
        raw[study] |= settings
    config = load_config(layered(raw, ROOT / "config/sample.yaml"))
    tasks = planned_tasks(json.dumps(config.model_dump(mode="json")), ROOT / "models.yaml", ROOT)[0]
    for task in tasks:
        assert load_task(task.path(), task.canonical()) == task
    assert tasks or name == "config/released.yaml"
