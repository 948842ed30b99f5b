"""Validation of the settings and data of the ID10M-JAM study."""

from pathlib import Path
from typing import get_args

from pieline.core.errors import UserError
from pieline.core.files import read_text
from pieline.core.texts import text_key
from pieline.languages.registry import get_language, language_names
from pieline.llm.prompts import load_prompt
from pieline.project import raw_name
from pieline.studies.jam import files, paths
from pieline.studies.jam.files import Jam
from pieline.studies.jam.predictions.prompt_settings import PromptSetting
from pieline.studies.jam.predictions.prompting import is_asked
from pieline.study import Study

_MOST_COMMON = 0.05
"""Maximum share of test sentences that another split of the user's data may contain."""


def _sentence_keys(path: str) -> set[str]:
    """Return the keys (see `text_key`) of the sentences in an ID10M file.

    The lines are not validated, because this function is called at each start of the program.
    """
    keys = set()
    for block in read_text(path).replace("\r\n", "\n").split("\n\n"):
        tokens = [line.partition("\t")[0] for line in block.split("\n")]
        if text := "".join(tokens):
            keys.add(text_key(text))
    return keys


def check(study: Jam, where: str) -> None:
    """Validate the prompts, decision files, models and source of variants.

    Raises:
        UserError: A setting is invalid.
    """
    settings = study.settings
    _check_prompts(study)
    _check_settings_by_model(study, where)
    if settings.decisions:
        _check_decisions(study, settings.decisions, where)
    if settings.attention:
        _check_attention(study, settings.attention, f"{where}.attention")
    _check_models(study, where)
    _check_variants(study, f"{where}.variants")


def _check_decisions(study: Jam, folder: str, where: str) -> None:
    """Raise a `UserError` if a folder has no usable decision file, or one with a wrong name."""
    languages = study.settings.languages
    if not any(files.own_decisions(study, language) for language in languages):
        raise UserError(
            f"{folder} has no file for {' or '.join(languages)}",
            where=f"{where}.decisions",
            hint=f"name a folder with {languages[0]}.tsv",
        )
    for path in sorted(Path(folder).iterdir()):
        language = path.stem.lower()
        is_language = language in language_names()
        if is_language and path.name == f"{language}.tsv":
            continue
        if is_language or path.suffix == ".tsv":
            raise UserError(
                "the file name is not that of a language",
                where=path,
                hint=f"rename it to {language if is_language else 'LANGUAGE'}.tsv",
            )


def _check_models(study: Jam, where: str) -> None:
    """Raise a `UserError` if predictions have no language, or `neutral` is not one of `models`."""
    settings = study.settings
    for name in settings.models:
        if any(one.language is None for one in study.prediction_files(name)):
            raise UserError(
                f"a jam file of {name!r} has no language",
                where=f"{where}.models",
                hint="add `language` to its entry",
            )
    if settings.neutral and settings.neutral not in settings.models:
        raise UserError(
            f"{settings.neutral!r} is not in jam.models",
            where=f"{where}.neutral",
            hint="choose one of them, or set jam.neutral: null",
        )


def _check_variants(study: Jam, where: str) -> None:
    """Raise a `UserError` if variants do not fit the originals, or no model can write them."""
    variants, project = study.settings.variants, study.project
    usable, other = ("sample", "released") if project.is_sample else ("released", "sample")
    if variants.source == other:
        raise UserError(
            f"{other} variants do not fit the {project.data} originals",
            where=f"{where}.source",
            hint=f"choose {usable!r}, 'generated' or 'none'",
        )
    written = files.written_languages(study)
    if written and not variants.model:
        if project.own_data:
            problem = f"no {paths.VALIDATED.format(language=written[0])} in {project.own_data}"
        else:
            problem = f"there are no released variants in {get_language(written[0]).label}"
        raise UserError(
            problem,
            where=f"{where}.model",
            hint="name a model to write them, or set the source to 'none'",
        )


def _check_attention(study: Jam, model: str, where: str) -> None:
    if getattr(study.project.entry(model), "adapter", None):
        raise UserError(
            f"{model!r} has an adapter, which is used only for embedding",
            where=where,
            hint="merge the adapter into its base model, and name the merged model",
        )


def _check_prompts(study: Jam) -> None:
    """Raise a `UserError` if a prompt lacks the sentence, or a released one its answer format."""
    settings = list(study.settings.prompts)
    released = get_args(PromptSetting) if study.settings.form == "released" else ()
    settings += released
    for setting in settings:
        prompt = load_prompt(paths.prompt_files(study, setting)["prompt"])
        prompt.check_shows("sentence", language="")
        if setting in released and not prompt.response_format:
            raise UserError(
                "the front matter lacks `answer`, which the released form enforces",
                where=prompt.path,
                hint="copy it from prompts/jam/released",
            )


def _check_settings_by_model(study: Jam, where: str) -> None:
    """Raise a `UserError` if a model has a setting that it does not support."""
    for name, own in study.settings.by_model.items():
        entry = study.project.language_model(name)
        if not all(is_asked(entry, setting) for setting in own.settings or ()):
            raise UserError(
                f"{name!r} is a reasoning model, which supports only zero-shot (section 4.3)",
                where=f"{where}.by_model.{name}",
                hint="use zero_shot or zero_shot_schema",
            )


def check_own_data(study: Jam) -> None:
    """Raise a `UserError` if user data is missing, or if another split overlaps with test."""
    Study.check_own_data(study)
    if not (folder := study.project.own_data):
        return
    for language in study.settings.languages:
        test = str(Path(folder, raw_name(paths.TEST_SPLIT.format(language=language))))
        test_keys = _sentence_keys(test)
        for split in ("train", "dev"):
            name = raw_name(paths.SPLIT.format(split=split, language=language))
            if not study.project.is_available(name):
                continue
            path = str(Path(folder, name))
            common = len(test_keys & _sentence_keys(path))
            if common > _MOST_COMMON * len(test_keys):
                raise UserError(
                    f"the file contains {common} of the {len(test_keys)} sentences of {test}",
                    where=path,
                    hint="remove the overlap between the splits",
                )
