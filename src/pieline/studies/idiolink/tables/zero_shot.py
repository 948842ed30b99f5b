"""Tables of zero-shot results (Table 2), BM25 (appendix E) and index compositions."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from pieline.core.conditions import Measured, data_is_explained
from pieline.reporting.columns import (
    Column,
    Source,
    bounds,
    cell,
    headers,
    mark_best,
    records_of,
    row,
    sources,
)
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.printed import read_published, rounded
from pieline.reporting.tables import Group, Head, Row, TableContent
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.reference import (
    published_name,
    read_released,
    released_score,
)

METRICS = {"r_precision": "R-Precision", "ndcg_at_10": "nDCG@10"}
COLUMNS = [
    (metric, mode)
    for modes in (QUERY_MODES[:2], QUERY_MODES[2:])
    for metric in METRICS
    for mode in modes
]
"""Metric and query mode of each column in Table 2."""

COMPOSITION_LABELS = {
    "full": "full",
    "lit_sim_sense": "without idiomatic",
    "lit_idiom": "literal + idiomatic",
}
BM25_TOLERANCE = 0.15
"""Tolerance for BM25, in points. For 143 span queries, the top 100 includes documents with score
zero, and the paper's order of ties is unknown.
"""

UNKNOWN = "unknown: the metric needs more documents than are kept per query"
"""Reason for a missing score (see `RankingScores`)."""
UNTUNED = "Without a validation split, k1 and b are fixed, not tuned."
UNKNOWN_NOTE = f"Missing scores are {UNKNOWN}."
RELEASED_INPUTS_NOTE = (
    "Queries and documents are written as in the released code (idiolink.inputs: released)."
)
NOT_RELEASED = "sample data, not the released IdioLink"
MARKS = (
    "The best of our results in each column is bold; ↑ and ↓ mark an increase or decrease against"
    " the sentence embedding of the same setting."
)
"""Caption text that explains the marks in Tables 2 and 5."""


def obstacles_of(*measured: Measured) -> list[str]:
    """Return why numbers are not comparable with printed ones: data first, then settings."""
    data = [] if all(map(data_is_explained, measured)) else [NOT_RELEASED]
    settings = (reason for item in measured for reason in item.conditions.deviations)
    return [*data, *dict.fromkeys(settings)]


def notes_on(measured: Iterable[Measured]) -> tuple[str, ...]:
    """Return notes on the data, the inputs and the missing scores of a table or figure."""
    records = list(measured)
    inputs = [item.conditions.settings.get("inputs") for item in records]
    ranked = [item for item in records if isinstance(item, IdiolinkMetrics)]
    unknown = any(score_pct(item, metric) is None for item in ranked for metric in METRICS)
    notes = {
        SAMPLE_NOTE: not all(map(data_is_explained, records)),
        RELEASED_INPUTS_NOTE: "released" in inputs,
        UNKNOWN_NOTE: unknown,
    }
    return tuple(note for note, holds in notes.items() if holds)


def score_pct(metrics: IdiolinkMetrics | None, metric: str) -> float | None:
    """Return the overall score in percent, or None if there is no run or no known score."""
    value = None if metrics is None else getattr(metrics.overall, metric)
    return None if value is None else 100 * float(value)


SCORES = {
    metric: Column[IdiolinkMetrics](
        f"{metric}_pct", label, partial(score_pct, metric=metric), best="highest", unknown=UNKNOWN
    )
    for metric, label in METRICS.items()
}


def scores_table(
    labels: tuple[str, ...],
    groups: Mapping[str, Iterable[Row]],
    caption: str,
    notes: tuple[str, ...],
) -> TableContent:
    """Build Table 2 or 5 from rows with a score for each of `COLUMNS`, by group title."""
    blank = Head("", span=len(labels))
    scores = [Head(label, span=2) for label in METRICS.values()]
    settings = [Head(f"{what} instructions", 2 * len(METRICS)) for what in ("without", "with")]
    modes = [Head(mode) for mode in ("sentence", "span")] * 2 * len(METRICS)
    content = TableContent(
        heads=((blank, *settings), (blank, *scores, *scores), (*map(Head, labels), *modes)),
        groups=tuple(
            Group(members, title) for title, rows in groups.items() if (members := tuple(rows))
        ),
        caption=f"{caption} {MARKS}",
        notes=notes,
    )
    return mark_best(content, [SCORES[metric] for metric, _ in COLUMNS])


def with_arrows(row: Row) -> Row:
    """Mark each span score as above or below the sentence score, rounded to two decimals."""
    cells = list(row.cells)
    for place in range(1, len(cells), 2):
        before, after = (rounded(item.ours, 2) for item in cells[place - 1 : place + 1])
        if before and after and before != after:
            up = float(after) > float(before)
            cells[place] = replace(cells[place], mark="up" if up else "down")
    return replace(row, cells=tuple(cells))


def ordered_models(inputs: DisplayInputs, printed: Iterable[str]) -> list[ModelDescription]:
    """Return the models that have rows, in order.

    The order is that of the printed names, with models that are not in the paper last. If only this
    run's models have rows, it is that of the configuration.
    """
    models = list(inputs.row_models())
    if inputs.rows == "run":
        return models
    places = {name: place for place, name in enumerate(dict.fromkeys(printed))}
    return sorted(models, key=lambda model: places.get(model.published_as or "", len(places)))


def zero_shot(inputs: DisplayInputs) -> TableContent:
    """Build Table 2: R-Precision and nDCG@10 (percent) in the query modes, by group of models.

    Models that are not in the paper form a third group. If only this run's models have rows, there
    are no groups. The CSV also has the intervals, and the scores of the authors' released run for
    the same models and modes.
    """
    printed = read_published(inputs.files["published"], ["model", "query_mode"])
    runs = sources(inputs, IdiolinkMetrics, ["model", "query_mode"], obstacles_of)
    released = read_released(inputs.files["released"]) if "released" in inputs.files else {}
    names = {model.name: published_name(model) for model in inputs.models}

    def details(source: Source[IdiolinkMetrics], metric: str) -> dict[str, str]:
        """Return the columns of the interval and, if there is one, of the released score."""
        columns = _interval(source, metric)
        if not released or not source.records:
            return columns
        (item,) = source.records
        theirs = released_score(
            released,
            item,
            names[item.model],
            scope="overall",
            metric=metric,
            obstacles=source.obstacles,
        )
        return columns | (theirs.columns() if theirs else {})

    columns = {
        metric: replace(
            column,
            tolerance=partial(_tolerance, metric=metric),
            details=partial(details, metric=metric),
        )
        for metric, column in SCORES.items()
    }

    def source(model: ModelDescription, mode: str) -> Source[IdiolinkMetrics]:
        of_predictions = model.kind == "predictions"
        usual = "no such run" if of_predictions else "idiolink.query_modes does not name it"
        missing = Source[IdiolinkMetrics](
            {"model": model.name, "query_mode": mode},
            not_run=inputs.why_not(model.name, mode) or usual,
        )
        in_paper = printed.get((model.published_as or "", mode), {})
        return replace(runs.get((model.name, mode), missing), printed=in_paper)

    groups: dict[str, list[Row]] = {"No-Instruct": [], "Instruction": [], "Not in the paper": []}
    grouped = inputs.rows == "paper"
    for model in ordered_models(inputs, (name for name, _ in printed)):
        kind = "Instruction" if model.trained_with_instructions else "No-Instruct"
        title = kind if model.published_as else "Not in the paper"
        scores = row(
            (model.label, model.parameters or "–"),
            [(columns[metric], source(model, mode)) for metric, mode in COLUMNS],
            reason=inputs.not_run.get(model.name, ""),
        )
        groups.setdefault(title if grouped else "", []).append(with_arrows(scores))
    metrics = records_of(runs)
    return scores_table(
        ("", "Model", "Param") if grouped else ("Model", "Param"),
        groups,
        "Zero-shot results on IdioLink in percent.",
        notes_on(metrics),
    )


def _all_rows(study: ConfiguredStudy) -> DisplayInputs:
    rows = given.models_of_kinds(study, "embedder", *given.OWN_RANKERS, "predictions")
    metrics = given.zero_shot(study, "full", rows)
    inputs = given.with_paper(study, metrics, rows, study.settings.models)
    return inputs.with_files(**given.released_run(study))


ZERO_SHOT_TABLE = Table(
    "idiolink_zero_shot",
    "Table 2",
    "Zero-shot retrieval in four query modes, in percent.",
    zero_shot,
    _all_rows,
    printed="idiolink_table2",
)


def _tolerance(source: Source[IdiolinkMetrics], metric: str) -> float:
    """Return the tolerance of a cell in Table 2, in points.

    Without instructions, the protocol is fully known, so the tolerance is zero, or 0.05 for numbers
    printed with one decimal. With instructions, the paper's exact text is unknown, so the tolerance
    is 0.05.
    """
    printed = source.printed.get(f"{metric}_pct")
    to_one_decimal = printed is not None and round(printed, 1) == printed
    with_instructions = source.key["query_mode"].startswith("instruction")
    return 0.05 if to_one_decimal or with_instructions else 0.0


def _interval(source: Source[IdiolinkMetrics], metric: str) -> dict[str, str]:
    return bounds(source.records[0].intervals.get(metric) if source.records else None)


BM25 = (
    Column[IdiolinkMetrics](
        "k1", "k1", lambda item: item.tuning.chosen.k1 if item.tuning else None, latex="$k_1$"
    ),
    Column[IdiolinkMetrics](
        "b", "b", lambda item: item.tuning.chosen.b if item.tuning else None, latex="$b$"
    ),
    *(replace(column, tolerance=lambda _: BM25_TOLERANCE) for column in SCORES.values()),
)


def bm25(inputs: DisplayInputs) -> TableContent:
    """Build the table of appendix E.2: tuned k1 and b, and scores (percent) of BM25."""
    printed = read_published(inputs.files["published"], ["query_mode"])
    runs = sources(inputs, IdiolinkMetrics, ["model", "query_mode"], obstacles_of)
    rows = []
    for (_, mode), source in runs.items():
        beside = replace(source, printed=printed.get((mode,), {}))
        rows.append(row((mode,), [(column, beside) for column in BM25]))
    metrics = records_of(runs)
    return TableContent(
        heads=(headers(["Query"], BM25),),
        groups=(Group(tuple(rows)),),
        caption="BM25 on IdioLink in percent; k1 and b chosen on the validation split by nDCG@10.",
        caption_latex="BM25 on IdioLink in percent; $k_1$ and $b$ chosen on the validation split"
        " by nDCG@10.",
        notes=(
            *([UNTUNED] if any(item.tuning and not item.tuning.grid for item in metrics) else []),
            *notes_on(metrics),
        ),
        wide=False,
    )


def _of_bm25(study: ConfiguredStudy) -> DisplayInputs | None:
    return given.shown(study, given.zero_shot(study, "full", given.models_of_kinds(study, "bm25")))


BM25_TABLE = Table(
    "idiolink_bm25",
    "Appendix E",
    "BM25 by sentence and by span.",
    bm25,
    _of_bm25,
    printed="idiolink_bm25",
)


def ablation(inputs: DisplayInputs) -> TableContent:
    """Build the ablation table: both metrics (percent) by model, mode and index composition.

    The table is not in the paper.
    """
    keys = ("model", "query_mode", "composition")
    runs = sources(inputs, IdiolinkMetrics, keys, obstacles_of)
    compositions = [name for name in COMPOSITION_LABELS if any(key[2] == name for key in runs)]
    columns = [replace(column, details=_tuned_values) for column in SCORES.values()]
    groups = [
        Group(
            tuple(
                Row(
                    (model.label, mode_label(mode)),
                    tuple(
                        cell(column, runs[model.name, mode, composition])
                        for column in columns
                        for composition in compositions
                    ),
                )
                for mode in QUERY_MODES
                if all((model.name, mode, composition) in runs for composition in compositions)
            )
        )
        for model in inputs.models
    ]
    metrics = records_of(runs)
    labels = [Head(COMPOSITION_LABELS[name]) for name in compositions] * len(METRICS)
    scores = [Head(label, span=len(compositions)) for label in METRICS.values()]
    return TableContent(
        heads=((Head("", span=2), *scores), (Head("Model"), Head("Query"), *labels)),
        groups=tuple(groups),
        caption="The same queries over several compositions of the index, in percent: all usages,"
        " without the idiomatic documents, and literal and idiomatic documents only.",
        notes=notes_on(metrics),
    )


def _compositions(study: ConfiguredStudy) -> DisplayInputs | None:
    if not {*study.settings.compositions} - {"full"}:
        return None
    models = given.models_of_kinds(study, "bm25", "embedder", *given.OWN_RANKERS)
    return given.shown(study, given.of_compositions(study), models)


ABLATION_TABLE = Table(
    "idiolink_ablation",
    NOT_IN_PAPER,
    "The same queries over an index without some usages, in percent.",
    ablation,
    _compositions,
)


def _tuned_values(source: Source[IdiolinkMetrics]) -> dict[str, str]:
    """Return the columns of k1 and b, which are empty for models other than BM25."""
    tuning = source.records[0].tuning
    chosen = tuning.chosen.model_dump() if tuning else {}
    return {key: f"{chosen[key]:g}" if chosen else "" for key in ("k1", "b")}


def mode_label(mode: str) -> str:
    """Return the label of a query mode, such as `instruction + span`."""
    return mode.replace("_", " + ")
