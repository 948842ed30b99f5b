"""Build the result tables: negative drift (Table 3), by usage (Table 5), confusion (Table 6).

Without hard variants, a table of the originals replaces these tables.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product

from pieline.languages.registry import get_language
from pieline.reporting.columns import Column, Source, cell, headers, records_of, row
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription
from pieline.reporting.printed import Comparison, per_cent
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.jam.inputs import has_results, runs_of, with_baselines
from pieline.studies.jam.metrics.drift import JudgedOriginal, accuracy
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import RunKey, negative_drift, unreadable
from pieline.studies.jam.settings import ADDED, FINE_TUNED
from pieline.studies.jam.tables.common import (
    GROUPS,
    JUDGED,
    PROMPTS,
    code_of,
    languages_of,
    marked,
    missing_runs,
    notes_on,
    printed_runs,
    printed_seeds,
    run_sources,
    seeds_of,
    title_of,
)

_MAX_COLUMNS = 10
"""Maximum number of numeric columns on a page."""
Sources = dict[str, Source[JamMetrics]]
"""Runs of a table row by language."""
ByRow = Mapping[tuple[str, str], Sources]
"""Table rows by setting and model."""
NOT_CONFIGURED = "not with this setting and language in this configuration"
"""Reason for a missing number of a model that has runs with other settings or languages."""


def _confusion(name: str, header: str) -> Column[JamMetrics]:
    def value(metrics: JamMetrics) -> float:
        # The paper counts variants for encoders and originals for language models.
        tagged = metrics.setting in (FINE_TUNED, *ADDED)
        return int(getattr(metrics.confusion_of_variants if tagged else metrics.confusion, name))

    return Column(name, header, value)


_NO_DRIFT = "no such original was judged correctly, so no variant could drift"
_SUCCESS = Column[JamMetrics]("success", "S_M", lambda item: item.overall.success, "$S_M$")
DRIFT: list[Column[JamMetrics]] = [
    _SUCCESS,
    Column(
        "negative_drift_pct",
        "ND_M (%) ↓",
        negative_drift,
        r"$\mathit{ND}_M$ (\%) $\downarrow$",
        unknown=_NO_DRIFT,
    ),
]
USAGE: list[Column[JamMetrics]] = [
    _SUCCESS,
    Column("success_literal", "S_L", lambda item: item.literal.success, "$S_L$"),
    Column(
        "negative_drift_literal_pct",
        "ND_L (%) ↓",
        lambda item: per_cent(item.literal.negative_drift),
        r"$\mathit{ND}_L$ (\%) $\downarrow$",
        unknown=_NO_DRIFT,
    ),
    Column("success_idiomatic", "S_I", lambda item: item.idiomatic.success, "$S_I$"),
    Column(
        "negative_drift_idiomatic_pct",
        "ND_I (%) ↓",
        lambda item: per_cent(item.idiomatic.negative_drift),
        r"$\mathit{ND}_I$ (\%) $\downarrow$",
        unknown=_NO_DRIFT,
    ),
]
CONFUSION: list[Column[JamMetrics]] = [
    _confusion("all_confused", "AC"),
    _confusion("none_confused", "NC"),
    _confusion("mixed", "MX"),
]


def _right(usage: str, header: str, *figurative: bool) -> list[Column[JamMetrics]]:
    """Return columns for correctly judged originals: their share and, in the CSV, their number."""

    def judged(item: JamMetrics) -> list[JudgedOriginal]:
        return [case for case in item.judged if case.is_figurative in figurative]

    return [
        Column(
            f"accuracy{usage}_pct",
            header,
            lambda item: per_cent(accuracy(judged(item))),
            unknown="there is no such original",
        ),
        Column(f"right{usage}", "", lambda item: sum(case.correct for case in judged(item))),
    ]


ORIGINALS: list[Column[JamMetrics]] = [
    *_right("", "all", False, True),
    *_right("_literal", "literal", False),
    *_right("_idiomatic", "figurative", True),
]
_UNREADABLE = Column[Sequence[JamMetrics]](
    "unreadable", "", lambda seeds: unreadable(seeds)[0], decimals=0
)

GEMINI = (
    "Gemini 2.5 Pro wrote and validated the paper's variants, so the paper reports the Gemini"
    " models separately for fairness."
)
"""Caveat in the caption of the paper's Table 3."""


def drift_table(inputs: DisplayInputs) -> TableContent:
    """Return Table 3: successes and negative drift."""
    return _table(
        inputs,
        DRIFT,
        "Results on ID10M-JAM. {}: hard variants whose original the model judged correctly{of};"
        " {}: negative drift, the share of them that it misjudged. A dash: unknown.",
        symbols={"S_M": "$S_M$", "ND_M": r"$\mathit{ND}_M$"},
        of=lambda item: f"{item.overall.variants}",
        remarks=(GEMINI,),
    )


DRIFT_TABLE = Table(
    "jam_drift",
    "Table 3",
    "Successes and negative drift of every model.",
    drift_table,
    with_baselines,
    printed="jam_table3",
)


def usage_table(inputs: DisplayInputs) -> TableContent:
    """Return Table 5: successes and negative drift by usage."""
    return _table(
        inputs,
        USAGE,
        "Success count{of} and negative drift on ID10M-JAM, by literal ({}) and idiomatic"
        " ({}) usage. A dash: unknown, because no original of this usage was judged correctly.",
        symbols={"L": "$L$", "I": "$I$"},
        of=lambda item: (
            f"{item.overall.variants} variants, {item.literal.variants} of them literal"
        ),
    )


USAGE_TABLE = Table(
    "jam_usage",
    "Table 5",
    "Successes and negative drift by usage.",
    usage_table,
    with_baselines,
    printed="jam_table5",
)


def confusion_table(inputs: DisplayInputs) -> TableContent:
    """Return Table 6: all-confused, none-confused and mixed originals."""
    return _table(
        inputs,
        CONFUSION,
        "Originals of ID10M-JAM{of} by how many of their variants were misjudged: all"
        " (AC), none (NC), some (MX). As in the paper, the three numbers sum to all originals,"
        " whether or not the original itself was judged correctly; for encoders, they count the {}"
        " variants (AC: flipped, NC: kept).",
        symbols={"S_M": "$S_M$"},
        of=lambda item: f"{item.overall.originals}",
    )


CONFUSION_TABLE = Table(
    "jam_confusion",
    "Table 6",
    "Originals of which all, none or some variants confuse a model.",
    confusion_table,
    with_baselines,
    printed="jam_table6",
)


def originals_table(inputs: DisplayInputs) -> TableContent:
    """Return correctly judged originals by usage, for data without hard variants."""
    return _table(
        inputs,
        ORIGINALS,
        "Originals judged correctly, in percent, by usage{of}, without hard variants.",
        symbols={},
        of=lambda item: (
            f"{item.overall.originals} originals, {item.literal.originals} of them literal"
        ),
    )


def _without_variants(study: ConfiguredStudy) -> DisplayInputs | None:
    if has_results(study) or not study.settings.models:
        return None
    return runs_of(study, "predictions").model_copy(update={"absent": ()})


ORIGINALS_TABLE = Table(
    "jam_originals",
    NOT_IN_PAPER,
    "Originals judged correctly, by model and usage.",
    originals_table,
    _without_variants,
)


def _table(
    inputs: DisplayInputs,
    columns: Sequence[Column[JamMetrics]],
    caption: str,
    *,
    symbols: Mapping[str, str],
    of: Callable[[JamMetrics], str],
    remarks: Sequence[str] = (),
) -> TableContent:
    """Build a result table: the paper's rows in its order, then our additional rows.

    If only this run's models have rows, these are in the order of the configuration.

    Columns are repeated for each language. As many languages as fit (at least two) are placed side
    by side, with the rest below. Numbers printed for other languages are only in the CSV.

    Args:
        inputs: Metrics, printed numbers and models.
        columns: Columns for each language.
        caption: Caption with a placeholder for each symbol, and `{of}` for the totals.
        symbols: LaTeX symbols by plain text.
        of: Function that returns the totals of a language, as text for the caption.
        remarks: Further notes of this table.
    """
    our_runs = run_sources(inputs)
    metrics = records_of(our_runs)
    left_out = missing_runs(inputs, our_runs)
    shown = languages_of([*our_runs, *left_out])
    by_row = _by_row(inputs, our_runs, left_out)
    unseen = {run: _unseen(sources, shown, columns) for run, sources in by_row.items()}
    models = {model.name: model for model in (*inputs.models, *inputs.absent)}
    width = len(headers((), columns))
    languages_per_row = max(2, _MAX_COLUMNS // width // 2 * 2)
    heads: tuple[tuple[Head, ...], ...] = ()
    groups: list[Group] = []
    for start in range(0, max(1, len(shown)), languages_per_row):
        languages = shown[start : start + languages_per_row]
        missing = (languages_per_row - len(languages)) * width if start else 0
        rows: dict[str, list[Row]] = defaultdict(list)
        for (setting, name), sources in by_row.items():
            if sources.keys().isdisjoint(languages):
                continue
            seeds = {code_of(key): sources[key].records for key in shown if key in sources}
            why = _why_not(inputs, RunKey(setting, name, shown[0]))
            numbers = row(
                (marked(models[name].label, seeds),),
                [(column, sources.get(key)) for key in languages for column in columns],
                reason="" if any(seeds.values()) else why,
            )
            cells = (*numbers.cells, *[Cell(text=" ")] * missing)
            rest = (*unseen.pop((setting, name), ()), *numbers.unseen)
            rows[group_of(setting, models[name])].append(replace(numbers, cells=cells, unseen=rest))
        filler = [Head("", missing)] if missing else []
        own = (
            (
                *headers(["", ""]),
                *(Head(get_language(name).label, width) for name in languages),
                *filler,
            ),
            (*headers(["Setting", "Model"], [*columns] * len(languages)), *filler),
        )
        heads = heads or own
        titles = [title for title in dict.fromkeys([*GROUPS, *rows]) if rows[title] or not shown]
        groups += [
            Group(tuple(rows[title]), title_of(title), own if start and title == titles[0] else ())
            for title in titles
        ]
    totals = {item.language: of(item) for item in metrics}
    counts = ", ".join(f"{total} in {get_language(name).label}" for name, total in totals.items())
    counts = f" (of {counts})" if counts else ""
    compared = "published" in inputs.files and any(item.dataset_is_released for item in metrics)
    return TableContent(
        heads=heads,
        groups=tuple(groups),
        caption=caption.format(*symbols, of=counts),
        caption_latex=caption.format(*symbols.values(), of=counts),
        notes=(
            f"±: standard deviation over seeds (ddof 1). {PROMPTS}",
            *([JUDGED, *_single_seed_ranges(by_row, columns)] if compared else []),
            *remarks,
            *notes_on(metrics, inputs),
        ),
        unseen=tuple(chain.from_iterable(unseen.values())),
    )


def _by_row(
    inputs: DisplayInputs, our_runs: Mapping[RunKey, Source[JamMetrics]], left_out: Sequence[RunKey]
) -> ByRow:
    """Return the sources of each row by language: the paper's rows in its order, then ours.

    If only this run's models have rows, printed numbers are only those of our rows and languages.
    """
    printed, by_row = printed_runs(inputs), defaultdict[tuple[str, str], Sources](dict)
    ours = sorted([*our_runs, *left_out], key=lambda key: inputs.place(key.model))
    keys = [*printed, *ours]
    if inputs.rows == "run":
        rows, languages = {key[:2] for key in ours}, languages_of(ours)
        beside = (key for key in printed if key[:2] in rows and key.language in languages)
        keys = [*ours, *beside]
    for key in dict.fromkeys(keys):
        source = our_runs.get(key) or Source({}, not_run=_why_not(inputs, key))
        by_row[key[:2]][key.language] = replace(
            source,
            key={**key._asdict(), "seeds": seeds_of(source)},
            printed=printed.get(key, {}),
            seeds=printed_seeds(printed, key),
        )
    return by_row


def _unseen(
    sources: Sources, shown: Sequence[str], columns: Sequence[Column[JamMetrics]]
) -> list[Number]:
    """Return the numbers of a row that only the CSV has.

    These are the numbers for hidden languages, and the numbers of unreadable answers.
    """
    hidden = [source for language, source in sources.items() if language not in shown]
    cells = [cell(column, source) for source in hidden for column in columns]
    for source in (sources[language] for language in shown if language in sources):
        if source.records:
            runs = Source(source.key, [source.records], source.files, obstacles=source.obstacles)
            cells.append(cell(_UNREADABLE, runs))
    return [number for item in cells for number in item.numbers()]


def _single_seed_ranges(by_row: ByRow, columns: Sequence[Column[JamMetrics]]) -> list[str]:
    """Return a note with the maximum half-widths of sampling ranges for printed single seeds.

    The list is empty if there are no comparable numbers from a single seed.
    """
    halves: dict[str, dict[str, float]] = defaultdict(dict)
    for sources in by_row.values():
        for (language, source), column in product(sources.items(), columns):
            table_cell = cell(column, source)
            compared = (
                table_cell.number.comparison
                if table_cell.number and not table_cell.deviation
                else None
            )
            if isinstance(compared, Comparison) and compared.comparable:
                name = column.header.partition(" ")[0]
                for low, high in compared.ranges.values():
                    wide = halves[get_language(language).label]
                    wide[name] = max(wide.get(name, 0.0), (high - low) / 2)
    listed = (
        f"{language} {', '.join(f'{name} ±{half:.1f}' for name, half in wide.items())}"
        for language, wide in sorted(halves.items())
    )
    note = f"For a printed single seed, that range is wide: {'; '.join(listed)}."
    return [note] if halves else []


def _why_not(inputs: DisplayInputs, key: RunKey) -> str:
    return inputs.why_not(key.model, key.setting, key.language) or NOT_CONFIGURED


def group_of(setting: str, model: ModelDescription) -> str:
    """Return the table section of a run."""
    return "reasoning" if model.reasoning and setting == "zero_shot" else setting
