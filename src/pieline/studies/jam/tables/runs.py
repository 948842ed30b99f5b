"""ID10M-JAM run by run: intervals and F1 of each seed, and a paired test of every two runs."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

from pieline.core.records import load_records
from pieline.core.uncertainty import Interval
from pieline.languages.registry import find
from pieline.reporting.given import Given
from pieline.reporting.printed import compare, percent_bounds, probability, rounded
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.jam.metrics.drift import Drift, compare_drifts
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import RunKey, by_run, key_of, per_cent, unreadable
from pieline.studies.jam.metrics.tokens import TaggingScores
from pieline.studies.jam.tables.common import (
    PROMPTS,
    code_of,
    heads,
    languages_of,
    marked,
    not_made,
    notes_on,
    obstacles_of,
    title_of,
    unknown,
)

_SHOWN = {
    "accuracy": Head("Accuracy (%)"),
    "success_overall": Head("S_M", latex="$S_M$"),
    "flipped_overall": Head("F_M", latex="$F_M$"),
    "negative_drift_overall": Head("ND_M (%)", latex=r"$\mathit{ND}_M$ (\%)"),
    "unreadable": Head("unreadable"),
}


def runs(given: Given) -> TableContent:
    """Every run and seed by itself: accuracy, S, F, ND with 95 % intervals, F1 of the tags (%).

    The paper prints none of these by seed; the CSV says so. The table shows the first four, and
    how many answers could not be read.
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
            elif name == "unreadable":
                cells.append(Cell(number, text="{} of {}".format(*unreadable([item]))))
            elif name.startswith(("success", "flipped")):
                cells.append(Cell(number, text=rounded(value, 0)))
            else:
                bounds = percent_bounds(interval, 1)
                text = f"{rounded(value, 1)} [{', '.join(bounds)}]" if bounds else ""
                cells.append(Cell(number, text=text))
        names = (labels[item.model], title_of(item.setting), code_of(item.language), str(item.seed))
        rows.append(Row(names, tuple(cells), unseen=tuple(unseen)))
    for (model, setting, language, seed), reason in given.left_out().items():
        names = (labels[model], title_of(setting), code_of(language), seed)
        key = RunKey(setting, model, language)._asdict() | {"seed": seed}
        blank = (unknown(key | {"metric": name}, reason) for name in _SHOWN)
        rows.append(Row(names, tuple(blank), reason))
    return TableContent(
        heads=((*heads("Model", "Setting", "Language", "Seed"), *_SHOWN.values()),),
        groups=(Group(tuple(rows)),),
        caption="Every run by itself, with 95 % bootstrap intervals over originals; of all its"
        " answers those that could not be read.",
        notes=(*notes_on(metrics, given), PROMPTS),
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
    yield "unreadable", unreadable([item])[0], None


def pairs(given: Given) -> TableContent:
    """Negative drift of every two runs on the same originals, over all seeds, by language.

    Differences are in points, first minus second; the CSV has both p-values.
    """
    metrics = load_records(given.metrics, JamMetrics)
    labels, permutations = given.labels(), given.options["permutations"]
    files: dict[RunKey, tuple[str, ...]] = defaultdict(tuple)
    for item, path in zip(metrics, given.metrics, strict=True):
        files[key_of(item)] += (path,)
    made = {key: found for key, found in by_run(metrics).items() if found[0].overall.variants}
    rows = []
    for language in languages_of(made):
        judged = {
            key: [item.judgements() for item in found]
            for key, found in made.items()
            if key.language == language
        }
        for couple, test in compare_drifts(judged, permutations=permutations, seed=0).items():
            of_couple = [made[key] for key in couple]
            first, second = (f"{key.model}/{key.setting}" for key in couple)
            seeds = (" ".join(str(item.seed) for item in found) for found in of_couple)
            chances = {name: getattr(test, name) for name in ("p_value", "p_holm")}
            number = Number(
                {
                    **{"language": language, "first": first, "second": second},
                    **dict(zip(("first_seeds", "second_seeds"), seeds, strict=True)),
                    "metric": "negative_drift_difference",
                    **{name: f"{value:.4g}" for name, value in chances.items()},
                },
                compare(
                    100 * test.difference, None, obstacles=obstacles_of(list(chain(*of_couple)))
                ),
                tuple(chain(*(files[key] for key in couple))),
            )
            names = (
                marked(f"{labels[key.model]}, {title_of(key.setting)}", {"": made[key]})
                for key in couple
            )
            told = (Cell(text=probability(value)) for value in chances.values())
            rows.append(Row((find(language).label, *names), (Cell(number), *told)))
    for key in not_made(given, made):
        name = f"{labels[key.model]}, {title_of(key.setting)}"
        reason = given.why_not(key.model, key.setting, key.language)
        run = {"language": key.language, "first": f"{key.model}/{key.setting}", "second": ""}
        blank = unknown(run | {"metric": "negative_drift_difference"}, reason)
        rows.append(Row((find(key.language).label, name, ""), (blank, Cell(), Cell()), reason))
    about = (
        "Negative drift of every two runs on the same originals ({drift} of the first minus that of"
        " the second, in points, over all seeds), with the {p}-value of a two-sided paired"
        f" randomisation test of at most {permutations:,} patterns, in which two runs change places"
        " on whole originals, also corrected within a language (Holm). A run without any success"
        " has no drift."
    )
    return TableContent(
        heads=(
            (
                *heads("Language", "First", "Second", "difference"),
                *(Head("p", latex="$p$"), Head("p corrected", latex="$p$ corrected")),
            ),
        ),
        groups=(Group(tuple(rows)),),
        caption=about.format(drift="ND_M", p="p"),
        caption_latex=about.format(drift=r"$\mathit{ND}_M$", p="$p$"),
        notes=(*notes_on(metrics, given), PROMPTS),
        long=True,
    )
