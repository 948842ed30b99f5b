"""IdioLink, a study of whether embeddings match texts by meaning despite different wording."""

from itertools import product
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
    """Validate the settings for the dataset, its construction and fine-tuning.

    Raises:
        UserError: A setting is invalid, or a prompt file is missing.
    """
    settings, tuning = study.settings, study.settings.finetuning
    _check_first_stages(study, where)
    _check_predictions(study, where)
    if unknown := set(settings.leave_out).difference(settings.models, tuning.models):
        raise UserError(
            f"{min(unknown)!r} is not among the models to run",
            where=f"{where}.leave_out",
            hint="use models in idiolink.models or idiolink.finetuning.models",
        )
    _check_construction(study, where)
    _check_own_splits_and_exclusions(study, where)
    if tuning.models and tuning.tuples == "released" and study.project.is_sample:
        raise UserError(
            "the sample data has no tuples mined by the authors",
            where=f"{where}.finetuning.tuples",
            hint="set 'sampled' or 'released_where_available', or set data: released",
        )


def _check_first_stages(study: Idiolink, where: str) -> None:
    for name, first in models.first_stages(study, study.settings.models).items():
        place = f"{study.project.entry_file(name)}: {name}.first_stage"
        study.check_models([first], ModelKinds(("bm25", "embedder")), where=place)
        if first in study.settings.leave_out:
            raise UserError(
                f"{first!r} is left out, but {name!r} reranks its results",
                where=f"{where}.leave_out",
                hint=f"remove {name!r} from idiolink.models",
            )


def _check_predictions(study: Idiolink, where: str) -> None:
    """Raise a `UserError` if external predictions have an unknown query mode, or a seed."""
    for name in study.settings.models:
        for file in study.prediction_files(name):
            if file.setting not in QUERY_MODES or file.seed:
                raise UserError(
                    f"{file.file} of {name!r} has setting {file.setting!r} and seed {file.seed}",
                    where=f"{where}.models",
                    hint=f"settings are {', '.join(QUERY_MODES)}; the seed is 0",
                )


def _check_construction(study: Idiolink, where: str) -> None:
    """Raise a `UserError` if the construction lacks a model or prompt, or is needed but off."""
    roles = list(models.roles(study).values())
    study.check_models(roles, ModelKinds(("llm",)), where=f"{where}.construction")
    if not models.constructs(study):
        if study.settings.dataset == "constructed":
            raise UserError(
                "the dataset is 'constructed', but the construction is not enabled",
                where=f"{where}.dataset",
                hint="set idiolink.construction.enabled: true, or dataset: released_format",
            )
        return
    for name in (*models.COLLECTIONS, "validate"):
        path = Path(tasks.prompt(study, name))
        if not path.is_file():
            raise UserError(
                f"{path.parent} has no {path.name}",
                where=f"{where}.construction.prompts",
                hint="see the files with the same names in prompts/idiolink",
            )


def _check_own_splits_and_exclusions(study: Idiolink, where: str) -> None:
    """Raise a `UserError` if own data lacks splits for training, or the file of exclusions."""
    settings = study.settings
    absent = [split for split in SPLITS if split not in models.splits(study, settings.dataset)]
    if settings.finetuning.models and absent:
        raise UserError(
            f"{study.project.own_data} has no {' or '.join(absent)} split for fine-tuning",
            where=f"{where}.finetuning.models",
            hint=f"add idiolink/{absent[0]}, or remove the models",
        )
    has_exclusions = settings.construction.exclusions or files.candidates(study)
    if models.constructs(study) and study.project.own_data and not has_exclusions:
        raise UserError(
            "the manually excluded PIEs are not set",
            where=f"{where}.construction.exclusions",
            hint="set the path of a TSV with the columns pie and reason (rows are optional)",
        )


def validate_own_data(study: Idiolink) -> None:
    """Validate the user's own data.

    Each sentence must occur in only one split. Two PIEs of a split must differ in more than
    articles, pronouns or inflection; otherwise, the documents of one would not be relevant for the
    other. The job that reads the data does not check this, because its code must not depend on
    `languages`.

    Raises:
        UserError: The data is invalid.
    """
    Study.check_own_data(study)
    if not (folder := study.project.own_data) or study.settings.dataset == "constructed":
        return
    seen: dict[str, str] = {}
    pies: dict[str, dict[str, Document]] = {}
    for split, name in product(models.splits(study, "released_format"), models.TEXT_FILES):
        path = Path(folder, "idiolink", split, f"{name}.json")
        for text in read_texts(path, Document):
            _check_pie(text, pies.setdefault(split, {}), path)
            other = seen.setdefault(text_key(text.sentence), split)
            if other != split:
                raise UserError(
                    f"the sentence is also in the {other} split",
                    where=f"{path}: {text.id}",
                    hint="remove it from one of the splits",
                )


def _check_pie(text: Document, first_texts: dict[str, Document], path: Path) -> None:
    """Raise a `UserError` if a text has another form of an earlier PIE.

    `first_texts` has the first text of each PIE in the split; a new PIE is added.
    """
    if text.pie in first_texts:
        return
    for pie, other in first_texts.items():
        if same_pie(text.pie, pie, language="english"):
            raise UserError(
                f"idiom {text.pie!r} is {pie!r} in {other.id}",
                where=f"{path}: {text.id}",
                hint="use the same form of an idiom in all records",
            )
    first_texts[text.pie] = text


_WHY_NOT = {
    "idiolink_finetuned": "idiolink.finetuning.models names no model",
    "idiolink_construction": "idiolink.construction.enabled is false",
    "idiolink_dataset": "all rankings come from archives, which contain no texts",
    "idiolink_example": "all rankings come from archives, which contain no texts",
}
"""Why a configuration does not show a table, by table."""


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
    lacks = runs.lacks
    other_metrics = runs.other_metrics
    conditions_by_pattern = runs.conditions_by_pattern
    models = all_models
    archived_models = archived_models
    llm_tasks = tasks.llm_tasks
    raw_files = files.raw_files
    other_targets = files.other_targets

    def why_no_table(self, name: str) -> str:
        """Return why this configuration does not include a table."""
        return _WHY_NOT.get(name, NOT_CONFIGURED)

    def items(self) -> Items:
        """Return the specification of the item rows, one per query and run."""
        made = self.plan.made()
        names = inputs.ranked(self) + inputs.tuned_bases(self)
        return self.items_of(made, names, (query_scores_file(run.metrics) for run in made))
