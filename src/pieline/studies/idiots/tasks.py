"""Tasks for language models in the IdioTS study: prompts, parameters and recordings."""

from functools import partial

from pieline.core.settings import OfModel
from pieline.studies.idiots import paths
from pieline.studies.idiots.files import Idiots
from pieline.studies.idiots.predictions import Detection
from pieline.studies.idiots.settings import DetectionParameters, OwnParameters
from pieline.study import LLMTaskSpec


def recordings(study: Idiots) -> str:
    """Return the path pattern of the files with recorded answers."""
    # There is one file per run: if no seed is sent, runs with different seeds ask the same
    # questions, but must not share answers.
    return study.project.recordings("idiots", "{model}", "{setting}-seed-{seed}.jsonl")


def prompt(study: Idiots, setting: str) -> str:
    """Return the path of the prompt template of a setting."""
    custom_prompt = study.settings.prompts.get(setting)
    if custom_prompt:
        return study.project.configured_file(custom_prompt.file)
    return study.project.here(paths.PROMPT)


def parameters(study: Idiots, model: str, setting: str) -> DetectionParameters:
    """Return the request parameters of a model in a setting."""
    request_parameters = DetectionParameters()
    custom_prompt = study.settings.prompts.get(setting)
    if custom_prompt:
        request_parameters = OwnParameters(**custom_prompt.model_dump(exclude={"file"}))
    settings_of_model = study.settings.by_model.get(model, OfModel())
    max_tokens = settings_of_model.max_tokens.get(setting)
    if max_tokens:
        request_parameters = request_parameters.model_copy(update={"max_tokens": max_tokens})
    return request_parameters


def detection(study: Idiots, model: str, setting: str, seed: str) -> Detection:
    """Return the task of one run, which asks a model whether each sentence contains an idiom."""
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
    """Return the specification of the study's only kind of task: idiom detection, once per run."""
    return [
        LLMTaskSpec(
            name="idiots_detect",
            task=Detection,
            make=partial(detection, study),
            runs=[run.where for run in study.plan.asked()],
        )
    ]
