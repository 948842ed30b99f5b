"""Build the tables of zero-shot results (Table 2), BM25 (appendix E) and index compositions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import pandas as pd

from pieline.core.conditions import Measured, data_is_explained
from pieline.core.errors import pluralize
from pieline.core.measures import Measure
from pieline.core.records import load_records
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.numbers import EQUAL, Number, rows_of
from pieline.reporting.ours import KEYS, OurNumbers, of_runs
from pieline.reporting.printed import rounded
from pieline.reporting.published import read_released
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
from pieline.reporting.tables import mark_best as with_best
from pieline.studies.idiolink import paths
from pieline.studies.idiolink.inputs import (
    OWN_RANKERS,
    authors_run_file,
    inputs_with_metrics,
    models_of_kinds,
    models_to_rank,
    with_skipped_modes,
    zero_shot_runs,
)
from pieline.studies.idiolink.metrics.scores import (
    BM25,
    MEASURES,
    RANKING,
    SCORES,
    UNKNOWN,
    IdiolinkMetrics,
)
from pieline.studies.idiolink.records import QUERY_MODES

METRICS = {"r_precision": "R-Precision", "ndcg_at_10": "nDCG@10"}
SCORE_COLUMNS = [
    Column(f"{instruction}{embedding} {metric}", embedding)
    for instruction in ("", "instruction_")
    for metric in METRICS
    for embedding in ("sentence", "span")
]
"""Columns of Tables 2 and 5: the query modes without and with instructions, by metric."""

COMPOSITION_LABELS = {
    "full": "full",
    "lit_sim_sense": "without idiomatic",
    "lit_idiom": "literal + idiomatic",
}
UNTUNED = "Without a validation split, k1 and b are fixed, not tuned."
UNKNOWN_NOTE = f"Missing scores are {UNKNOWN}."
RELEASED_INPUTS_NOTE = (
    "Queries and documents are written as in the authors' code (idiolink.inputs: released)."
)
NOT_RELEASED = "sample data, not the public IdioLink"
OTHER_TEXT = (
    "the authors' run writes queries with instructions differently (idiolink.inputs: released)"
)
OTHER_TUNING = "k1 and b of other queries or of another index than in the authors' run"
MARKS = (
    "The best of our results in each column is bold; ↑ and ↓ mark an increase or decrease against"
    " the sentence embedding of the same setting."
)
"""Caption text that explains the marks in Tables 2 and 5."""


def run_of(metrics: IdiolinkMetrics) -> dict[str, str]:
    """Return the keys that identify the run of `metrics` in the frame of numbers."""
    index = paths.index_of(metrics.composition)
    return paths.keys_of(index, metrics.model, metrics.query_mode, metrics.seed)


def obstacles_of(*records: Measured) -> list[str]:
    """Return the reasons why numbers from these records are not comparable with printed numbers."""
    reasons: list[str] = []
    if not all(data_is_explained(record) for record in records):
        reasons.append(NOT_RELEASED)
    for record in records:
        reasons += record.conditions.deviations
    return list(dict.fromkeys(reasons))


def released_obstacles(metrics: IdiolinkMetrics) -> list[str]:
    """Return the reasons why a run is not comparable with the authors' run.

    The reasons that `obstacles_of` returns are not included.
    In the authors' run, k1 and b were tuned for each query mode and index composition.
    """
    tuning = metrics.tuning
    if tuning is None:
        return []
    is_tuned_for_run = (
        tuning.query_mode == metrics.query_mode and tuning.composition == metrics.composition
    )
    return [] if is_tuned_for_run else [OTHER_TUNING]


def released_note(metrics: IdiolinkMetrics) -> str:
    """Return why a run's scores may differ from the authors' scores; empty if none is known."""
    has_instructions = metrics.query_mode.startswith("instruction")
    if has_instructions and metrics.conditions.settings.get("inputs") == "paper":
        return OTHER_TEXT
    return ""


def notes_on(measured: Iterable[Measured]) -> tuple[str, ...]:
    """Return the notes of a table or figure about its data, input formats and unknown scores."""
    records = list(measured)
    notes = []
    if not all(data_is_explained(record) for record in records):
        notes.append(SAMPLE_NOTE)
    if any(record.conditions.settings.get("inputs") == "released" for record in records):
        notes.append(RELEASED_INPUTS_NOTE)
    if any(isinstance(record, IdiolinkMetrics) and _lacks_score(record) for record in records):
        notes.append(UNKNOWN_NOTE)
    return tuple(notes)


def _lacks_score(metrics: IdiolinkMetrics) -> bool:
    return any(getattr(metrics.overall, metric) is None for metric in MEASURES)


def of_rankings(
    inputs: DisplayInputs, measures: Iterable[Measure[IdiolinkMetrics]] = SCORES
) -> pd.DataFrame:
    """Return the values of measures in all runs, as a frame of numbers.

    The default measures are R-Precision and nDCG@10 over all queries.
    """
    records = load_records(inputs.metrics, IdiolinkMetrics)
    return of_runs(
        inputs,
        zip(records, inputs.metrics, strict=True),
        list(measures),
        run_of,
        obstacles_of,
        released_obstacles=released_obstacles,
        released_note=released_note,
    )


def scores_table(
    labels: tuple[str, ...],
    groups: Mapping[str, Sequence[Row]],
    caption: str,
    notes: tuple[str, ...],
) -> TableContent:
    """Lay out Table 2 or Table 5.

    Args:
        labels: Headers of the label columns.
        groups: Rows with `SCORE_COLUMNS`, by group title.
        caption: Caption, to which an explanation of the marks is added.
        notes: Notes below the table.
    """
    blank = Head("", span=len(labels))
    modes_per_metric = 2  # by sentence and by span
    metric_heads = [Head(label, span=modes_per_metric) for label in METRICS.values()]
    instruction_heads = [
        Head(f"{which} instructions", span=modes_per_metric * len(METRICS))
        for which in ("without", "with")
    ]
    content = TableContent(
        heads=(
            (blank, *instruction_heads),
            (blank, *metric_heads, *metric_heads),
            headers(labels, SCORE_COLUMNS),
        ),
        groups=tuple(
            Group(tuple(with_arrows(row) for row in rows), title)
            for title, rows in groups.items()
            if rows
        ),
        caption=f"{caption} {MARKS}",
        notes=notes,
    )
    return with_best(content)


def with_arrows(row: Row) -> Row:
    """Return a row in which each span score is marked as above or below the sentence score.

    The row has `SCORE_COLUMNS`. The scores are compared after rounding to two decimals.
    """
    # `SCORE_COLUMNS` alternate between sentence and span scores.
    sentence_cells, span_cells = row.cells[::2], row.cells[1::2]
    cells = []
    for sentence_cell, span_cell in zip(sentence_cells, span_cells, strict=True):
        sentence_score, span_score = rounded(sentence_cell.ours, 2), rounded(span_cell.ours, 2)
        marked_cell = span_cell
        if sentence_score and span_score and sentence_score != span_score:
            is_above = float(span_score) > float(sentence_score)
            marked_cell = replace(span_cell, mark="up" if is_above else "down")
        cells += [sentence_cell, marked_cell]
    return replace(row, cells=tuple(cells))


def ordered_models(inputs: DisplayInputs, file: str) -> list[ModelDescription]:
    """Return the models that have rows, in the order of a printed table.

    Models that are not in the paper come last. If only this run's models have rows, they have the
    order of the configuration.

    Args:
        inputs: Inputs of the table.
        file: Name of the file in published/ with the printed table.
    """
    models = inputs.row_models()
    if inputs.rows == "run":
        return models
    printed_models = inputs.printed(file, "model")
    place_in_paper = {paper_name: place for place, (paper_name,) in enumerate(printed_models)}
    last = len(place_in_paper)
    return sorted(models, key=lambda model: place_in_paper.get(model.published_as or "", last))


def zero_shot(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 2: R-Precision and nDCG@10 (percent) in the query modes, by group of models.

    Models that are not in the paper form a third group. If only this run's models have rows, there
    are no groups.
    """
    scores_by_model = rows_of(numbers, ("model",), across=("query_mode",))
    groups: dict[str, list[Row]] = {"No-Instruct": [], "Instruction": [], "Not in the paper": []}
    has_groups = inputs.rows == "paper"
    for model in ordered_models(inputs, "idiolink_table2"):
        scores = scores_by_model.get((model.name,))
        if not scores:
            continue
        if not has_groups:
            title = ""
        elif not model.published_as:
            title = "Not in the paper"
        else:
            title = "Instruction" if model.trained_with_instructions else "No-Instruct"
        labels = (model.label, model.parameters or "–")
        groups.setdefault(title, []).append(number_row(labels, SCORE_COLUMNS, scores))
    return scores_table(
        ("", "Model", "Param") if has_groups else ("Model", "Param"),
        groups,
        "Zero-shot results on IdioLink in percent.",
        notes_on(load_records(inputs.metrics, IdiolinkMetrics)),
    )


def _zero_shot_inputs(study: ConfiguredStudy) -> DisplayInputs:
    """Return inputs with the zero-shot runs of all models but BM25, including skipped models."""
    models = models_of_kinds(study, study.settings.models, "embedder", *OWN_RANKERS, "predictions")
    runs = zero_shot_runs(study, models, include_impossible=True)
    inputs = study.display_inputs(runs, "embedder", models=models)
    inputs = with_skipped_modes(study, inputs, models)
    return inputs.with_files(**authors_run_file(study))


_NO_MODE = "idiolink.query_modes does not name it"
"""Reason why a printed number of a configured model is missing in a table."""
ZERO_SHOT_TABLE = Table(
    "idiolink_zero_shot",
    "Table 2",
    "Zero-shot retrieval in four query modes, in percent.",
    zero_shot,
    _zero_shot_inputs,
    of_rankings,
    printed=("idiolink_table2",),
    otherwise=_NO_MODE,
)


def bm25_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers for appendix E.2: tuned k1 and b, and scores."""
    return of_rankings(inputs, [*BM25, *SCORES])


def bm25(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of appendix E.2: tuned k1 and b, and scores (percent) of BM25."""
    columns = [Column("k1", "k1", latex="$k_1$"), Column("b", "b", latex="$b$")]
    columns += [Column(metric, label) for metric, label in METRICS.items()]
    numbers_by_run = rows_of(numbers, ("model", "query_mode"))
    rows = [
        number_row((mode,), columns, run_numbers)
        for (_model, mode), run_numbers in numbers_by_run.items()
    ]
    metrics = load_records(inputs.metrics, IdiolinkMetrics)
    notes = notes_on(metrics)
    has_fixed_parameters = any(record.tuning and not record.tuning.grid for record in metrics)
    if has_fixed_parameters:
        notes = (UNTUNED, *notes)
    return TableContent(
        heads=(headers(["Query"], columns),),
        groups=(Group(tuple(rows)),),
        caption="BM25 on IdioLink in percent; k1 and b chosen on the validation split by nDCG@10.",
        caption_latex="BM25 on IdioLink in percent; $k_1$ and $b$ chosen on the validation split"
        " by nDCG@10.",
        notes=notes,
        wide=False,
    )


def _bm25_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    models = models_of_kinds(study, models_to_rank(study), "bm25")
    return inputs_with_metrics(study, zero_shot_runs(study, models), models)


BM25_TABLE = Table(
    "idiolink_bm25",
    "Appendix E",
    "BM25 by sentence and by span.",
    bm25,
    _bm25_inputs,
    bm25_numbers,
    printed=("idiolink_bm25",),
    otherwise=_NO_MODE,
)


def ablation_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return all scores by index composition, and for BM25 also the tuned k1 and b."""
    numbers = of_rankings(inputs, [*SCORES, *BM25])
    is_parameter = numbers["measure"].isin([measure.name for measure in BM25])
    # Only BM25 has parameters.
    is_missing_parameter = is_parameter & numbers["ours"].isna()
    return numbers[~is_missing_parameter]


def ablation(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the scores (percent) of each model and query mode, by index composition.

    The table is not in the paper.
    """
    ranked_compositions = set(numbers["composition"])
    compositions = [name for name in COMPOSITION_LABELS if name in ranked_compositions]
    columns = [
        Column(f"{composition} {metric}", COMPOSITION_LABELS[composition])
        for metric, composition in product(METRICS, compositions)
    ]
    scores_by_run = rows_of(numbers, ("model", "query_mode"), across=("composition",))
    groups = []
    for model in inputs.models:
        rows = []
        for mode in QUERY_MODES:
            scores = scores_by_run.get((model.name, mode), {})
            has_all_columns = all(column.measure in scores for column in columns)
            if has_all_columns:
                rows.append(number_row((model.label, mode_label(mode)), columns, scores))
        groups.append(Group(tuple(rows)))
    metric_heads = [Head(label, span=len(compositions)) for label in METRICS.values()]
    return TableContent(
        heads=((Head("", span=2), *metric_heads), headers(["Model", "Query"], columns)),
        groups=tuple(groups),
        caption="The same queries over several compositions of the index, in percent: all usages,"
        " without the idiomatic documents, and literal and idiomatic documents only.",
        notes=notes_on(load_records(inputs.metrics, IdiolinkMetrics)),
    )


def _ablation_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the runs on all index compositions; None if only `full` is configured."""
    if set(study.settings.compositions) <= {"full"}:
        return None
    ranked_models = models_to_rank(study)
    runs = zero_shot_runs(study, ranked_models, *study.settings.compositions)
    # External predictions exist only for the full index, so they have no row.
    shown_models = models_of_kinds(study, ranked_models, "bm25", "embedder", *OWN_RANKERS)
    return inputs_with_metrics(study, runs, shown_models)


ABLATION_TABLE = Table(
    "idiolink_ablation",
    NOT_IN_PAPER,
    "The same queries over an index without some usages, in percent.",
    ablation,
    _ablation_inputs,
    ablation_numbers,
)


def mode_label(mode: str) -> str:
    """Return the label of a query mode, such as `instruction + span`."""
    return mode.replace("_", " + ")


_SCOPES = {
    "": "overall",
    "idiomatic": "idiomatic",
    "literal": "literal",
    "by_subject": "same subject",
}
"""Labels of the scopes of the authors' scores.

The scopes are all queries, the queries of one usage, and all queries with the documents of their
subject as relevant.
"""


def released_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our scores for the runs and scopes for which the authors' scores are public."""
    scope_numbers = OurNumbers(inputs.study)
    records = load_records(inputs.metrics, IdiolinkMetrics)
    for metrics, path in zip(records, inputs.metrics, strict=True):
        scores_by_scope = {
            "idiomatic": metrics.by_usage.get("idiomatic"),
            "literal": metrics.by_usage.get("literal"),
            "by_subject": metrics.same_subject,
        }
        for scope, scores in scores_by_scope.items():
            scope_numbers.add(
                {**run_of(metrics), "scope": scope},
                RANKING,
                scores,
                files=[path],
                obstacles=obstacles_of(metrics),
                released_obstacles=released_obstacles(metrics),
                released_note=released_note(metrics),
            )
    overall_numbers = of_rankings(inputs)
    ours = pd.concat([overall_numbers, scope_numbers.frame()])
    theirs = read_released(inputs.files, inputs.names())
    assert theirs is not None  # the inputs of this table contain the authors' scores
    # Keep only the scores of ours that have the same keys as a score of the authors.
    keys = list(KEYS)
    return ours.merge(theirs[keys], on=keys)


def released_run(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out our scores, the printed scores and the authors' scores.

    There is a row for each model, index composition and query mode in `numbers`.
    """
    numbers_by_run = rows_of(numbers, ("model", "composition", "query_mode"), across=("scope",))
    # Metrics over all queries have no scope in their name.
    column_names = [f"{scope} {metric}".strip() for metric, scope in product(METRICS, _SCOPES)]
    groups = []
    for model in inputs.models:
        rows = []
        for composition, mode in product(COMPOSITION_LABELS, QUERY_MODES):
            run_numbers = numbers_by_run.get((model.name, composition, mode))
            if run_numbers:
                labels = (model.label, COMPOSITION_LABELS[composition], mode_label(mode))
                cells = tuple(_cell_of_released(run_numbers.get(name)) for name in column_names)
                rows.append(Row(labels, cells))
        groups.append(Group(tuple(rows)))
    metric_heads = [Head(label, span=len(_SCOPES)) for label in METRICS.values()]
    scope_labels = list(_SCOPES.values()) * len(METRICS)
    notes = _notes_on_agreement(numbers)
    notes += notes_on(load_records(inputs.metrics, IdiolinkMetrics))
    return TableContent(
        heads=(
            (Head("", span=3), *metric_heads),
            headers(["Model", "Index", "Query", *scope_labels]),
        ),
        groups=tuple(group for group in groups if group.rows),
        caption="Our scores and, in brackets, those of the authors' run, in percent. The"
        " paper does not print the latter; scores in parentheses are printed in its Table 2.",
        notes=tuple(notes),
        long=True,
    )


def _cell_of_released(number: Number | None) -> Cell:
    """Return a cell such as `61.24 (61.2) [61.24]`: our, the printed and the authors' score."""
    if number is None:
        return Cell()
    text = rounded(number.ours, 2) or "–"
    if number.printed is not None:
        text += f" ({number.printed:g})"
    text += f" [{rounded(number.released, 2)}]"
    # `text` already contains the printed score.
    return Cell(replace(number, printed=None), text=text)


def _authors_run_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with all zero-shot runs and the authors' scores; None if either is missing."""
    authors_file, models = authors_run_file(study), models_to_rank(study)
    runs = zero_shot_runs(study, models, *study.settings.compositions)
    inputs = inputs_with_metrics(study, runs, models)
    if inputs is None or not authors_file:
        return None
    return inputs.with_files(**authors_file)


RELEASED_TABLE = Table(
    "idiolink_released",
    NOT_IN_PAPER,
    "Our scores and those of the authors' run, in percent.",
    released_run,
    _authors_run_inputs,
    released_numbers,
    printed=("idiolink_table2",),
)


def _notes_on_agreement(numbers: pd.DataFrame) -> list[str]:
    """Return a note with the number of scores that equal the authors' scores, by query mode.

    The result is empty if no score was compared.
    """
    compared = numbers[numbers["released_verdict"] != ""]
    if compared.empty:
        return []
    agreement_by_mode = []
    for mode, verdicts in compared.groupby("query_mode", sort=False)["released_verdict"]:
        equal_count = (verdicts == EQUAL).sum()
        score_count = pluralize(len(verdicts), "score")
        agreement_by_mode.append(f"{mode_label(str(mode))}: {equal_count} of {score_count}")
    agreement = "; ".join(agreement_by_mode)
    return [f"Equal to the authors' run at four digits (as fractions): {agreement}."]
