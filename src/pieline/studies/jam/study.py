"""The ID10M-JAM study."""

from collections.abc import Iterable
from typing import ClassVar

from pieline.languages.registry import get_language
from pieline.reporting.displays import Display
from pieline.reporting.models import SAMPLE_NOTE
from pieline.studies.jam import checks, files, runs, tasks
from pieline.studies.jam.figures import data
from pieline.studies.jam.figures import results as figures
from pieline.studies.jam.files import Jam
from pieline.studies.jam.settings import NO_VARIANTS, JamSettings
from pieline.studies.jam.tables import appendix, described, results, text
from pieline.studies.jam.tables import pairs as run_tables
from pieline.study import NOT_CONFIGURED, Items

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

    check = checks.check
    check_own_data = checks.check_own_data
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
