"""Build the tables of word overlap, and of the relation between overlap and scores.

These tables are not in the paper.
"""

import pandas as pd

from pieline.beyond import paths
from pieline.beyond.idiolink.metrics import ESTIMATES, OVERLAP, ShortcutMetrics
from pieline.core.records import load_record, load_records
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import rows_of
from pieline.reporting.ours import OurNumbers
from pieline.reporting.tables import Column, Group, Head, Row, TableContent, headers, number_row
from pieline.studies.idiolink.inputs import (
    inputs_with_metrics,
    models_to_rank,
    runs_with_other_metrics,
)
from pieline.studies.idiolink.paths import keys_of
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.zero_shot import mode_label, notes_on, obstacles_of

OVERLAP_LABELS = {
    "jaccard": "Jaccard",
    "recall": "Recall",
    "jaccard_without_span": "Jaccard without span",
    "recall_without_span": "Recall without span",
}
"""Column headers of the measures of overlap in the table of word overlap."""
SHOWN_OVERLAPS = {"jaccard": "sentence", "jaccard_without_span": "without span"}
"""Column headers of the measures of overlap in the table of the relation to scores.

The other measures are only in the table's CSV.
"""
ESTIMATE_LABELS = {
    "correlation": "Correlation, hundredths",
    "ndcg_at_10_least": "nDCG@10, least overlap",
    "ndcg_at_10_most": "nDCG@10, most overlap",
}


def overlap_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the mean word overlap (fraction) of queries with documents, by their usages."""
    metrics = load_record(inputs.metrics[0], ShortcutMetrics)
    numbers = OurNumbers(inputs.study)
    for query_usage, means_by_document_usage in metrics.overlap.items():
        for document_usage, means in means_by_document_usage.items():
            numbers.add(
                {"scope": query_usage, "against": document_usage},
                OVERLAP,
                means,
                files=inputs.metrics,
                obstacles=obstacles_of(metrics),
            )
    return numbers.frame()


def overlap(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the mean word overlap (fraction), with a group of rows per usage of the queries."""
    columns = [Column(measure, label) for measure, label in OVERLAP_LABELS.items()]
    rows_by_usage: dict[str, list[Row]] = {}
    numbers_by_usages = rows_of(numbers, ("scope", "against"))
    for (query_usage, document_usage), means in numbers_by_usages.items():
        row = number_row((query_usage, document_usage), columns, means)
        rows_by_usage.setdefault(query_usage, []).append(row)
    return TableContent(
        heads=(headers(["Query", "Documents"], columns),),
        groups=tuple(Group(tuple(rows)) for rows in rows_by_usage.values()),
        caption="Overlap between the content words of queries and of their relevant documents, mean"
        " over queries: the Jaccard index, and the share of the query's words that are in the"
        " document (recall), for whole sentences and without the marked spans.",
        notes=notes_on(load_records(inputs.metrics, ShortcutMetrics)),
        wide=False,
    )


def _overlap_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    runs = runs_with_other_metrics(study, paths.SHORTCUTS)
    # The overlap is the same in all runs, because they have the same texts.
    return inputs_with_metrics(study, runs[:1])


OVERLAP_TABLE = Table(
    "idiolink_overlap",
    NOT_IN_PAPER,
    "Words that queries share with their relevant documents.",
    overlap,
    _overlap_inputs,
    overlap_numbers,
)


def shortcuts_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return, for each run, the estimates of how word overlap relates to nDCG@10."""
    numbers = OurNumbers(inputs.study)
    records = load_records(inputs.metrics, ShortcutMetrics)
    for metrics, path in zip(records, inputs.metrics, strict=True):
        keys = keys_of("test", metrics.model, metrics.query_mode, metrics.seed)
        numbers.add(keys, ESTIMATES, metrics, files=[path], obstacles=obstacles_of(metrics))
    return numbers.frame()


def shortcuts(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the correlations of overlap and nDCG@10, and nDCG@10 (percent) by overlap."""
    columns = [
        Column(f"{estimate}_{measure}", label, interval=2)
        for estimate in ESTIMATE_LABELS
        for measure, label in SHOWN_OVERLAPS.items()
    ]
    estimates_by_run = rows_of(numbers, ("model", "query_mode"))
    groups = []
    for model in inputs.models:
        ranked_modes = [mode for mode in QUERY_MODES if (model.name, mode) in estimates_by_run]
        rows = []
        for mode in ranked_modes:
            estimates = estimates_by_run[model.name, mode]
            rows.append(number_row((model.label, mode_label(mode)), columns, estimates))
        groups.append(Group(tuple(rows)))
    metrics = load_records(inputs.metrics, ShortcutMetrics)
    estimate_heads = [Head(label, len(SHOWN_OVERLAPS)) for label in ESTIMATE_LABELS.values()]
    return TableContent(
        heads=((Head("", 2), *estimate_heads), headers(["Model", "Query"], columns)),
        groups=tuple(groups),
        caption="Spearman's partial correlation of overlap and nDCG@10 over queries, given PIE and"
        " usage, and nDCG@10 in percent of the tenths with the least and most overlap among the"
        " queries of their PIE and usage. In brackets: 95% bootstrap intervals over"
        f" {metrics[0].pies} PIEs. Overlap: mean Jaccard index of the content words of a query and"
        " its relevant documents, of whole sentences and without the marked spans.",
        notes=notes_on(metrics),
    )


def shortcut_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the zero-shot runs' shortcut metrics; None if there are no metrics."""
    runs = runs_with_other_metrics(study, paths.SHORTCUTS)
    return inputs_with_metrics(study, runs, models_to_rank(study))


SHORTCUTS_TABLE = Table(
    "idiolink_shortcuts",
    NOT_IN_PAPER,
    "Whether queries that share more words with relevant documents score higher.",
    shortcuts,
    shortcut_inputs,
    shortcuts_numbers,
)
