"""ID10M-JAM's result tables: negative drift (Table 3), by usage (Table 5), confusion (Table 6)."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pieline.core.records import load_records
from pieline.languages.registry import find
from pieline.reporting.given import Given
from pieline.reporting.models import ModelDescription
from pieline.reporting.printed import compare, read_published
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent, stacked
from pieline.studies.jam.metrics.drift import Drift
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import (
    RunKey,
    Value,
    by_run,
    key_of,
    negative_drift,
    over_seeds,
    per_cent,
)
from pieline.studies.jam.tables.common import (
    GROUPS,
    heads,
    languages_of,
    left_out_seeds,
    not_made,
    obstacles_of,
)

_ABREAST = 10
"""Columns of numbers that a page has room for."""
NOT_SO = "not with this setting and language in this configuration"
"""Why there is no number of ours of a model that is run otherwise."""


@dataclass(frozen=True)
class Column:
    """A number of a table.

    Attributes:
        name: its column in published/*.csv.
        head: its heading, as plain text and as LaTeX.
        value: ours for one run, in the printed unit; None where it is unknown.
        unknown: why it can be unknown although the run was made.
    """

    name: str
    head: Head
    value: Value
    unknown: str = ""


def _drift(name: str, letter: str, value: Value) -> Column:
    head = Head(f"ND_{letter} (%) ↓", latex=rf"$\mathit{{ND}}_{letter}$ (\%) $\downarrow$")
    unknown = "no such original was judged right, so nothing could drift"
    return Column(f"negative_drift{name}_pct", head, value, unknown)


def _success(name: str, letter: str, part: Callable[[JamMetrics], Drift]) -> Column:
    head = Head(f"S_{letter}", latex=f"$S_{letter}$")
    return Column(f"success{name}", head, lambda item: part(item).success)


def _confusion(name: str, head: str) -> Column:
    def value(metrics: JamMetrics) -> float:
        # The paper counts variants of encoders, and originals of language models.
        tagged = metrics.setting == "fine_tuned"
        return int(getattr(metrics.confusion_of_variants if tagged else metrics.confusion, name))

    return Column(name, Head(head), value)


_SUCCESS = _success("", "M", lambda item: item.overall)


def drift(given: Given) -> TableContent:
    """Table 3: successes and negative drift."""
    sentence = (
        "Results on ID10M-JAM. {}: hard variants whose original the model judged right; {}:"
        " negative drift, the share of them that it judged wrong. A dash: unknown."
    )
    return _table(
        given,
        (_SUCCESS, _drift("", "M", negative_drift)),
        caption=sentence.format("S_M", "ND_M"),
        latex=sentence.format("$S_M$", r"$\mathit{ND}_M$"),
    )


def usage(given: Given) -> TableContent:
    """Table 5: the same by usage."""
    sentence = (
        "Success count and negative drift on ID10M-JAM, by literal ({}) and idiomatic ({}) usage."
        " A dash: unknown, because no original of this usage was judged right."
    )
    return _table(
        given,
        (
            _SUCCESS,
            _success("_literal", "L", lambda item: item.literal),
            _drift("_literal", "L", lambda item: per_cent(item.literal.negative_drift)),
            _success("_idiomatic", "I", lambda item: item.idiomatic),
            _drift("_idiomatic", "I", lambda item: per_cent(item.idiomatic.negative_drift)),
        ),
        caption=sentence.format("L", "I"),
        latex=sentence.format("$L$", "$I$"),
    )


def confusion(given: Given) -> TableContent:
    """Table 6: all-confused, none-confused and mixed originals."""
    sentence = (
        "Originals of ID10M-JAM by how many of their variants were judged wrong: all (AC), none"
        " (NC), some (MX). As in the paper the three sum to all originals, whether or not the"
        " original itself was judged right; of encoders they count the {} variants (AC: flipped,"
        " NC: kept)."
    )
    return _table(
        given,
        (
            _confusion("all_confused", "AC"),
            _confusion("none_confused", "NC"),
            _confusion("mixed", "MX"),
        ),
        caption=sentence.format("S_M"),
        latex=sentence.format("$S_M$"),
    )


def _table(given: Given, columns: Sequence[Column], *, caption: str, latex: str) -> TableContent:
    """One of the three tables, in the paper's layout: what was run, then what it prints besides.

    A part for each language of the runs; printed numbers of another are only in the CSV.
    """
    metrics = load_records(given.metrics, JamMetrics)
    runs, described = by_run(metrics), (*given.models, *given.absent)
    files: dict[RunKey, tuple[str, ...]] = defaultdict(tuple)
    for item, path in zip(metrics, given.metrics, strict=True):
        files[key_of(item)] += (path,)
    named = {model.published_as: model.name for model in described if model.published_as}
    printed = {
        RunKey(setting, named[label], language): row
        for (setting, label, language), row in read_published(
            given.files["published"], ["setting", "model", "language"]
        ).items()
        if label in named
    }
    left_out = not_made(given, runs)
    wanted = {key: printed.get(key, {}) for key in (*printed, *left_out)}
    numbers = {
        key: list(
            _numbers(
                key,
                runs.get(key, []),
                columns,
                printed.get(key, {}),
                reason=_why_not(given, key),
                files=files[key],
            )
        )
        for key in (*runs, *(key for key in wanted if key not in runs))
    }
    shown = languages_of([*runs, *left_out])
    rows: dict[str, list[Row]] = {group: [] for group in GROUPS}
    unseen = []
    for setting, model in _order(runs, wanted, described):
        keys = [RunKey(setting, model.name, language) for language in shown]
        others = [key for key in numbers if key[:2] == (setting, model.name) and key not in keys]
        hidden = [number for key in others for pair in numbers[key] for number in pair if number]
        if not any(key in numbers for key in keys):
            unseen += hidden
            continue
        is_run = any(key in runs for key in keys)
        blank = [(None, None)] * len(columns)
        rows[group_of(setting, model)].append(
            Row(
                (model.label,),
                tuple(Cell(*pair) for key in keys for pair in numbers.get(key, blank)),
                reason="" if is_run else _why_not(given, keys[0]),
                unseen=tuple(hidden),
            )
        )
    scored = "Scored as the released analysis does."
    table = TableContent(
        heads=(
            (*heads("", ""), *(Head(find(name).label, len(columns)) for name in shown)),
            (*heads("Setting", "Model"), *(column.head for _ in shown for column in columns)),
        ),
        groups=tuple(Group(tuple(rows[group]), title) for group, title in GROUPS.items()),
        caption=caption,
        caption_latex=latex,
        notes=(
            *([scored] if {item.scoring for item in metrics} == {"released"} else []),
            *left_out_seeds(given, runs),
            *given.notes,
        ),
        unseen=tuple(unseen),
    )
    # Pairs of languages side by side, as far as a page is wide.
    return stacked(table, labels=2, cells=max(2, _ABREAST // len(columns) // 2 * 2) * len(columns))


def _why_not(given: Given, key: RunKey) -> str:
    return given.why_not(key.model, key.setting, key.language) or NOT_SO


def group_of(setting: str, model: ModelDescription) -> str:
    """The part of a table in which a run stands; a key of `GROUPS`."""
    return "reasoning" if model.reasoning and setting == "zero_shot" else setting


def _order(
    runs: Mapping[RunKey, object],
    wanted: Mapping[RunKey, object],
    described: Sequence[ModelDescription],
) -> list[tuple[str, ModelDescription]]:
    """Setting and model of each row: those that were run, in the paper's order, then the others.

    Args:
        runs: what was run.
        wanted: the paper's runs in its order, then others that were not made.
        described: the models.
    """
    models = {model.name: model for model in described}
    of_paper = list(dict.fromkeys(key[:2] for key in wanted))
    names = list(models)
    made = {key[:2] for key in runs}

    def place(row: tuple[str, str]) -> tuple[bool, bool, int]:
        known = row in of_paper
        return row not in made, not known, of_paper.index(row) if known else names.index(row[1])

    rows = sorted({*made, *of_paper}, key=lambda row: (*place(row), row))
    return [(setting, models[name]) for setting, name in rows]


def _numbers(
    key: RunKey,
    metrics: Sequence[JamMetrics],
    columns: Sequence[Column],
    printed: Mapping[str, float],
    *,
    reason: str,
    files: tuple[str, ...],
) -> Iterator[tuple[Number, Number | None]]:
    """Mean and deviation in each column of a run."""
    obstacles = obstacles_of(metrics) if metrics else [f"not run: {reason}"]
    seeds = " ".join(str(item.seed) for item in metrics)

    for column in columns:
        found, spread = over_seeds(metrics, column.value), f"{column.name}_std"
        problems = [column.unknown, *obstacles] if metrics and found is None else [*obstacles]
        identity = {**key._asdict(), "seeds": seeds}
        # Answers and trainings vary from run to run: two printed deviations count as reproduced.
        comparison = compare(
            found.mean if found else None,
            printed.get(column.name),
            obstacles=problems,
            tolerance=2 * printed.get(spread, 0.0),
        )
        mean = Number({**identity, "metric": column.name.removesuffix("_pct")}, comparison, files)
        deviation = found.deviation if found else None
        if deviation is None and spread not in printed:
            yield mean, None
            continue
        if found and deviation is None:
            problems = ["one seed has no deviation", *problems]
        comparison = compare(deviation, printed.get(spread), obstacles=problems)
        yield mean, Number({**identity, "metric": spread}, comparison, files)
