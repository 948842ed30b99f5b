"""Build the result tables: negative drift (Table 3), by usage (Table 5), confusion (Table 6).

Without hard variants, a table of the originals replaces these tables.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from pieline.core.measures import Measure
from pieline.core.records import load_records
from pieline.languages.registry import get_language
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription
from pieline.reporting.numbers import COMPARED, Number, rows_of
from pieline.reporting.ours import DEVIATION, over_seeds
from pieline.reporting.tables import Cell, Column, Group, Head, Row, TableContent, headers
from pieline.studies.jam.metrics.scores import (
    CONFUSION,
    DRIFT,
    IDIOMATIC,
    LITERAL,
    ORIGINALS,
    SUCCESS,
    UNREADABLE,
    JamMetrics,
)
from pieline.studies.jam.tables.common import (
    GROUPS,
    PROMPTS,
    RunKey,
    by_run,
    code_of,
    has_results,
    key_of,
    languages_of,
    marked,
    notes_on,
    printed_runs,
    run_numbers,
    runs_of,
    title_of,
    with_baselines,
)

_MAX_COLUMNS = 10
"""Maximum number of numeric columns on a page."""
NOT_CONFIGURED = "not with this setting and language in this configuration"
"""Reason for a missing number of a model that has runs with other settings or languages."""
JUDGED = (
    "A mean is within sampling range, but not equal, if it lies in the 95% t interval (Welch) for"
    " the difference between our mean and the paper's (with one seed of ours: in the prediction"
    " interval). A deviation is within sampling range if it lies in the F interval for the ratio of"
    " two variances. For a single printed seed, or a printed deviation of 0.00, the deviations of"
    " the same column over several seeds are pooled by language, separately for prompted and for"
    " fine-tuned models."
)
GEMINI = (
    "Gemini 2.5 Pro wrote and validated the paper's variants, so the paper reports the Gemini"
    " models separately for fairness."
)
"""Caveat in the caption of the paper's Table 3."""


@dataclass(frozen=True)
class Layout:
    """Layout of a result table.

    Attributes:
        columns: Columns for each language.
        caption: Caption with a placeholder for each symbol, and `{of}` for the totals.
        symbols: LaTeX symbols by plain text.
        of: Function that returns the totals of a language, as text for the caption.
        printed: Name in published/ of the printed table; empty if the paper has none.
        remarks: Further notes of this table.
    """

    columns: Sequence[Column]
    caption: str
    symbols: Mapping[str, str]
    of: Callable[[JamMetrics], str]
    printed: str = ""
    remarks: Sequence[str] = ()


def _numbers(inputs: DisplayInputs, measures: Iterable[Measure[JamMetrics]]) -> pd.DataFrame:
    """Return our means over seeds."""
    return over_seeds(run_numbers(inputs, (*measures, UNREADABLE)))


def drift_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of Table 3."""
    return _numbers(inputs, (SUCCESS, DRIFT))


def drift_table(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 3: successes and negative drift."""
    layout = Layout(
        [
            Column("success", "S_M", "$S_M$"),
            Column("negative_drift", "ND_M (%) ↓", r"$\mathit{ND}_M$ (\%) $\downarrow$"),
        ],
        "Results on ID10M-JAM. {}: hard variants whose original the model judged correctly{of};"
        " {}: negative drift, the share of them that it misjudged. A dash: unknown.",
        symbols={"S_M": "$S_M$", "ND_M": r"$\mathit{ND}_M$"},
        of=lambda item: f"{item.overall.variants}",
        printed="jam_table3",
        remarks=(GEMINI,),
    )
    return _table(numbers, inputs, layout)


DRIFT_TABLE = Table(
    "jam_drift",
    "Table 3",
    "Successes and negative drift of every model.",
    drift_table,
    with_baselines,
    drift_numbers,
    printed=("jam_table3",),
    otherwise=NOT_CONFIGURED,
)


def usage_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of Table 5."""
    literal_success, _, literal_drift = LITERAL
    idiomatic_success, _, idiomatic_drift = IDIOMATIC
    return _numbers(
        inputs, (SUCCESS, literal_success, literal_drift, idiomatic_success, idiomatic_drift)
    )


def usage_table(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 5: successes and negative drift by usage."""
    layout = Layout(
        [
            Column("success", "S_M", "$S_M$"),
            Column("success_literal", "S_L", "$S_L$"),
            Column("negative_drift_literal", "ND_L (%) ↓", r"$\mathit{ND}_L$ (\%) $\downarrow$"),
            Column("success_idiomatic", "S_I", "$S_I$"),
            Column("negative_drift_idiomatic", "ND_I (%) ↓", r"$\mathit{ND}_I$ (\%) $\downarrow$"),
        ],
        "Success count{of} and negative drift on ID10M-JAM, by literal ({}) and idiomatic"
        " ({}) usage. A dash: unknown, because no original of this usage was judged correctly.",
        symbols={"L": "$L$", "I": "$I$"},
        of=lambda item: (
            f"{item.overall.variants} variants, {item.literal.variants} of them literal"
        ),
        printed="jam_table5",
    )
    return _table(numbers, inputs, layout)


USAGE_TABLE = Table(
    "jam_usage",
    "Table 5",
    "Successes and negative drift by usage.",
    usage_table,
    with_baselines,
    usage_numbers,
    printed=("jam_table5",),
    otherwise=NOT_CONFIGURED,
)


def confusion_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of Table 6."""
    return _numbers(inputs, CONFUSION)


def confusion_table(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 6: all-confused, none-confused and mixed originals."""
    layout = Layout(
        [Column("all_confused", "AC"), Column("none_confused", "NC"), Column("mixed", "MX")],
        "Originals of ID10M-JAM{of} by how many of their variants were misjudged: all"
        " (AC), none (NC), some (MX). As in the paper, the three numbers sum to all originals,"
        " whether or not the original itself was judged correctly; for encoders, they count the {}"
        " variants (AC: flipped, NC: kept).",
        symbols={"S_M": "$S_M$"},
        of=lambda item: f"{item.overall.originals}",
        printed="jam_table6",
    )
    return _table(numbers, inputs, layout)


CONFUSION_TABLE = Table(
    "jam_confusion",
    "Table 6",
    "Originals of which all, none or some variants confuse a model.",
    confusion_table,
    with_baselines,
    confusion_numbers,
    printed=("jam_table6",),
    otherwise=NOT_CONFIGURED,
)


def originals_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of correctly judged originals, for data without hard variants."""
    return _numbers(inputs, ORIGINALS)


def originals_table(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the shares of correctly judged originals by usage."""
    layout = Layout(
        [
            Column("accuracy", "all"),
            Column("accuracy_literal", "literal"),
            Column("accuracy_idiomatic", "figurative"),
        ],
        "Originals judged correctly, in percent, by usage{of}, without hard variants.",
        symbols={},
        of=lambda item: (
            f"{item.overall.originals} originals, {item.literal.originals} of them literal"
        ),
    )
    return _table(numbers, inputs, layout)


def _without_variants(study: ConfiguredStudy) -> DisplayInputs | None:
    if has_results(study) or not study.settings.models:
        return None
    given = runs_of(study, "predictions")
    return given.model_copy(update={"models": tuple(given.own_models())})


ORIGINALS_TABLE = Table(
    "jam_originals",
    NOT_IN_PAPER,
    "Originals judged correctly, by model and usage.",
    originals_table,
    _without_variants,
    originals_numbers,
)


def _table(numbers: pd.DataFrame, inputs: DisplayInputs, layout: Layout) -> TableContent:
    """Lay out a result table: the paper's rows in its order, then our additional rows.

    If only this run's models have rows, these are in the order of the configuration.

    Columns are repeated for each language of a configured run. As many languages as fit (at least
    two) are placed side by side, with the rest below.
    """
    metrics = load_records(inputs.metrics, JamMetrics)
    runs, width = by_run(metrics), len(layout.columns)
    shown = languages_of([*runs, *(key_of(run.keys) for run in inputs.runs)])
    by_row = _by_row(numbers, inputs, layout.printed, shown)
    side_by_side = max(2, _MAX_COLUMNS // width // 2 * 2)
    first_heads: tuple[tuple[Head, ...], ...] = ()
    groups: list[Group] = []
    for start in range(0, max(1, len(shown)), side_by_side):
        languages = shown[start : start + side_by_side]
        # Languages below the first ones fill up their columns.
        missing = (side_by_side - len(languages)) * width if start else 0
        heads = _heads(languages, layout.columns, missing)
        sections: dict[str, list[Row]] = defaultdict(list)
        for row in by_row:
            if row.numbers.keys() & set(languages):
                seeds = {name: runs.get(row.key_in(name), []) for name in shown}
                cells = _row(row, seeds, languages, layout.columns)
                padded = (*cells.cells, *[Cell(text=" ")] * missing)
                sections[row.section].append(replace(cells, cells=padded))
        titles = [
            title for title in dict.fromkeys([*GROUPS, *sections]) if sections[title] or not shown
        ]
        for number, title in enumerate(titles):
            repeats_heads = start > 0 and number == 0
            rows = tuple(sections[title])
            groups.append(Group(rows, title_of(title), heads if repeats_heads else ()))
        first_heads = first_heads or heads
    totals = {item.language: layout.of(item) for item in metrics}
    counts = ", ".join(f"{total} in {get_language(name).label}" for name, total in totals.items())
    counts = f" (of {counts})" if counts else ""
    return TableContent(
        heads=first_heads,
        groups=tuple(groups),
        caption=layout.caption.format(*layout.symbols, of=counts),
        caption_latex=layout.caption.format(*layout.symbols.values(), of=counts),
        notes=_notes(numbers, metrics, inputs, layout),
    )


def _notes(
    numbers: pd.DataFrame, metrics: Sequence[JamMetrics], inputs: DisplayInputs, layout: Layout
) -> tuple[str, ...]:
    notes = [f"±: standard deviation over seeds (ddof 1). {PROMPTS}"]
    if layout.printed in inputs.files and any(item.dataset_is_released for item in metrics):
        notes.append(JUDGED)
        notes += _single_seed_ranges(numbers, layout.columns)
    notes += layout.remarks
    notes += notes_on(metrics, inputs)
    return tuple(notes)


@dataclass(frozen=True)
class _ResultRow:
    """A setting and a model, with their numbers by language and measure."""

    setting: str
    model: ModelDescription
    numbers: dict[str, Mapping[str, Number]] = field(default_factory=dict)

    @property
    def section(self) -> str:
        """Table section of the row."""
        return group_of(self.setting, self.model)

    def key_in(self, language: str) -> RunKey:
        """Return the key of the row's runs in a language."""
        return RunKey(self.setting, self.model.name, language)


def _by_row(
    numbers: pd.DataFrame, inputs: DisplayInputs, printed: str, shown: Sequence[str]
) -> list[_ResultRow]:
    """Return the rows of a table: the paper's in its order, then ours.

    Args:
        numbers: Frame of numbers.
        inputs: Inputs of the table.
        printed: Name in published/ of the printed table.
        shown: Languages of the table.
    """
    by_key = {RunKey(*key): of_run for key, of_run in rows_of(numbers, RunKey._fields).items()}
    planned = {key_of(run.keys) for run in inputs.runs}
    own = {
        (key.setting, key.model)
        for key, of_run in by_key.items()
        if key in planned or any(number.files for number in of_run.values())
    }
    of_paper = list(printed_runs(inputs, printed)) if inputs.rows == "paper" else []
    models = {model.name: model for model in inputs.row_models()}
    paper_places = {key: place for place, key in enumerate(of_paper)}
    model_places = {name: place for place, name in enumerate(models)}
    known = [key for key in by_key if key.model in models and key.language in shown]
    known.sort(key=lambda key: (paper_places.get(key, len(of_paper)), model_places[key.model]))
    rows: dict[tuple[str, str], _ResultRow] = {}
    for key in known:
        setting, model, language = key
        if inputs.rows == "paper" or (setting, model) in own:
            row = rows.setdefault((setting, model), _ResultRow(setting, models[model]))
            row.numbers[language] = by_key[key]
    return list(rows.values())


def _row(
    row: _ResultRow,
    seeds: Mapping[str, Sequence[JamMetrics]],
    languages: Sequence[str],
    columns: Sequence[Column],
) -> Row:
    """Lay out a row for some languages; `seeds` are its runs by language, including others.

    If nothing was run for the row, it states the reason of the first language.
    """
    made = {code_of(name): of_run for name, of_run in seeds.items() if name in row.numbers}
    reason = ""
    if not any(made.values()):
        missing = (n.missing for name in seeds for n in row.numbers.get(name, {}).values())
        reason = next(missing, NOT_CONFIGURED)
    cells = []
    for language in languages:
        cells += [column.cell(row.numbers.get(language, {})) for column in columns]
    return Row((marked(row.model.label, made),), tuple(cells), reason)


def _heads(
    languages: Sequence[str], columns: Sequence[Column], missing: int
) -> tuple[tuple[Head, ...], ...]:
    """Return the headers of some languages, and an empty one over the `missing` columns."""
    names = tuple(Head(get_language(name).label, len(columns)) for name in languages)
    upper = headers(["", ""]) + names
    lower = headers(["Setting", "Model"], list(columns) * len(languages))
    if missing:
        filler = (Head("", missing),)
        return upper + filler, lower + filler
    return upper, lower


def _single_seed_ranges(numbers: pd.DataFrame, columns: Sequence[Column]) -> list[str]:
    """Return a note with the maximum half-widths of sampling ranges for printed single seeds.

    The list is empty if there are no comparable numbers from a single seed.
    """
    names = {column.measure: column.header.partition(" ")[0] for column in columns}
    half_widths: dict[str, dict[str, float]] = defaultdict(dict)
    for of_run in rows_of(numbers, RunKey._fields).values():
        for measure, name in names.items():
            number = of_run.get(measure)
            if number and number.verdict in COMPARED and f"{measure}{DEVIATION}" not in of_run:
                of_language = half_widths[get_language(number.language).label]
                if number.range_low is not None and number.range_high is not None:
                    half = (number.range_high - number.range_low) / 2
                    of_language[name] = max(of_language.get(name, 0.0), half)
    if not half_widths:
        return []
    parts = []
    for language, of_language in sorted(half_widths.items()):
        ranges = ", ".join(f"{name} ±{half:.1f}" for name, half in of_language.items())
        parts.append(f"{language} {ranges}")
    return [f"For a printed single seed, that range is wide: {'; '.join(parts)}."]


def group_of(setting: str, model: ModelDescription) -> str:
    """Return the table section of a run."""
    return "reasoning" if model.reasoning and setting == "zero_shot" else setting
