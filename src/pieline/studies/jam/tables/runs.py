"""ID10M-JAM run by run: intervals and F1 of each seed, and McNemar's test of every two runs."""

from collections.abc import Iterator
from itertools import combinations

from scipy.stats import false_discovery_control

from pieline.core.records import load_records
from pieline.languages.registry import find
from pieline.reporting.given import Given
from pieline.reporting.printed import compare, rounded
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.jam.metrics.drift import mcnemar
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import by_run, key_of, per_cent
from pieline.studies.jam.tables.common import (
    GROUPS,
    languages_of,
    notes_of,
    obstacles_of,
)

_SHOWN = {
    "accuracy": Head("Accuracy (%)"),
    "success_overall": Head("S_M", latex="$S_M$"),
    "flipped_overall": Head("F_M", latex="$F_M$"),
    "negative_drift_overall": Head("ND_M (%)", latex=r"$\mathit{ND}_M$ (\%)"),
}


def runs(given: Given) -> TableContent:
    """Every run and seed by itself: accuracy, S, F, ND with 95 % intervals, F1 of the tags (%).

    The paper prints none of these by seed; the CSV says so. The table shows the first four.
    """
    metrics = load_records(given.metrics, JamMetrics)
    labels = given.labels()
    rows = []
    for item, source in zip(metrics, given.metrics, strict=True):
        key = {
            "setting": item.setting,
            "model": item.model,
            "language": item.language,
            "seed": str(item.seed),
        }
        cells, unseen = [], []
        for name, value, interval in _numbers(item):
            bounds, text = {"metric": name, "low": "", "high": ""}, ""
            if interval:
                low, high = rounded(interval[0], 2), rounded(interval[1], 2)
                bounds |= {"low": low, "high": high}
                text = f"{rounded(value, 1)} [{interval[0]:.1f}, {interval[1]:.1f}]"
            comparison = compare(value, None, obstacles=obstacles_of([item]))
            number = Number(key | bounds, comparison, (source,))
            if name in _SHOWN:
                counted = name.startswith(("success", "flipped"))
                cells.append(Cell(number, text=rounded(value, 0) if counted else text))
            else:
                unseen.append(number)
        names = (
            labels[item.model],
            GROUPS[item.setting],
            find(item.language).code.upper(),
            str(item.seed),
        )
        rows.append(Row(names, tuple(cells), unseen=tuple(unseen)))
    heads = (Head("Model"), Head("Setting"), Head("Language"), Head("Seed"))
    return TableContent(
        heads=((*heads, *_SHOWN.values()),),
        groups=(Group(tuple(rows)),),
        caption="Every run by itself, with 95 % bootstrap intervals over originals.",
        notes=notes_of(*(item.dataset_is_released for item in metrics)),
    )


def _numbers(
    item: JamMetrics,
) -> Iterator[tuple[str, float | None, tuple[float, float] | None]]:
    """Name, value and interval of each number of one run."""
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


def pairs(given: Given) -> TableContent:
    """McNemar's exact test of every two runs on the same variants, first seeds, by language.

    p values are also given corrected for their number within a language (Benjamini-Hochberg).
    """
    metrics = load_records(given.metrics, JamMetrics)
    labels = given.labels()
    files = {
        (key_of(item), item.seed): path for item, path in zip(metrics, given.metrics, strict=True)
    }
    first = {key: found[0] for key, found in by_run(metrics).items() if found[0].overall.variants}
    rows = []
    for language in languages_of(first):
        keys = [key for key in first if key.language == language]
        couples = list(combinations(keys, 2))
        tests = [mcnemar(_right(first[one]), _right(first[other])) for one, other in couples]
        if not tests:
            continue
        corrected = [float(p) for p in false_discovery_control([test.p_value for test in tests])]
        for couple, test, p_value in zip(couples, tests, corrected, strict=True):
            one, other = couple
            names = {
                "language": language,
                "first": f"{one.model}/{one.setting}/{first[one].seed}",
                "second": f"{other.model}/{other.setting}/{first[other].seed}",
            }
            numbers = {
                "only_first_right": (test.only_first, 0),
                "only_second_right": (test.only_second, 0),
                "p_value": (test.p_value, 4),
                "p_value_corrected": (p_value, 4),
            }
            sources = tuple(files[key, first[key].seed] for key in couple)
            obstacles = obstacles_of([first[key] for key in couple])
            rows.append(
                Row(
                    (
                        find(language).label,
                        *(f"{labels[key.model]}, {GROUPS[key.setting]}" for key in couple),
                    ),
                    tuple(
                        Cell(
                            Number(
                                names | {"metric": name},
                                compare(value, None, obstacles=obstacles),
                                sources,
                            ),
                            text=rounded(value, decimals),
                        )
                        for name, (value, decimals) in numbers.items()
                    ),
                )
            )
    return TableContent(
        heads=(
            (
                Head("Language"),
                Head("First"),
                Head("Second"),
                Head("only first right"),
                Head("only second right"),
                Head("p", latex="$p$"),
                Head("p corrected", latex="$p$ corrected"),
            ),
        ),
        groups=(Group(tuple(rows)),),
        caption="Every two runs on the same hard variants (first seeds) by McNemar's exact test; p"
        " corrected within a language (Benjamini-Hochberg).",
        notes=notes_of(*(item.dataset_is_released for item in metrics)),
        decimals=4,
    )


def _right(metrics: JamMetrics) -> list[bool]:
    """Whether each variant was judged right, in the order of its name."""
    decided = {name: right for item in metrics.judged for name, right in item.variants.items()}
    return [decided[name] for name in sorted(decided)]
