"""Declare the ID10M-JAM study, and validate its settings and data."""

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

_MAX_OVERLAP = 0.05
"""Maximum share of test sentences that another split of the user's data may contain."""


def validate(study: Jam, where: str) -> None:
    """Raise a `UserError` if a setting is invalid, or a prompt or decision file is unusable.

    `where` names the study's section of config.yaml in error messages.
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
    """Raise a `UserError` if a folder has no decision file, or one with a wrong name."""
    languages = study.settings.languages
    if not any(files.own_decisions(study, language) for language in languages):
        raise UserError(
            f"{folder} has no file for {' or '.join(languages)}",
            where=f"{where}.decisions",
            hint=f"name a folder with {languages[0]}.tsv",
        )
    for path in sorted(Path(folder).iterdir()):
        language = path.stem.lower()
        names_language = language in language_names()
        is_decision_file = names_language and path.name == f"{language}.tsv"
        looks_like_decision_file = names_language or path.suffix == ".tsv"
        if looks_like_decision_file and not is_decision_file:
            raise UserError(
                "the file name is not that of a language",
                where=path,
                hint=f"rename it to {language if names_language else 'LANGUAGE'}.tsv",
            )


def _check_models(study: Jam, where: str) -> None:
    """Raise a `UserError` if external predictions state no language, or `neutral` is invalid.

    The setting `neutral` must name a model that the setting `models` also names.
    """
    settings = study.settings
    for model in settings.models:
        if any(file.language is None for file in study.prediction_files(model)):
            raise UserError(
                f"a jam file of {model!r} has no language",
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
    """Raise a `UserError` if the source of variants does not fit the data, or has no writer."""
    variants, project = study.settings.variants, study.project
    if project.is_sample:
        usable_source, wrong_source = "sample", "released"
    else:
        usable_source, wrong_source = "released", "sample"
    if variants.source == wrong_source:
        raise UserError(
            f"{wrong_source} variants do not fit the {project.data} originals",
            where=f"{where}.source",
            hint=f"choose {usable_source!r}, 'generated' or 'none'",
        )
    languages_to_write = files.written_languages(study)
    if not languages_to_write or variants.model:
        return
    language = languages_to_write[0]
    if project.own_data:
        problem = f"no {paths.VALIDATED.format(language=language)} in {project.own_data}"
    else:
        problem = f"there are no public variants in {get_language(language).label}"
    raise UserError(
        problem,
        where=f"{where}.model",
        hint="name a model to write them, or set the source to 'none'",
    )


def _check_attention(study: Jam, model: str, where: str) -> None:
    """Raise a `UserError` if the model of the attention analysis has an adapter."""
    if getattr(study.project.entry(model), "adapter", None):
        raise UserError(
            f"{model!r} has an adapter, which is used only for embedding",
            where=where,
            hint="merge the adapter into its base model, and name the merged model",
        )


def _check_prompts(study: Jam) -> None:
    """Raise a `UserError` if a prompt does not show the sentence or lacks a required answer format.

    Only the prompts of the authors' code (form: released) require an answer format.
    """
    is_released = study.settings.form == "released"
    settings_with_format = get_args(PromptSetting) if is_released else ()
    for setting in (*study.settings.prompts, *settings_with_format):
        prompt = load_prompt(paths.prompt_files(study, setting)["prompt"])
        prompt.check_shows("sentence", language="")
        if setting in settings_with_format and not prompt.response_format:
            raise UserError(
                "the front matter lacks `answer`, which the released form enforces",
                where=prompt.path,
                hint="copy it from prompts/jam/released",
            )


def _check_settings_by_model(study: Jam, where: str) -> None:
    """Raise a `UserError` if `by_model` gives a model a setting that the model does not support."""
    for model, model_settings in study.settings.by_model.items():
        entry = study.project.language_model(model)
        if not all(is_asked(entry, setting) for setting in model_settings.settings or ()):
            raise UserError(
                f"{model!r} is a reasoning model, which supports only zero-shot (section 4.3)",
                where=f"{where}.by_model.{model}",
                hint="use zero_shot or zero_shot_schema",
            )


def validate_own_data(study: Jam) -> None:
    """Raise a `UserError` if the user's data is incomplete, or a split contains test sentences.

    The train and dev splits may each contain a share of `_MAX_OVERLAP` of the test sentences.
    """
    Study.check_own_data(study)
    folder = study.project.own_data
    if not folder:
        return
    for language in study.settings.languages:
        test_path = str(Path(folder, raw_name(paths.TEST_SPLIT.format(language=language))))
        test_keys = _sentence_keys(test_path)
        for split in ("train", "dev"):
            split_name = raw_name(paths.SPLIT.format(split=split, language=language))
            if not study.project.is_available(split_name):
                continue
            split_path = str(Path(folder, split_name))
            overlap = len(test_keys & _sentence_keys(split_path))
            if overlap > _MAX_OVERLAP * len(test_keys):
                raise UserError(
                    f"the file contains {overlap} of the {len(test_keys)} sentences of {test_path}",
                    where=split_path,
                    hint="remove the overlap between the splits",
                )


def _sentence_keys(path: str) -> set[str]:
    """Return the keys (see `text_key`) of the sentences in an ID10M file.

    The lines are not validated, because this function is called at each start of the program.
    """
    keys = set()
    for block in read_text(path).replace("\r\n", "\n").split("\n\n"):
        tokens = [line.partition("\t")[0] for line in block.split("\n")]
        sentence = "".join(tokens)
        if sentence:
            keys.add(text_key(sentence))
    return keys


_NOTES_ON_ORIGINALS = {
    "file": "{}: originals by custom decisions.",
    "tags": "{}: originals by ID10M's tags alone, without filtering.",
}
"""Notes on languages without the public originals, by source of the decisions."""
_NOTE_ON_VARIANTS = "Hard variants by {} ({})."
"""Note on languages whose variants a model writes."""


class JamStudy(Jam):
    """Declaration of the ID10M-JAM study."""

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
    impossible_runs = runs.impossible_runs
    other_metrics = runs.other_metrics
    conditions_by_pattern = runs.conditions_by_pattern
    models = runs.models
    archived_models = runs.archived_models
    llm_tasks = tasks.llm_tasks
    raw_files = files.raw_files
    other_targets = files.other_targets

    def why_no_table(self, name: str) -> str:
        """Return the reason why this configuration does not include a table of the paper."""
        if not files.has_variants(self):
            return NO_VARIANTS
        if not self.settings.models:
            return "jam.models names no model"
        return NOT_CONFIGURED

    def notes(self) -> tuple[str, ...]:
        """Return notes on the differences of the data from the paper's data."""
        if self.project.is_sample:
            return (SAMPLE_NOTE,)
        notes = []
        for source, note in _NOTES_ON_ORIGINALS.items():
            languages = [
                language
                for language in self.settings.languages
                if files.decided_by(self, language) == source
            ]
            if languages:
                notes.append(note.format(_join_labels(languages)))
        written_languages = files.written_languages(self)
        # A study that the configuration does not name may lack its writer.
        writer = self.settings.variants.model
        if written_languages and writer:
            label = self.project.entry(writer).label
            notes.append(_NOTE_ON_VARIANTS.format(label, _join_labels(written_languages)))
        return tuple(notes)

    def items(self) -> Items:
        """Return the specification of the items: one item per run and sentence."""
        runs_on_dataset = self.plan.made(experiment="")
        files_behind = [path for run in runs_on_dataset for path in run.behind]
        return self.items_of(runs_on_dataset, self.settings.models, files_behind)


def _join_labels(languages: Iterable[str]) -> str:
    """Return the display names of languages, separated by commas."""
    return ", ".join(get_language(language).label for language in languages)
