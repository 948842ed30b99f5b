"""The IdioTS study, and the validation of its settings and data."""

from typing import ClassVar

from pieline.core.conditions import RunIdentity
from pieline.core.errors import UserError
from pieline.llm.prompts import load_prompt
from pieline.reporting.displays import Display
from pieline.studies.idiots import figures, files, paths, runs, tables, tasks
from pieline.studies.idiots.files import Idiots
from pieline.studies.idiots.settings import IdiotsSettings
from pieline.studies.idiots.verdicts import read_cases
from pieline.study import Items, Study


def validate(study: Idiots, where: str) -> None:
    """Check the files of prompts, raw data and verdicts that the settings name.

    Raises:
        UserError: A prompt lacks the sentence, the raw data is ambiguous, or no verdict is about a
            configured run.
    """
    for setting in study.settings.prompts:
        load_prompt(tasks.prompt(study, setting)).check_shows("sentence")
    _check_raw_files(study)
    if study.settings.verdicts:
        _check_verdicts(study, study.settings.verdicts)


def _check_raw_files(study: Idiots) -> None:
    """Raise a `UserError` if the user's own data contains the sentences as TSV and as JSON."""
    project = study.project
    if not project.own_data:
        return
    if project.is_available(paths.TABLE) and project.is_available(paths.ARRAY):
        raise UserError(
            f"both {paths.TABLE} and {paths.ARRAY} exist",
            where=project.own_data,
            hint="remove one",
        )


def _check_verdicts(study: Idiots, path: str) -> None:
    """Raise a `UserError` if no human verdict is about a configured run."""
    judged_runs = {case.run for case in read_cases(path) if case.verdict}
    configured_runs = {
        RunIdentity(run.model, run.where["setting"], int(run.where["seed"]))
        for run in study.configured_runs()
    }
    if judged_runs & configured_runs:
        return
    example = ""
    if judged_runs:
        example = f", only on {' '.join(str(part) for part in min(judged_runs))}"
    raise UserError(
        f"no verdict on a run of this configuration{example}",
        where=path,
        hint="fill in the column verdict and leave the others unchanged",
    )


class IdiotsStudy(Study[IdiotsSettings]):
    """The IdioTS study."""

    name = "idiots"
    paper = "IdioTS"
    Settings = IdiotsSettings
    displays: ClassVar[tuple[Display, ...]] = (
        tables.DATASET_TABLE,
        tables.DETECTION_TABLE,
        tables.CONSISTENCY_TABLE,
        tables.DISTRACTORS_TABLE,
        tables.ERRORS_TABLE,
        tables.PROMPT_TABLE,
        figures.RECALL_SPECIFICITY,
    )
    main_tables = (tables.DETECTION_TABLE.name,)
    main_measures = ("balanced_accuracy", "recall", "specificity", "answers_unreadable")

    check = validate
    configured_runs = runs.configured_runs
    impossible_runs = runs.impossible_runs
    conditions_by_pattern = runs.conditions_by_pattern
    models = runs.models
    llm_tasks = tasks.llm_tasks
    raw_files = files.raw_files
    other_targets = files.other_targets

    def items(self) -> Items:
        """Return the specification of the study's items: one item per sentence and run."""
        files_to_read = [run.predictions for run in self.plan.made()]
        if files_to_read:
            files_to_read.append(paths.SENTENCES)
        further_files = {}
        if self.settings.verdicts:
            further_files["verdicts"] = self.settings.verdicts
        return self.items_of(self.plan.runs, self.settings.models, files_to_read, **further_files)
