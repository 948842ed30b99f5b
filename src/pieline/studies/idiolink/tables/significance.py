"""Build the tables of significance tests and of scores by PIE (not in the paper)."""

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
from pieline.studies.idiolink import paths
from pieline.studies.idiolink.inputs import (
    fine_tuned_runs,
    inputs_with_metrics,
    models_to_fine_tune,
    models_to_rank,
    runs_with_other_metrics,
    zero_shot_runs,
)
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
    """Return the score differences between the query modes of each model and seed."""
    numbers = OurNumbers(inputs.study)
    tests = load_records(inputs.metrics, ModeSignificance)
    for test, path in zip(tests, inputs.metrics, strict=True):
        for comparison in test.comparisons:
            keys = paths.keys_of("test", test.model, comparison.second, test.seed)
            numbers.add(
                {**keys, "against": comparison.first},
                [DIFFERENCES[comparison.metric]],
                comparison,
                files=[path],
                obstacles=obstacles_of(test),
                p_value=comparison.p_value,
                p_holm=comparison.p_holm,
            )
    return numbers.frame()


def significance(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the differences between query modes, in points, with p-values."""
    labels = inputs.labels()
    rows_by_model: dict[str, list[Row]] = {}
    keys = ("model", "train_mode", "loss", "seed", "against", "query_mode")
    for key, differences in rows_of(numbers, keys).items():
        model, train_mode, loss, seed, first_mode, second_mode = key
        training = f" ({mode_label(train_mode)}, {loss} loss, seed {seed})" if train_mode else ""
        label = labels[model] + training
        row = _row((label, mode_label(first_mode), mode_label(second_mode)), differences)
        rows_by_model.setdefault(label, []).append(row)
    tests = load_records(inputs.metrics, ModeSignificance)
    # All tests of the table resample in the same way.
    any_test = tests[0]
    resampling = _describe_resampling(
        any_test.pies, any_test.queries, any_test.resamples, any_test.patterns
    )
    notes = notes_on(tests)
    if numbers["ours"].isna().any():
        notes = (*notes, UNKNOWN_NOTE)
    return _table(
        "Model",
        rows_by_model.values(),
        f"Differences between query modes in points (second minus first), {_TESTED} for a model's"
        f" pairs of modes. {resampling}",
        notes,
    )


def _mode_tests(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the tests between query modes; None if there are no tests."""
    models = models_to_rank(study) + models_to_fine_tune(study)
    runs = runs_with_other_metrics(study, paths.SIGNIFICANCE)
    return inputs_with_metrics(study, runs, models)


SIGNIFICANCE_TABLE = Table(
    "idiolink_significance",
    NOT_IN_PAPER,
    "Paired randomization tests over PIEs between query modes, with intervals.",
    significance,
    _mode_tests,
    significance_numbers,
)


def pairs_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the score differences between all pairs of models in each query mode."""
    numbers = OurNumbers(inputs.study)
    records = load_records(inputs.metrics, IdiolinkMetrics)
    for mode in QUERY_MODES:
        metrics_by_model, path_by_model = {}, {}
        for record, path in zip(records, inputs.metrics, strict=True):
            if record.query_mode == mode:
                metrics_by_model[record.model] = record
                path_by_model[record.model] = path
        if len(metrics_by_model) < 2:
            continue
        scores = {model: metrics.by_pie for model, metrics in metrics_by_model.items()}
        for comparison in compare_models(scores, **inputs.options, seed=0):
            first, second = comparison.first, comparison.second
            numbers.add(
                {**paths.keys_of("test", second, mode, 0), "against": first},
                [DIFFERENCES[comparison.metric]],
                comparison,
                files=[path_by_model[first], path_by_model[second]],
                obstacles=obstacles_of(metrics_by_model[first], metrics_by_model[second]),
                p_value=comparison.p_value,
                p_holm=comparison.p_holm,
            )
    return numbers.frame()


def model_pairs(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the differences between models by query mode, in points, with p-values."""
    labels = inputs.labels()
    rows_by_mode: dict[str, list[Row]] = {}
    differences_by_pair = rows_of(numbers, ("query_mode", "against", "model"))
    for (mode, first, second), differences in differences_by_pair.items():
        row = _row((mode_label(mode), labels[first], labels[second]), differences)
        rows_by_mode.setdefault(mode, []).append(row)
    metrics = load_records(inputs.metrics, IdiolinkMetrics)
    # All models have the same PIEs and queries.
    queries_per_pie = [scores.queries for scores in metrics[0].by_pie.values()]
    pie_count = len(queries_per_pie)
    resampling = _describe_resampling(
        pie_count,
        sum(queries_per_pie),
        inputs.options["resamples"],
        sign_patterns(pie_count, inputs.options["permutations"]),
    )
    return _table(
        "Query",
        rows_by_mode.values(),
        "Differences between models in points (second minus first) over the same queries,"
        f" {_TESTED} for a query mode's pairs of models. {resampling}",
        notes_on(metrics),
    )


def _model_pairs_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with all zero-shot runs; None if no query mode has two models to compare."""
    models = models_to_rank(study)
    runs = zero_shot_runs(study, models)
    modes = [run.where["query_mode"] for run in runs]
    has_one_model_per_mode = len(set(modes)) == len(modes)
    if has_one_model_per_mode:
        return None
    options = {
        "permutations": study.settings.permutations,
        "resamples": study.settings.bootstrap_resamples,
    }
    inputs = study.display_inputs(runs, models=models)
    return inputs.model_copy(update={"options": options})


PAIRS_TABLE = Table(
    "idiolink_pairs",
    NOT_IN_PAPER,
    "Paired randomization tests over PIEs between all pairs of models, with intervals.",
    model_pairs,
    _model_pairs_inputs,
    pairs_numbers,
)


_TESTED = (
    "each with its 95% interval and the {p}-value of a two-sided paired randomization test,"
    " corrected by Holm's procedure"
)
"""Phrase in the captions of both tables of tests; {p} stands for the symbol p."""


def _table(
    header: str, groups: Iterable[Sequence[Row]], caption: str, notes: tuple[str, ...]
) -> TableContent:
    """Lay out a table of compared pairs.

    Args:
        header: Header of the first column.
        groups: Rows of each group.
        caption: Caption, in which {p} stands for the symbol p.
        notes: Notes below the table.
    """
    heads = [Head(header), Head("First"), Head("Second")]
    for metric_label in METRICS.values():
        heads += [Head(metric_label), _P_VALUE]
    return TableContent(
        heads=(tuple(heads),),
        groups=tuple(Group(tuple(rows)) for rows in groups),
        caption=caption.format(p="p"),
        caption_latex=caption.format(p="$p$").replace("%", r"\%"),
        notes=notes,
        long=True,
        label_widths=(0.16, 0.11, 0.11),
    )


def _describe_resampling(pies: int, queries: int, resamples: int, patterns: int) -> str:
    """Return the sentence of a caption that describes the resampling in all tests of the table."""
    are_all_patterns = patterns == 2**pies
    quantifier = "all " if are_all_patterns else ""
    return (
        f"The {pies} PIEs were resampled with all their queries ({queries}): {resamples:,}"
        f" bootstrap samples, and {quantifier}{patterns:,} sign patterns over PIEs."
    )


def _row(labels: tuple[str, ...], differences: Mapping[str, Number]) -> Row:
    """Return the row of a pair: for each metric, the difference and its corrected p-value."""
    cells: list[Cell] = []
    for column in _COLUMNS:
        p_value = rounded(differences[column.measure].p_holm, 4)
        cells += [column.cell(differences), Cell(text=p_value)]
    return Row(labels, tuple(cells))


class PieMeans(NamedTuple):
    """Mean scores of PIEs or mean gains from fine-tuning; all means are over the same models.

    Attributes:
        values: Means by PIE (rows) and query mode (columns).
        models: Names of the averaged models.
    """

    values: pd.DataFrame
    models: list[str]


def by_pie_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return each model's scores on each PIE; those of fine-tuned models are means over seeds."""
    numbers = OurNumbers(inputs.study)
    records = load_records(inputs.metrics, IdiolinkMetrics)
    for record, path in zip(records, inputs.metrics, strict=True):
        obstacles = obstacles_of(record)
        for pie, scores in record.by_pie.items():
            keys = {**run_of(record), "scope": pie}
            numbers.add(keys, RANKING, scores, files=[path], obstacles=obstacles)
    frame = numbers.frame()
    is_zero_shot = frame["train_mode"] == ""
    return pd.concat([frame[is_zero_shot], over_seeds(frame[~is_zero_shot])], ignore_index=True)


def hardest_first(ours: pd.DataFrame, means: PieMeans) -> list[str]:
    """Return the PIEs in our numbers, sorted by their mean over the query modes of `means`.

    The PIE with the lowest mean comes first. PIEs without means come last.
    """
    mean_over_modes = means.values.mean(axis="columns")
    all_pies = sorted(set(ours["scope"]))
    return list(mean_over_modes.reindex(all_pies).sort_values(kind="stable").index)


def zero_shot_means(ours: pd.DataFrame) -> PieMeans:
    """Return the mean nDCG@10 (percent) over zero-shot models, by PIE and query mode."""
    return _average_over_models(_ndcg(ours, fine_tuned=False))


def gains_by_pie(ours: pd.DataFrame) -> PieMeans:
    """Return the mean change in nDCG@10 from fine-tuning, in points, by PIE and query mode.

    Each fine-tuned model is compared with its zero-shot base model in the same mode, if both were
    run. The change of a base model is the mean over its trainings that are evaluated in the mode.
    """
    by_training = _ndcg(ours, fine_tuned=True)
    fine_tuned = by_training.groupby(by_training.index.names, sort=False).mean()
    zero_shot = _ndcg(ours, fine_tuned=False).reindex(fine_tuned.index)
    return _average_over_models(fine_tuned - zero_shot)


def _ndcg(ours: pd.DataFrame, *, fine_tuned: bool) -> "pd.Series[float]":
    """Return the nDCG@10 of either fine-tuned or zero-shot models, by model, query mode and PIE."""
    is_ndcg = ours["measure"] == "ndcg_at_10"
    is_fine_tuned = ours["train_mode"] != ""
    rows = ours[is_ndcg & (is_fine_tuned == fine_tuned)]
    return rows.set_index(["model", "query_mode", "scope"])["ours"]


def _average_over_models(values: "pd.Series[float]") -> PieMeans:
    """Average values over models, by PIE and query mode.

    The means of all modes must be over the same models. Therefore, the modes are those of the model
    with the most modes, and only models with a value for every PIE in all these modes are averaged.

    Args:
        values: Values by model, query mode and PIE.
    """
    # A row per model and mode, and a column per PIE.
    complete = values.dropna().unstack("scope").dropna()
    modes_by_model: dict[str, set[str]] = {model: set() for model in values.index.unique("model")}
    for model, mode in complete.index:
        modes_by_model[model].add(mode)
    shown_modes = max(modes_by_model.values(), key=len, default=set())
    averaged_models = [
        model for model, modes in modes_by_model.items() if modes and shown_modes.issubset(modes)
    ]
    averaged = complete[complete.index.isin(averaged_models, level="model")]
    means = averaged.groupby(level="query_mode").mean()
    modes_in_order = [mode for mode in QUERY_MODES if mode in shown_modes]
    return PieMeans(means.reindex(modes_in_order).T, averaged_models)


def notes_on_means(means: PieMeans, ours: pd.DataFrame, labels: Mapping[str, str]) -> list[str]:
    """Return notes that list the averaged zero-shot models and, if any, the omitted models.

    `ours` is the frame of our numbers; `labels` maps models to labels.
    """
    is_zero_shot = ours["train_mode"] == ""
    zero_shot_models = ours.loc[is_zero_shot, "model"].unique()
    omitted_models = [model for model in zero_shot_models if model not in means.models]
    averaged = ", ".join(labels[model] for model in means.models) or "no model"
    notes = [f"Every zero-shot mean is over the same models: {averaged}."]
    if omitted_models:
        omitted = ", ".join(labels[model] for model in omitted_models)
        notes.append(f"Not averaged, because a query mode or a score is missing: {omitted}.")
    return notes


def by_pie(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the mean nDCG@10 (percent) over zero-shot models by PIE, hardest first.

    `numbers` contains both metrics of every model, because the table's CSV lists both.
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
    """Return inputs with all zero-shot and fine-tuned runs; None if there are no zero-shot runs."""
    models = models_to_rank(study)
    runs = zero_shot_runs(study, models)
    if not runs:
        return None
    return inputs_with_metrics(study, runs + fine_tuned_runs(study), models)


BY_PIE_TABLE = Table(
    "idiolink_by_pie",
    NOT_IN_PAPER,
    "R-Precision and nDCG@10 of each PIE.",
    by_pie,
    by_pie_inputs,
    by_pie_numbers,
)
