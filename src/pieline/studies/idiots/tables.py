"""IdioTS's tables: detection (Table 1), consistency (Table 2) and distractors (Table 3)."""

from collections.abc import Collection, Sequence
from typing import get_args

from pieline.core.outcomes import READABLE
from pieline.core.records import load_records
from pieline.reporting.given import Given
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.printed import compare, read_published
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.idiots.metrics import DetectionMetrics, Score
from pieline.studies.idiots.records import DistractorKind

PAPER_SETTING = "zero_shot"
"""The setting of the printed numbers."""

DECIMALS = 3

SETTING_LABELS = {"zero_shot": "zero-shot", "zero_shot_schema": "zero-shot, JSON"}
KIND_LABELS = {
    "whole_phrase": "whole phrase",
    "parts": "parts",
    "other_role": "other role",
    "look_alike": "look-alike",
}

_FIRST_LEVEL = (
    "accuracy",
    "misclassification_rate",
    "recall",
    "specificity",
    "precision",
    "balanced_accuracy",
)
_COLUMNS = {
    "detection": _FIRST_LEVEL,
    "consistency": (
        "positives",
        "true_positives",
        "true_positives_with_correct_idiom",
        "true_positive_consistency",
    ),
    "distractors": ("distractors", "false_positives_on_associated_pie", "ratio"),
}
_COUNTS = {
    "positives",
    "true_positives",
    "true_positives_with_correct_idiom",
    "distractors",
    "false_positives_on_associated_pie",
}
_LOWER_IS_BETTER = ("misclassification_rate", "ratio")

Numbers = dict[str, Score | int]
"""Numbers of one run by name: scores, which are fractions, and counts."""


def run_labels(
    runs: Sequence[tuple[str, str, str]], models: Sequence[ModelDescription]
) -> list[str]:
    """What a table or figure calls each run: the model, and what else tells the runs apart.

    Args:
        runs: model, setting and seed of each; no seed where all seeds are meant.
        models: what to say of the models.
    """
    labels = {model.name: model.label for model in models}
    several_settings = len({setting for _, setting, _ in runs}) > 1
    several_seeds = len({seed for _, _, seed in runs if seed}) > 1
    names = []
    for model, setting, seed in runs:
        details = [SETTING_LABELS[setting]] if several_settings else []
        details += [f"seed {seed}"] if several_seeds and seed else []
        label = labels[model]
        names.append(f"{label} ({', '.join(details)})" if details else label)
    return names


def run_of(item: DetectionMetrics) -> tuple[str, str, str]:
    """Model, setting and seed of a run."""
    return item.model, item.setting, str(item.seed)


def _not_made(
    given: Given, made: Sequence[tuple[str, str, str]], printed: Collection[tuple[str, ...]]
) -> dict[tuple[str, str, str], str]:
    """The runs without numbers and why: those left out, and those that only the paper has.

    Where no seed of a model and setting was run, they are one run without a seed.
    """
    settings = {run[:2] for run in made}
    left_out = {
        (model, setting, seed if (model, setting) in settings else ""): reason
        for (model, setting, seed), reason in given.left_out().items()
    }
    of_paper = {
        (model.name, PAPER_SETTING, ""): given.why_not(model.name) or "not in this setting"
        for model in (*given.models, *given.absent)
        if (model.published_as,) in printed and (model.name, PAPER_SETTING) not in settings
    }
    return of_paper | left_out


def detection(given: Given) -> TableContent:
    """Table 1: the first level of evaluation, and how many answers could not be read."""
    return _table(
        "detection",
        given,
        heads=(
            Head("Accuracy ↑"),
            Head("MR ↓"),
            Head("Recall ↑"),
            Head("Spec. ↑"),
            Head("Precision ↑"),
            Head("BA ↑"),
            Head("Unread."),
        ),
        caption="Automatic metrics of idiom detection on IdioTS (MR: misclassification rate, Spec.:"
        " specificity, BA: balanced accuracy). The last column counts the answers that could not be"
        " read: they are wrong in all metrics but precision, in which they have no place. A dash:"
        " nothing to measure.",
    )


def consistency(given: Given) -> TableContent:
    """Table 2: of the true positives, those that name the right idiom."""
    return _table(
        "consistency",
        given,
        heads=(Head("Idiomatic"), Head("TP"), Head("Correct idiom"), Head("TPC ↑")),
        caption="True Positive Consistency (TPC) on IdioTS: of the true positives (TP) among the"
        " idiomatic sentences, those whose named idiom is the right one.",
    )


def distractors(given: Given) -> TableContent:
    """Table 3: distractors whose PIE was given a figurative meaning, also by kind."""
    return _table(
        "distractors",
        given,
        heads=(Head("Distractors"), Head("FP"), Head("Ratio ↓")),
        caption="Distractors of IdioTS whose associated PIE was given a figurative meaning (FP),"
        " and the ratio by kind of distractor.",
    )


def _table(table: str, given: Given, *, heads: tuple[Head, ...], caption: str) -> TableContent:
    """One of the three tables.

    The CSV has, besides, the 95 % intervals, the counts of outcomes and verdicts, and what only
    our data can tell (kinds of distractors).
    """
    printed = read_published(given.files["published"], ["model"])
    metrics = load_records(given.metrics, DetectionMetrics)
    published_as = {
        model.name: model.published_as or "" for model in (*given.models, *given.absent)
    }
    kinds = [
        kind
        for kind in get_args(DistractorKind)
        if table == "distractors" and any(kind in item.by_distractor_kind for item in metrics)
    ]
    columns = [*_COLUMNS[table], *(f"ratio_{kind}" for kind in kinds)]
    columns += ["answers_unreadable"] if table == "detection" else []
    rows: list[Row] = []
    scores = [_numbers(table, item) for item in metrics]
    best = {name: _best([row.get(name) for row in scores], name) for name in columns}
    models = (*given.models, *given.absent)
    made = [run_of(item) for item in metrics]
    missing = _not_made(given, made, printed)
    labels = dict(zip([*made, *missing], run_labels([*made, *missing], models), strict=True))
    for item, row, source in zip(metrics, scores, given.metrics, strict=True):
        of_paper = printed.get((published_as[item.model],), {})
        numbers = {
            name: Number(
                _key(item.model, item.setting, str(item.seed), name, _interval(number)),
                compare(
                    _value(number),
                    of_paper.get(name) if item.setting == PAPER_SETTING else None,
                    obstacles=_obstacles(item),
                    decimals=_decimals(number),
                ),
                (source,),
            )
            for name, number in row.items()
        }
        cells = tuple(
            Cell(numbers.get(name), best=_is_best(row.get(name), best[name])) for name in columns
        )
        others = tuple(number for name, number in numbers.items() if name not in columns)
        rows.append(Row((labels[run_of(item)],), cells, unseen=others))
    for run, reason in missing.items():
        model, setting, seed = run
        of_paper = printed.get((published_as[model],), {}) if setting == PAPER_SETTING else {}
        absent = {
            name: Number(
                _key(model, setting, seed, name, ""),
                compare(
                    None,
                    value,
                    obstacles=[f"not run: {reason}"],
                    decimals=0 if name in _COUNTS else DECIMALS,
                ),
            )
            for name, value in of_paper.items()
        }
        cells = tuple(Cell(absent.get(name)) for name in columns)
        others = tuple(number for name, number in absent.items() if name not in columns)
        rows.append(Row((labels[run],), cells, reason, others))
    notes = []
    if table != "detection":
        human = sum(item.verdicts["human"] for item in metrics)
        judged = sum(sum(item.verdicts.values()) for item in metrics)
        notes.append(
            f"People judged {human} of the {judged} answers that found an idiom, the matching"
            " function the others."
        )
    if any(item.origin == "sample" for item in metrics):
        notes.append(SAMPLE_NOTE)
    return TableContent(
        heads=((Head("Model"), *heads, *(Head(KIND_LABELS[kind]) for kind in kinds)),),
        groups=(Group(tuple(rows)),),
        caption=caption,
        notes=tuple(notes),
        decimals=DECIMALS,
    )


def _numbers(table: str, item: DetectionMetrics) -> Numbers:
    """All numbers of a run that a table's CSV shows: the printed ones first."""
    verdicts: Numbers = {f"verdicts_{name}": count for name, count in item.verdicts.items()}
    if table == "detection":
        scores: Numbers = {name: getattr(item, name) for name in _FIRST_LEVEL}
        scores |= {f"answers_{name}": count for name, count in item.outcomes.items()}
        unreadable = sum(count for name, count in item.outcomes.items() if name not in READABLE)
        return scores | {"answers_unreadable": unreadable}
    if table == "consistency":
        consistency: Numbers = {
            "positives": item.idiomatic,
            "true_positives": item.true_positive_consistency.of or 0,
            "true_positives_with_correct_idiom": item.true_positive_consistency.count or 0,
            "true_positive_consistency": item.true_positive_consistency,
        }
        return consistency | verdicts
    numbers: Numbers = {
        "distractors": item.distractors,
        "false_positives_on_associated_pie": item.distractor_pie_ratio.count or 0,
        "ratio": item.distractor_pie_ratio,
    }
    for kind, scores_of_kind in item.by_distractor_kind.items():
        numbers[f"distractors_{kind}"] = scores_of_kind["distractor_pie_ratio"].of or 0
        numbers[f"ratio_{kind}"] = scores_of_kind["distractor_pie_ratio"]
        numbers[f"specificity_{kind}"] = scores_of_kind["specificity"]
    return numbers | verdicts


def _best(column: Sequence[Score | int | None], name: str) -> float | None:
    """The best of several different scores of a column; None where there is nothing to mark."""
    scores = {
        round(item.value, DECIMALS)
        for item in column
        if isinstance(item, Score) and item.value is not None
    }
    choose = min if name.startswith(_LOWER_IS_BETTER) else max
    return choose(scores) if len(scores) > 1 else None


def _is_best(number: Score | int | None, best: float | None) -> bool:
    if not isinstance(number, Score) or number.value is None or best is None:
        return False
    return round(number.value, DECIMALS) == best


def _obstacles(item: DetectionMetrics) -> list[str]:
    """What makes a run incomparable with the paper's."""
    obstacles = []
    if item.origin == "sample":
        obstacles.append("sample data, not the released IdioTS")
    if item.origin == "unverified":
        obstacles.append("data/upstream.yaml has no digest by which to tell the released IdioTS")
    return [*obstacles, *item.conditions.deviations]


def _key(model: str, setting: str, seed: str, metric: str, interval: str) -> dict[str, str]:
    return {
        "model": model,
        "setting": setting,
        "seed": seed,
        "metric": metric,
        "interval_95": interval,
    }


def _value(number: Score | int) -> float | None:
    return number.value if isinstance(number, Score) else float(number)


def _decimals(number: Score | int) -> int:
    return DECIMALS if isinstance(number, Score) else 0


def _interval(number: Score | int) -> str:
    if not isinstance(number, Score) or number.low is None or number.high is None:
        return ""
    return f"{number.low:.{DECIMALS}f} to {number.high:.{DECIMALS}f}"
