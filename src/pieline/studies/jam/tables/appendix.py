"""Build the tables of the human baseline (5.1), neutral contexts (G) and attention (H)."""

from collections.abc import Collection
from functools import partial
from itertools import chain

import pandas as pd

from pieline.core.records import load_records
from pieline.languages.registry import get_language
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import rows_of
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
from pieline.studies.jam import paths, settings
from pieline.studies.jam.metrics.attention_records import ATTENTION, AttentionMetrics
from pieline.studies.jam.metrics.humans import HUMANS, HumanMetrics
from pieline.studies.jam.metrics.scores import NEUTRAL, NeutralMetrics
from pieline.studies.jam.tables.common import (
    attention_of,
    data_notes,
    deviations_of,
    has_results,
    marked,
    of_other_data,
    title_of,
)

SIMULATED_NOTE = "The labels are simulated to show the computation: no person gave them."
_SIMULATED = "simulated labels, not people's"
UNLABELED = (
    f"the variants are not labeled: have two people fill in {paths.HUMAN_FORM}"
    " (snakemake jam_human_form writes it) and name their files in jam.humans"
)
"""Why there is no human baseline."""
NO_RUN = "no run shows which variants mislead"
"""Why there is no attention analysis."""


def human_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return two annotators' accuracy (overall and by usage) and agreement."""
    measures = list(chain.from_iterable(HUMANS.values()))
    numbers = OurNumbers(inputs.study)
    for item in load_records(inputs.metrics, HumanMetrics):
        obstacles = []
        if item.simulated:
            obstacles.append(_SIMULATED)
        obstacles += of_other_data(item)
        obstacles += deviations_of(item)
        if item.language != "english":
            obstacles.append("the paper's annotators judged English variants")
        numbers.add({}, measures, item, files=inputs.metrics, obstacles=obstacles)
    if not inputs.metrics:
        numbers.add({}, measures, None, not_run=UNLABELED)
    return numbers.frame()


def humans(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of two annotators' accuracy (overall and by usage) and agreement."""
    records = load_records(inputs.metrics, HumanMetrics)
    (by_measure,) = rows_of(numbers, ()).values()
    rows: list[Row] = []
    for label, measures in HUMANS.items():
        row = number_row((label,), [Column(each.name, "") for each in measures], by_measure)
        cells = list(row.cells)
        if not rows:
            # The first row has the number of variants, also by usage.
            for item in records:
                cells += [Cell(text=str(item.figurative)), Cell(text=str(item.literal))]
        cells += [Cell(text=" ")] * (4 - len(cells))
        rows.append(Row((label,), tuple(cells), row.reason))
    language = records[0].language if records else "english"
    notes = data_notes(*records) + inputs.notes
    if any(item.simulated for item in records):
        notes = (SIMULATED_NOTE, *notes)
    return TableContent(
        heads=(headers(["Annotator", "Accuracy", "figurative", "literal", "ambiguous"]),),
        groups=(Group(tuple(rows[:1])), Group(tuple(rows[1:3])), Group(tuple(rows[3:]))),
        caption=f"Human baseline: two people on hard variants ({get_language(language).label}), one"
        " of each original, in percent. “Ambiguous” counts as wrong.",
        notes=notes,
        wide=False,
    )


def _human_labels(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_results(study) or "english" not in study.settings.languages:
        return None
    if study.settings.humans or study.settings.variants.source == "sample":
        return study.display_inputs(others=[paths.HUMANS])
    return study.display_inputs()


HUMANS_TABLE = Table(
    "jam_humans",
    "Section 5.1",
    "Two people on the hard variants, in percent.",
    humans,
    _human_labels,
    human_numbers,
    printed=("text_numbers",),
)


def neutral_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the numbers of confusing variants that remain confusing with a neutral context."""
    records = zip(load_records(inputs.metrics, NeutralMetrics), inputs.metrics, strict=True)
    of_paper = {model.name for model in inputs.models if model.published_as == "GPT-4o mini"}
    return of_runs(inputs, records, NEUTRAL, _neutral_keys, partial(_neutral_obstacles, of_paper))


def _neutral_keys(item: NeutralMetrics) -> dict[str, str]:
    return {"model": item.model, "setting": item.setting, "language": item.language}


def _neutral_obstacles(models_of_paper: Collection[str], item: NeutralMetrics) -> list[str]:
    """Return why an ablation is not comparable with the paper's."""
    obstacles = of_other_data(item)
    if item.model not in models_of_paper:
        obstacles.append("the paper's ablation is of GPT-4o mini")
    obstacles += deviations_of(item)
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
    labels, rows = inputs.labels(), []
    by_run = rows_of(numbers, ("model", "setting", "language"))
    for (model, setting, language), of_run in by_run.items():
        name = marked(labels[model], {"": records})
        row = number_row((name, title_of(setting), get_language(language).label), columns, of_run)
        share = of_run["neutral_share"]
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


def _neutral_run(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_results(study):
        return None
    runs = study.plan.select(experiment=settings.NEUTRAL)
    return study.display_inputs(runs, models=[run.model for run in runs]) if runs else None


NEUTRAL_TABLE = Table(
    "jam_neutral",
    "Appendix G",
    "Confusing variants with neutral context.",
    neutral,
    _neutral_run,
    neutral_numbers,
    printed=("text_numbers",),
)


def attention_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the share of the PIE's attention that falls on cue words, in percent."""
    numbers = OurNumbers(inputs.study)
    keys = dict(inputs.options)
    for item in load_records(inputs.metrics, AttentionMetrics):
        obstacles = of_other_data(item) + deviations_of(item)
        numbers.add(keys, ATTENTION, item, files=inputs.metrics, obstacles=obstacles)
    if not inputs.metrics:
        numbers.add(keys, ATTENTION, None, not_run=NO_RUN)
    return numbers.frame()


def attention(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of the share of the PIE's attention that falls on cue words.

    Columns are MIS, COR and their difference. The paper prints no numbers for comparison.
    """
    columns = [
        Column("attention_pairs", "pairs"),
        Column("attention_misleading", "misleading (MIS)", interval=1),
        Column("attention_resolved", "resolved (COR)", interval=1),
        Column("attention_difference", "difference", interval=1),
    ]
    labels = inputs.labels()
    rows = [
        number_row((labels[model], get_language(language).label), columns, of_model)
        for (model, language), of_model in rows_of(numbers, ("model", "language")).items()
    ]
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
    attention_of,
    attention_numbers,
)
