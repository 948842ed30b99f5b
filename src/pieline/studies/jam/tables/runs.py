"""ID10M-JAM run by run: intervals and F1 of each seed, and McNemar's test of every two runs."""

from collections.abc import Iterator
from itertools import combinations

from scipy.stats import false_discovery_control

from pieline.core.outcomes import READABLE
from pieline.core.records import load_records
from pieline.core.uncertainty import Interval
from pieline.languages.registry import find
from pieline.reporting.given import Given
from pieline.reporting.printed import compare, percent_bounds, rounded
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.jam.metrics.drift import Drift, mcnemar
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import RunKey, by_run, key_of, per_cent
from pieline.studies.jam.metrics.tokens import TaggingScores
from pieline.studies.jam.tables.common import (
    GROUPS,
    code_of,
    heads,
    languages_of,
    not_made,
    obstacles_of,
    unknown,
)

_SHOWN = {
    "accuracy": Head("Accuracy (%)"),
    "success_overall": Head("S_M", latex="$S_M$"),
    "flipped_overall": Head("F_M", latex="$F_M$"),
    "negative_drift_overall": Head("ND_M (%)", latex=r"$\mathit{ND}_M$ (\%)"),
}


_TESTED = {"only_first_right": 0, "only_second_right": 0, "p_value": 4, "p_value_corrected": 4}
"""Numbers of a test of two runs, with their decimals."""


def runs(given: Given) -> TableContent:
    """Every run and seed by itself: accuracy, S, F, ND with 95 % intervals, F1 of the tags (%).

    The paper prints none of these by seed; the CSV says so. The table shows the first four.
    """
    metrics = load_records(given.metrics, JamMetrics)
    labels = given.labels()
    rows = []
    for item, source in zip(metrics, given.metrics, strict=True):
        key = key_of(item)._asdict() | {"seed": str(item.seed)}
        cells, unseen = [], []
        for name, value, interval in _numbers(item):
            low, high = percent_bounds(interval, 2) or ("", "")
            number = Number(
                {**key, "metric": name, "low": low, "high": high},
                compare(value, None, obstacles=obstacles_of([item])),
                (source,),
            )
            if name not in _SHOWN:
                unseen.append(number)
            elif name.startswith(("success", "flipped")):
                cells.append(Cell(number, text=rounded(value, 0)))
            else:
                bounds = percent_bounds(interval, 1)
                text = f"{rounded(value, 1)} [{', '.join(bounds)}]" if bounds else ""
                cells.append(Cell(number, text=text))
        names = (labels[item.model], GROUPS[item.setting], code_of(item.language), str(item.seed))
        rows.append(Row(names, tuple(cells), unseen=tuple(unseen)))
    for (model, setting, language, seed), reason in given.left_out().items():
        names = (labels[model], GROUPS[setting], code_of(language), seed)
        key = RunKey(setting, model, language)._asdict() | {"seed": seed}
        blank = (unknown(key | {"metric": name}, reason) for name in _SHOWN)
        rows.append(Row(names, tuple(blank), reason))
    return TableContent(
        heads=((*heads("Model", "Setting", "Language", "Seed"), *_SHOWN.values()),),
        groups=(Group(tuple(rows)),),
        caption="Every run by itself, with 95 % bootstrap intervals over originals.",
        notes=given.notes,
    )


def _numbers(item: JamMetrics) -> Iterator[tuple[str, float | None, Interval | None]]:
    """Name, value (per cent) and interval (fractions) of each number of one run."""
    yield "accuracy", per_cent(item.accuracy), item.accuracy_interval
    for name in ("overall", "literal", "idiomatic"):
        part: Drift = getattr(item, name)
        yield f"success_{name}", part.success, None
        yield f"flipped_{name}", part.flipped, None
        yield f"negative_drift_{name}", per_cent(part.negative_drift), part.interval
    for name in ("originals", "variants"):
        scores: TaggingScores | None = getattr(item, f"tagging_of_{name}")
        if scores is not None:
            yield f"span_f1_{name}", per_cent(scores.span_f1), None
            yield f"token_f1_{name}", per_cent(scores.token_f1), None
    total = sum(item.outcomes.values())
    unread = sum(count for name, count in item.outcomes.items() if name not in READABLE)
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
            values = (test.only_first, test.only_second, test.p_value, p_value)
            sources = tuple(files[key, first[key].seed] for key in couple)
            obstacles = obstacles_of([first[key] for key in couple])
            labelled = (f"{labels[key.model]}, {GROUPS[key.setting]}" for key in couple)
            cells = [
                Cell(
                    Number(
                        {**names, "metric": name},
                        compare(value, None, obstacles=obstacles),
                        sources,
                    ),
                    text=rounded(value, decimals),
                )
                for (name, decimals), value in zip(_TESTED.items(), values, strict=True)
            ]
            rows.append(Row((find(language).label, *labelled), tuple(cells)))
    for key in not_made(given, first):
        name = f"{labels[key.model]}, {GROUPS[key.setting]}"
        reason = given.why_not(key.model, key.setting, key.language)
        run = {"language": key.language, "first": f"{key.model}/{key.setting}", "second": ""}
        blank = (unknown(run | {"metric": metric}, reason) for metric in _TESTED)
        rows.append(Row((find(key.language).label, name, ""), tuple(blank), reason))
    return TableContent(
        heads=(
            (
                *heads("Language", "First", "Second", "only first right", "only second right"),
                *(Head("p", latex="$p$"), Head("p corrected", latex="$p$ corrected")),
            ),
        ),
        groups=(Group(tuple(rows)),),
        caption="Every two runs on the same hard variants (first seeds) by McNemar's exact test; p"
        " corrected within a language (Benjamini-Hochberg).",
        notes=given.notes,
        decimals=4,
    )


def _right(metrics: JamMetrics) -> list[bool]:
    """Whether each variant was judged right, in the order of its name."""
    decided = {name: right for item in metrics.judged for name, right in item.variants.items()}
    return [decided[name] for name in sorted(decided)]
