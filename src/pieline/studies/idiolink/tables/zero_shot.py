"""IdioLink's tables: zero-shot results (Table 2), BM25 (appendix E), index compositions."""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar

from pieline.core.conditions import Measured, data_is_told
from pieline.core.records import load_records
from pieline.reporting.given import Given
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.printed import compare, percent_bounds, read_published, rounded
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent, best_of
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics

METRICS = {"r_precision": "R-Precision", "ndcg_at_10": "nDCG@10"}
QUERY_MODES = ("sentence", "span", "instruction_sentence", "instruction_span")
COLUMNS = [
    (metric, mode)
    for modes in (QUERY_MODES[:2], QUERY_MODES[2:])
    for metric in METRICS
    for mode in modes
]
"""Columns of Table 2: without and with instructions, each metric, sentence beside span."""

COMPOSITION_LABELS = {
    "full": "full",
    "lit_sim_sense": "without idiomatic",
    "lit_idiom": "literal + idiomatic",
}
BM25_TOLERANCE = 0.15
"""Points by which BM25 may differ: 143 span queries reach documents of score zero within the top
100, and the paper's order among equal scores is not known."""

UNKNOWN = "unknown: the metric looks at more documents than are kept for a query"
"""Why a run has no score (see `RankingScores`)."""
UNTUNED = "Without a validation split, k1 and b are set, not chosen."
UNKNOWN_NOTE = f"Scores that are missing are {UNKNOWN}."
RELEASED_INPUTS_NOTE = (
    "Queries and documents are written as in the released code (idiolink.inputs: released)."
)
NOT_RELEASED = "sample data, not the released IdioLink"
MARKS = (
    "The best result in each column is bold; ↑ and ↓ mark an increase or decrease against the"
    " sentence embedding of the same setting."
)
"""What the captions of Tables 2 and 5 say of their cells."""

R = TypeVar("R")
Grid = Mapping[R, Mapping[tuple[str, str], float | None]]
"""Per cent by row, and by metric and query mode."""


def obstacles_of(*measured: Measured) -> list[str]:
    """What keeps numbers from being comparable with the printed ones: data, then settings."""
    data = [] if all(map(data_is_told, measured)) else [NOT_RELEASED]
    settings = (reason for item in measured for reason in item.conditions.deviations)
    return [*data, *dict.fromkeys(settings)]


def notes_on(measured: Iterable[Measured]) -> tuple[str, ...]:
    """What a table or figure says of its data and inputs, and of scores that it lacks."""
    found = list(measured)
    notes: list[str] = []
    if not all(map(data_is_told, found)):
        notes.append(SAMPLE_NOTE)
    if any(item.conditions.settings.get("inputs") == "released" for item in found):
        notes.append(RELEASED_INPUTS_NOTE)
    known = all(
        per_cent(item, metric) is not None
        for item in found
        if isinstance(item, IdiolinkMetrics)
        for metric in METRICS
    )
    return tuple(notes if known else [*notes, UNKNOWN_NOTE])


def per_cent(metrics: IdiolinkMetrics | None, metric: str) -> float | None:
    """The overall score in per cent, or None where it is unknown."""
    value = None if metrics is None else getattr(metrics.overall, metric)
    return None if value is None else 100 * float(value)


def obstacles_of_score(item: IdiolinkMetrics, metric: str) -> list[str]:
    """The same of one score, first of all that it is unknown."""
    unknown = metric in METRICS and per_cent(item, metric) is None
    return [*([UNKNOWN] if unknown else []), *obstacles_of(item)]


def mode_heads(*labels: str) -> tuple[tuple[Head, ...], ...]:
    """The headings of Tables 2 and 5, the last row beginning with these labels."""
    blank = Head("", span=len(labels))
    scores = [Head(label, span=2) for label in METRICS.values()]
    settings = [Head(f"{what} instructions", span=4) for what in ("without", "with")]
    return (
        (blank, *settings),
        (blank, *scores, *scores),
        (*map(Head, labels), *map(Head, ("sentence", "span") * 4)),
    )


def in_printed_order(
    models: Iterable[ModelDescription], printed: Iterable[str]
) -> list[ModelDescription]:
    """Models as the paper lists them, and after them those that it does not have."""
    places = {name: place for place, name in enumerate(dict.fromkeys(printed))}
    return sorted(models, key=lambda model: places.get(model.published_as or "", len(places)))


def zero_shot(given: Given) -> TableContent:
    """Table 2: R-Precision and nDCG@10 (per cent) in four query modes, in two groups of models.

    A third group has the models that the paper does not have. The CSV has the intervals, too.
    """
    printed = read_published(given.files["published"], ["model", "query_mode"])
    metrics = load_records(given.metrics, IdiolinkMetrics)
    found = {
        (item.model, item.query_mode): (item, path)
        for item, path in zip(metrics, given.metrics, strict=True)
    }
    numbers = {
        model.name: {
            (metric, mode): per_cent(found[model.name, mode][0], metric)
            for metric, mode in COLUMNS
            if (model.name, mode) in found
        }
        for model in given.models
    }
    best = best_of_columns(numbers)

    def cell(model: ModelDescription, metric: str, mode: str) -> Cell:
        key = {"model": model.name, "query_mode": mode, "metric": metric}
        value = printed.get((model.published_as or "", mode), {}).get(f"{metric}_pct")
        measured = found.get((model.name, mode))
        interval = measured[0].intervals.get(metric) if measured else None
        key["low"], key["high"] = percent_bounds(interval, 2) or ("", "")
        if measured:
            obstacles = obstacles_of_score(measured[0], metric)
        else:
            elsewhere = model.kind == "predictions"
            usual = "no such run" if elsewhere else "idiolink.query_modes does not name it"
            reason = given.not_run.get(model.name, usual)
            obstacles = [f"not run: {reason}"]
        row = numbers.get(model.name, {})
        ours = row.get((metric, mode))
        tolerance = zero_shot_tolerance(mode, value)
        compared = compare(ours, value, obstacles=obstacles, tolerance=tolerance)
        return Cell(
            Number(key, compared, (measured[1],) if measured else ()),
            best=is_best(ours, best[metric, mode]),
            mark=mark_of(row, metric, mode),
        )

    groups: dict[str, list[Row]] = {"No-Instruct": [], "Instruction": [], "Not in the paper": []}
    models = (*given.models, *given.absent)
    for model in in_printed_order(models, (name for name, _ in printed)):
        kind = "Instruction" if model.trained_with_instructions else "No-Instruct"
        groups[kind if model.published_as else "Not in the paper"].append(
            Row(
                (model.label, model.parameters or "–"),
                tuple(cell(model, metric, mode) for metric, mode in COLUMNS),
                given.not_run.get(model.name, ""),
            )
        )
    return TableContent(
        heads=mode_heads("", "Model", "Param"),
        groups=tuple(Group(tuple(rows), title) for title, rows in groups.items() if rows),
        caption=f"Zero-shot results on IdioLink in per cent. {MARKS}",
        notes=notes_on(metrics),
    )


def zero_shot_tolerance(query_mode: str, printed: float | None) -> float:
    """Points by which a cell of Table 2 may differ and count as reproduced.

    Without instructions the protocol is fully known, so only the printed decimals matter (some
    cells are printed to one). With instructions the paper's exact text is not: 0.05.
    """
    to_one_decimal = printed is not None and round(printed, 1) == printed
    return 0.05 if to_one_decimal or query_mode.startswith("instruction") else 0.0


def bm25(given: Given) -> TableContent:
    """Appendix E.2: BM25 with the k1 and b that validation chose, scores in per cent."""
    printed = read_published(given.files["published"], ["query_mode"])
    metrics = load_records(given.metrics, IdiolinkMetrics)
    rows = []
    for item, path in zip(metrics, given.metrics, strict=True):
        chosen = item.tuning.chosen if item.tuning else None
        numbers: dict[str, float | None] = {
            "k1": chosen.k1 if chosen else None,
            "b": chosen.b if chosen else None,
        }
        numbers |= {f"{metric}_pct": per_cent(item, metric) for metric in METRICS}
        row = printed.get((item.query_mode,), {})
        cells = []
        for name, value in numbers.items():
            key = {"model": item.model, "query_mode": item.query_mode}
            compared = compare(
                value,
                row.get(name),
                obstacles=obstacles_of_score(item, name.removesuffix("_pct")),
                tolerance=BM25_TOLERANCE if name.endswith("_pct") else 0.0,
            )
            number = Number(key | {"metric": name.removesuffix("_pct")}, compared, (path,))
            cells.append(Cell(number))
        rows.append(Row((item.query_mode,), tuple(cells)))
    return TableContent(
        heads=(
            (
                Head("Query"),
                Head("k1", latex="$k_1$"),
                Head("b", latex="$b$"),
                *map(Head, METRICS.values()),
            ),
        ),
        groups=(Group(tuple(rows)),),
        caption="BM25 on IdioLink in per cent; k1 and b chosen on the validation split by nDCG@10.",
        caption_latex="BM25 on IdioLink in per cent; $k_1$ and $b$ chosen on the validation split"
        " by nDCG@10.",
        notes=(
            *([UNTUNED] if any(item.tuning and not item.tuning.grid for item in metrics) else []),
            *notes_on(metrics),
        ),
        wide=False,
    )


def ablation(given: Given) -> TableContent:
    """The index-composition ablation: both metrics (per cent) by model, mode and composition.

    The paper prints no such table; the CSV says so in each row. What is known of the released run
    stands beside our numbers of BM25, and in columns of its own: it is no printed number.
    """
    released = read_published(given.files["published"], ["query_mode", "composition"])
    metrics = load_records(given.metrics, IdiolinkMetrics)
    found = {
        (item.model, item.query_mode, item.composition): (item, path)
        for item, path in zip(metrics, given.metrics, strict=True)
    }
    compositions = [
        name for name in COMPOSITION_LABELS if any(item.composition == name for item in metrics)
    ]

    def cell(model: ModelDescription, mode: str, metric: str, composition: str) -> Cell:
        item, path = found[model.name, mode, composition]
        ours, obstacles = per_cent(item, metric), obstacles_of_score(item, metric)
        key = {"model": model.name, "query_mode": mode, "composition": composition}
        key |= {"metric": metric, "k1": "", "b": "", "released_run": "", "within_tolerance": ""}
        text, theirs = "", None
        if item.tuning:
            key |= {name: f"{value:g}" for name, value in item.tuning.chosen.model_dump().items()}
            theirs = released.get((mode, composition), {}).get(f"{metric}_pct")
        if theirs is not None:
            beside = compare(
                ours,
                theirs,
                obstacles=[*obstacles, *_tuned_otherwise(item)],
                tolerance=BM25_TOLERANCE,
            )
            within = beside.reproduced or ""
            key |= {"released_run": rounded(theirs, 2), "within_tolerance": within}
            text = f"{rounded(ours, 2) or '–'} [{rounded(theirs, 2)}]"
        compared = compare(ours, None, obstacles=obstacles)
        return Cell(Number(key, compared, (path,)), text=text)

    groups = [
        Group(
            tuple(
                Row(
                    (model.label, mode_label(mode)),
                    tuple(
                        cell(model, mode, metric, composition)
                        for metric in METRICS
                        for composition in compositions
                    ),
                )
                for mode in QUERY_MODES
                if all((model.name, mode, composition) in found for composition in compositions)
            )
        )
        for model in given.models
    ]
    labels = [Head(COMPOSITION_LABELS[name]) for name in compositions]
    scores = [Head(label, span=len(compositions)) for label in METRICS.values()]
    return TableContent(
        heads=((Head("", span=2), *scores), (Head("Model"), Head("Query"), *labels, *labels)),
        groups=tuple(groups),
        caption="The same queries over several compositions of the index, in per cent: all usages,"
        " without the idiomatic documents, and literal and idiomatic documents only. In brackets:"
        " what the authors' released run has, which the paper does not print; ours of BM25 count as"
        f" equal within {BM25_TOLERANCE}.",
        notes=notes_on(metrics),
    )


def _tuned_otherwise(item: IdiolinkMetrics) -> list[str]:
    """What keeps a run of BM25 from the released one's choice of k1 and b."""
    tuning = item.tuning
    if tuning is None or (tuning.query_mode, tuning.composition) == (
        item.query_mode,
        item.composition,
    ):
        return []
    return ["k1 and b of other queries or of another index than in the released run"]


def mode_label(mode: str) -> str:
    """A query mode as tables call it."""
    return mode.replace("_", " + ")


def best_of_columns(numbers: Grid[R]) -> dict[tuple[str, str], float | None]:
    """The best value of each column, at the two decimals that readers compare."""
    return {column: best_of(row.get(column) for row in numbers.values()) for column in COLUMNS}


def is_best(value: float | None, best: float | None) -> bool:
    """Whether a value is its column's best."""
    return value is not None and round(value, 2) == best


def mark_of(
    row: Mapping[tuple[str, str], float | None], metric: str, mode: str
) -> Literal["", "up", "down"]:
    """How a span stands to the sentence: nothing where equal, unknown, or itself a sentence."""
    value, reference = row.get((metric, mode)), row.get((metric, mode.replace("span", "sentence")))
    if value is None or reference is None or round(value, 2) == round(reference, 2):
        return ""
    return "up" if value > reference else "down"
