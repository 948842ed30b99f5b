"""Tables of significance tests between query modes and between models (not in the paper)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pieline.core.conditions import Measured
from pieline.core.records import load_records
from pieline.core.significance import sign_patterns
from pieline.reporting.columns import (
    Column,
    Source,
    bounds,
    cell,
    interval_text,
    records_of,
    sources,
)
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import per_cent, rounded
from pieline.reporting.tables import Cell, Group, Head, Row, TableContent
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink import paths
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.metrics.significance import (
    ModeSignificance,
    RankingComparison,
    compare_models,
)
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.zero_shot import (
    METRICS,
    UNKNOWN,
    UNKNOWN_NOTE,
    mode_label,
    notes_on,
    obstacles_of,
)

_P_VALUE = Head("p", latex="$p$")


def significance(inputs: DisplayInputs) -> TableContent:
    """Build the table of differences between query modes, in points, with p-values."""
    results = load_records(inputs.metrics, ModeSignificance)
    labels = inputs.labels()
    groups = []
    for item, path in zip(results, inputs.metrics, strict=True):
        label = _label(item, labels[item.model.split("+", maxsplit=1)[0]])
        key = {"model": item.model, "seed": str(item.seed)}
        rows = (
            _row((label, mode_label(first), mode_label(second)), key, both, (path,), item)
            for (first, second), both in _by_pair(item.comparisons).items()
        )
        groups.append(Group(tuple(rows)))
    one, *_ = results
    resampling = _drawn(one.pies, one.queries, one.resamples, one.patterns)
    tested = all(pair.difference is not None for item in results for pair in item.comparisons)
    return _table(
        "Model",
        groups,
        f"Differences between query modes in points (second minus first), {_TESTED} for a model's"
        f" pairs of modes. {resampling}",
        notes_on(results) if tested else (*notes_on(results), UNKNOWN_NOTE),
    )


def _tests(study: ConfiguredStudy) -> DisplayInputs | None:
    models = dict.fromkeys([*given.ranked(study), *given.tuned_bases(study)])
    return given.shown(study, given.others(study, paths.SIGNIFICANCE), models)


SIGNIFICANCE_TABLE = Table(
    "idiolink_significance",
    NOT_IN_PAPER,
    "Paired randomization tests over PIEs between query modes, with intervals.",
    significance,
    _tests,
)


def model_pairs(inputs: DisplayInputs) -> TableContent:
    """Build the table of differences between models by query mode, in points, with p-values."""
    runs = sources(inputs, IdiolinkMetrics, ["query_mode", "model"], obstacles_of)
    labels, permutations = inputs.labels(), inputs.options["permutations"]
    groups = []
    for mode in QUERY_MODES:
        mode_runs = {model: source for (of_mode, model), source in runs.items() if of_mode == mode}
        if len(mode_runs) < 2:
            continue
        compared = compare_models(
            {model: source.records[0].by_pie for model, source in mode_runs.items()},
            permutations=permutations,
            resamples=inputs.options["resamples"],
            seed=0,
        )
        rows = []
        for pair, both in _by_pair(compared).items():
            files = [file for model in pair for file in mode_runs[model].files]
            records = [mode_runs[model].records[0] for model in pair]
            names = (mode_label(mode), *(labels[model] for model in pair))
            rows.append(_row(names, {"query_mode": mode}, both, files, *records))
        groups.append(Group(tuple(rows)))
    metrics = records_of(runs)
    sizes = [scores.queries for scores in metrics[0].by_pie.values()]
    patterns = sign_patterns(len(sizes), permutations)
    resampling = _drawn(len(sizes), sum(sizes), inputs.options["resamples"], patterns)
    return _table(
        "Query",
        groups,
        "Differences between models in points (second minus first) over the same queries,"
        f" {_TESTED} for a query mode's pairs of models. {resampling}",
        notes_on(metrics),
    )


def _pairs(study: ConfiguredStudy) -> DisplayInputs | None:
    ranked, settings = given.ranked(study), study.settings
    runs = study.plan.select(index="test", model=ranked)
    modes = Counter(mode for _, mode in {(run.model, run.where["query_mode"]) for run in runs})
    if max(modes.values(), default=0) < 2:
        return None
    return DisplayInputs(
        metrics=tuple(given.of_ranked(study)),
        models=study.describe_models(ranked),
        options={
            "permutations": settings.permutations,
            "resamples": settings.bootstrap_resamples,
        },
    )


PAIRS_TABLE = Table(
    "idiolink_pairs",
    NOT_IN_PAPER,
    "Paired randomization tests over PIEs between all pairs of models, with intervals.",
    model_pairs,
    _pairs,
)


_TESTED = (
    "each with its 95% interval and the {p}-value of a two-sided paired randomization test,"
    " corrected by Holm's procedure"
)


def _table(
    label: str, groups: Sequence[Group], caption: str, notes: tuple[str, ...]
) -> TableContent:
    """Build a table of compared pairs; `label` is the header of the first column."""
    scores = (head for name in METRICS.values() for head in (Head(name), _P_VALUE))
    return TableContent(
        heads=((Head(label), Head("First"), Head("Second"), *scores),),
        groups=tuple(groups),
        caption=caption.format(p="p"),
        caption_latex=caption.format(p="$p$").replace("%", r"\%"),
        notes=notes,
        long=True,
        label_widths=(0.16, 0.11, 0.11),
    )


def _drawn(pies: int, queries: int, resamples: int, patterns: int) -> str:
    """Return the caption text on resampling, which is the same for all tests in a table."""
    every = "all " if patterns == 2**pies else ""
    return (
        f"The {pies} PIEs were resampled with all their queries ({queries}): {resamples:,}"
        f" bootstrap samples, and {every}{patterns:,} sign patterns over PIEs."
    )


def _label(item: ModeSignificance, base: str) -> str:
    """Return the label of a model, with training mode, loss and seed if it is fine-tuned."""
    _, *training = item.model.split("+")
    if not training:
        return base
    return f"{base} ({mode_label(training[0])}, {training[1]} loss, seed {item.seed})"


def _difference(metric: str, label: str) -> Column[RankingComparison]:
    """Return the column of differences in a metric; p-values and intervals are in the CSV."""

    def details(source: Source[RankingComparison]) -> dict[str, str]:
        (pair,) = source.records
        p_values = {"p_value": pair.p_value, "p_holm": pair.p_holm}
        texts = {key: f"{p:.4g}" if p is not None else "" for key, p in p_values.items()}
        return texts | bounds(pair.interval)

    return Column(
        metric,
        label,
        lambda pair: per_cent(pair.difference),
        unknown=UNKNOWN,
        details=details,
        text=lambda pair: interval_text(per_cent(pair.difference), pair.interval, 2),
    )


COLUMNS = {metric: _difference(metric, label) for metric, label in METRICS.items()}


def _by_pair(
    comparisons: Iterable[RankingComparison],
) -> dict[tuple[str, str], list[RankingComparison]]:
    pairs = defaultdict(list)
    for pair in comparisons:
        pairs[pair.first, pair.second].append(pair)
    return pairs


def _row(
    labels: tuple[str, ...],
    key: Mapping[str, str],
    comparisons: Iterable[RankingComparison],
    files: Iterable[str],
    *measured: Measured,
) -> Row:
    """Return the row of a pair, with its comparison on each metric; `measured` are its runs."""
    cells: list[Cell] = []
    for pair in comparisons:
        of_pair = {**key, "first": pair.first, "second": pair.second}
        source = Source(of_pair, [pair], tuple(files), obstacles=obstacles_of(*measured))
        cells += (cell(COLUMNS[pair.metric], source), Cell(text=rounded(pair.p_holm, 4)))
    return Row(labels, tuple(cells))
