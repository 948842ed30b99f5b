"""Validation of the settings of the IdioTS study."""

from pieline.core.conditions import RunIdentity
from pieline.core.errors import UserError
from pieline.llm.prompts import load_prompt
from pieline.studies.idiots import inputs, tasks
from pieline.studies.idiots.files import Idiots
from pieline.studies.idiots.verdicts import read_cases


def check(study: Idiots, where: str) -> None:
    """Validate the prompts, data and verdicts.

    Raises:
        UserError: A setting is invalid.
    """
    for setting in study.settings.prompts:
        load_prompt(tasks.prompt(study, setting)).check_shows("sentence")
    _check_raw_files(study)
    if study.settings.verdicts:
        _check_verdicts(study, study.settings.verdicts)


def _check_raw_files(study: Idiots) -> None:
    """Raise a `UserError` if own data has the sentences in both formats."""
    project = study.project
    if not project.own_data:
        return
    if project.is_available(inputs.TABLE) and project.is_available(inputs.ARRAY):
        raise UserError(
            f"both {inputs.TABLE} and {inputs.ARRAY} exist",
            where=project.own_data,
            hint="remove one",
        )


def _check_verdicts(study: Idiots, path: str) -> None:
    """Raise a `UserError` if no human verdict is about a configured run."""
    judged_runs = {case.run for case in read_cases(path) if case.verdict}
    configured = {
        RunIdentity(run.model, run.where["setting"], int(run.where["seed"]))
        for run in study.configured_runs()
    }
    if judged_runs & configured:
        return
    example = f", only on {' '.join(map(str, min(judged_runs)))}" if judged_runs else ""
    raise UserError(
        f"no verdict on a run of this configuration{example}",
        where=path,
        hint="fill in the column verdict and leave the others unchanged",
    )
