"""The IdioTS study."""

from typing import ClassVar

from pieline.reporting.displays import Display
from pieline.studies.idiots import checks, figures, files, paths, runs, tables, tasks
from pieline.studies.idiots.settings import IdiotsSettings
from pieline.study import Items, Study


class IdiotsStudy(Study[IdiotsSettings]):
    """The IdioTS study."""

    name = "idiots"
    paper = "IdioTS"
    Settings = IdiotsSettings
    displays: ClassVar[tuple[Display, ...]] = (
        tables.DATASET_TABLE,
        tables.DETECTION_TABLE,
        tables.CONSISTENCY_TABLE,
        tables.DISTRACTORS_TABLE,
        tables.ERRORS_TABLE,
        tables.PROMPT_TABLE,
        figures.RECALL_SPECIFICITY,
    )
    main_tables = (tables.DETECTION_TABLE.name,)
    main_measures = ("balanced_accuracy", "recall", "specificity", "answers_unreadable")

    check = checks.check
    configured_runs = runs.configured_runs
    lacks = runs.lacks
    conditions_by_pattern = runs.conditions_by_pattern
    models = runs.models
    llm_tasks = tasks.llm_tasks
    raw_files = files.raw_files
    other_targets = files.other_targets

    def items(self) -> Items:
        """Return the specification of the items, one per sentence and run."""
        behind = [run.predictions for run in self.plan.made()]
        if behind:
            behind.append(paths.SENTENCES)
        reviewed = {"verdicts": self.settings.verdicts} if self.settings.verdicts else {}
        return self.items_of(self.plan.runs, self.settings.models, behind, **reviewed)
