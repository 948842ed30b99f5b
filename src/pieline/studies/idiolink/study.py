"""IdioLink, a study of whether embeddings match texts by meaning despite different wording."""

from typing import ClassVar

from pieline.reporting.displays import Display
from pieline.studies.idiolink import checks, figures, files, inputs, runs, tasks
from pieline.studies.idiolink.models import all_models, archived_models
from pieline.studies.idiolink.records import query_scores_file
from pieline.studies.idiolink.settings import IdiolinkSettings
from pieline.studies.idiolink.tables import (
    described,
    finetuning,
    significance,
    zero_shot,
)
from pieline.study import NOT_CONFIGURED, Items, Study

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

    check = checks.check
    check_own_data = checks.check_own_data
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
