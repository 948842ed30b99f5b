"""The IdioLink study with any settings, for tests without Snakemake."""

from collections.abc import Mapping
from typing import Any

from support import ROOT

from pieline.llm.settings import LLMSettings
from pieline.models.registry import AnyEntry, load_registry
from pieline.project import Project
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiolink.settings import IdiolinkSettings
from pieline.studies.idiolink.study import IdiolinkStudy

REGISTRY = load_registry(ROOT / "models.yaml")


def study(
    data: Any = "sample", own: Mapping[str, AnyEntry] | None = None, **settings: Any
) -> IdiolinkStudy:
    """Return the study with these settings; `own` are models in addition to the project's."""
    llm = LLMSettings(recordings_folder=ROOT / "recordings")
    run = Project(REGISTRY | dict(own or {}), llm, data, root=ROOT)
    return IdiolinkStudy(IdiolinkSettings.model_validate(settings), run)


def inputs_of_table(idiolink: IdiolinkStudy, name: str) -> DisplayInputs:
    """Return the inputs of a table, whose name is without the study's."""
    (table,) = (table for table in idiolink.tables() if table.name == f"idiolink_{name}")
    return idiolink.shown[table]
