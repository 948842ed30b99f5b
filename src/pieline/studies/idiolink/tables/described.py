"""Figure 1, Tables 1, 3, 4 and 6, and the construction statistics."""

from operator import attrgetter
from typing import Any

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
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink import paths
from pieline.studies.idiolink.datasets.assembly import CONSTRUCTION, ConstructionMetrics
from pieline.studies.idiolink.datasets.composition import COUNTS, IN_TEXT, DatasetChecks
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
_AGAINST = "validation against reviewers"
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
    "validation_accuracy": f"{_AGAINST}: accuracy (%)",
    "validation_macro_f1": f"{_AGAINST}: macro F1 (%)",
    "validation_valid_f1": f"{_AGAINST}: F1 of valid texts (%)",
    "missed_invalid": "invalid texts judged valid",
    "missed_invalid_share": "invalid texts judged valid (%)",
    "silver_texts": "silver texts",
    "flagged": "silver texts flagged",
    "flagged_share": "silver texts flagged (%)",
    "confirmed": "flagged texts confirmed by reviewers",
    "confirmed_share": "flagged texts confirmed by reviewers (%)",
    "gold_texts": "texts reviewed by humans",
}
"""Labels of the measures of the construction, in order."""
CONSTRUCTED_NOTE = "Counted on a dataset that this run constructed, not on the public one."


def about_data(*, sample: bool, released: bool) -> tuple[list[str], tuple[str, ...]]:
    """Return the reasons why counts are not comparable with the paper's, and notes on the data."""
    if released:
        return [], ()
    if sample:
        return ["sample data, not the public IdioLink"], (SAMPLE_NOTE,)
    return ["newly constructed or altered, not the public IdioLink"], (CONSTRUCTED_NOTE,)


def about_texts(checks: DatasetChecks) -> tuple[list[str], tuple[str, ...]]:
    """Return what `about_data` returns for the checked texts."""
    is_paper_or_own = checks.released or checks.conditions.are_of_own_data
    return about_data(sample=checks.sample, released=is_paper_or_own)


def dataset_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our counts by split (Table 1), and those in the text."""
    checks = load_record(inputs.metrics[0], DatasetChecks)
    files = inputs.metrics
    obstacles, _ = about_texts(checks)
    obstacles += checks.conditions.deviations
    numbers = OurNumbers(inputs.study)
    for split in ROW_LABELS:
        counts = checks.counts[split]
        numbers.add({"scope": split}, COUNTS, counts, files=files, obstacles=obstacles)
    numbers.add({"scope": "total"}, IN_TEXT, checks, files=files, obstacles=obstacles)
    return numbers.frame()


def dataset(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 1: PIEs, queries and documents by split."""
    by_split = rows_of(numbers, ("scope",))
    rows = [number_row((label,), COLUMNS, by_split[split,]) for split, label in ROW_LABELS.items()]
    return TableContent(
        heads=(headers(["Split"], COLUMNS),),
        groups=(Group(tuple(rows[:-1])), Group(tuple(rows[-1:]))),
        caption="Overview of the IdioLink dataset. Test (total) is the sum of gold and silver.",
        notes=about_texts(load_record(inputs.metrics[0], DatasetChecks))[1],
        wide=False,
    )


DATASET_TABLE = Table(
    "idiolink_dataset",
    "Table 1",
    "Size of the IdioLink dataset.",
    dataset,
    given.data_checks,
    dataset_numbers,
    printed=("idiolink_table1", "text_numbers"),
)


def construction_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of sections 3.2.1 to 3.2.4."""
    metrics = load_record(inputs.metrics[0], ConstructionMetrics)
    report = load_record(inputs.files["filter_report"], FilterReport)
    # Newly generated texts always differ from the paper's.
    obstacles, _ = about_data(sample=metrics.sample, released=False)
    obstacles += metrics.conditions.deviations
    numbers = OurNumbers(inputs.study)
    keys = {"scope": "constructed"}
    numbers.add(keys, FILTER, report, files=inputs.metrics, obstacles=obstacles)
    numbers.add(keys, CONSTRUCTION, metrics, files=inputs.metrics, obstacles=obstacles)
    return numbers.frame()


def construction(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the numbers in sections 3.2.1 to 3.2.4, with the printed numbers."""
    metrics = load_record(inputs.metrics[0], ConstructionMetrics)
    (of_run,) = rows_of(numbers, ()).values()
    rows = [
        number_row((label,), [Column(measure, "this run")], of_run)
        for measure, label in CONSTRUCTION_LABELS.items()
    ]
    _, notes = about_data(sample=metrics.sample, released=False)
    if any("hand-written" in item.origins for item in metrics.generation.values()):
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
    given.construction,
    construction_numbers,
    printed=("text_numbers",),
)


_DRAMA = "drama-1b"
_SHOWN = "shown, not compared"


class ShownHyperparameters(Hyperparameters):
    """The hyperparameters of a run, and the batch size of Drama-1B if it is fine-tuned."""

    drama_batch_size: int | None


def _parameter(name: str, field: str = "") -> Measure[ShownHyperparameters]:
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
"""Measures of Table 3, by label."""


def example(inputs: DisplayInputs) -> TableContent:
    """Build Figure 1 with texts of this run: the documents of each type of the first PIE."""
    documents = load_jsonl(inputs.files["documents"], Document)
    shown: dict[str, Document] = {}
    for document in documents:
        if document.pie == documents[0].pie:
            shown.setdefault(document.usage, document)
    rows = (
        text_row((usage, document.span), state(document.sentence, "", reason=_SHOWN))
        for usage, document in shown.items()
    )
    return TableContent(
        heads=(headers(["Document type", "Marked span", "Document"]),),
        groups=(Group(tuple(rows)),),
        caption=f"The document types of a PIE, “{documents[0].pie}”. It is the first in this run's"
        " test data, not the paper's example.",
        notes=inputs.notes,
        wraps=True,
    )


def _documents(study: ConfiguredStudy) -> DisplayInputs | None:
    if not given.has_texts(study):
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
    """Return the hyperparameters of this run, which are the options; none without fine-tuning."""
    tuning = ShownHyperparameters.model_validate(inputs.options) if inputs.options else None
    why = "" if tuning else "no model is fine-tuned in this configuration"
    return described.hyperparameter_numbers(
        inputs,
        HYPERPARAMETERS.values(),
        tuning,
        file="idiolink_table3",
        not_run=why,
    )


def hyperparameters(numbers: pd.DataFrame, _: DisplayInputs) -> TableContent:
    """Lay out Table 3."""
    labels = {measure.name: label for label, measure in HYPERPARAMETERS.items()}
    return described.hyperparameters(numbers, labels, "Fine-tuning hyperparameters.")


def _fine_tuning(study: ConfiguredStudy) -> DisplayInputs:
    tuning, bases = study.settings.finetuning, given.tuned_bases(study)
    options: dict[str, Any] = {}
    if bases:
        options = tuning.hyperparameters().model_dump()
        is_drama_tuned = _DRAMA in bases
        options["drama_batch_size"] = (
            tuning.hyperparameters(_DRAMA).batch_size if is_drama_tuned else None
        )
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
    """Return Table 4."""
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
    """Return Table 6: checkpoints, licenses, sizes and the revisions pinned in models.yaml."""
    printed = read_printed(inputs.files["idiolink_table6"])
    unnamed = "neither models.yaml nor idiolink.construction names it"
    return described.checkpoints(inputs, printed, unnamed=unnamed)


def _checkpoints(study: ConfiguredStudy) -> DisplayInputs:
    roles = study.settings.construction.model_dump(
        include={"index_writer", "query_writer", "validator"}
    )
    names = list(study.project.names("embedder")) + list(roles.values())
    return described.checkpoint_options(study, names, _printed_name)


def _printed_name(entry: Any) -> str | None:
    """Return the name of a model in Table 6: that of the API for language models."""
    if entry.kind == "llm":
        return str(entry.litellm_id).rpartition("/")[2]
    name: str | None = entry.published_as
    return name


CHECKPOINTS_TABLE = Table(
    "idiolink_checkpoints",
    "Table 6",
    "Checkpoints, their licenses, sizes and pinned revisions.",
    checkpoints,
    _checkpoints,
    printed=("idiolink_table6",),
)
