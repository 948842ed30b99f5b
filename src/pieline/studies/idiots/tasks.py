"""Tasks for language models in the IdioTS study: what each asks, and its runs."""

from functools import partial

from pieline.core.settings import OfModel
from pieline.studies.idiots import paths
from pieline.studies.idiots.files import Idiots
from pieline.studies.idiots.predictions import Detection
from pieline.studies.idiots.settings import DetectionParameters, OwnParameters
from pieline.study import LLMTaskSpec


def recordings(study: Idiots) -> str:
    """Return the path pattern of the recordings of runs."""
    # One file per run: without a seed in the request, runs with different seeds ask the same
    # questions, but must not share their answers.
    return study.project.recordings("idiots", "{model}", "{setting}-seed-{seed}.jsonl")


def prompt(study: Idiots, setting: str) -> str:
    """Return the path of a setting's template."""
    own = study.settings.prompts.get(setting)
    return study.project.configured_file(own.file) if own else study.project.here(paths.PROMPT)


def parameters(study: Idiots, model: str, setting: str) -> DetectionParameters:
    """Return the request parameters of a model in a setting."""
    request = DetectionParameters()
    if own := study.settings.prompts.get(setting):
        request = OwnParameters(**own.model_dump(exclude={"file"}))
    if limit := study.settings.by_model.get(model, OfModel()).max_tokens.get(setting):
        request = request.model_copy(update={"max_tokens": limit})
    return request


def detection(study: Idiots, model: str, setting: str, seed: str) -> Detection:
    """Return the task that detects idioms in one run."""
    return Detection(
        model=model,
        spec=study.project.language_model(model).execution_spec(),
        inputs={"sentences": paths.SENTENCES, "prompt": prompt(study, setting)},
        outputs={"predictions": paths.PREDICTIONS.format(model=model, setting=setting, seed=seed)},
        recordings=recordings(study).format(model=model, setting=setting, seed=seed),
        setting=setting,
        seed=int(seed),
        parameters=parameters(study, model, setting),
    )


def llm_tasks(study: Idiots) -> list[LLMTaskSpec]:
    """Return the specification of the tasks that detect idioms, one task per run."""
    return [
        LLMTaskSpec(
            name="idiots_detect",
            task=Detection,
            make=partial(detection, study),
            runs=[run.where for run in study.plan.asked()],
        )
    ]
