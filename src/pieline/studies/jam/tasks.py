"""Specify the tasks for language models in the ID10M-JAM study, and the runs of each task."""

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
    """Return the output paths of a task that writes variants and a report, by output name.

    `variants` is the path of the file of variants; the report is in the same folder.
    """
    return {"variants": variants, "report": variants.replace(".jsonl", ".report.json")}


def tagging_settings(study: Jam) -> str:
    """Return `jam.form` and the fine-tuning hyperparameters of encoders as canonical JSON."""
    hyperparameters = study.settings.fine_tuning.model_dump(include={*TaggingSettings.model_fields})
    return canonical_json({"form": study.settings.form, **hyperparameters})


def parameters(study: Jam, model: str, setting: str) -> Arranged | FewShot | ZeroShot:
    """Return the parameters of the requests to a model in a setting."""
    settings = study.settings
    custom_prompt = settings.prompts.get(setting)
    request: Arranged | FewShot | ZeroShot
    if custom_prompt:
        request = Arranged(**custom_prompt.model_dump(exclude={"file"}))
    elif setting == FEW_SHOT:
        votes: Votes = "first" if settings.form == "released" else "majority"
        request = FewShot(**settings.few_shot.model_dump(), votes=votes)
    else:
        request = ZeroShot()
    model_settings = settings.by_model.get(model, OfModel())
    max_tokens = model_settings.max_tokens.get(setting)
    if max_tokens:
        request = request.model_copy(update={"max_tokens": max_tokens})
    return request


def identification(study: Jam, **wildcards: str) -> Identification:
    """Return the task that asks a model for the idioms in the sentences of one run."""
    language, setting = wildcards["language"], wildcards["setting"]
    inputs = {"sentences": files.sentences(study, language)}
    if files.uses_neutral_contexts(study, setting):
        inputs["neutral"] = paths.NEUTRAL_CONTEXTS.format(language=language)
    return _make_identification(study, wildcards, inputs, paths.PREDICTIONS, "jam")


def neutral_identification(study: Jam, **wildcards: str) -> Identification:
    """Return the task that asks a model for the idioms in neutral variants (appendix G)."""
    inputs = {"sentences": paths.NEUTRAL_VARIANTS.format(**wildcards)}
    return _make_identification(study, wildcards, inputs, paths.NEUTRAL_PREDICTIONS, "jam_neutral")


def _make_identification(
    study: Jam,
    wildcards: dict[str, str],
    sentence_files: dict[str, str],
    predictions_pattern: str,
    recordings_folder: str,
) -> Identification:
    """Return a task that asks a model for the idioms in the sentences of one run.

    Args:
        study: The study.
        wildcards: Wildcards of the run.
        sentence_files: Paths of the files with sentences, by input name.
        predictions_pattern: Path pattern of the predictions.
        recordings_folder: Folder of the recorded answers, in the folder of all recordings.
    """
    language, model, setting = wildcards["language"], wildcards["model"], wildcards["setting"]
    inputs = {**sentence_files, **paths.prompt_files(study, setting)}
    if train := files.examples(study, language, setting):
        inputs["train"] = train
    return Identification(
        **_model_fields(study, model),
        inputs=inputs,
        outputs={"predictions": predictions_pattern.format(**wildcards)},
        recordings=recordings(study, recordings_folder).format(**wildcards),
        setting=setting,
        seed=int(wildcards["seed"]),
        parameters=parameters(study, model, setting),
    )


def recordings(study: Jam, folder: str) -> str:
    """Return the path pattern of recordings files; each run has its own file.

    Runs with different seeds must not share answers, even if the requests contain no seed and the
    questions are therefore the same.
    """
    return study.project.recordings(folder, "{language}", "{model}", "{setting}-seed-{seed}.jsonl")


def _model_fields(study: Jam, model: str) -> dict[str, str]:
    """Return the fields of a task that name and describe its model."""
    return {"model": model, "spec": study.project.language_model(model).execution_spec()}


def generation(study: Jam) -> GenerationSettings:
    """Return the request parameters for generating variants."""
    return GenerationSettings(max_tokens=study.settings.variants.max_tokens)


def _writer(study: Jam) -> str:
    """Return the name of the model that writes variants; the configuration must name one."""
    assert study.settings.variants.model
    return study.settings.variants.model


def hard_variants(study: Jam, language: str) -> HardVariants:
    """Return the task that writes the hard variants of a language."""
    writer = _writer(study)
    return HardVariants(
        **_model_fields(study, writer),
        inputs={
            "originals": paths.ORIGINALS.format(language=language),
            "generate": study.project.here("prompts/jam", GENERATE),
            "review": study.project.here("prompts/jam", REVIEW),
        },
        outputs=with_report(paths.VARIANTS.format(language=language)),
        recordings=study.project.recordings("jam_variants", language, f"{writer}.jsonl"),
        generation=generation(study),
    )


def neutral_variants(study: Jam, **wildcards: str) -> NeutralVariants:
    """Return the task that writes a neutral variant for each hard variant that a run misjudged."""
    language, writer = wildcards["language"], _writer(study)
    recordings_name = "{model}-{setting}-{seed}.jsonl".format(**wildcards)
    return NeutralVariants(
        **_model_fields(study, writer),
        inputs={
            "dataset": paths.DATASET.format(language=language),
            "metrics": paths.METRICS.format(**wildcards),
            "prompt": study.project.here("prompts/jam", NEUTRAL_PROMPT),
        },
        outputs=with_report(paths.NEUTRAL_VARIANTS.format(**wildcards)),
        recordings=study.project.recordings("jam_neutral", language, writer, recordings_name),
        generation=generation(study),
    )


def neutral_contexts(study: Jam, language: str) -> NeutralContexts:
    """Return the task that writes a neutral variant for each hard variant of a language."""
    writer = _writer(study)
    return NeutralContexts(
        **_model_fields(study, writer),
        inputs={
            "dataset": paths.DATASET.format(language=language),
            "prompt": study.project.here("prompts/jam", NEUTRAL_PROMPT),
        },
        outputs=with_report(paths.NEUTRAL_CONTEXTS.format(language=language)),
        recordings=study.project.recordings("jam_neutral", language, f"{writer}.jsonl"),
        generation=generation(study),
    )


def weights_spec(study: Jam, model: str) -> str:
    """Return the fields of a model's entry that identify its weights, as canonical JSON.

    Raises:
        UserError: The model has no weights.
    """
    entry = study.project.entry(model)
    if not isinstance(entry, CheckpointEntry):
        raise UserError(f"{model!r} has no weights", hint="name a causal model")
    return entry.weights_spec()


def llm_tasks(study: Jam) -> list[LLMTaskSpec]:
    """Return the specifications of all tasks in which models write variants or identify idioms."""
    writer = study.settings.variants.model
    written_languages = files.written_languages(study)
    settings = [*study.settings.prompts, *study.added_settings()]
    needs_contexts = any(files.uses_neutral_contexts(study, setting) for setting in settings)
    context_languages = study.settings.languages if writer and needs_contexts else []
    # Each list names the inputs of a task that a model must write before the questions are known.
    inputs_of_prompting: list[str] = []
    inputs_of_neutral_variants = ["metrics"]
    inputs_of_neutral_contexts: list[str] = []
    if written_languages:
        inputs_of_prompting.append("sentences")
        inputs_of_neutral_variants.append("dataset")
        inputs_of_neutral_contexts.append("dataset")
    if context_languages:
        inputs_of_prompting.append("neutral")
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
            after_answers=inputs_of_prompting,
        ),
        LLMTaskSpec(
            name="jam_neutral_variants",
            task=NeutralVariants,
            make=partial(neutral_variants, study),
            runs=[run.where for run in study.plan.select(experiment=NEUTRAL)] if writer else [],
            after_answers=inputs_of_neutral_variants,
        ),
        LLMTaskSpec(
            name="jam_neutral_contexts",
            task=NeutralContexts,
            make=partial(neutral_contexts, study),
            runs=[{"language": language} for language in context_languages],
            after_answers=inputs_of_neutral_contexts,
        ),
        LLMTaskSpec(
            name="prompt_neutral",
            task=Identification,
            make=partial(neutral_identification, study),
            runs=[run.where for run in study.plan.asked(experiment=NEUTRAL)],
            after_answers=("sentences",),
        ),
    ]
