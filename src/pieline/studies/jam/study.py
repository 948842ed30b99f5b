"""The ID10M-JAM study, and the validation of its settings and data."""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, get_args

from pieline.core.errors import UserError
from pieline.core.files import read_text
from pieline.core.texts import text_key
from pieline.languages.registry import get_language, language_names
from pieline.llm.prompts import load_prompt
from pieline.project import raw_name
from pieline.reporting.displays import Display
from pieline.reporting.models import SAMPLE_NOTE
from pieline.studies.jam import files, paths, runs, tasks
from pieline.studies.jam.figures import data
from pieline.studies.jam.figures import results as figures
from pieline.studies.jam.files import Jam
from pieline.studies.jam.predictions.prompt_settings import PromptSetting
from pieline.studies.jam.predictions.prompting import is_asked
from pieline.studies.jam.settings import NO_VARIANTS, JamSettings
from pieline.studies.jam.tables import appendix, described, results, text
from pieline.studies.jam.tables import pairs as run_tables
from pieline.study import NOT_CONFIGURED, Items, Study

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


def validate(study: Jam, where: str) -> None:
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
            problem = f"there are no public variants in {get_language(written[0]).label}"
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
    released_settings: list[str] = []
    if study.settings.form == "released":
        released_settings += get_args(PromptSetting)
    for setting in (*study.settings.prompts, *released_settings):
        prompt = load_prompt(paths.prompt_files(study, setting)["prompt"])
        prompt.check_shows("sentence", language="")
        if setting in released_settings and not prompt.response_format:
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


def validate_own_data(study: Jam) -> None:
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


_NOT_OF_PAPER = {
    "file": "{}: originals by custom decisions.",
    "tags": "{}: originals by ID10M's tags alone, without filtering.",
}
"""Notes on languages whose originals are not the released ones, by source of the decisions."""
_WRITTEN = "Hard variants by {} ({})."


class JamStudy(Jam):
    """The ID10M-JAM study."""

    name = "jam"
    paper = "ID10M-JAM"
    Settings = JamSettings
    displays: ClassVar[tuple[Display, ...]] = (
        described.EXAMPLE_TABLE,
        described.DATASETS_TABLE,
        described.STATISTICS_TABLE,
        results.ORIGINALS_TABLE,
        results.DRIFT_TABLE,
        text.TEXT_TABLE,
        appendix.HUMANS_TABLE,
        described.HYPERPARAMETERS_TABLE,
        described.PROMPT_TABLE,
        results.USAGE_TABLE,
        results.CONFUSION_TABLE,
        appendix.NEUTRAL_TABLE,
        appendix.ATTENTION_TABLE,
        described.CHECKPOINTS_TABLE,
        described.ARTIFACTS_TABLE,
        run_tables.PAIRS_TABLE,
        run_tables.RUNS_TABLE,
        data.FLOW,
        figures.ACCURACY_VS_DRIFT,
        figures.CONFUSED_MODELS,
        figures.ALL_VS_MIXED,
        data.ATTENTION_FIGURE,
    )
    main_tables = (results.DRIFT_TABLE.name,)
    main_measures = ("success", "negative_drift", "unreadable")

    check = validate
    check_own_data = validate_own_data
    configured_runs = runs.configured_runs
    lacks = runs.lacks
    other_metrics = runs.other_metrics
    conditions_by_pattern = runs.conditions_by_pattern
    models = runs.models
    archived_models = runs.archived_models
    llm_tasks = tasks.llm_tasks
    raw_files = files.raw_files
    other_targets = files.other_targets

    def why_no_table(self, name: str) -> str:
        """Return why this configuration does not include a table."""
        if not files.has_variants(self):
            return NO_VARIANTS
        return NOT_CONFIGURED if self.settings.models else "jam.models names no model"

    def notes(self) -> tuple[str, ...]:
        """Return notes on data that differs from the paper's."""
        if self.project.is_sample:
            return (SAMPLE_NOTE,)
        notes = []
        for source, note in _NOT_OF_PAPER.items():
            languages = [
                name for name in self.settings.languages if files.decided_by(self, name) == source
            ]
            if languages:
                notes.append(note.format(_labels(languages)))
        # An inactive study may lack its writer model.
        written = files.written_languages(self)
        if written and (model := self.settings.variants.model):
            writer = self.project.entry(model).label
            notes.append(_WRITTEN.format(writer, _labels(written)))
        return tuple(notes)

    def items(self) -> Items:
        """Return the specification of the items, one per sentence and run."""
        made = self.plan.made(experiment="")
        behind = (path for run in made for path in run.behind)
        return self.items_of(made, self.settings.models, behind)


def _labels(languages: Iterable[str]) -> str:
    return ", ".join(get_language(name).label for name in languages)
