"""Build the tables of the human baseline (5.1), neutral contexts (G) and attention (H)."""

from operator import attrgetter

from pieline.core.records import load_records
from pieline.languages.registry import get_language
from pieline.reporting.columns import Column, Source, cell, headers, row, text_cell
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import per_cent, percent_bounds, read_published
from pieline.reporting.tables import Cell, Group, Head, Row, TableContent
from pieline.studies.jam import inputs as given
from pieline.studies.jam import paths, settings
from pieline.studies.jam.metrics.attention_records import AttentionMetrics
from pieline.studies.jam.metrics.humans import AnnotatorScores, HumanMetrics
from pieline.studies.jam.metrics.neutral import NeutralMetrics
from pieline.studies.jam.tables.common import (
    data_notes,
    deviations_of,
    marked,
    of_other_data,
    percentage,
    title_of,
)

SIMULATED_NOTE = "The labels are simulated to show the computation: no person gave them."
_SIMULATED = "simulated labels, not people's"


def _share(name: str, field: str) -> Column[HumanMetrics]:
    value = attrgetter(field)
    return Column(f"human_{name}", "", lambda item: per_cent(value(item)), decimals=1)


def _person(name: str) -> list[Column[HumanMetrics]]:
    fields = AnnotatorScores.model_fields
    return [_share(f"{field}_{name}", f"{name}.{field}") for field in fields]


HUMANS: dict[str, list[Column[HumanMetrics]]] = {
    "variants labeled": [Column("human_variants", "", lambda item: item.variants, decimals=0)],
    "first": _person("first"),
    "second": _person("second"),
    "agreement": [_share("agreement", "agreement")],
    "Cohen's kappa": [Column[HumanMetrics]("human_kappa", "", lambda item: item.kappa, decimals=2)],
}
"""Columns of the human baseline by row label."""
NEUTRAL: list[Column[NeutralMetrics]] = [
    Column("neutral_variants", "neutral", lambda item: item.neutral, decimals=0),
    Column("neutral_confused", "still confusing", lambda item: item.still_confused, decimals=0),
    Column("neutral_share", "%", lambda item: per_cent(item.share), decimals=1),
]


def _attention(name: str, header: str) -> Column[AttentionMetrics]:
    part = attrgetter(name)
    return percentage(name, header, lambda item: (part(item).mean, part(item).interval))


PAIRS = Column[AttentionMetrics]("pairs", "pairs", lambda item: len(item.pairs))
ATTENTION = [
    _attention("misleading", "misleading (MIS)"),
    _attention("resolved", "resolved (COR)"),
    _attention("difference", "difference"),
]


def humans(inputs: DisplayInputs) -> TableContent:
    """Build the table of two annotators' accuracy (overall and by usage) and agreement."""
    records = load_records(inputs.metrics, HumanMetrics)
    reason = "" if records else inputs.why_not("people")
    simulated = any(item.simulated for item in records)
    obstacles = [
        *([_SIMULATED] if simulated else []),
        *of_other_data(*records),
        *deviations_of(*records),
    ]
    language = records[0].language if records else "english"
    if language != "english":
        obstacles.append("the paper's annotators judged English variants")
    source = Source({}, records, inputs.metrics, obstacles=obstacles, not_run=reason)
    printed = read_published(inputs.files["text_numbers"], ["id"])
    usages = [Cell(text=str(one)) for item in records for one in (item.figurative, item.literal)]
    rows: list[Row] = []
    for label, columns in HUMANS.items():
        cells = [text_cell(column, source, "jam", printed) for column in columns]
        cells += [] if rows else usages
        rows.append(Row((label,), (*cells, *[Cell(text=" ")] * (4 - len(cells))), reason))
    return TableContent(
        heads=(headers(["Annotator", "Accuracy", "figurative", "literal", "ambiguous"]),),
        groups=tuple(Group(tuple(part)) for part in (rows[:1], rows[1:3], rows[3:])),
        caption=f"Human baseline: two people on hard variants ({get_language(language).label}), one"
        " of each original, in percent. “Ambiguous” counts as wrong.",
        notes=(*([SIMULATED_NOTE] if simulated else []), *data_notes(*records), *inputs.notes),
        wide=False,
    )


def _human_labels(study: ConfiguredStudy) -> DisplayInputs | None:
    if not given.has_results(study) or "english" not in study.settings.languages:
        return None
    if study.settings.humans or study.settings.variants.source == "sample":
        return DisplayInputs(metrics=(paths.HUMANS,), notes=study.notes())
    missing = (
        f"the variants are not labeled: have two people fill in {paths.HUMAN_FORM}"
        " (snakemake jam_human_form writes it) and name their files in jam.humans"
    )
    return DisplayInputs(not_run={"people": missing}, notes=study.notes())


HUMANS_TABLE = Table(
    "jam_humans",
    "Section 5.1",
    "Two people on the hard variants, in percent.",
    humans,
    _human_labels,
    text_numbers=True,
)


def neutral(inputs: DisplayInputs) -> TableContent:
    """Build the table of confusing variants that remain confusing with a neutral context."""
    (model,), run = inputs.models, inputs.options
    records = load_records(inputs.metrics, NeutralMetrics)
    reason = "" if records else inputs.why_not(model.name)
    obstacles = of_other_data(*records)
    if model.published_as != "GPT-4o mini":
        obstacles.append("the paper's ablation is of GPT-4o mini")
    obstacles += deviations_of(*records)
    key = {name: run[name] for name in ("model", "setting", "language")}
    source = Source(key, records, inputs.metrics, obstacles=obstacles, not_run=reason)
    printed = read_published(inputs.files["text_numbers"], ["id"])
    bounds = (bound for item in records for bound in percent_bounds(item.interval, 1) or ())
    cells = (
        *([Cell(text=str(item.confusing)) for item in records] or [Cell()]),
        *(text_cell(column, source, "jam", printed) for column in NEUTRAL),
        Cell(text=", ".join(bounds)),
    )
    name = marked(model.label, {"": records})
    labels = (name, title_of(run["setting"]), get_language(run["language"]).label)
    return TableContent(
        heads=(
            (
                *headers(["Model", "Setting", "Language", "confusing"], NEUTRAL),
                Head("95% interval"),
            ),
        ),
        groups=(Group((Row(labels, cells, reason),)),),
        caption="Hard variants that confused a model, rewritten with a neutral context: how many"
        " still confuse it.",
        notes=(*data_notes(*records), *inputs.notes),
    )


def _neutral_run(study: ConfiguredStudy) -> DisplayInputs | None:
    runs = study.plan.select(experiment=settings.NEUTRAL) if given.has_results(study) else ()
    for run in runs:
        return DisplayInputs(
            metrics=() if run.lacks else (run.metrics,),
            models=study.describe_models([run.model]),
            not_run={run.model: run.lacks} if run.lacks else {},
            options=run.where,
            notes=study.notes(),
        )
    return None


NEUTRAL_TABLE = Table(
    "jam_neutral",
    "Appendix G",
    "Confusing variants with neutral context.",
    neutral,
    _neutral_run,
    text_numbers=True,
)


def attention(inputs: DisplayInputs) -> TableContent:
    """Build the table of the share of the PIE's attention that falls on cue words, in percent.

    Columns are MIS, COR and their difference. The paper prints no numbers for comparison.
    """
    (model,), language = inputs.models, get_language(inputs.options["language"]).label
    records = load_records(inputs.metrics, AttentionMetrics)
    rows = []
    for item in records:
        source = Source(
            {"model": item.model, "language": item.language, "pairs": str(len(item.pairs))},
            [item],
            inputs.metrics,
            obstacles=[*of_other_data(item), *deviations_of(item)],
        )
        cells = [cell(column, source) for column in ATTENTION]
        rows.append(Row((model.label, language), (Cell(text=source.key["pairs"]), *cells)))
    if not records:
        reason = inputs.why_not(model.name)
        missing = Source[AttentionMetrics](inputs.options, not_run=reason)
        columns = [(column, missing) for column in (PAIRS, *ATTENTION)]
        rows.append(row((model.label, language), columns, reason=reason))
    return TableContent(
        heads=(headers(["Model", "Language"], [PAIRS, *ATTENTION]),),
        groups=(Group(tuple(rows)),),
        caption="Share of the attention from the PIE to its context that falls on the content words"
        " of the added context, mean over layers, heads and pairs, in percent with 95% bootstrap"
        " intervals over pairs.",
        notes=(*data_notes(*records), *inputs.notes),
    )


ATTENTION_TABLE = Table(
    "jam_attention",
    "Appendix H",
    "Where the tokens of a PIE attend to.",
    attention,
    given.attention,
)
