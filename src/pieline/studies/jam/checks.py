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


def _blocks(path: str) -> set[str]:
    """Return the keys (see `text_key`) of the sentences in an ID10M file.

    The function is faster than a parser, because it is called for every run.
    """
    blocks = read_text(path).replace("\r\n", "\n").split("\n\n")
    texts = ("".join(line.partition("\t")[0] for line in block.split("\n")) for block in blocks)
    return {text_key(text) for text in texts if text}


def check(study: Jam, where: str) -> None:
    """Validate the prompts, decision files and source of variants.

    Raises:
        UserError: A setting is invalid.
    """
    settings, variants = study.settings, study.settings.variants
    _check_prompts(study, where)
    if settings.decisions and not any(
        files.own_decisions(study, language) for language in settings.languages
    ):
        raise UserError(
            f"{settings.decisions} has no file for {' or '.join(settings.languages)}",
            where=f"{where}.decisions",
            hint=f"name a folder with {settings.languages[0]}.tsv",
        )
    for path in sorted(Path(settings.decisions).iterdir()) if settings.decisions else ():
        language = path.stem.lower()
        if path.name not in {f"{name}.tsv" for name in language_names()} and (
            path.suffix == ".tsv" or language in language_names()
        ):
            name = language if language in language_names() else "LANGUAGE"
            raise UserError(
                "the file name is not that of a language",
                where=path,
                hint=f"rename it to {name}.tsv",
            )
    if settings.attention:
        _check_attention(study, settings.attention, f"{where}.attention")
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
    usable, other = ("sample", "released") if study.project.is_sample else ("released", "sample")
    if variants.source == other:
        raise UserError(
            f"{other} variants do not fit the {study.project.data} originals",
            where=f"{where}.variants.source",
            hint=f"choose {usable!r}, 'generated' or 'none'",
        )
    if (written := files.written_languages(study)) and not variants.model:
        lacking = written[0]
        raise UserError(
            f"no {paths.VALIDATED.format(language=lacking)} in {study.project.own_data}"
            if study.project.own_data
            else f"there are no released variants in {get_language(lacking).label}",
            where=f"{where}.variants.model",
            hint="name a model to write them, or set the source to 'none'",
        )


def _check_attention(study: Jam, model: str, where: str) -> None:
    if getattr(study.project.entry(model), "adapter", None):
        raise UserError(
            f"{model!r} has an adapter, which is used only for embedding",
            where=where,
            hint="merge the adapter into its base model, and name the merged model",
        )


def _check_prompts(study: Jam, where: str) -> None:
    settings = study.settings
    released = get_args(PromptSetting) if settings.form == "released" else ()
    for setting in (*settings.prompts, *released):
        prompt = load_prompt(paths.prompt_files(study, setting)["prompt"])
        prompt.check_shows("sentence", language="")
        if setting in released and not prompt.response_format:
            raise UserError(
                "the front matter lacks `answer`, which the released form enforces",
                where=prompt.path,
                hint="copy it from prompts/jam/released",
            )
    for name, own in settings.by_model.items():
        entry = study.project.language_model(name)
        if not all(is_asked(entry, way) for way in own.settings or ()):
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
        blocks = _blocks(test)
        for split in ("train", "dev"):
            name = raw_name(paths.SPLIT.format(split=split, language=language))
            if not study.project.is_available(name):
                continue
            path = str(Path(folder, name))
            common = len(blocks & _blocks(path))
            if common > _MOST_COMMON * len(blocks):
                raise UserError(
                    f"the file contains {common} of the {len(blocks)} sentences of {test}",
                    where=path,
                    hint="remove the overlap between the splits",
                )
