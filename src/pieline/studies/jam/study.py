"""The ID10M-JAM study."""

from pieline.studies.jam import checks, displays, files, runs, tasks
from pieline.studies.jam.settings import JamSettings
from pieline.study import Study


class JamStudy(Study[JamSettings]):
    """The ID10M-JAM study."""

    name = "jam"
    paper = "ID10M-JAM"
    Settings = JamSettings

    check = checks.check
    check_own_data = checks.check_own_data
    configured_runs = runs.configured_runs
    lacks = runs.lacks
    other_metrics = runs.other_metrics
    conditions_by_pattern = runs.conditions_by_pattern
    models = runs.models
    archived_models = runs.archived_models
    llm_tasks = tasks.llm_tasks
    raw_files = files.raw_files
    other_targets = files.other_targets
    tables = displays.tables
    figures = displays.figures
    items = displays.items
    why_no_table = displays.why_no_table
