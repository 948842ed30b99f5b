"""Tables of word overlap and its relation to scores (not in the paper)."""

import pandas as pd

from pieline.beyond import paths
from pieline.beyond.idiolink.metrics import ESTIMATES, OVERLAP, ShortcutMetrics
from pieline.core.records import load_records
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import rows_of
from pieline.reporting.ours import OurNumbers
from pieline.reporting.tables import Column, Group, Head, TableContent, headers, number_row
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.paths import keys_of
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.zero_shot import mode_label, notes_on, obstacles_of

LABELS = {
    "jaccard": "Jaccard",
    "recall": "Recall",
    "jaccard_without_span": "Jaccard without span",
    "recall_without_span": "Recall without span",
}
SHOWN = {"jaccard": "sentence", "jaccard_without_span": "without span"}
"""Column headers of the measures in the table; the other measures are only in the CSV."""
ESTIMATE_LABELS = {
    "correlation": "Correlation, hundredths",
    "ndcg_at_10_least": "nDCG@10, least overlap",
    "ndcg_at_10_most": "nDCG@10, most overlap",
}


def overlap_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the mean overlap (fraction) by usage of the query and of the documents."""
    (item,) = load_records(inputs.metrics, ShortcutMetrics)
    numbers = OurNumbers(inputs.study)
    for usage, by_documents in item.overlap.items():
        for documents, means in by_documents.items():
            keys = {"scope": usage, "against": documents}
            files = inputs.metrics
            numbers.add(keys, OVERLAP, means, files=files, obstacles=obstacles_of(item))
    return numbers.frame()


def overlap(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the mean overlap (fraction) by usage of the query and of the documents."""
    columns = [Column(measure, label) for measure, label in LABELS.items()]
    groups = []
    for _, of_usage in numbers.groupby("scope", sort=False):
        by_usages = rows_of(of_usage, ("scope", "against"))
        rows = [number_row(usages, columns, means) for usages, means in by_usages.items()]
        groups.append(Group(tuple(rows)))
    return TableContent(
        heads=(headers(["Query", "Documents"], columns),),
        groups=tuple(groups),
        caption="Overlap between the content words of queries and of their relevant documents, mean"
        " over queries: the Jaccard index, and the share of the query's words that are in the"
        " document (recall), for whole sentences and without the marked spans.",
        notes=notes_on(load_records(inputs.metrics, ShortcutMetrics)),
        wide=False,
    )


def _texts(study: ConfiguredStudy) -> DisplayInputs | None:
    # All runs share the same texts.
    return given.shown(study, given.others(study, paths.SHORTCUTS)[:1])


OVERLAP_TABLE = Table(
    "idiolink_overlap",
    NOT_IN_PAPER,
    "Words that queries share with their relevant documents.",
    overlap,
    _texts,
    overlap_numbers,
)


def shortcuts_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the partial correlations, and nDCG@10 (percent) by tenth of overlap."""
    numbers = OurNumbers(inputs.study)
    records = load_records(inputs.metrics, ShortcutMetrics)
    for item, path in zip(records, inputs.metrics, strict=True):
        keys = keys_of("test", item.model, item.query_mode, item.seed)
        numbers.add(keys, ESTIMATES, item, files=[path], obstacles=obstacles_of(item))
    return numbers.frame()


def shortcuts(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the partial correlations, and nDCG@10 (percent) by tenth of overlap."""
    columns = [
        Column(f"{name}_{measure}", label, interval=2)
        for name in ESTIMATE_LABELS
        for measure, label in SHOWN.items()
    ]
    by_run = rows_of(numbers, ("model", "query_mode"))
    groups = []
    for model in inputs.models:
        estimates = {mode: by_run.get((model.name, mode)) for mode in QUERY_MODES}
        rows = [
            number_row((model.label, mode_label(mode)), columns, of_mode)
            for mode, of_mode in estimates.items()
            if of_mode
        ]
        groups.append(Group(tuple(rows)))
    metrics = load_records(inputs.metrics, ShortcutMetrics)
    return TableContent(
        heads=(
            (Head("", 2), *(Head(label, len(SHOWN)) for label in ESTIMATE_LABELS.values())),
            headers(["Model", "Query"], columns),
        ),
        groups=tuple(groups),
        caption="Spearman's partial correlation of overlap and nDCG@10 over queries, given PIE and"
        " usage, and nDCG@10 in percent of the tenths with the least and most overlap among the"
        " queries of their PIE and usage. In brackets: 95% bootstrap intervals over"
        f" {metrics[0].pies} PIEs. Overlap: mean Jaccard index of the content words of a query and"
        " its relevant documents, of whole sentences and without the marked spans.",
        notes=notes_on(metrics),
    )


def measured(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return inputs with the word overlap of all zero-shot runs, if it is measured."""
    return given.shown(study, given.others(study, paths.SHORTCUTS), given.ranked(study))


SHORTCUTS_TABLE = Table(
    "idiolink_shortcuts",
    NOT_IN_PAPER,
    "Whether queries that share more words with relevant documents score higher.",
    shortcuts,
    measured,
    shortcuts_numbers,
)
