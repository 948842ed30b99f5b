"""Build Figure 1, Tables 1, 3, 4 and 6, and the table of construction statistics."""

from operator import attrgetter
from typing import Any, NamedTuple

import pandas as pd

from pieline.core.measures import Measure
from pieline.core.records import load_jsonl, load_record
from pieline.reporting import described
from pieline.reporting.described import text_row
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE
from pieline.reporting.numbers import rows_of
from pieline.reporting.ours import OurNumbers
from pieline.reporting.printed import read_printed, state
from pieline.reporting.tables import Column, Group, TableContent, headers, number_row
from pieline.studies.idiolink import paths
from pieline.studies.idiolink.datasets.assembly import CONSTRUCTION, ConstructionMetrics
from pieline.studies.idiolink.datasets.composition import COUNTS, IN_TEXT, DatasetChecks
from pieline.studies.idiolink.inputs import (
    construction_inputs,
    data_check_inputs,
    has_texts,
    models_to_fine_tune,
)
from pieline.studies.idiolink.originals.pairs import FILTER, FilterReport
from pieline.studies.idiolink.records import Document
from pieline.studies.idiolink.training.settings import Hyperparameters

ROW_LABELS = {
    "train": "Train",
    "validation": "Validation",
    "test_silver": "Test (silver)",
    "test_gold": "Test (gold)",
    "test": "Test (total)",
    "total": "Total",
}
COLUMNS = [
    Column("pies", "PIEs"),
    Column("queries", "Queries"),
    Column("documents", "Documents"),
]
_VALIDATION = "validation against reviewers"
CONSTRUCTION_LABELS = {
    "candidate_pies": "PIEs that pass the filter",
    "kept_by_any_confidence": "PIEs kept if confidence does not matter",
    "kept_by_confident_annotations": "PIEs kept if only confident annotations count",
    "kept_by_paper": "PIEs kept if every annotation is confident (paper)",
    "kept_by_released": "PIEs kept if any annotation is confident and shares are of all"
    " (authors' code)",
    "removed_pies": "PIEs removed manually",
    "corrections": "gold texts corrected",
    "span_corrections": "only the span",
    "usage_mismatches": "usage mismatch",
    "ambiguous_texts": "ambiguous",
    "rewritten_texts": "rewritten for clarity",
    "corrected_sense": "sense texts corrected",
    "corrected_literal": "literal texts corrected",
    "validation_accuracy": f"{_VALIDATION}: accuracy (%)",
    "validation_macro_f1": f"{_VALIDATION}: macro F1 (%)",
    "validation_valid_f1": f"{_VALIDATION}: F1 of valid texts (%)",
    "missed_invalid": "invalid texts judged valid",
    "missed_invalid_share": "invalid texts judged valid (%)",
    "silver_texts": "silver texts",
    "flagged": "silver texts flagged",
    "flagged_share": "silver texts flagged (%)",
    "confirmed": "flagged texts confirmed by reviewers",
    "confirmed_share": "flagged texts confirmed by reviewers (%)",
    "gold_texts": "texts reviewed by humans",
}
"""Row labels of the construction table by measure, in order."""
CONSTRUCTED_NOTE = "Counted on a dataset that this run constructed, not on the public one."


class DataRemarks(NamedTuple):
    """Remarks on data that is not the paper's.

    Attributes:
        obstacles: Reasons why counts are not comparable with the paper's counts.
        notes: Notes below a table or figure.
    """

    obstacles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


SAMPLE_REMARKS = DataRemarks(("sample data, not the public IdioLink",), (SAMPLE_NOTE,))
CONSTRUCTED_REMARKS = DataRemarks(
    ("newly constructed or altered, not the public IdioLink",), (CONSTRUCTED_NOTE,)
)


def remarks_on_texts(checks: DatasetChecks) -> DataRemarks:
    """Return the remarks on the checked texts; public texts and the user's own have no remarks."""
    if checks.released or checks.conditions.are_of_own_data:
        return DataRemarks()
    return SAMPLE_REMARKS if checks.sample else CONSTRUCTED_REMARKS


def remarks_on_construction(metrics: ConstructionMetrics) -> DataRemarks:
    """Return the remarks on a constructed dataset, whose texts always differ from the paper's."""
    return SAMPLE_REMARKS if metrics.sample else CONSTRUCTED_REMARKS


def dataset_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our counts of PIEs, queries and documents, for Table 1 and the paper's text."""
    checks = load_record(inputs.metrics[0], DatasetChecks)
    files = inputs.metrics
    obstacles = [*remarks_on_texts(checks).obstacles, *checks.conditions.deviations]
    numbers = OurNumbers(inputs.study)
    for split in ROW_LABELS:
        split_counts = checks.counts[split]
        numbers.add({"scope": split}, COUNTS, split_counts, files=files, obstacles=obstacles)
    numbers.add({"scope": "total"}, IN_TEXT, checks, files=files, obstacles=obstacles)
    return numbers.frame()


def dataset(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 1: the number of PIEs, queries and documents by split."""
    numbers_by_split = rows_of(numbers, ("scope",))
    # The last label is that of the total.
    *split_rows, total_row = [
        number_row((label,), COLUMNS, numbers_by_split[split,])
        for split, label in ROW_LABELS.items()
    ]
    checks = load_record(inputs.metrics[0], DatasetChecks)
    return TableContent(
        heads=(headers(["Split"], COLUMNS),),
        groups=(Group(tuple(split_rows)), Group((total_row,))),
        caption="Overview of the IdioLink dataset. Test (total) is the sum of gold and silver.",
        notes=remarks_on_texts(checks).notes,
        wide=False,
    )


DATASET_TABLE = Table(
    "idiolink_dataset",
    "Table 1",
    "Size of the IdioLink dataset.",
    dataset,
    data_check_inputs,
    dataset_numbers,
    printed=("idiolink_table1", "text_numbers"),
)


def construction_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers for sections 3.2.1 to 3.2.4, which describe the construction."""
    metrics = load_record(inputs.metrics[0], ConstructionMetrics)
    filter_report = load_record(inputs.files["filter_report"], FilterReport)
    obstacles = [*remarks_on_construction(metrics).obstacles, *metrics.conditions.deviations]
    numbers = OurNumbers(inputs.study)
    keys = {"scope": "constructed"}
    numbers.add(keys, FILTER, filter_report, files=inputs.metrics, obstacles=obstacles)
    numbers.add(keys, CONSTRUCTION, metrics, files=inputs.metrics, obstacles=obstacles)
    return numbers.frame()


def construction(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out our numbers for sections 3.2.1 to 3.2.4 next to the printed numbers."""
    metrics = load_record(inputs.metrics[0], ConstructionMetrics)
    # Without keys, `rows_of` returns a single row.
    [numbers_by_measure] = rows_of(numbers, ()).values()
    rows = [
        number_row((label,), [Column(measure, "this run")], numbers_by_measure)
        for measure, label in CONSTRUCTION_LABELS.items()
    ]
    notes = remarks_on_construction(metrics).notes
    if any("hand-written" in report.origins for report in metrics.generation.values()):
        notes += ("The models' answers are hand-written; no model produced them.",)
    return TableContent(
        heads=(headers(["Number", "this run"]),),
        groups=(Group(tuple(rows)),),
        caption="Construction of IdioLink: selection of PIEs, automatic validation, and human"
        " review.",
        notes=notes,
        wide=False,
    )


CONSTRUCTION_TABLE = Table(
    "idiolink_construction",
    "Sections 3.2.1 to 3.2.4",
    "Statistics of the dataset's construction.",
    construction,
    construction_inputs,
    construction_numbers,
    printed=("text_numbers",),
)


_DRAMA = "drama-1b"
_SHOWN = "shown, not compared"


class ShownHyperparameters(Hyperparameters):
    """The hyperparameters that Table 3 shows.

    Attributes:
        drama_batch_size: Batch size of Drama-1B; None if this model is not fine-tuned.
    """

    drama_batch_size: int | None


def _parameter(name: str, field: str = "") -> Measure[ShownHyperparameters]:
    """Return a measure called `name` that reads `field`; if `field` is empty, it reads `name`."""
    return Measure(name, attrgetter(field or name))


HYPERPARAMETERS = {
    "“Soft” negatives": _parameter("soft_negatives"),
    "“Hard” negatives": _parameter("hard_negatives"),
    "Max epochs": _parameter("max_epochs"),
    "Batch size": _parameter("batch_size"),
    "Batch size of Drama-1B": Measure(
        "batch_size_drama",
        attrgetter("drama_batch_size"),
        unknown=f"{_DRAMA} is not fine-tuned in this configuration",
    ),
    "Learning rate": _parameter("learning_rate"),
    "Warm-up steps (linear)": _parameter("warm_up_steps", "warmup_steps"),
    "Min-delta (early stopping)": _parameter("early_stopping_min_delta", "min_delta"),
    "Patience epochs (early stopping)": _parameter("early_stopping_patience_epochs", "patience"),
}
"""Measures of Table 3, by row label."""


def example(inputs: DisplayInputs) -> TableContent:
    """Build Figure 1 from this run's first PIE: the first document of each usage."""
    documents = load_jsonl(inputs.files["documents"], Document)
    first_pie = documents[0].pie
    example_by_usage: dict[str, Document] = {}
    for document in documents:
        if document.pie == first_pie:
            example_by_usage.setdefault(document.usage, document)
    rows = (
        text_row((usage, document.span), state(document.sentence, "", reason=_SHOWN))
        for usage, document in example_by_usage.items()
    )
    return TableContent(
        heads=(headers(["Document type", "Marked span", "Document"]),),
        groups=(Group(tuple(rows)),),
        caption=f"The document types of a PIE, “{first_pie}”. It is the first in this run's"
        " test data, not the paper's example.",
        notes=inputs.notes,
        wraps=True,
    )


def _documents(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_texts(study):
        return None
    return study.display_inputs().with_files(documents=paths.dataset("test")["documents"])


EXAMPLE_TABLE = Table(
    "idiolink_example",
    "Figure 1",
    "The document types of a PIE.",
    example,
    _documents,
)


def hyperparameter_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the hyperparameters of this run next to those of Table 3.

    The options of `inputs` are the fields of `ShownHyperparameters`; there are no options if no
    model is fine-tuned.
    """
    used = ShownHyperparameters.model_validate(inputs.options) if inputs.options else None
    why_not_run = "" if used else "no model is fine-tuned in this configuration"
    return described.hyperparameter_numbers(
        inputs,
        HYPERPARAMETERS.values(),
        used,
        file="idiolink_table3",
        not_run=why_not_run,
    )


def hyperparameters(numbers: pd.DataFrame, _: DisplayInputs) -> TableContent:
    """Lay out Table 3: the hyperparameters of fine-tuning."""
    labels = {measure.name: label for label, measure in HYPERPARAMETERS.items()}
    return described.hyperparameters(numbers, labels, "Fine-tuning hyperparameters.")


def _fine_tuning(study: ConfiguredStudy) -> DisplayInputs:
    """Return inputs with the hyperparameters as options; no options if no model is fine-tuned."""
    models, settings = models_to_fine_tune(study), study.settings.finetuning
    options: dict[str, Any] = {}
    if models:
        drama_settings = settings.hyperparameters(_DRAMA)
        drama_batch_size = drama_settings.batch_size if _DRAMA in models else None
        options = {**settings.hyperparameters().model_dump(), "drama_batch_size": drama_batch_size}
    return study.display_inputs().model_copy(update={"options": options})


HYPERPARAMETERS_TABLE = Table(
    "idiolink_hyperparameters",
    "Table 3",
    "Hyperparameters of fine-tuning, as set in this run.",
    hyperparameters,
    _fine_tuning,
    hyperparameter_numbers,
    printed=("idiolink_table3",),
)


def artifacts(inputs: DisplayInputs) -> TableContent:
    """Build Table 4: data and packages, with licenses and versions."""
    return described.artifacts(inputs, read_printed(inputs.files["idiolink_table4"]))


ARTIFACTS_TABLE = Table(
    "idiolink_artifacts",
    "Table 4",
    "Data and packages, their licenses and pinned versions.",
    artifacts,
    described.artifact_inputs,
    printed=("idiolink_table4",),
)


def checkpoints(inputs: DisplayInputs) -> TableContent:
    """Build Table 6: checkpoints, licenses, sizes and the revisions pinned in models.yaml."""
    printed = read_printed(inputs.files["idiolink_table6"])
    unnamed = "neither models.yaml nor idiolink.construction names it"
    return described.checkpoints(inputs, printed, unnamed=unnamed)


def _checkpoints(study: ConfiguredStudy) -> DisplayInputs:
    model_by_role = study.settings.construction.model_dump(
        include={"index_writer", "query_writer", "validator"}
    )
    models = [*study.project.names("embedder"), *model_by_role.values()]
    return described.checkpoint_options(study, models, _printed_name)


def _printed_name(entry: Any) -> str | None:
    """Return the name of a model in Table 6; None for an embedder that is not in the paper.

    Table 6 lists language models by their name in the API.
    """
    if entry.kind == "llm":
        _, _, api_name = str(entry.litellm_id).rpartition("/")
        return api_name
    paper_name: str | None = entry.published_as
    return paper_name


CHECKPOINTS_TABLE = Table(
    "idiolink_checkpoints",
    "Table 6",
    "Checkpoints, their licenses, sizes and pinned revisions.",
    checkpoints,
    _checkpoints,
    printed=("idiolink_table6",),
)
