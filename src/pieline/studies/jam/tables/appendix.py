"""ID10M-JAM's human baseline (5.1), neutral contexts (appendix G) and attention (appendix H)."""

from pieline.core.records import load_record
from pieline.languages.registry import find
from pieline.reporting.given import Given
from pieline.reporting.printed import compare, read_published, rounded
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.jam.metrics.attention_records import AttentionMetrics, MeanShare
from pieline.studies.jam.metrics.drift import Interval
from pieline.studies.jam.metrics.humans import AnnotatorScores, HumanMetrics
from pieline.studies.jam.metrics.neutral import NeutralMetrics
from pieline.studies.jam.metrics.seeds import per_cent
from pieline.studies.jam.tables.common import GROUPS, NOT_RELEASED, notes_of

SIMULATED_NOTE = "The labels are simulated to show the computation: no person gave them."
_SIMULATED = "simulated labels, not people's"
_BLANK = Cell(text=" ")


def humans(given: Given) -> TableContent:
    """Accuracy of two people, overall and by usage, and their agreement (per cent)."""
    metrics = load_record(given.metrics[0], HumanMetrics)
    printed = read_published(given.files["text_numbers"], ["id"])
    obstacles = [] if metrics.dataset_is_released else [NOT_RELEASED]
    if metrics.simulated:
        obstacles.insert(0, _SIMULATED)
    if metrics.language != "english":
        obstacles.append("the paper's annotators judged English variants")

    def cell(name: str, ours: float | None, decimals: int = 1) -> Cell:
        identifier = f"jam.human_{name}"
        of_paper = printed.get((identifier,), {}).get("value")
        # Printed to one decimal.
        comparison = compare(ours, of_paper, obstacles=obstacles, tolerance=0.05)
        number = Number({"id": identifier, "metric": "value"}, comparison, given.metrics)
        return Cell(number, text=rounded(ours, decimals))

    def person(name: str, scores: AnnotatorScores) -> Row:
        cells = (
            cell(f"accuracy_{name}", 100 * scores.accuracy),
            cell(f"accuracy_figurative_{name}", per_cent(scores.accuracy_figurative)),
            cell(f"accuracy_literal_{name}", per_cent(scores.accuracy_literal)),
            cell(f"ambiguous_{name}", 100 * scores.ambiguous),
        )
        return Row((name,), cells)

    counts = (
        cell("variants", metrics.variants, decimals=0),
        Cell(text=str(metrics.figurative)),
        Cell(text=str(metrics.literal)),
        _BLANK,
    )
    rest = (_BLANK,) * 3
    return TableContent(
        heads=(
            (
                Head("Annotator"),
                Head("Accuracy"),
                Head("figurative"),
                Head("literal"),
                Head("ambiguous"),
            ),
        ),
        groups=(
            Group((Row(("variants labelled",), counts),)),
            Group((person("first", metrics.first), person("second", metrics.second))),
            Group(
                (
                    Row(("agreement",), (cell("agreement", 100 * metrics.agreement), *rest)),
                    Row(("Cohen's kappa",), (cell("kappa", metrics.kappa, decimals=2), *rest)),
                )
            ),
        ),
        caption=f"Human baseline: two people on hard variants ({find(metrics.language).label}), one"
        " of each original, in per cent. “Ambiguous” counts as wrong.",
        notes=(
            *([SIMULATED_NOTE] if metrics.simulated else []),
            *notes_of(metrics.dataset_is_released),
        ),
        wide=False,
    )


def neutral(given: Given) -> TableContent:
    """How many confusing variants stay confusing with a neutral context."""
    metrics = load_record(given.metrics[0], NeutralMetrics)
    printed = read_published(given.files["text_numbers"], ["id"])
    (model,) = given.models
    obstacles = [] if metrics.dataset_is_released else [NOT_RELEASED]
    if model.published_as != "GPT-4o mini":
        obstacles.append("the paper's ablation is of GPT-4o mini")
    obstacles += metrics.conditions.deviations
    key = {"model": metrics.model, "setting": metrics.setting, "language": metrics.language}

    def cell(name: str, ours: float | None, text: str, tolerance: float = 0.0) -> Cell:
        identifier = f"jam.neutral_{name}"
        comparison = compare(
            ours,
            printed.get((identifier,), {}).get("value"),
            obstacles=obstacles,
            tolerance=tolerance,
        )
        identity = {**key, "id": identifier, "metric": "value"}
        return Cell(Number(identity, comparison, given.metrics), text=text)

    share = per_cent(metrics.share)
    labels = (model.label, GROUPS[metrics.setting], find(metrics.language).label)
    cells = (
        Cell(text=str(metrics.confusing)),
        cell("variants", metrics.neutral, str(metrics.neutral)),
        cell("confused", metrics.still_confused, str(metrics.still_confused)),
        # Printed to one decimal.
        cell("share", share, rounded(share, 1), tolerance=0.05),
        Cell(text=_bounds(metrics.interval)),
    )
    return TableContent(
        heads=(
            (
                *(Head("Model"), Head("Setting"), Head("Language"), Head("confusing")),
                *(Head("neutral"), Head("still confusing"), Head("%"), Head("95 % interval")),
            ),
        ),
        groups=(Group((Row(labels, cells),)),),
        caption="Hard variants that confused a model, rewritten with a neutral context: how many"
        " still confuse it.",
        notes=notes_of(metrics.dataset_is_released),
    )


def attention(given: Given) -> TableContent:
    """Share of the PIE's attention on cue words (per cent): misleading, resolved, difference.

    The paper describes the pattern and prints no number; the CSV says so.
    """
    metrics = load_record(given.metrics[0], AttentionMetrics)
    obstacles = [] if metrics.dataset_is_released else [NOT_RELEASED]
    key = {
        "model": metrics.model,
        "language": metrics.language,
        "pairs": str(len(metrics.pairs)),
    }

    def cell(name: str, part: MeanShare) -> Cell:
        bounds = {"low": "", "high": ""}
        if part.interval:
            low, high = part.interval.low, part.interval.high
            bounds = {"low": rounded(100 * low, 2), "high": rounded(100 * high, 2)}
        share = per_cent(part.mean)
        text = f"{rounded(share, 1)} [{_bounds(part.interval)}]" if part.interval else ""
        comparison = compare(share, None, obstacles=obstacles)
        return Cell(Number({**key, "metric": name, **bounds}, comparison, given.metrics), text=text)

    labels = (given.labels()[metrics.model], find(metrics.language).label)
    cells = (
        Cell(text=str(len(metrics.pairs))),
        cell("misleading", metrics.misleading),
        cell("resolved", metrics.resolved),
        cell("difference", metrics.difference),
    )
    return TableContent(
        heads=(
            (
                *(Head("Model"), Head("Language"), Head("pairs")),
                *(Head("misleading (MIS)"), Head("resolved (COR)"), Head("difference")),
            ),
        ),
        groups=(Group((Row(labels, cells),)),),
        caption="Share of the attention from the PIE to its context that falls on the content words"
        " of the added context, mean over layers, heads and pairs, in per cent with 95 % bootstrap"
        " intervals over pairs.",
        notes=notes_of(metrics.dataset_is_released),
    )


def _bounds(interval: Interval | None) -> str:
    """An interval in per cent."""
    return f"{100 * interval.low:.1f}, {100 * interval.high:.1f}" if interval else ""
