"""ID10M-JAM run by run: intervals and F1 of each seed, and McNemar's test of every two runs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from scipy.stats import false_discovery_control

from pieline.languages.registry import find
from pieline.reporting.latex import render_table
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.printed import Comparison, compare, rounded, write_comparisons
from pieline.studies.jam.metrics.drift import mcnemar
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.tables.results import GROUPS, by_run, languages_of, obstacles_of


def write_runs(metrics: Sequence[JamMetrics], csv: str | Path) -> None:
    """Every run and seed by itself: accuracy, S, F, ND with 95 % intervals, F1 of the tags (%).

    The paper prints none of these by seed; the CSV says so.
    """
    rows: list[tuple[Mapping[str, str], Comparison]] = []
    for item in metrics:
        key = {
            "setting": item.setting,
            "model": item.model,
            "language": item.language,
            "seed": str(item.seed),
        }
        obstacles = obstacles_of([item])
        for name, value, interval in _numbers(item):
            bounds = {"metric": name, "low": "", "high": ""}
            if interval:
                bounds |= {"low": rounded(interval[0], 2), "high": rounded(interval[1], 2)}
            rows.append((key | bounds, compare(value, None, obstacles=obstacles)))
    write_comparisons(csv, rows, decimals=2)


def _numbers(
    item: JamMetrics,
) -> Iterator[tuple[str, float | None, tuple[float, float] | None]]:
    """Name, value and interval of what `write_runs` lists."""

    def per_cent(value: float | None) -> float | None:
        return None if value is None else 100 * value

    bounds = item.accuracy_interval
    yield (
        "accuracy",
        per_cent(item.accuracy),
        (100 * bounds.low, 100 * bounds.high) if bounds else None,
    )
    for name, part in (
        ("overall", item.overall),
        ("literal", item.literal),
        ("idiomatic", item.idiomatic),
    ):
        yield f"success_{name}", part.success, None
        yield f"flipped_{name}", part.flipped, None
        bounds = part.interval
        yield (
            f"negative_drift_{name}",
            per_cent(part.negative_drift),
            (100 * bounds.low, 100 * bounds.high) if bounds else None,
        )
    for name, scores in (
        ("originals", item.tagging_of_originals),
        ("variants", item.tagging_of_variants),
    ):
        if scores is not None:
            yield f"span_f1_{name}", per_cent(scores.span_f1), None
            yield f"token_f1_{name}", per_cent(scores.token_f1), None
    total = sum(item.outcomes.values())
    unread = total - item.outcomes.get("ok", 0) - item.outcomes.get("repaired", 0)
    yield "unreadable", 100 * unread / total, None


def write_pairs(
    metrics: Sequence[JamMetrics],
    *,
    tex: str | Path,
    csv: str | Path,
    template: str | Path,
    models: Sequence[ModelDescription],
) -> None:
    """McNemar's exact test of every two runs on the same variants, first seeds, by language.

    p values are also given corrected for their number within a language (Benjamini-Hochberg).

    Args:
        metrics: of all runs.
        tex: LaTeX output.
        csv: CSV output.
        template: LaTeX template.
        models: for their labels.
    """
    labels = {model.name: model.label for model in models}
    first = {key: found[0] for key, found in by_run(metrics).items() if found[0].overall.variants}
    comparisons: list[tuple[Mapping[str, str], Comparison]] = []
    rows = []
    for language in languages_of(first):
        keys = [key for key in first if key.language == language]
        pairs = [(one, other) for one, other in combinations(keys, 2)]
        tests = [mcnemar(_right(first[one]), _right(first[other])) for one, other in pairs]
        if not tests:
            continue
        corrected = [float(p) for p in false_discovery_control([test.p_value for test in tests])]
        for (one, other), test, p_value in zip(pairs, tests, corrected, strict=True):
            names = {
                "language": language,
                "first": f"{one.model}/{one.setting}/{first[one].seed}",
                "second": f"{other.model}/{other.setting}/{first[other].seed}",
            }
            numbers = {
                "only_first_right": test.only_first,
                "only_second_right": test.only_second,
                "p_value": test.p_value,
                "p_value_corrected": p_value,
            }
            obstacles = obstacles_of([first[one], first[other]])
            for name, value in numbers.items():
                key = names | {"metric": name}
                comparisons.append((key, compare(value, None, obstacles=obstacles)))
            rows.append(
                {
                    "language": find(language).label,
                    "first": f"{labels[one.model]}, {GROUPS[one.setting]}",
                    "second": f"{labels[other.model]}, {GROUPS[other.setting]}",
                    "counts": (test.only_first, test.only_second),
                    "p_value": rounded(test.p_value, 4),
                    "corrected": rounded(p_value, 4),
                }
            )
    write_comparisons(csv, comparisons, decimals=4)
    released = all(item.dataset_is_released for item in metrics)
    render_table(template, tex, rows=rows, note="" if released else SAMPLE_NOTE)


def _right(metrics: JamMetrics) -> list[bool]:
    """Whether each variant was judged right, in the order of its name."""
    decided = {name: right for item in metrics.judged for name, right in item.variants.items()}
    return [decided[name] for name in sorted(decided)]
