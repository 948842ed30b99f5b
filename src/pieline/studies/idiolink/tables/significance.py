"""Tables of significance tests and of scores by PIE (not in the paper)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from pieline.core.records import load_records
from pieline.core.significance import sign_patterns
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import Number, rows_of
from pieline.reporting.ours import OurNumbers, over_seeds
from pieline.reporting.printed import rounded
from pieline.reporting.tables import Cell, Column, Group, Head, Row, TableContent
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink import paths
from pieline.studies.idiolink.metrics.scores import RANKING, IdiolinkMetrics
from pieline.studies.idiolink.metrics.significance import (
    DIFFERENCES,
    ModeSignificance,
    compare_models,
)
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.zero_shot import (
    METRICS,
    UNKNOWN_NOTE,
    mode_label,
    notes_on,
    obstacles_of,
    run_of,
)

_P_VALUE = Head("p", latex="$p$")
_COLUMNS = [Column(DIFFERENCES[name].name, label, interval=2) for name, label in METRICS.items()]


def significance_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the differences between the query modes of each model and seed."""
    numbers = OurNumbers(inputs.study)
    results = load_records(inputs.metrics, ModeSignificance)
    for item, path in zip(results, inputs.metrics, strict=True):
        for pair in item.comparisons:
            keys = paths.keys_of("test", item.model, pair.second, item.seed)
            numbers.add(
                {**keys, "against": pair.first},
                [DIFFERENCES[pair.metric]],
                pair,
                files=[path],
                obstacles=obstacles_of(item),
                p_value=pair.p_value,
                p_holm=pair.p_holm,
            )
    return numbers.frame()


def significance(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the differences between query modes, in points, with p-values."""
    labels = inputs.labels()
    groups: dict[str, list[Row]] = {}
    keys = ("model", "train_mode", "loss", "seed", "against", "query_mode")
    for (model, train_mode, loss, seed, first, second), pair in rows_of(numbers, keys).items():
        label = labels[model]
        if train_mode:
            label += f" ({mode_label(train_mode)}, {loss} loss, seed {seed})"
        row = _row((label, mode_label(first), mode_label(second)), pair)
        groups.setdefault(label, []).append(row)
    results = load_records(inputs.metrics, ModeSignificance)
    any_result = results[0]
    resampling = _resampling(
        any_result.pies, any_result.queries, any_result.resamples, any_result.patterns
    )
    notes = notes_on(results)
    if numbers["ours"].isna().any():
        notes = (*notes, UNKNOWN_NOTE)
    return _table(
        "Model",
        groups.values(),
        f"Differences between query modes in points (second minus first), {_TESTED} for a model's"
        f" pairs of modes. {resampling}",
        notes,
    )


def _tests(study: ConfiguredStudy) -> DisplayInputs | None:
    models = given.ranked(study) + given.tuned_bases(study)
    return given.shown(study, given.others(study, paths.SIGNIFICANCE), models)


SIGNIFICANCE_TABLE = Table(
    "idiolink_significance",
    NOT_IN_PAPER,
    "Paired randomization tests over PIEs between query modes, with intervals.",
    significance,
    _tests,
    significance_numbers,
)


def pairs_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the differences between all pairs of models in each query mode."""
    numbers = OurNumbers(inputs.study)
    records = load_records(inputs.metrics, IdiolinkMetrics)
    for mode in QUERY_MODES:
        runs = {
            item.model: (item, path)
            for item, path in zip(records, inputs.metrics, strict=True)
            if item.query_mode == mode
        }
        if len(runs) < 2:
            continue
        scores = {model: item.by_pie for model, (item, _) in runs.items()}
        for pair in compare_models(scores, **inputs.options, seed=0):
            first, first_path = runs[pair.first]
            second, second_path = runs[pair.second]
            numbers.add(
                {**paths.keys_of("test", pair.second, mode, 0), "against": pair.first},
                [DIFFERENCES[pair.metric]],
                pair,
                files=[first_path, second_path],
                obstacles=obstacles_of(first, second),
                p_value=pair.p_value,
                p_holm=pair.p_holm,
            )
    return numbers.frame()


def model_pairs(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the differences between models by query mode, in points, with p-values."""
    labels = inputs.labels()
    groups: dict[str, list[Row]] = {}
    pairs = rows_of(numbers, ("query_mode", "against", "model"))
    for (mode, first, second), pair in pairs.items():
        row = _row((mode_label(mode), labels[first], labels[second]), pair)
        groups.setdefault(mode, []).append(row)
    metrics = load_records(inputs.metrics, IdiolinkMetrics)
    sizes = [scores.queries for scores in metrics[0].by_pie.values()]
    patterns = sign_patterns(len(sizes), inputs.options["permutations"])
    resampling = _resampling(len(sizes), sum(sizes), inputs.options["resamples"], patterns)
    return _table(
        "Query",
        groups.values(),
        "Differences between models in points (second minus first) over the same queries,"
        f" {_TESTED} for a query mode's pairs of models. {resampling}",
        notes_on(metrics),
    )


def _pairs(study: ConfiguredStudy) -> DisplayInputs | None:
    ranked, settings = given.ranked(study), study.settings
    runs = given.zero_shot(study, ranked)
    modes = [run.where["query_mode"] for run in runs]
    if len(set(modes)) == len(modes):
        return None
    options = {
        "permutations": settings.permutations,
        "resamples": settings.bootstrap_resamples,
    }
    inputs = study.display_inputs(runs, models=ranked)
    return inputs.model_copy(update={"options": options})


PAIRS_TABLE = Table(
    "idiolink_pairs",
    NOT_IN_PAPER,
    "Paired randomization tests over PIEs between all pairs of models, with intervals.",
    model_pairs,
    _pairs,
    pairs_numbers,
)


_TESTED = (
    "each with its 95% interval and the {p}-value of a two-sided paired randomization test,"
    " corrected by Holm's procedure"
)


def _table(
    label: str, groups: Iterable[Sequence[Row]], caption: str, notes: tuple[str, ...]
) -> TableContent:
    """Lay out a table of compared pairs; `label` is the header of the first column."""
    heads = [Head(label), Head("First"), Head("Second")]
    for name in METRICS.values():
        heads += [Head(name), _P_VALUE]
    return TableContent(
        heads=(tuple(heads),),
        groups=tuple(Group(tuple(rows)) for rows in groups),
        caption=caption.format(p="p"),
        caption_latex=caption.format(p="$p$").replace("%", r"\%"),
        notes=notes,
        long=True,
        label_widths=(0.16, 0.11, 0.11),
    )


def _resampling(pies: int, queries: int, resamples: int, patterns: int) -> str:
    """Return the caption text on resampling, which is the same for all tests in a table."""
    every = "all " if patterns == 2**pies else ""
    return (
        f"The {pies} PIEs were resampled with all their queries ({queries}): {resamples:,}"
        f" bootstrap samples, and {every}{patterns:,} sign patterns over PIEs."
    )


def _row(labels: tuple[str, ...], pair: Mapping[str, Number]) -> Row:
    """Return the row of a pair: the difference in each metric, and its corrected p-value."""
    cells: list[Cell] = []
    for column in _COLUMNS:
        cells += (column.cell(pair), Cell(text=rounded(pair[column.measure].p_holm, 4)))
    return Row(labels, tuple(cells))


class PieMeans(NamedTuple):
    """Means over models; every mean is over the same models.

    Attributes:
        values: Means by PIE (rows) and query mode (columns).
        models: Names of the averaged models.
    """

    values: pd.DataFrame
    models: list[str]


def by_pie_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the scores of each PIE; those of fine-tuned models are means over seeds."""
    numbers = OurNumbers(inputs.study)
    records = load_records(inputs.metrics, IdiolinkMetrics)
    for item, path in zip(records, inputs.metrics, strict=True):
        obstacles = obstacles_of(item)
        for pie, scores in item.by_pie.items():
            keys = {**run_of(item), "scope": pie}
            numbers.add(keys, RANKING, scores, files=[path], obstacles=obstacles)
    frame = numbers.frame()
    is_tuned = frame["train_mode"] != ""
    return pd.concat([frame[~is_tuned], over_seeds(frame[is_tuned])], ignore_index=True)


def hardest_first(ours: pd.DataFrame, means: PieMeans) -> list[str]:
    """Sort PIEs by their mean over the query modes of `means`, lowest first.

    PIEs without means come last.
    """
    over_modes = means.values.mean(axis="columns").reindex(sorted(set(ours["scope"])))
    return list(over_modes.sort_values(kind="stable").index)


def zero_shot_means(ours: pd.DataFrame) -> PieMeans:
    """Return the mean nDCG@10 (percent) over zero-shot models, by PIE and query mode."""
    return _over_same_models(_ndcg(ours, is_tuned=False))


def gains_by_pie(ours: pd.DataFrame) -> PieMeans:
    """Return the mean change in nDCG@10 from fine-tuning, in points, by PIE and query mode.

    Each fine-tuned model is compared with its zero-shot base model in the same mode, if both were
    run. The change of a base model is the mean over its trainings that are evaluated in the mode.
    """
    tuned = _ndcg(ours, is_tuned=True)
    tuned = tuned.groupby(tuned.index.names, sort=False).mean()
    return _over_same_models(tuned - _ndcg(ours, is_tuned=False).reindex(tuned.index))


def _ndcg(ours: pd.DataFrame, *, is_tuned: bool) -> "pd.Series[float]":
    """Return the nDCG@10 of zero-shot or fine-tuned models, by model, query mode and PIE."""
    rows = ours[(ours["measure"] == "ndcg_at_10") & ((ours["train_mode"] != "") == is_tuned)]
    return rows.set_index(["model", "query_mode", "scope"])["ours"]


def _over_same_models(values: "pd.Series[float]") -> PieMeans:
    """Average values by model, query mode and PIE over models.

    The modes are those of the model with the most modes. Only models with a value for every PIE in
    all these modes are averaged; otherwise, the means of two modes would be over different models.
    """
    complete = values.dropna().unstack("scope").dropna()
    modes_of: dict[str, set[str]] = {name: set() for name in values.index.unique("model")}
    for model, mode in complete.index:
        modes_of[model].add(mode)
    most = max(modes_of.values(), key=len, default=set())
    models = [model for model, modes in modes_of.items() if most and modes >= most]
    averaged = complete[complete.index.isin(models, level="model")]
    means = averaged.groupby(level="query_mode").mean()
    return PieMeans(means.reindex([mode for mode in QUERY_MODES if mode in most]).T, models)


def notes_on_means(means: PieMeans, ours: pd.DataFrame, labels: Mapping[str, str]) -> list[str]:
    """Return notes that name the averaged zero-shot models, and those that are not averaged."""
    zero_shot = ours.loc[ours["train_mode"] == "", "model"].unique()
    averaged = ", ".join(labels[name] for name in means.models) or "no model"
    others = ", ".join(labels[name] for name in zero_shot if name not in means.models)
    notes = [f"Every zero-shot mean is over the same models: {averaged}."]
    if others:
        notes.append(f"Not averaged, because a query mode or a score is missing: {others}.")
    return notes


def by_pie(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the mean nDCG@10 (percent) over zero-shot models by PIE, hardest first.

    `numbers` has both metrics of every model.
    """
    means = zero_shot_means(numbers)
    modes = list(means.values.columns)
    rows = []
    for rank, pie in enumerate(hardest_first(numbers, means), start=1):
        cells = tuple(Cell(text=rounded(means.values[mode].get(pie), 2)) for mode in modes)
        rows.append(Row((str(rank), pie), cells))
    heads = [Head("Rank"), Head("PIE")]
    heads += [Head(mode_label(mode)) for mode in modes]
    notes = notes_on_means(means, numbers, inputs.labels())
    notes += notes_on(load_records(inputs.metrics, IdiolinkMetrics))
    return TableContent(
        heads=(tuple(heads),),
        groups=(Group(tuple(rows)),),
        caption="nDCG@10 of each PIE by query mode in percent, the mean over zero-shot models with"
        " all these modes; the hardest PIE comes first.",
        notes=tuple(notes),
        long=True,
    )


def by_pie_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with all zero-shot and fine-tuned runs; None without zero-shot ones."""
    ranked = given.ranked(study)
    runs = given.zero_shot(study, ranked)
    if not runs:
        return None
    runs += [run for run in given.tuned(study) if not run.lacks]
    return given.shown(study, runs, ranked)


BY_PIE_TABLE = Table(
    "idiolink_by_pie",
    NOT_IN_PAPER,
    "R-Precision and nDCG@10 of each PIE.",
    by_pie,
    by_pie_inputs,
    by_pie_numbers,
)
