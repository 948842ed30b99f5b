"""Build the tables of the human baseline (5.1), neutral contexts (G) and attention (H)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from pieline.core.records import load_records
from pieline.languages.registry import get_language
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import Number, rows_of
from pieline.reporting.ours import OurNumbers, of_runs
from pieline.reporting.printed import rounded
from pieline.reporting.tables import (
    Cell,
    Column,
    Group,
    Head,
    Row,
    TableContent,
    headers,
    number_row,
)
from pieline.studies.jam import paths
from pieline.studies.jam.metrics.attention_records import ATTENTION, AttentionMetrics
from pieline.studies.jam.metrics.humans import HUMANS, HumanMetrics
from pieline.studies.jam.metrics.scores import NEUTRAL, NeutralMetrics
from pieline.studies.jam.settings import NEUTRAL as NEUTRAL_EXPERIMENT
from pieline.studies.jam.tables.common import (
    attention_inputs,
    data_notes,
    data_obstacles,
    deviations_of,
    has_results,
    label_with_unreadable_answers,
    title_of,
)

SIMULATED_NOTE = "The labels are simulated to show the computation: no person gave them."
_SIMULATED = "simulated labels, not people's"
UNLABELED = (
    f"the variants are not labeled: have two people fill in {paths.HUMAN_FORM}"
    " (snakemake jam_human_form writes it) and name their files in jam.humans"
)
"""Reason for a missing human baseline."""
NO_RUN = "no run shows which variants mislead"
"""Reason for a missing attention analysis."""


def human_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the accuracy of two annotators (overall and by usage) and their agreement."""
    measures = [measure for measures_of_row in HUMANS.values() for measure in measures_of_row]
    numbers = OurNumbers(inputs.study)
    for metrics in load_records(inputs.metrics, HumanMetrics):
        obstacles = []
        if metrics.simulated:
            obstacles.append(_SIMULATED)
        obstacles += data_obstacles(metrics)
        obstacles += deviations_of(metrics)
        if metrics.language != "english":
            obstacles.append("the paper's annotators judged English variants")
        numbers.add({}, measures, metrics, files=inputs.metrics, obstacles=obstacles)
    if not inputs.metrics:
        numbers.add({}, measures, None, not_run=UNLABELED)
    return numbers.frame()


def humans(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of two annotators' accuracy (overall and by usage) and agreement."""
    # At most one record, because people label the variants of one language.
    records = load_records(inputs.metrics, HumanMetrics)
    usage_counts: list[Cell] = []
    for metrics in records:
        usage_counts += [Cell(text=str(metrics.figurative)), Cell(text=str(metrics.literal))]
    language = records[0].language if records else "english"
    notes = data_notes(*records) + inputs.notes
    if any(metrics.simulated for metrics in records):
        notes = (SIMULATED_NOTE, *notes)
    all_numbers = rows_of(numbers, ())[()]  # no key distinguishes the numbers of this table
    return TableContent(
        heads=(headers(["Annotator", "Accuracy", "figurative", "literal", "ambiguous"]),),
        groups=(
            Group((_row_of_humans(all_numbers, "variants labeled", usage_counts),)),
            Group((_row_of_humans(all_numbers, "first"), _row_of_humans(all_numbers, "second"))),
            Group(
                (
                    _row_of_humans(all_numbers, "agreement"),
                    _row_of_humans(all_numbers, "Cohen's kappa"),
                )
            ),
        ),
        caption=f"Human baseline: two people on hard variants ({get_language(language).label}), one"
        " of each original, in percent. “Ambiguous” counts as wrong.",
        notes=notes,
        wide=False,
    )


_HUMAN_COLUMNS = 4
"""Number of columns of the human baseline after the label."""


def _row_of_humans(
    numbers: Mapping[str, Number], label: str, more_cells: Sequence[Cell] = ()
) -> Row:
    """Return the row of the measures `HUMANS[label]`, then `more_cells` and blank cells."""
    columns = [Column(measure.name, "") for measure in HUMANS[label]]
    row = number_row((label,), columns, numbers)
    cells = [*row.cells, *more_cells]
    blank = Cell(text=" ")  # a cell without text would show a dash
    cells += [blank] * (_HUMAN_COLUMNS - len(cells))
    return replace(row, cells=tuple(cells))


def _human_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return the inputs of the human baseline; without labels, the inputs contain no file.

    Returns None without models, hard variants or English.
    """
    settings = study.settings
    if not has_results(study) or "english" not in settings.languages:
        return None
    has_labels = settings.humans or settings.variants.source == "sample"
    return study.display_inputs(others=[paths.HUMANS] if has_labels else [])


HUMANS_TABLE = Table(
    "jam_humans",
    "Section 5.1",
    "Two people on the hard variants, in percent.",
    humans,
    _human_inputs,
    human_numbers,
    printed=("text_numbers",),
)


def neutral_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return how many variants are confusing, and how many still are with a neutral context.

    The frame also contains the share of neutral variants that are still confusing.
    """
    records = zip(load_records(inputs.metrics, NeutralMetrics), inputs.metrics, strict=True)
    papers_models = {model.name for model in inputs.models if model.published_as == "GPT-4o mini"}
    obstacles = partial(_neutral_obstacles, papers_models)
    return of_runs(inputs, records, NEUTRAL, _neutral_keys, obstacles)


def _neutral_keys(metrics: NeutralMetrics) -> dict[str, str]:
    return {"model": metrics.model, "setting": metrics.setting, "language": metrics.language}


def _neutral_obstacles(papers_models: Collection[str], metrics: NeutralMetrics) -> list[str]:
    """Return why an ablation with neutral contexts is not comparable with the paper's ablation."""
    obstacles = data_obstacles(metrics)
    if metrics.model not in papers_models:
        obstacles.append("the paper's ablation is of GPT-4o mini")
    obstacles += deviations_of(metrics)
    return obstacles


def neutral(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of confusing variants that remain confusing with a neutral context."""
    records = load_records(inputs.metrics, NeutralMetrics)
    columns = [
        Column("neutral_confusing", "confusing"),
        Column("neutral_variants", "neutral"),
        Column("neutral_confused", "still confusing"),
        Column("neutral_share", "%"),
    ]
    model_labels = inputs.labels()
    rows = []
    numbers_by_run = rows_of(numbers, ("model", "setting", "language"))
    for (model, setting, language), numbers_of_run in numbers_by_run.items():
        model_label = label_with_unreadable_answers(model_labels[model], records)
        labels = (model_label, title_of(setting), get_language(language).label)
        row = number_row(labels, columns, numbers_of_run)
        share = numbers_of_run["neutral_share"]
        interval = ""
        if share.low is not None and share.high is not None:
            interval = f"{rounded(share.low, 1)}, {rounded(share.high, 1)}"
        rows.append(Row(row.labels, (*row.cells, Cell(text=interval)), row.reason))
    return TableContent(
        heads=((*headers(["Model", "Setting", "Language"], columns), Head("95% interval")),),
        groups=(Group(tuple(rows)),),
        caption="Hard variants that confused a model, rewritten with a neutral context: how many"
        " still confuse it.",
        notes=(*data_notes(*records), *inputs.notes),
    )


def _neutral_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_results(study):
        return None
    runs = study.plan.select(experiment=NEUTRAL_EXPERIMENT)
    return study.display_inputs(runs, models=[run.model for run in runs]) if runs else None


NEUTRAL_TABLE = Table(
    "jam_neutral",
    "Appendix G",
    "Confusing variants with neutral context.",
    neutral,
    _neutral_inputs,
    neutral_numbers,
    printed=("text_numbers",),
)


def attention_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the number of analyzed pairs and the shares of attention on cue words, in percent.

    `inputs.options` are the model and the language of the analysis.
    """
    numbers = OurNumbers(inputs.study)
    keys = dict(inputs.options)
    for metrics in load_records(inputs.metrics, AttentionMetrics):
        obstacles = data_obstacles(metrics) + deviations_of(metrics)
        numbers.add(keys, ATTENTION, metrics, files=inputs.metrics, obstacles=obstacles)
    if not inputs.metrics:
        numbers.add(keys, ATTENTION, None, not_run=NO_RUN)
    return numbers.frame()


def attention(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of the shares of the PIE's attention that fall on cue words.

    The table shows the shares for the variants MIS and COR, and their difference. The paper prints
    none of these numbers.
    """
    columns = [
        Column("attention_pairs", "pairs"),
        Column("attention_misleading", "misleading (MIS)", interval=1),
        Column("attention_resolved", "resolved (COR)", interval=1),
        Column("attention_difference", "difference", interval=1),
    ]
    model_labels = inputs.labels()
    rows = []
    for (model, language), numbers_of_model in rows_of(numbers, ("model", "language")).items():
        labels = (model_labels[model], get_language(language).label)
        rows.append(number_row(labels, columns, numbers_of_model))
    return TableContent(
        heads=(headers(["Model", "Language"], columns),),
        groups=(Group(tuple(rows)),),
        caption="Share of the attention from the PIE to its context that falls on the content words"
        " of the added context, mean over layers, heads and pairs, in percent with 95% bootstrap"
        " intervals over pairs.",
        notes=data_notes(*load_records(inputs.metrics, AttentionMetrics)) + inputs.notes,
    )


ATTENTION_TABLE = Table(
    "jam_attention",
    "Appendix H",
    "Where the tokens of a PIE attend to.",
    attention,
    attention_inputs,
    attention_numbers,
)
