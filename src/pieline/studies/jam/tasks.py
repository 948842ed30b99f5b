"""Tasks for language models in the ID10M-JAM study: what each asks, and its runs."""

from functools import partial

from pieline.core.errors import UserError
from pieline.core.files import canonical_json
from pieline.core.settings import OfModel
from pieline.models.entries import CheckpointEntry
from pieline.studies.jam import files, paths
from pieline.studies.jam.files import Jam
from pieline.studies.jam.predictions.prompt_settings import (
    FEW_SHOT,
    Arranged,
    FewShot,
    Votes,
    ZeroShot,
)
from pieline.studies.jam.predictions.prompting import Identification
from pieline.studies.jam.settings import NEUTRAL
from pieline.studies.jam.training.settings import TaggingSettings
from pieline.studies.jam.variants.generation import (
    GENERATE,
    NEUTRAL_PROMPT,
    REVIEW,
    GenerationSettings,
    HardVariants,
    NeutralContexts,
    NeutralVariants,
)
from pieline.study import LLMTaskSpec


def with_report(variants: str) -> dict[str, str]:
    """Return the output paths of a task that writes variants and a report."""
    return {"variants": variants, "report": variants.replace(".jsonl", ".report.json")}


def tagging_settings(study: Jam) -> str:
    """Return `jam.form` and the encoders' hyperparameters as canonical JSON."""
    tuning = study.settings.fine_tuning.model_dump(include={*TaggingSettings.model_fields})
    return canonical_json({"form": study.settings.form, **tuning})


def parameters(study: Jam, model: str, setting: str) -> Arranged | FewShot | ZeroShot:
    """Return the request parameters of a model in a setting."""
    settings = study.settings
    request: Arranged | FewShot | ZeroShot = ZeroShot()
    if own := settings.prompts.get(setting):
        request = Arranged(**own.model_dump(exclude={"file"}))
    elif setting == FEW_SHOT:
        votes: Votes = "first" if settings.form == "released" else "majority"
        request = FewShot(**settings.few_shot.model_dump(), votes=votes)
    if limit := settings.by_model.get(model, OfModel()).max_tokens.get(setting):
        request = request.model_copy(update={"max_tokens": limit})
    return request


def identification(study: Jam, **run: str) -> Identification:
    """Return the task of one run, which identifies idioms in the input sentences."""
    language = run["language"]
    task = _identification(study, "jam", files.sentences(study, language), paths.PREDICTIONS, run)
    if not files.uses_neutral_contexts(study, run["setting"]):
        return task
    neutral = paths.NEUTRAL_CONTEXTS.format(language=language)
    return task.model_copy(update={"inputs": {**task.inputs, "neutral": neutral}})


def neutral_identification(study: Jam, **run: str) -> Identification:
    """Return the task of the ablation's run, which identifies idioms in neutral variants."""
    sentences = paths.NEUTRAL_VARIANTS.format(**run)
    return _identification(study, "jam_neutral", sentences, paths.NEUTRAL_PREDICTIONS, run)


def _identification(
    study: Jam, folder: str, sentences: str, predictions: str, run: dict[str, str]
) -> Identification:
    language, model, setting = run["language"], run["model"], run["setting"]
    inputs = {"sentences": sentences, **paths.prompt_files(study, setting)}
    if train := files.examples(study, language, setting):
        inputs["train"] = train
    return Identification(
        **_of_model(study, model),
        inputs=inputs,
        outputs={"predictions": predictions.format(**run)},
        recordings=recordings(study, folder).format(**run),
        setting=setting,
        seed=int(run["seed"]),
        parameters=parameters(study, model, setting),
    )


def recordings(study: Jam, folder: str) -> str:
    """Return the path pattern of the recordings of runs."""
    # One file per run: without a seed in the request, runs with different seeds ask the same
    # questions, but must not share their answers.
    return study.project.recordings(folder, "{language}", "{model}", "{setting}-seed-{seed}.jsonl")


def _of_model(study: Jam, model: str) -> dict[str, str]:
    """Return the task fields that describe a model."""
    return {"model": model, "spec": study.project.language_model(model).execution_spec()}


def generation(study: Jam) -> GenerationSettings:
    """Return the request parameters for generating variants."""
    return GenerationSettings(max_tokens=study.settings.variants.max_tokens)


def _writer(study: Jam) -> str:
    """Return the model that writes variants, which all callers require."""
    assert study.settings.variants.model
    return study.settings.variants.model


def hard_variants(study: Jam, language: str) -> HardVariants:
    """Return the task that writes the variants of a language."""
    model = _writer(study)
    return HardVariants(
        **_of_model(study, model),
        inputs={
            "originals": paths.ORIGINALS.format(language=language),
            "generate": study.project.here("prompts/jam", GENERATE),
            "review": study.project.here("prompts/jam", REVIEW),
        },
        outputs=with_report(paths.VARIANTS.format(language=language)),
        recordings=study.project.recordings("jam_variants", language, f"{model}.jsonl"),
        generation=generation(study),
    )


def neutral_variants(study: Jam, **run: str) -> NeutralVariants:
    """Return the task that writes neutral variants for the hard ones that confused a run."""
    language, model = run["language"], _writer(study)
    name = f"{run['model']}-{run['setting']}-{run['seed']}.jsonl"
    return NeutralVariants(
        **_of_model(study, model),
        inputs={
            "dataset": paths.DATASET.format(language=language),
            "metrics": paths.METRICS.format(**run),
            "prompt": study.project.here("prompts/jam", NEUTRAL_PROMPT),
        },
        outputs=with_report(paths.NEUTRAL_VARIANTS.format(**run)),
        recordings=study.project.recordings("jam_neutral", language, model, name),
        generation=generation(study),
    )


def neutral_contexts(study: Jam, language: str) -> NeutralContexts:
    """Return the task that writes a neutral variant for each hard variant of a language."""
    model = _writer(study)
    return NeutralContexts(
        **_of_model(study, model),
        inputs={
            "dataset": paths.DATASET.format(language=language),
            "prompt": study.project.here("prompts/jam", NEUTRAL_PROMPT),
        },
        outputs=with_report(paths.NEUTRAL_CONTEXTS.format(language=language)),
        recordings=study.project.recordings("jam_neutral", language, f"{model}.jsonl"),
        generation=generation(study),
    )


def weights_spec(study: Jam, model: str) -> str:
    """Return the specification of a model's weights as canonical JSON.

    Raises:
        UserError: The model has no weights.
    """
    entry = study.project.entry(model)
    if not isinstance(entry, CheckpointEntry):
        raise UserError(f"{model!r} has no weights", hint="name a causal model")
    return entry.weights_spec()


def llm_tasks(study: Jam) -> list[LLMTaskSpec]:
    """Return the specifications of the tasks that write variants or identify idioms."""
    writer = study.settings.variants.model
    written_languages = files.written_languages(study)
    settings = list(study.settings.prompts) + study.added_settings()
    shows_neutral = any(files.uses_neutral_contexts(study, name) for name in settings)
    neutral_languages = study.settings.languages if shows_neutral and writer else []
    # The questions of these tasks are unknown until a model has written their input.
    before_prompting, before_neutral_variants, before_contexts = [], ["metrics"], []
    if written_languages:
        before_prompting.append("sentences")
        before_neutral_variants.append("dataset")
        before_contexts.append("dataset")
    if neutral_languages:
        before_prompting.append("neutral")
    return [
        LLMTaskSpec(
            name="jam_generate_variants",
            task=HardVariants,
            make=partial(hard_variants, study),
            runs=[{"language": language} for language in written_languages],
        ),
        LLMTaskSpec(
            name="prompt_idioms",
            task=Identification,
            make=partial(identification, study),
            runs=[run.where for run in study.plan.asked(experiment="")],
            after_answers=before_prompting,
        ),
        LLMTaskSpec(
            name="jam_neutral_variants",
            task=NeutralVariants,
            make=partial(neutral_variants, study),
            runs=[run.where for run in study.plan.select(experiment=NEUTRAL)] if writer else [],
            after_answers=before_neutral_variants,
        ),
        LLMTaskSpec(
            name="jam_neutral_contexts",
            task=NeutralContexts,
            make=partial(neutral_contexts, study),
            runs=[{"language": language} for language in neutral_languages],
            after_answers=before_contexts,
        ),
        LLMTaskSpec(
            name="prompt_neutral",
            task=Identification,
            make=partial(neutral_identification, study),
            runs=[run.where for run in study.plan.asked(experiment=NEUTRAL)],
            after_answers=("sentences",),
        ),
    ]
