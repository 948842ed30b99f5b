"""ID10M-JAM's human baseline (5.1), neutral contexts (appendix G) and attention (appendix H)."""

from pieline.core.records import load_records
from pieline.languages.registry import find
from pieline.reporting.given import Given
from pieline.reporting.printed import compare, percent_bounds, rounded
from pieline.reporting.tables import Cell, Group, Number, Row, TableContent
from pieline.studies.jam.metrics.attention_records import AttentionMetrics, MeanShare
from pieline.studies.jam.metrics.humans import AnnotatorScores, HumanMetrics
from pieline.studies.jam.metrics.neutral import NeutralMetrics
from pieline.studies.jam.metrics.seeds import per_cent
from pieline.studies.jam.tables.common import (
    TextNumbers,
    data_notes,
    heads,
    marked,
    of_other_data,
    title_of,
    unknown,
)

SIMULATED_NOTE = "The labels are simulated to show the computation: no person gave them."
_SIMULATED = "simulated labels, not people's"
_BLANK = Cell(text=" ")


def humans(given: Given) -> TableContent:
    """Accuracy of two people, overall and by usage, and their agreement (per cent)."""
    made = load_records(given.metrics, HumanMetrics)
    metrics, reason = (made[0], "") if made else (None, given.why_not("people"))
    language = metrics.language if metrics else "english"
    obstacles = [f"not run: {reason}"] if reason else []
    obstacles += [_SIMULATED] if metrics and metrics.simulated else []
    obstacles += [*of_other_data(*made), *(metrics.conditions.deviations if metrics else ())]
    if language != "english":
        obstacles.append("the paper's annotators judged English variants")
    numbers = TextNumbers(given.files["text_numbers"], obstacles, given.metrics)

    def row(label: str, *cells: Cell) -> Row:
        return Row((label,), (*cells, *[_BLANK] * (4 - len(cells))), reason)

    def cell(name: str, ours: float | None, decimals: int = 1) -> Cell:
        return numbers.cell(f"human_{name}", ours, decimals=decimals)

    def person(name: str) -> Row:
        scores = getattr(metrics, name, None)
        shares = ((field, getattr(scores, field, None)) for field in AnnotatorScores.model_fields)
        return row(name, *(cell(f"{field}_{name}", per_cent(share)) for field, share in shares))

    usages = (metrics.figurative, metrics.literal) if metrics else ()
    agreement = per_cent(metrics.agreement) if metrics else None
    counted = cell("variants", metrics.variants if metrics else None, decimals=0)
    kappa = cell("kappa", metrics.kappa if metrics else None, decimals=2)
    return TableContent(
        heads=(heads("Annotator", "Accuracy", "figurative", "literal", "ambiguous"),),
        groups=(
            Group((row("variants labelled", counted, *(Cell(text=str(one)) for one in usages)),)),
            Group((person("first"), person("second"))),
            Group((row("agreement", cell("agreement", agreement)), row("Cohen's kappa", kappa))),
        ),
        caption=f"Human baseline: two people on hard variants ({find(language).label}), one"
        " of each original, in per cent. “Ambiguous” counts as wrong.",
        notes=(
            *([SIMULATED_NOTE] if metrics and metrics.simulated else []),
            *(data_notes(metrics) if metrics else ()),
            *given.notes,
        ),
        wide=False,
    )


def neutral(given: Given) -> TableContent:
    """How many confusing variants stay confusing with a neutral context."""
    (model,), run = given.models, given.options
    made = load_records(given.metrics, NeutralMetrics)
    metrics, reason = (made[0], "") if made else (None, given.why_not(model.name))
    obstacles = [f"not run: {reason}"] if reason else []
    obstacles += of_other_data(*made)
    if model.published_as != "GPT-4o mini":
        obstacles.append("the paper's ablation is of GPT-4o mini")
    obstacles += metrics.conditions.deviations if metrics else ()
    key = {name: run[name] for name in ("model", "setting", "language")}
    numbers = TextNumbers(given.files["text_numbers"], obstacles, given.metrics, key)

    def cell(name: str, ours: float | None, *, decimals: int = 0) -> Cell:
        return numbers.cell(f"neutral_{name}", ours, decimals=decimals)

    share = per_cent(metrics.share) if metrics else None
    bounds = percent_bounds(metrics.interval, 1) if metrics else None
    cells = (
        Cell(text=str(metrics.confusing)) if metrics else Cell(),
        cell("variants", metrics.neutral if metrics else None),
        cell("confused", metrics.still_confused if metrics else None),
        cell("share", share, decimals=1),
        Cell(text=", ".join(bounds or ())),
    )
    name = marked(model.label, {"": made})
    labels = (name, title_of(run["setting"]), find(run["language"]).label)
    return TableContent(
        heads=(
            (
                *heads("Model", "Setting", "Language", "confusing"),
                *heads("neutral", "still confusing", "%", "95 % interval"),
            ),
        ),
        groups=(Group((Row(labels, cells, reason),)),),
        caption="Hard variants that confused a model, rewritten with a neutral context: how many"
        " still confuse it.",
        notes=(*data_notes(*made), *given.notes),
    )


def attention(given: Given) -> TableContent:
    """Share of the PIE's attention on cue words (per cent): misleading, resolved, difference.

    The paper describes the pattern and prints no number; the CSV says so.
    """
    (model,), language = given.models, find(given.options["language"]).label
    made = load_records(given.metrics, AttentionMetrics)
    if made:
        rows = tuple(Row((model.label, language), _shares(given, item)) for item in made)
    else:
        reason = given.why_not(model.name)
        names = ("pairs", "misleading", "resolved", "difference")
        blank = (unknown({**given.options, "metric": name}, reason) for name in names)
        rows = (Row((model.label, language), tuple(blank), reason),)
    return TableContent(
        heads=(
            (
                *heads("Model", "Language", "pairs"),
                *heads("misleading (MIS)", "resolved (COR)", "difference"),
            ),
        ),
        groups=(Group(rows),),
        caption="Share of the attention from the PIE to its context that falls on the content words"
        " of the added context, mean over layers, heads and pairs, in per cent with 95 % bootstrap"
        " intervals over pairs.",
        notes=(*data_notes(*made), *given.notes),
    )


def _shares(given: Given, metrics: AttentionMetrics) -> tuple[Cell, ...]:
    obstacles = [*of_other_data(metrics), *metrics.conditions.deviations]
    pairs = str(len(metrics.pairs))
    key = {"model": metrics.model, "language": metrics.language, "pairs": pairs}

    def cell(name: str, part: MeanShare) -> Cell:
        low, high = percent_bounds(part.interval, 2) or ("", "")
        share, shown = per_cent(part.mean), percent_bounds(part.interval, 1)
        text = f"{rounded(share, 1)} [{', '.join(shown)}]" if shown else ""
        comparison = compare(share, None, obstacles=obstacles)
        identity = {**key, "metric": name, "low": low, "high": high}
        return Cell(Number(identity, comparison, given.metrics), text=text)

    names = ("misleading", "resolved", "difference")
    return (Cell(text=pairs), *(cell(name, getattr(metrics, name)) for name in names))
