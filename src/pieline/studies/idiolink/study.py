"""Declare IdioLink, a study of whether embeddings match texts by meaning rather than wording."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pieline.core.errors import UserError
from pieline.core.texts import text_key
from pieline.languages.matching import same_pie
from pieline.models.names import ModelKinds
from pieline.reporting.displays import Display
from pieline.studies.idiolink import figures, files, inputs, models, runs, tasks
from pieline.studies.idiolink.models import Idiolink, all_models, archived_models
from pieline.studies.idiolink.originals.splits import SPLITS
from pieline.studies.idiolink.raw import read_texts
from pieline.studies.idiolink.records import QUERY_MODES, Document, query_scores_file
from pieline.studies.idiolink.settings import IdiolinkSettings
from pieline.studies.idiolink.tables import (
    described,
    finetuning,
    significance,
    zero_shot,
)
from pieline.study import NOT_CONFIGURED, Items, Study


def validate(study: Idiolink, where: str) -> None:
    """Validate the settings of the study.

    Raises:
        UserError: A setting is invalid, or a prompt file is missing.
    """
    settings, tuning = study.settings, study.settings.finetuning
    _check_first_stages(study, where)
    _check_external_predictions(study, where)
    if unknown_models := set(settings.leave_out).difference(settings.models, tuning.models):
        raise UserError(
            f"{min(unknown_models)!r} is not among the models to run",
            where=f"{where}.leave_out",
            hint="use models in idiolink.models or idiolink.finetuning.models",
        )
    _check_construction(study, where)
    _check_splits_for_training(study, where)
    _check_exclusions(study, where)
    if tuning.models and tuning.tuples == "released" and study.project.is_sample:
        raise UserError(
            "the sample data has no tuples mined by the authors",
            where=f"{where}.finetuning.tuples",
            hint="set 'sampled' or 'released_where_available', or set data: released",
        )


def _check_first_stages(study: Idiolink, where: str) -> None:
    """Raise a `UserError` if a reranker's first stage is of an unsuitable kind or left out."""
    for reranker, first_stage in models.first_stages(study, study.settings.models).items():
        place = f"{study.project.entry_file(reranker)}: {reranker}.first_stage"
        study.check_models([first_stage], ModelKinds(("bm25", "embedder")), where=place)
        if first_stage in study.settings.leave_out:
            raise UserError(
                f"{first_stage!r} is left out, but {reranker!r} reranks its results",
                where=f"{where}.leave_out",
                hint=f"remove {reranker!r} from idiolink.models",
            )


def _check_external_predictions(study: Idiolink, where: str) -> None:
    """Raise a `UserError` if external predictions have an unknown query mode or a nonzero seed."""
    for model in study.settings.models:
        for file in study.prediction_files(model):
            if file.setting not in QUERY_MODES or file.seed:
                raise UserError(
                    f"{file.file} of {model!r} has setting {file.setting!r} and seed {file.seed}",
                    where=f"{where}.models",
                    hint=f"settings are {', '.join(QUERY_MODES)}; the seed is 0",
                )


def _check_construction(study: Idiolink, where: str) -> None:
    """Raise a `UserError` if the dataset cannot be constructed as the settings require."""
    language_models = list(models.model_by_role(study).values())
    study.check_models(language_models, ModelKinds(("llm",)), where=f"{where}.construction")
    if not models.constructs(study):
        if study.settings.dataset == "constructed":
            raise UserError(
                "the dataset is 'constructed', but the construction is not enabled",
                where=f"{where}.dataset",
                hint="set idiolink.construction.enabled: true, or dataset: released_format",
            )
        return
    for name in (*models.COLLECTIONS, "validate"):
        prompt_file = Path(tasks.prompt(study, name))
        if not prompt_file.is_file():
            raise UserError(
                f"{prompt_file.parent} has no {prompt_file.name}",
                where=f"{where}.construction.prompts",
                hint="see the files with the same names in prompts/idiolink",
            )


def _check_splits_for_training(study: Idiolink, where: str) -> None:
    """Raise a `UserError` if models are to be fine-tuned, but the user's own data lacks a split."""
    available_splits = models.splits(study, study.settings.dataset)
    missing_splits = [split for split in SPLITS if split not in available_splits]
    if study.settings.finetuning.models and missing_splits:
        raise UserError(
            f"{study.project.own_data} has no {' or '.join(missing_splits)} split for fine-tuning",
            where=f"{where}.finetuning.models",
            hint=f"add idiolink/{missing_splits[0]}, or remove the models",
        )


def _check_exclusions(study: Idiolink, where: str) -> None:
    """Raise a `UserError` if the construction from own data has no file of excluded PIEs."""
    has_exclusions = study.settings.construction.exclusions or files.candidates(study)
    if models.constructs(study) and study.project.own_data and not has_exclusions:
        raise UserError(
            "the manually excluded PIEs are not set",
            where=f"{where}.construction.exclusions",
            hint="set the path of a TSV with the columns pie and reason (rows are optional)",
        )


def validate_own_data(study: Idiolink) -> None:
    """Validate the user's own data.

    Each sentence must occur in only one split. Two PIEs of a split must differ in more than
    articles, pronouns or inflection; otherwise, the documents of the first PIE would not count as
    relevant for the queries of the second. The job that reads the data does not check this, because
    the job's code must not depend on `languages`.

    Raises:
        UserError: The data is invalid.
    """
    Study.check_own_data(study)
    folder = study.project.own_data
    if not folder or study.settings.dataset == "constructed":
        return
    split_by_sentence: dict[str, str] = {}
    for split in models.splits(study, "released_format"):
        first_text_by_pie: dict[str, Document] = {}
        for name in models.TEXT_FILES:
            path = Path(folder, "idiolink", split, f"{name}.json")
            for text in read_texts(path, Document):
                _check_form_of_pie(text, first_text_by_pie, path)
                first_text_by_pie.setdefault(text.pie, text)
                first_split = split_by_sentence.setdefault(text_key(text.sentence), split)
                if first_split != split:
                    raise UserError(
                        f"the sentence is also in the {first_split} split",
                        where=f"{path}: {text.id}",
                        hint="remove it from one of the splits",
                    )


def _check_form_of_pie(text: Document, earlier_texts: Mapping[str, Document], path: Path) -> None:
    """Raise a `UserError` if an earlier text writes the PIE of `text` in another form.

    Args:
        text: The text to check.
        earlier_texts: First text of each PIE among the earlier texts of the split, by PIE.
        path: File of the text, for the error message.
    """
    if text.pie in earlier_texts:
        return
    for earlier_pie, earlier_text in earlier_texts.items():
        if same_pie(text.pie, earlier_pie, language="english"):
            raise UserError(
                f"idiom {text.pie!r} is {earlier_pie!r} in {earlier_text.id}",
                where=f"{path}: {text.id}",
                hint="use the same form of an idiom in all records",
            )


_REASONS_FOR_NO_TABLE = {
    "idiolink_finetuned": "idiolink.finetuning.models names no model",
    "idiolink_construction": "idiolink.construction.enabled is false",
    "idiolink_dataset": "all rankings come from archives, which contain no texts",
    "idiolink_example": "all rankings come from archives, which contain no texts",
}
"""Reason for which a configuration does not include a table, by table."""


class IdiolinkStudy(Study[IdiolinkSettings]):
    """The IdioLink study."""

    name = "idiolink"
    paper = "IdioLink"
    Settings = IdiolinkSettings
    displays: ClassVar[tuple[Display, ...]] = (
        described.EXAMPLE_TABLE,
        described.DATASET_TABLE,
        described.CONSTRUCTION_TABLE,
        zero_shot.ZERO_SHOT_TABLE,
        finetuning.GAINS_TABLE,
        zero_shot.BM25_TABLE,
        described.HYPERPARAMETERS_TABLE,
        described.ARTIFACTS_TABLE,
        finetuning.FINETUNED_TABLE,
        described.CHECKPOINTS_TABLE,
        zero_shot.ABLATION_TABLE,
        zero_shot.RELEASED_TABLE,
        significance.SIGNIFICANCE_TABLE,
        significance.PAIRS_TABLE,
        significance.BY_PIE_TABLE,
        figures.DOMAINS_FIGURE,
        figures.FLOW,
        figures.MODES_FIGURE,
        figures.FINETUNING_FIGURE,
        figures.BY_PIE_FIGURE,
    )
    main_tables = ("idiolink_zero_shot", "idiolink_bm25", "idiolink_finetuned")
    main_measures = tuple(zero_shot.METRICS)
    reference_models = ("sbert", "bm25")

    check = validate
    check_own_data = validate_own_data
    configured_runs = runs.configured_runs
    impossible_runs = runs.impossible_runs
    other_metrics = runs.other_metrics
    conditions_by_pattern = runs.conditions_by_pattern
    models = all_models
    archived_models = archived_models
    llm_tasks = tasks.llm_tasks
    raw_files = files.raw_files
    other_targets = files.other_targets

    def why_no_table(self, name: str) -> str:
        """Return the reason for which this configuration does not include a table."""
        return _REASONS_FOR_NO_TABLE.get(name, NOT_CONFIGURED)

    def items(self) -> Items:
        """Return the specification of the item rows, of which there is one per query and run."""
        possible_runs = self.plan.made()
        shown_models = inputs.models_to_rank(self) + inputs.models_to_fine_tune(self)
        score_files = (query_scores_file(run.metrics) for run in possible_runs)
        return self.items_of(possible_runs, shown_models, score_files)
