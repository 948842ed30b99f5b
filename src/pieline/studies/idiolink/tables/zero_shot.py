"""Tables of zero-shot results (Table 2), BM25 (appendix E) and index compositions."""

from collections import Counter
from collections.abc import Iterable, Mapping
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
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink import paths
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
    Column(f"{mode} {metric}", mode.removeprefix("instruction_"))
    for modes in (QUERY_MODES[:2], QUERY_MODES[2:])
    for metric in METRICS
    for mode in modes
]
"""Columns of Tables 2 and 5."""

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


def run_of(item: IdiolinkMetrics) -> dict[str, str]:
    """Return the keys of a run."""
    return paths.keys_of(paths.index_of(item.composition), item.model, item.query_mode, item.seed)


def obstacles_of(*measured: Measured) -> list[str]:
    """Return why numbers are not comparable with printed ones: data first, then settings."""
    reasons: list[str] = []
    if not all(map(data_is_explained, measured)):
        reasons.append(NOT_RELEASED)
    for item in measured:
        reasons += item.conditions.deviations
    return list(dict.fromkeys(reasons))


def released_obstacles(item: IdiolinkMetrics) -> list[str]:
    """Return reasons, besides `obstacles_of`, not to compare a run with the authors' run."""
    tuning = item.tuning
    if not tuning or (tuning.query_mode, tuning.composition) == (item.query_mode, item.composition):
        return []
    return [OTHER_TUNING]


def released_note(item: IdiolinkMetrics) -> str:
    """Return why the scores of a run may differ from those of the authors' run."""
    is_instructed = item.query_mode.startswith("instruction")
    is_other = is_instructed and item.conditions.settings.get("inputs") == "paper"
    return OTHER_TEXT if is_other else ""


def notes_on(measured: Iterable[Measured]) -> tuple[str, ...]:
    """Return notes on the data, the inputs and the missing scores of a table or figure."""
    records = list(measured)
    notes = []
    if not all(map(data_is_explained, records)):
        notes.append(SAMPLE_NOTE)
    if any(item.conditions.settings.get("inputs") == "released" for item in records):
        notes.append(RELEASED_INPUTS_NOTE)
    if any(isinstance(item, IdiolinkMetrics) and _lacks_score(item) for item in records):
        notes.append(UNKNOWN_NOTE)
    return tuple(notes)


def _lacks_score(item: IdiolinkMetrics) -> bool:
    return any(getattr(item.overall, name) is None for name in MEASURES)


def of_rankings(
    inputs: DisplayInputs, measures: Iterable[Measure[IdiolinkMetrics]] = SCORES
) -> pd.DataFrame:
    """Return our numbers of every run; by default, the scores over all queries."""
    records = zip(load_records(inputs.metrics, IdiolinkMetrics), inputs.metrics, strict=True)
    return of_runs(
        inputs,
        records,
        list(measures),
        run_of,
        obstacles_of,
        released_obstacles=released_obstacles,
        released_note=released_note,
    )


def scores_table(
    labels: tuple[str, ...],
    groups: Mapping[str, Iterable[Row]],
    caption: str,
    notes: tuple[str, ...],
) -> TableContent:
    """Lay out Table 2 or 5 from rows with `SCORE_COLUMNS`, by group title."""
    blank = Head("", span=len(labels))
    scores = [Head(label, span=2) for label in METRICS.values()]
    settings = [Head(f"{what} instructions", 2 * len(METRICS)) for what in ("without", "with")]
    marked_groups = [Group(tuple(map(with_arrows, rows)), title) for title, rows in groups.items()]
    content = TableContent(
        heads=((blank, *settings), (blank, *scores, *scores), headers(labels, SCORE_COLUMNS)),
        groups=tuple(group for group in marked_groups if group.rows),
        caption=f"{caption} {MARKS}",
        notes=notes,
    )
    return with_best(content)


def with_arrows(row: Row) -> Row:
    """Mark each span score as above or below the sentence score, rounded to two decimals."""
    cells = list(row.cells)
    for place in range(1, len(cells), 2):
        before, after = rounded(cells[place - 1].ours, 2), rounded(cells[place].ours, 2)
        if before and after and before != after:
            up = float(after) > float(before)
            cells[place] = replace(cells[place], mark="up" if up else "down")
    return replace(row, cells=tuple(cells))


def ordered_models(inputs: DisplayInputs, file: str) -> list[ModelDescription]:
    """Return the models that have rows, in the order of a printed table.

    Models that are not in the paper come last. If only this run's models have rows, they have the
    order of the configuration.
    """
    models = inputs.row_models()
    if inputs.rows == "run":
        return models
    places = {name: place for place, (name,) in enumerate(inputs.printed(file, "model"))}
    return sorted(models, key=lambda model: places.get(model.published_as or "", len(places)))


def zero_shot(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 2: R-Precision and nDCG@10 (percent) in the query modes, by group of models.

    Models that are not in the paper form a third group. If only this run's models have rows, there
    are no groups.
    """
    by_model = rows_of(numbers, ("model",), across=("query_mode",))
    groups: dict[str, list[Row]] = {"No-Instruct": [], "Instruction": [], "Not in the paper": []}
    grouped = inputs.rows == "paper"
    for model in ordered_models(inputs, "idiolink_table2"):
        if scores := by_model.get((model.name,)):
            kind = "Instruction" if model.trained_with_instructions else "No-Instruct"
            title = kind if model.published_as else "Not in the paper"
            labels = (model.label, model.parameters or "–")
            rows = groups.setdefault(title if grouped else "", [])
            rows.append(number_row(labels, SCORE_COLUMNS, scores))
    return scores_table(
        ("", "Model", "Param") if grouped else ("Model", "Param"),
        groups,
        "Zero-shot results on IdioLink in percent.",
        notes_on(load_records(inputs.metrics, IdiolinkMetrics)),
    )


def _all_rows(study: ConfiguredStudy) -> DisplayInputs:
    models = given.of_kinds(
        study, study.settings.models, "embedder", *given.OWN_RANKERS, "predictions"
    )
    runs = given.zero_shot(study, models, made=False)
    inputs = study.display_inputs(runs, "embedder", models=models)
    inputs = given.with_skipped_modes(study, inputs, models)
    return inputs.with_files(**given.released_run(study))


_NO_MODE = "idiolink.query_modes does not name it"
"""Why a printed number of a configured model is missing."""
ZERO_SHOT_TABLE = Table(
    "idiolink_zero_shot",
    "Table 2",
    "Zero-shot retrieval in four query modes, in percent.",
    zero_shot,
    _all_rows,
    of_rankings,
    printed=("idiolink_table2",),
    otherwise=_NO_MODE,
)


def bm25_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of appendix E.2: tuned k1 and b, and scores."""
    return of_rankings(inputs, [*BM25, *SCORES])


def bm25(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of appendix E.2: tuned k1 and b, and scores (percent) of BM25."""
    columns = [Column("k1", "k1", latex="$k_1$"), Column("b", "b", latex="$b$")]
    columns += [Column(metric, label) for metric, label in METRICS.items()]
    metrics = load_records(inputs.metrics, IdiolinkMetrics)
    notes = notes_on(metrics)
    if any(item.tuning and not item.tuning.grid for item in metrics):
        notes = (UNTUNED, *notes)
    by_run = rows_of(numbers, ("model", "query_mode"))
    rows = [number_row((mode,), columns, scores) for (_, mode), scores in by_run.items()]
    return TableContent(
        heads=(headers(["Query"], columns),),
        groups=(Group(tuple(rows)),),
        caption="BM25 on IdioLink in percent; k1 and b chosen on the validation split by nDCG@10.",
        caption_latex="BM25 on IdioLink in percent; $k_1$ and $b$ chosen on the validation split"
        " by nDCG@10.",
        notes=notes,
        wide=False,
    )


def _of_bm25(study: ConfiguredStudy) -> DisplayInputs | None:
    models = given.of_kinds(study, given.ranked(study), "bm25")
    return given.shown(study, given.zero_shot(study, models), models)


BM25_TABLE = Table(
    "idiolink_bm25",
    "Appendix E",
    "BM25 by sentence and by span.",
    bm25,
    _of_bm25,
    bm25_numbers,
    printed=("idiolink_bm25",),
    otherwise=_NO_MODE,
)


def ablation_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers by index composition: scores, and k1 and b of BM25."""
    numbers = of_rankings(inputs, [*SCORES, *BM25])
    is_parameter = numbers["measure"].isin([measure.name for measure in BM25])
    return numbers[~is_parameter | numbers["ours"].notna()]


def ablation(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the ablation table: both metrics (percent) by model, mode and index composition.

    The table is not in the paper.
    """
    ranked_compositions = set(numbers["composition"])
    compositions = [name for name in COMPOSITION_LABELS if name in ranked_compositions]
    columns = [
        Column(f"{composition} {metric}", COMPOSITION_LABELS[composition])
        for metric, composition in product(METRICS, compositions)
    ]
    by_run = rows_of(numbers, ("model", "query_mode"), across=("composition",))
    groups = []
    for model in inputs.models:
        rows = []
        for mode in QUERY_MODES:
            scores = by_run.get((model.name, mode), {})
            if all(column.measure in scores for column in columns):
                rows.append(number_row((model.label, mode_label(mode)), columns, scores))
        groups.append(Group(tuple(rows)))
    heads = [Head(label, span=len(compositions)) for label in METRICS.values()]
    return TableContent(
        heads=((Head("", span=2), *heads), headers(["Model", "Query"], columns)),
        groups=tuple(groups),
        caption="The same queries over several compositions of the index, in percent: all usages,"
        " without the idiomatic documents, and literal and idiomatic documents only.",
        notes=notes_on(load_records(inputs.metrics, IdiolinkMetrics)),
    )


def _compositions(study: ConfiguredStudy) -> DisplayInputs | None:
    if set(study.settings.compositions) <= {"full"}:
        return None
    ranked = given.ranked(study)
    models = given.of_kinds(study, ranked, "bm25", "embedder", *given.OWN_RANKERS)
    runs = given.zero_shot(study, ranked, *study.settings.compositions)
    return given.shown(study, runs, models)


ABLATION_TABLE = Table(
    "idiolink_ablation",
    NOT_IN_PAPER,
    "The same queries over an index without some usages, in percent.",
    ablation,
    _compositions,
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
"""Labels of the authors' run's scopes: all queries, those of one usage, and all queries with the
documents of their subject as relevant."""


def released_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our scores for the same runs and scopes as in the authors' run."""
    numbers = OurNumbers(inputs.study)
    records = load_records(inputs.metrics, IdiolinkMetrics)
    for item, path in zip(records, inputs.metrics, strict=True):
        for scope in list(_SCOPES)[1:]:  # `of_rankings` has the overall scores
            scores = item.same_subject if scope == "by_subject" else item.by_usage.get(scope)
            numbers.add(
                {**run_of(item), "scope": scope},
                RANKING,
                scores,
                files=[path],
                obstacles=obstacles_of(item),
                released_obstacles=released_obstacles(item),
                released_note=released_note(item),
            )
    ours = pd.concat([of_rankings(inputs), numbers.frame()])
    theirs = read_released(inputs.files, inputs.names())
    assert theirs is not None
    keys = list(KEYS)
    return ours.merge(theirs[keys], on=keys)


def released_run(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out our scores, the printed ones and those of the authors' run.

    There is a row for each model, query mode and composition that both runs have.
    """
    by_run = rows_of(numbers, ("model", "composition", "query_mode"), across=("scope",))
    groups = []
    for model in inputs.models:
        rows = []
        for composition, mode in product(COMPOSITION_LABELS, QUERY_MODES):
            if scores := by_run.get((model.name, composition, mode)):
                labels = (model.label, COMPOSITION_LABELS[composition], mode_label(mode))
                names = [f"{scope} {metric}".strip() for metric, scope in product(METRICS, _SCOPES)]
                rows.append(Row(labels, tuple(_cell(scores.get(name)) for name in names)))
        groups.append(Group(tuple(rows)))
    heads = [Head(label, span=len(_SCOPES)) for label in METRICS.values()]
    scopes = list(_SCOPES.values()) * len(METRICS)
    notes = _counted(numbers)
    notes += notes_on(load_records(inputs.metrics, IdiolinkMetrics))
    return TableContent(
        heads=((Head("", span=3), *heads), headers(["Model", "Index", "Query", *scopes])),
        groups=tuple(group for group in groups if group.rows),
        caption="Our scores and, in brackets, those of the authors' run, in percent. The"
        " paper does not print the latter; scores in parentheses are printed in its Table 2.",
        notes=tuple(notes),
        long=True,
    )


def _cell(number: Number | None) -> Cell:
    """Return a cell with our score, the printed one in parentheses and the released in brackets."""
    if number is None:
        return Cell()
    text = rounded(number.ours, 2) or "–"
    if number.printed is not None:
        text += f" ({number.printed:g})"
    text += f" [{rounded(number.released, 2)}]"
    return Cell(replace(number, printed=None), text=text)


def _reference(study: ConfiguredStudy) -> DisplayInputs | None:
    reference, ranked = given.released_run(study), given.ranked(study)
    runs = given.zero_shot(study, ranked, *study.settings.compositions)
    inputs = given.shown(study, runs, ranked)
    return inputs.with_files(**reference) if inputs and reference else None


RELEASED_TABLE = Table(
    "idiolink_released",
    NOT_IN_PAPER,
    "Our scores and those of the authors' run, in percent.",
    released_run,
    _reference,
    released_numbers,
    printed=("idiolink_table2",),
)


def _counted(numbers: pd.DataFrame) -> list[str]:
    """Return a note with the number of equal scores by query mode."""
    counts: dict[str, Counter[str]] = {}
    judged = numbers[numbers["released_verdict"] != ""]
    for mode, verdict in zip(judged["query_mode"], judged["released_verdict"], strict=True):
        counts.setdefault(mode, Counter())[verdict] += 1
    if not counts:
        return []
    parts = [
        f"{mode_label(mode)}: {verdicts[EQUAL]} of {pluralize(verdicts.total(), 'score')}"
        for mode, verdicts in counts.items()
    ]
    return [f"Equal to the authors' run at four digits (as fractions): {'; '.join(parts)}."]
