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
    settings = study.settings
    for setting in settings.prompts:
        load_prompt(tasks.prompt(study, setting)).check_shows("sentence")
    if study.project.own_data and all(
        map(study.project.is_available, (inputs.TABLE, inputs.ARRAY))
    ):
        raise UserError(
            f"both {inputs.TABLE} and {inputs.ARRAY} exist",
            where=study.project.own_data,
            hint="remove one",
        )
    if settings.verdicts:
        judged_runs = {case.run for case in read_cases(settings.verdicts) if case.verdict}
        configured = {
            RunIdentity(run.model, run.where["setting"], int(run.where["seed"]))
            for run in study.configured_runs()
        }
        if not judged_runs & configured:
            one = f", only on {' '.join(map(str, min(judged_runs)[:3]))}" if judged_runs else ""
            raise UserError(
                f"no verdict on a run of this configuration{one}",
                where=settings.verdicts,
                hint="fill in the column verdict and leave the others unchanged",
            )
