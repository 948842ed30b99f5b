"""Build the result tables: negative drift (Tables 3 and 5) and confusion (Table 6).

Without hard variants, a table of accuracy on originals replaces these tables.
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
    Runs,
    by_run,
    has_results,
    inputs_with_baselines,
    key_of,
    label_with_unreadable_by_language,
    languages_of,
    notes_on,
    printed_runs,
    run_inputs,
    run_numbers,
    title_of,
)

_MAX_COLUMNS = 10
"""Maximum number of numeric columns on a page."""
NOT_CONFIGURED = "not with this setting and language in this configuration"
"""Why a number is missing if the model has runs, but with other settings or languages."""
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
        caption: Caption with the placeholder `{}` for each symbol, and `{of}` for the totals.
        symbols: LaTeX source of each symbol, by its plain text.
        total_text: Function that returns the number of originals or variants in a language, as text
            for the caption.
        printed: Name in published/ of the printed table; empty if the paper has none.
        remarks: Further notes of this table.
    """

    columns: Sequence[Column]
    caption: str
    symbols: Mapping[str, str]
    total_text: Callable[[JamMetrics], str]
    printed: str = ""
    remarks: Sequence[str] = ()


def _numbers(inputs: DisplayInputs, measures: Iterable[Measure[JamMetrics]]) -> pd.DataFrame:
    """Return the frame with the means of measures and of unreadable answers over seeds."""
    return over_seeds(run_numbers(inputs, (*measures, UNREADABLE)))


def drift_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the successes and the negative drift of our runs (Table 3)."""
    return _numbers(inputs, (SUCCESS, DRIFT))


def drift_table(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 3: successes and negative drift of every model."""
    layout = Layout(
        [
            Column("success", "S_M", "$S_M$"),
            Column("negative_drift", "ND_M (%) ↓", r"$\mathit{ND}_M$ (\%) $\downarrow$"),
        ],
        "Results on ID10M-JAM. {}: hard variants whose original the model judged correctly{of};"
        " {}: negative drift, the share of them that it misjudged. A dash: unknown.",
        symbols={"S_M": "$S_M$", "ND_M": r"$\mathit{ND}_M$"},
        total_text=lambda metrics: f"{metrics.overall.variants}",
        printed="jam_table3",
        remarks=(GEMINI,),
    )
    return _table(numbers, inputs, layout)


DRIFT_TABLE = Table(
    "jam_drift",
    "Table 3",
    "Successes and negative drift of every model.",
    drift_table,
    inputs_with_baselines,
    drift_numbers,
    printed=("jam_table3",),
    otherwise=NOT_CONFIGURED,
)


def usage_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the successes and the negative drift of our runs by usage (Table 5)."""
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
        total_text=lambda metrics: (
            f"{metrics.overall.variants} variants, {metrics.literal.variants} of them literal"
        ),
        printed="jam_table5",
    )
    return _table(numbers, inputs, layout)


USAGE_TABLE = Table(
    "jam_usage",
    "Table 5",
    "Successes and negative drift by usage.",
    usage_table,
    inputs_with_baselines,
    usage_numbers,
    printed=("jam_table5",),
    otherwise=NOT_CONFIGURED,
)


def confusion_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of all-confused, none-confused and mixed originals (Table 6)."""
    return _numbers(inputs, CONFUSION)


def confusion_table(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 6: the numbers of all-confused, none-confused and mixed originals."""
    layout = Layout(
        [Column("all_confused", "AC"), Column("none_confused", "NC"), Column("mixed", "MX")],
        "Originals of ID10M-JAM{of} by how many of their variants were misjudged: all"
        " (AC), none (NC), some (MX). As in the paper, the three numbers sum to all originals,"
        " whether or not the original itself was judged correctly; for encoders, they count the {}"
        " variants (AC: flipped, NC: kept).",
        symbols={"S_M": "$S_M$"},
        total_text=lambda metrics: f"{metrics.overall.originals}",
        printed="jam_table6",
    )
    return _table(numbers, inputs, layout)


CONFUSION_TABLE = Table(
    "jam_confusion",
    "Table 6",
    "Originals of which all, none or some variants confuse a model.",
    confusion_table,
    inputs_with_baselines,
    confusion_numbers,
    printed=("jam_table6",),
    otherwise=NOT_CONFIGURED,
)


def originals_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the shares and numbers of correctly judged originals, overall and by usage."""
    return _numbers(inputs, ORIGINALS)


def originals_table(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the shares of correctly judged originals, overall and by usage."""
    layout = Layout(
        [
            Column("accuracy", "all"),
            Column("accuracy_literal", "literal"),
            Column("accuracy_idiomatic", "figurative"),
        ],
        "Originals judged correctly, in percent, by usage{of}, without hard variants.",
        symbols={},
        total_text=lambda metrics: (
            f"{metrics.overall.originals} originals, {metrics.literal.originals} of them literal"
        ),
    )
    return _table(numbers, inputs, layout)


def _without_variants(study: ConfiguredStudy) -> DisplayInputs | None:
    if has_results(study) or not study.settings.models:
        return None
    inputs = run_inputs(study, "predictions")
    return inputs.model_copy(update={"models": tuple(inputs.own_models())})


ORIGINALS_TABLE = Table(
    "jam_originals",
    NOT_IN_PAPER,
    "Originals judged correctly, by model and usage.",
    originals_table,
    _without_variants,
    originals_numbers,
)


def _table(numbers: pd.DataFrame, inputs: DisplayInputs, layout: Layout) -> TableContent:
    """Lay out a result table.

    The printed rows come first, in printed order, followed by our additional rows. If the table
    shows only the models of this run, the rows have the order of the configuration. Columns are
    repeated for each language. Languages that do not fit side by side are placed below each other
    (see `_Block`).
    """
    metrics = load_records(inputs.metrics, JamMetrics)
    runs = by_run(metrics)
    languages = languages_of([*runs, *(key_of(run.keys) for run in inputs.runs)])
    result_rows = _result_rows(numbers, inputs, layout.printed, languages)
    first_block, *other_blocks = _blocks(languages, layout.columns)
    groups = _groups(first_block, result_rows, runs)
    for block in other_blocks:
        groups_of_block = _groups(block, result_rows, runs)
        if groups_of_block:
            # The languages of a later block are shown above its first group.
            groups_of_block[0] = replace(groups_of_block[0], heads=block.heads)
        groups += groups_of_block
    # All runs in a language have the same originals and variants.
    total_by_language = {item.language: layout.total_text(item) for item in metrics}
    totals = ", ".join(
        f"{total} in {get_language(language).label}"
        for language, total in total_by_language.items()
    )
    of_totals = f" (of {totals})" if totals else ""
    return TableContent(
        heads=first_block.heads,
        groups=tuple(groups),
        caption=layout.caption.format(*layout.symbols.keys(), of=of_totals),
        caption_latex=layout.caption.format(*layout.symbols.values(), of=of_totals),
        notes=_notes(numbers, metrics, inputs, layout),
    )


@dataclass(frozen=True)
class _ResultRow:
    """A row of a result table: a setting and a model, with numbers by language and measure."""

    setting: str
    model: ModelDescription
    numbers: dict[str, Mapping[str, Number]] = field(default_factory=dict)

    @property
    def section(self) -> str:
        """Table section of the row."""
        return group_of(self.setting, self.model)


@dataclass(frozen=True)
class _Block:
    """Languages side by side in a table, and the columns that are repeated for each language.

    `padding` is the number of empty columns that make a block as wide as the block above it.
    """

    languages: Sequence[str]
    columns: Sequence[Column]
    padding: int = 0

    @property
    def heads(self) -> tuple[tuple[Head, ...], ...]:
        """Two header rows: the languages, and the columns of each language."""
        labels = [get_language(language).label for language in self.languages]
        upper = headers(["", ""]) + tuple(Head(label, len(self.columns)) for label in labels)
        lower = headers(["Setting", "Model"], list(self.columns) * len(self.languages))
        if self.padding:
            blank = (Head("", self.padding),)
            return upper + blank, lower + blank
        return upper, lower


def _blocks(languages: Sequence[str], columns: Sequence[Column]) -> list[_Block]:
    """Divide languages into blocks, each with as many languages as fit side by side.

    This number is even. Without languages, the result is one empty block.
    """
    languages_per_block = 2 * max(1, _MAX_COLUMNS // (2 * len(columns)))
    blocks = [_Block(languages[:languages_per_block], columns)]
    for start in range(languages_per_block, len(languages), languages_per_block):
        in_block = languages[start : start + languages_per_block]
        missing_languages = languages_per_block - len(in_block)
        blocks.append(_Block(in_block, columns, padding=missing_languages * len(columns)))
    return blocks


def _groups(block: _Block, result_rows: Iterable[_ResultRow], runs: Runs) -> list[Group]:
    """Return the sections of a table that have rows in the languages of a block.

    A block without languages has all sections of the paper, without rows.
    """
    rows_by_section: dict[str, list[Row]] = {section: [] for section in GROUPS}
    for result_row in result_rows:
        if any(language in result_row.numbers for language in block.languages):
            row = _lay_out_row(result_row, block, runs)
            rows_by_section.setdefault(result_row.section, []).append(row)
    return [
        Group(tuple(rows), title_of(section))
        for section, rows in rows_by_section.items()
        if rows or not block.languages
    ]


def _notes(
    numbers: pd.DataFrame, metrics: Sequence[JamMetrics], inputs: DisplayInputs, layout: Layout
) -> tuple[str, ...]:
    """Return the notes below a result table."""
    notes = [f"±: standard deviation over seeds (ddof 1). {PROMPTS}"]
    if layout.printed in inputs.files and any(item.dataset_is_released for item in metrics):
        notes.append(JUDGED)
        notes += _single_seed_ranges(numbers, layout.columns)
    notes += layout.remarks
    notes += notes_on(metrics, inputs)
    return tuple(notes)


def _result_rows(
    numbers: pd.DataFrame, inputs: DisplayInputs, printed: str, languages: Sequence[str]
) -> list[_ResultRow]:
    """Return the rows of a result table: the printed rows in printed order, then our other rows.

    Args:
        numbers: Frame of numbers.
        inputs: Inputs of the table.
        printed: Name in published/ of the printed table.
        languages: Languages of the table.
    """
    numbers_by_run = {RunKey(*key): row for key, row in rows_of(numbers, RunKey._fields).items()}
    models = {model.name: model for model in inputs.row_models()}
    keys = [key for key in numbers_by_run if key.model in models and key.language in languages]
    printed_position: dict[RunKey, int] = {}
    if inputs.rows == "paper":
        printed_position = {key: place for place, key in enumerate(printed_runs(inputs, printed))}
    else:
        own_rows = _own_rows(numbers_by_run, inputs)
        keys = [key for key in keys if (key.setting, key.model) in own_rows]
    model_position = {name: place for place, name in enumerate(models)}
    # Runs that are not printed come last, in the order of their models.
    keys.sort(
        key=lambda key: (
            printed_position.get(key, len(printed_position)),
            model_position[key.model],
        )
    )
    rows: dict[tuple[str, str], _ResultRow] = {}
    for key in keys:
        row = rows.setdefault((key.setting, key.model), _ResultRow(key.setting, models[key.model]))
        row.numbers[key.language] = numbers_by_run[key]
    return list(rows.values())


def _own_rows(
    numbers_by_run: Mapping[RunKey, Mapping[str, Number]], inputs: DisplayInputs
) -> set[tuple[str, str]]:
    """Return the setting and model of each run that is configured or has metric files."""
    configured = {key_of(run.keys) for run in inputs.runs}
    own_rows = set()
    for key, numbers_of_run in numbers_by_run.items():
        has_files = any(number.files for number in numbers_of_run.values())
        if has_files or key in configured:
            own_rows.add((key.setting, key.model))
    return own_rows


def _lay_out_row(row: _ResultRow, block: _Block, runs: Runs) -> Row:
    """Lay out the cells of a result row for the languages of a block.

    If the model was not run in any language, the row states the reason for the first language.
    """
    seeds_by_language = {
        language: runs.get(RunKey(row.setting, row.model.name, language), [])
        for language in sorted(row.numbers)
    }
    reason = ""
    if not any(seeds_by_language.values()):
        first_language = min(row.numbers)
        # The reason of the first number stands for all numbers of the run.
        first_number, *_ = row.numbers[first_language].values()
        reason = first_number.missing
    cells = []
    for language in block.languages:
        numbers_of_language = row.numbers.get(language, {})
        cells += [column.cell(numbers_of_language) for column in block.columns]
    cells += [Cell(text=" ")] * block.padding
    label = label_with_unreadable_by_language(row.model.label, seeds_by_language)
    return Row((label,), tuple(cells), reason)


def _single_seed_ranges(numbers: pd.DataFrame, columns: Sequence[Column]) -> list[str]:
    """Return a note on how wide sampling ranges are if the paper prints a single seed.

    The note states the largest half-width by language and column. There is no note if no number
    from a single printed seed is compared.
    """
    half_widths: dict[str, dict[str, float]] = defaultdict(dict)
    for numbers_of_run in rows_of(numbers, RunKey._fields).values():
        for column in columns:
            number = numbers_of_run.get(column.measure)
            has_deviation = f"{column.measure}{DEVIATION}" in numbers_of_run
            if number is None or number.verdict not in COMPARED or has_deviation:
                continue
            if number.range_low is not None and number.range_high is not None:
                half_widths_of_language = half_widths[get_language(number.language).label]
                half_width = (number.range_high - number.range_low) / 2
                symbol = column.header.partition(" ")[0]  # such as ND_M of "ND_M (%) ↓"
                largest = max(half_widths_of_language.get(symbol, 0.0), half_width)
                half_widths_of_language[symbol] = largest
    if not half_widths:
        return []
    ranges = []
    for language, half_widths_of_language in sorted(half_widths.items()):
        by_column = ", ".join(
            f"{symbol} ±{half_width:.1f}" for symbol, half_width in half_widths_of_language.items()
        )
        ranges.append(f"{language} {by_column}")
    return [f"For a printed single seed, that range is wide: {'; '.join(ranges)}."]


def group_of(setting: str, model: ModelDescription) -> str:
    """Return the name of the table section (see `GROUPS`) that contains a run."""
    return "reasoning" if model.reasoning and setting == "zero_shot" else setting
