"""Tasks for language models in the IdioTS study: what each asks, and its runs."""

from functools import partial

from pieline.studies.idiots import paths
from pieline.studies.idiots.files import Idiots
from pieline.studies.idiots.predictions import Detection, StrictDetection
from pieline.studies.idiots.settings import DetectionParameters, OwnParameters
from pieline.study import LLMTaskSpec


def recordings(study: Idiots) -> str:
    """Return the path pattern of the recordings of runs."""
    # One file per run: if a provider does not accept a seed, runs with different seeds ask
    # the same questions, but must not share their answers.
    return study.project.recordings("idiots", "{model}", "{setting}-seed-{seed}.jsonl")


def prompt(study: Idiots, setting: str) -> str:
    """Return the path of a setting's template."""
    own = study.settings.prompts.get(setting)
    return study.project.configured_file(own.file) if own else study.project.here(paths.PROMPT)


def parameters(study: Idiots, setting: str) -> DetectionParameters:
    """Return the request parameters of a setting."""
    if own := study.settings.prompts.get(setting):
        return OwnParameters(**own.model_dump(exclude={"file"}))
    return study.settings.parameters


def detection(study: Idiots, model: str, setting: str, seed: str) -> Detection:
    """Return the task that detects idioms in one run."""
    return task_class(study)(
        model=model,
        spec=study.project.language_model(model).execution_spec(),
        inputs={"sentences": paths.SENTENCES, "prompt": prompt(study, setting)},
        outputs={"predictions": paths.PREDICTIONS.format(model=model, setting=setting, seed=seed)},
        recordings=recordings(study).format(model=model, setting=setting, seed=seed),
        setting=setting,
        seed=int(seed),
        parameters=parameters(study, setting),
    )


def task_class(study: Idiots) -> type[Detection]:
    """Return the class of the detection task."""
    return StrictDetection if study.settings.detection == "strict" else Detection


def llm_tasks(study: Idiots) -> list[LLMTaskSpec]:
    """Return the specification of the tasks that detect idioms, one task per run."""
    return [
        LLMTaskSpec(
            name="idiots_detect",
            task=task_class(study),
            make=partial(detection, study),
            runs=[run.where for run in study.plan.asked()],
        )
    ]
