"""Kinds of language model tasks of the ID10M-JAM study."""

from functools import partial

from pieline.languages.registry import language_names
from pieline.project import alternatives
from pieline.studies.jam import files, paths, questions
from pieline.studies.jam.files import Jam
from pieline.studies.jam.predictions.prompting import Identification
from pieline.studies.jam.settings import NEUTRAL
from pieline.studies.jam.variants.generation import HardVariants, NeutralContexts, NeutralVariants
from pieline.study import LLMTaskSpec


def llm_tasks(study: Jam) -> list[LLMTaskSpec]:
    """Return the specifications of the tasks that write variants or identify idioms."""
    llm = files.constraints(study, "llm")
    found = []
    writes = files.written_languages(study)
    shown = any(
        files.shows_neutral(study, name)
        for name in (*study.settings.prompts, *study.added_settings())
    )
    written_contexts = shown and bool(study.settings.variants.model)
    answered = [*(["sentences"] if writes else []), *(["neutral"] if written_contexts else [])]
    if writes:
        found.append(
            LLMTaskSpec(
                name="jam_generate_variants",
                task=HardVariants,
                outputs=questions.with_report(paths.VARIANTS),
                make=partial(questions.hard_variants, study),
                runs=[{"language": language} for language in writes],
                constraints={
                    "language": alternatives(
                        name for name in language_names() if files.is_written(study, name)
                    )
                },
            )
        )
    found.append(
        LLMTaskSpec(
            name="prompt_idioms",
            task=Identification,
            outputs={"predictions": paths.PREDICTIONS},
            make=partial(questions.identification, study),
            runs=[run.where for run in study.plan.asked(experiment="")],
            constraints=llm,
            after_answers=answered,
        )
    )
    if study.settings.variants.model:
        found.append(
            LLMTaskSpec(
                name="jam_neutral_variants",
                task=NeutralVariants,
                outputs=questions.with_report(paths.NEUTRAL_VARIANTS),
                make=partial(questions.neutral_variants, study),
                runs=[run.where for run in study.plan.select(experiment=NEUTRAL)],
                constraints=files.constraints(study, "llm", "encoder"),
                minutes=60,
                after_answers=("metrics", "dataset") if writes else ("metrics",),
            )
        )
    if written_contexts:
        found.append(
            LLMTaskSpec(
                name="jam_neutral_contexts",
                task=NeutralContexts,
                outputs=questions.with_report(paths.NEUTRAL_CONTEXTS),
                make=partial(questions.neutral_contexts, study),
                runs=[{"language": language} for language in study.settings.languages],
                constraints={"language": alternatives(language_names())},
                minutes=60,
                after_answers=("dataset",) if writes else (),
            )
        )
    found.append(
        LLMTaskSpec(
            name="prompt_neutral",
            task=Identification,
            outputs={"predictions": paths.NEUTRAL_PREDICTIONS},
            make=partial(questions.neutral_identification, study),
            runs=[run.where for run in study.plan.asked(experiment=NEUTRAL)],
            constraints=llm,
            minutes=120,
            after_answers=("sentences",),
        )
    )
    return found
