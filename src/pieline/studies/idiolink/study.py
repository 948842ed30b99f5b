"""IdioLink, a study of whether embeddings match texts by meaning despite different wording."""

from pieline.studies.idiolink import checks, displays, files, runs, tasks
from pieline.studies.idiolink.models import all_models, archived_models
from pieline.studies.idiolink.settings import IdiolinkSettings
from pieline.study import Study


class IdiolinkStudy(Study[IdiolinkSettings]):
    """The IdioLink study."""

    name = "idiolink"
    paper = "IdioLink"
    Settings = IdiolinkSettings

    check = checks.check
    check_own_data = checks.check_own_data
    check_archives = checks.check_archives
    configured_runs = runs.configured_runs
    lacks = runs.lacks
    other_metrics = runs.other_metrics
    conditions_by_pattern = runs.conditions_by_pattern
    left_out = runs.left_out
    models = all_models
    archived_models = archived_models
    llm_tasks = tasks.llm_tasks
    raw_files = files.raw_files
    other_targets = files.other_targets
    tables = displays.tables
    figures = displays.figures
    items = displays.items
    why_no_table = displays.why_no_table
