"""Kinds of language model tasks of the IdioTS study."""

from functools import partial

from pieline.studies.idiots import files, paths, questions
from pieline.studies.idiots.files import Idiots
from pieline.study import LLMTaskSpec


def llm_tasks(study: Idiots) -> list[LLMTaskSpec]:
    """Return the specification of the tasks that detect idioms, one task per run."""
    return [
        LLMTaskSpec(
            name="idiots_detect",
            task=questions.task_class(study),
            outputs={"predictions": paths.PREDICTIONS},
            make=partial(questions.detection, study),
            runs=[run.where for run in study.plan.asked()],
            constraints=files.constraints(study, "llm"),
        )
    ]
