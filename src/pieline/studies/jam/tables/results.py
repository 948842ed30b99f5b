"""ID10M-JAM's result tables: negative drift (Table 3), by usage (Table 5), confusion (Table 6)."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pieline.core.records import load_records
from pieline.languages.registry import find
from pieline.reporting.given import Given
from pieline.reporting.models import ModelDescription
from pieline.reporting.printed import Comparison, compare
from pieline.reporting.seeds import deviation_ranges, mean_ranges
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
    unreadable,
)
from pieline.studies.jam.tables.common import (
    GROUPS,
    JUDGED,
    PROMPTS,
    code_of,
    heads,
    languages_of,
    left_out_seeds,
    marked,
    not_made,
    notes_on,
    obstacles_of,
    pool_of,
    printed_runs,
    printed_spread,
    title_of,
)

_ABREAST = 10
"""Columns of numbers that a page has room for."""
NOT_SO = "not with this setting and language in this configuration"
"""Why there is no number of ours of a model that is run otherwise."""


@dataclass(frozen=True)
class RunColumn:
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


def _drift(name: str, letter: str, value: Value) -> RunColumn:
    head = Head(f"ND_{letter} (%) ↓", latex=rf"$\mathit{{ND}}_{letter}$ (\%) $\downarrow$")
    unknown = "no such original was judged right, so nothing could drift"
    return RunColumn(f"negative_drift{name}_pct", head, value, unknown)


def _success(name: str, letter: str, part: Callable[[JamMetrics], Drift]) -> RunColumn:
    head = Head(f"S_{letter}", latex=f"$S_{letter}$")
    return RunColumn(f"success{name}", head, lambda item: part(item).success)


def _confusion(name: str, head: str) -> RunColumn:
    def value(metrics: JamMetrics) -> float:
        # The paper counts variants of encoders, and originals of language models.
        tagged = metrics.setting == "fine_tuned"
        return int(getattr(metrics.confusion_of_variants if tagged else metrics.confusion, name))

    return RunColumn(name, Head(head), value)


_SUCCESS = _success("", "M", lambda item: item.overall)


def drift(given: Given) -> TableContent:
    """Table 3: successes and negative drift."""
    return _table(
        given,
        (_SUCCESS, _drift("", "M", negative_drift)),
        "Results on ID10M-JAM. {}: hard variants whose original the model judged right{of};"
        " {}: negative drift, the share of them that it judged wrong. A dash: unknown.",
        symbols={"S_M": "$S_M$", "ND_M": r"$\mathit{ND}_M$"},
        of=lambda item: f"{item.overall.variants}",
    )


def usage(given: Given) -> TableContent:
    """Table 5: the same by usage."""
    return _table(
        given,
        (
            _SUCCESS,
            _success("_literal", "L", lambda item: item.literal),
            _drift("_literal", "L", lambda item: per_cent(item.literal.negative_drift)),
            _success("_idiomatic", "I", lambda item: item.idiomatic),
            _drift("_idiomatic", "I", lambda item: per_cent(item.idiomatic.negative_drift)),
        ),
        "Success count{of} and negative drift on ID10M-JAM, by literal ({}) and idiomatic"
        " ({}) usage. A dash: unknown, because no original of this usage was judged right.",
        symbols={"L": "$L$", "I": "$I$"},
        of=lambda item: (
            f"{item.overall.variants} variants, {item.literal.variants} of them literal"
        ),
    )


def confusion(given: Given) -> TableContent:
    """Table 6: all-confused, none-confused and mixed originals."""
    return _table(
        given,
        (
            _confusion("all_confused", "AC"),
            _confusion("none_confused", "NC"),
            _confusion("mixed", "MX"),
        ),
        "Originals of ID10M-JAM{of} by how many of their variants were judged wrong: all"
        " (AC), none (NC), some (MX). As in the paper the three sum to all originals, whether or"
        " not the original itself was judged right; of encoders they count the {} variants (AC:"
        " flipped, NC: kept).",
        symbols={"S_M": "$S_M$"},
        of=lambda item: f"{item.overall.originals}",
    )


def _table(
    given: Given,
    columns: Sequence[RunColumn],
    caption: str,
    *,
    symbols: Mapping[str, str],
    of: Callable[[JamMetrics], str],
) -> TableContent:
    """One of the three tables: the paper's rows in its order, then those that are only ours.

    A part for each language of the runs; printed numbers of another are only in the CSV.

    Args:
        given: metrics, printed numbers and models.
        columns: for each language.
        caption: with a place for each symbol, and `{of}` for out of how many.
        symbols: how LaTeX writes them, by plain text.
        of: out of how many the numbers of a language are.
    """
    metrics = load_records(given.metrics, JamMetrics)
    runs, described = by_run(metrics), (*given.models, *given.absent)
    files: dict[RunKey, tuple[str, ...]] = defaultdict(tuple)
    for item, path in zip(metrics, given.metrics, strict=True):
        files[key_of(item)] += (path,)
    printed = printed_runs(given)
    left_out = not_made(given, runs)
    places = {model.name: place for place, model in enumerate(described)}
    ours = sorted([*runs, *left_out], key=lambda key: places[key.model])
    numbers = {
        key: list(
            _numbers(
                key,
                runs.get(key, []),
                columns,
                printed,
                reason=_why_not(given, key),
                files=files[key],
            )
        )
        for key in dict.fromkeys([*printed, *ours])
    }
    shown = languages_of([*runs, *left_out])
    rows: dict[str, list[Row]] = defaultdict(list)
    unseen = []
    for setting, name in dict.fromkeys(key[:2] for key in numbers):
        model = described[places[name]]
        keys = [RunKey(setting, model.name, language) for language in shown]
        others = [key for key in numbers if key[:2] == (setting, model.name) and key not in keys]
        hidden = [number for key in others for pair in numbers[key] for number in pair if number]
        if not any(key in numbers for key in keys):
            unseen += hidden
            continue
        is_run = any(key in runs for key in keys)
        blank = [(None, None)] * len(columns)
        made = {code_of(key.language): runs[key] for key in keys if key in runs}
        rows[group_of(setting, model)].append(
            Row(
                (marked(model.label, made),),
                tuple(Cell(*pair) for key in keys for pair in numbers.get(key, blank)),
                reason="" if is_run else _why_not(given, keys[0]),
                unseen=(
                    *hidden,
                    *(_lost(key, runs[key], files[key]) for key in keys if key in runs),
                ),
            )
        )
    totals = {item.language: of(item) for item in metrics}
    told = ", ".join(f"{total} in {find(name).label}" for name, total in totals.items())
    told = f" (of {told})" if told else ""
    compared = any(item.dataset_is_released for item in metrics)
    table = TableContent(
        heads=(
            (*heads("", ""), *(Head(find(name).label, len(columns)) for name in shown)),
            (*heads("Setting", "Model"), *(column.head for _ in shown for column in columns)),
        ),
        groups=tuple(
            Group(tuple(rows[group]), title_of(group)) for group in dict.fromkeys([*GROUPS, *rows])
        ),
        caption=caption.format(*symbols, of=told),
        caption_latex=caption.format(*symbols.values(), of=told),
        notes=(
            f"±: standard deviation over seeds (ddof 1). {PROMPTS}",
            *([JUDGED, *_single_seed_ranges(numbers, columns)] if compared else []),
            *left_out_seeds(given, runs),
            *notes_on(metrics, given),
        ),
        unseen=tuple(unseen),
    )
    # Pairs of languages side by side, as far as a page is wide.
    return stacked(table, labels=2, cells=max(2, _ABREAST // len(columns) // 2 * 2) * len(columns))


def _single_seed_ranges(
    numbers: Mapping[RunKey, Sequence[tuple[Number, Number | None]]], columns: Sequence[RunColumn]
) -> list[str]:
    """How wide the sampling ranges of numbers are that the paper prints of a single seed."""
    halves: dict[str, dict[str, float]] = defaultdict(dict)
    for key, pairs in numbers.items():
        for column, (mean, deviation) in zip(columns, pairs, strict=True):
            compared = mean.comparison
            if deviation is None and isinstance(compared, Comparison) and compared.comparable:
                for low, high in compared.ranges.values():
                    wide = halves[find(key.language).label]
                    name = column.head.text.partition(" ")[0]
                    wide[name] = max(wide.get(name, 0.0), (high - low) / 2)
    listed = (
        f"{language} {', '.join(f'{name} ±{half:.1f}' for name, half in wide.items())}"
        for language, wide in sorted(halves.items())
    )
    return [f"Of a printed single seed that range is wide: {'; '.join(listed)}."] if halves else []


def _lost(key: RunKey, metrics: Sequence[JamMetrics], files: tuple[str, ...]) -> Number:
    """How many answers of a run could not be read, over its seeds."""
    seeds = " ".join(str(item.seed) for item in metrics)
    identity = {**key._asdict(), "seeds": seeds, "metric": "unreadable"}
    number = compare(unreadable(metrics)[0], None, obstacles=obstacles_of(metrics), decimals=0)
    return Number(identity, number, files)


def _why_not(given: Given, key: RunKey) -> str:
    return given.why_not(key.model, key.setting, key.language) or NOT_SO


def group_of(setting: str, model: ModelDescription) -> str:
    """The part of a table in which a run stands."""
    return "reasoning" if model.reasoning and setting == "zero_shot" else setting


def _numbers(
    key: RunKey,
    metrics: Sequence[JamMetrics],
    columns: Sequence[RunColumn],
    printed: Mapping[RunKey, Mapping[str, float]],
    *,
    reason: str,
    files: tuple[str, ...],
) -> Iterator[tuple[Number, Number | None]]:
    """Mean and deviation in each column of a run."""
    obstacles = obstacles_of(metrics) if metrics else [f"not run: {reason}"]
    seeds = " ".join(str(item.seed) for item in metrics)

    for column in columns:
        found = over_seeds(metrics, column.value)
        theirs, pool = printed_spread(printed, key, column.name), pool_of(printed, key, column.name)
        problems = [column.unknown, *obstacles] if metrics and found is None else [*obstacles]
        identity = {**key._asdict(), "seeds": seeds}
        comparison = compare(
            found.mean if found else None,
            theirs.mean if theirs else None,
            obstacles=problems,
            ranges=mean_ranges(found, theirs, pool=pool) if found and theirs else None,
        )
        mean = Number({**identity, "metric": column.name.removesuffix("_pct")}, comparison, files)
        deviation = found.deviation if found else None
        if deviation is None and (theirs is None or theirs.deviation is None):
            yield mean, None
            continue
        if found and deviation is None:
            problems = ["one seed has no deviation", *problems]
        ranges = {}
        if found and deviation is not None and theirs and theirs.deviation is not None:
            ranges = deviation_ranges(found.seeds, theirs, pool=pool)
        comparison = compare(
            deviation, theirs.deviation if theirs else None, obstacles=problems, ranges=ranges
        )
        yield mean, Number({**identity, "metric": f"{column.name}_std"}, comparison, files)
