"""The IdioTS study."""

from pieline.studies.idiots import checks, displays, files, runs, tasks
from pieline.studies.idiots.settings import IdiotsSettings
from pieline.study import Study


class IdiotsStudy(Study[IdiotsSettings]):
    """The IdioTS study."""

    name = "idiots"
    paper = "IdioTS"
    Settings = IdiotsSettings

    check = checks.check
    configured_runs = runs.configured_runs
    lacks = runs.lacks
    other_metrics = runs.other_metrics
    conditions_by_pattern = runs.conditions_by_pattern
    models = runs.models
    llm_tasks = tasks.llm_tasks
    raw_files = files.raw_files
    other_targets = files.other_targets
    tables = displays.tables
    figures = displays.figures
    items = displays.items
