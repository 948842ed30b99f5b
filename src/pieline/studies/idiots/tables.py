"""Build IdioTS's Tables 1 to 3, and tables of counts (3), errors (5.2.1) and the prompt."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import pandas as pd

from pieline.core.measures import Measure
from pieline.core.records import load_record, load_records
from pieline.core.upstream import BY_COUNTS, SELF_VERIFIED
from pieline.llm.prompts import load_prompt
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.numbers import rows_of
from pieline.reporting.ours import OurNumbers, of_runs
from pieline.reporting.tables import (
    Cell,
    Column,
    Group,
    Head,
    Row,
    TableContent,
    headers,
    in_order,
    mark_best,
    number_row,
)
from pieline.studies.idiots import paths
from pieline.studies.idiots.datasets import COUNTS, IdiotsManifest, Origin
from pieline.studies.idiots.metrics import (
    BY_KIND,
    CONSISTENCY,
    DETECTION,
    DISTRACTORS,
    ERROR_TYPES,
    ERRORS,
    DetectionMetrics,
)
from pieline.studies.idiots.paths import no_data_reason

RUN = ("model", "setting", "seed")
"""Keys of a run."""
SETTING_LABELS = {"zero_shot": "zero-shot", "zero_shot_schema": "zero-shot, JSON"}
KIND_LABELS = {
    "whole_phrase": "whole phrase",
    "parts": "parts",
    "other_role": "other role",
    "look_alike": "look-alike",
}


class Described(Protocol):
    """A record of numbers that also states the origin of the sentences."""

    @property
    def origin(self) -> Origin:
        """Origin of the sentences."""

    @property
    def data_note(self) -> str:
        """Note on how the data was verified, or on how the data differs from the paper's data."""


def setting_label(setting: str) -> str:
    """Return the label of a setting; the label of a custom prompt is its name."""
    return SETTING_LABELS.get(setting, setting)


_LLAMA2 = "<s>[INST] <<SYS>>\n{system}\n<</SYS>> {user} [/INST]"


def run_labels(runs: Sequence[tuple[str, ...]], models: Sequence[ModelDescription]) -> list[str]:
    """Return the label of each run.

    A label contains the model. If runs differ in their settings or seeds, the label also contains
    the setting or the seed.

    Args:
        runs: Model, setting and seed of each run; an empty seed means all seeds.
        models: Descriptions of the models.
    """
    model_labels = {model.name: model.label for model in models}
    has_several_settings = len({setting for _, setting, _ in runs}) > 1
    has_several_seeds = len({seed for _, _, seed in runs if seed}) > 1
    labels = []
    for model, setting, seed in runs:
        details = []
        if has_several_settings:
            details.append(setting_label(setting))
        if has_several_seeds and seed:
            details.append(f"seed {seed}")
        label = model_labels[model]
        labels.append(f"{label} ({', '.join(details)})" if details else label)
    return labels


def run_of(metrics: DetectionMetrics) -> dict[str, str]:
    """Return the model, setting and seed of a run as text, by the keys `RUN`."""
    return {"model": metrics.model, "setting": metrics.setting, "seed": str(metrics.seed)}


def _run_numbers(
    inputs: DisplayInputs, measures: Sequence[Measure[DetectionMetrics]]
) -> pd.DataFrame:
    """Return the values of the measures in every run, as a frame of numbers."""
    records = zip(load_records(inputs.metrics, DetectionMetrics), inputs.metrics, strict=True)
    return of_runs(inputs, records, measures, run_of, _obstacles)


def detection_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the metrics of idiom detection of our runs (Table 1)."""
    return _run_numbers(inputs, DETECTION)


def detection(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 1: metrics of idiom detection, and the number of unreadable answers."""
    columns = [
        Column("accuracy", "Accuracy ↑"),
        Column("misclassification_rate", "MR ↓"),
        Column("recall", "Recall ↑"),
        Column("specificity", "Spec. ↑"),
        Column("precision", "Precision ↑"),
        Column("balanced_accuracy", "BA ↑"),
        Column("answers_unreadable", "Unread."),
    ]
    return _table(
        numbers,
        inputs,
        columns,
        "Automatic metrics of idiom detection on IdioTS (MR: misclassification rate, Spec.:"
        " specificity, BA: balanced accuracy). The last column counts the answers that could not be"
        " read: they are wrong in all metrics but precision, in which they have no place. A dash:"
        " nothing to measure.",
        with_verdicts=False,
    )


def all_runs(study: ConfiguredStudy) -> DisplayInputs:
    """Return display inputs with all runs, and with the paper's models that are not configured."""
    return study.display_inputs(study.plan.runs, "llm", models=study.settings.models)


_OTHER_SETTING = "not in this setting"
"""Reason for a missing number of a model that has runs with other settings."""
DETECTION_TABLE = Table(
    "idiots_detection",
    "Table 1",
    "Automatic metrics of idiom detection.",
    detection,
    all_runs,
    detection_numbers,
    printed=("idiots_table1",),
    otherwise=_OTHER_SETTING,
)


def consistency_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the True Positive Consistency of our runs, and its counts (Table 2)."""
    return _run_numbers(inputs, CONSISTENCY)


def consistency(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 2: the share of true positives that name the right idiom."""
    columns = [
        Column("positives", "Idiomatic"),
        Column("true_positives", "TP"),
        Column("true_positives_with_correct_idiom", "Correct idiom"),
        Column("true_positive_consistency", "TPC ↑"),
        Column("verdicts_human", "Judged"),
        Column("kappa", "κ"),
    ]
    return _table(
        numbers,
        inputs,
        columns,
        "True Positive Consistency (TPC) on IdioTS: of the true positives (TP) among the"
        " idiomatic sentences, those whose named idiom is the right one. Judged: answers (also on"
        " distractors) that a person judged; κ: Cohen's kappa of these verdicts and the automatic"
        " ones.",
    )


CONSISTENCY_TABLE = Table(
    "idiots_consistency",
    "Table 2",
    "True positives that name the right idiom.",
    consistency,
    all_runs,
    consistency_numbers,
    printed=("idiots_table2",),
    otherwise=_OTHER_SETTING,
)


def distractors_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the distractor PIE ratio of our runs, in total and by kind of distractor (Table 3)."""
    kinds_in_data: set[str] = set()
    for run_metrics in load_records(inputs.metrics, DetectionMetrics):
        kinds_in_data.update(run_metrics.by_distractor_kind.keys())
    measures = list(DISTRACTORS)
    for kind, measures_of_kind in BY_KIND.items():
        if kind in kinds_in_data:
            measures += measures_of_kind
    return _run_numbers(inputs, measures)


def distractors(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 3: the number and share of distractors whose PIE was taken figuratively."""
    columns = [
        Column("distractors", "Distractors"),
        Column("false_positives_on_associated_pie", "FP"),
        Column("ratio", "Ratio ↓"),
    ]
    measures = set(numbers["measure"])
    for kind, label in KIND_LABELS.items():
        if f"ratio_{kind}" in measures:
            columns.append(Column(f"ratio_{kind}", label))
    return _table(
        numbers,
        inputs,
        columns,
        "Distractors of IdioTS whose associated PIE was given a figurative meaning (FP),"
        " and the ratio by kind of distractor.",
    )


DISTRACTORS_TABLE = Table(
    "idiots_distractors",
    "Table 3",
    "Distractors whose PIE was given a figurative meaning.",
    distractors,
    all_runs,
    distractors_numbers,
    printed=("idiots_table3",),
    otherwise=_OTHER_SETTING,
)


def errors_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of errors and of error types (section 5.2.1)."""
    return _run_numbers(inputs, [*ERRORS, *ERROR_TYPES])


def errors(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of errors (section 5.2.1), with error types assigned by people."""
    counts = [
        Column("false_negatives", "Missed"),
        Column("wrong_idiom", "Other idiom"),
        Column("false_positives_on_pie", "Distractor: PIE"),
        Column("false_positives_elsewhere", "Distractor: else"),
    ]
    types = [
        Column("phrasal_verb", "phrasal verb"),
        Column("idiom_of_element", "of an element"),
        Column("unrelated_idiom", "unrelated"),
        Column("same_meaning", "same meaning"),
        Column("invented", "invented"),
        Column("other", "else"),
    ]
    # The upper part of the table needs empty columns, because the lower part has more columns.
    missing_columns = len(types) - len(counts)
    blank_heads = (Head(""),) * missing_columns
    blank_cells = (Cell(text=" "),) * missing_columns
    upper_rows = tuple(
        replace(row, cells=row.cells + blank_cells) for row in _rows(numbers, inputs, counts)
    )
    lower_rows = tuple(_rows(numbers, inputs, types))
    lower_heads = (headers(["Other idiom"], types),)
    return TableContent(
        heads=(headers(["Model"], counts) + blank_heads,),
        groups=(Group(upper_rows), Group(lower_rows, heads=lower_heads)),
        caption="Errors on IdioTS: idiomatic sentences without an idiom for the model, and those"
        " where it names another one; distractors in which it takes the PIE, or something else, for"
        " an idiom. Below, how people sorted the other idioms: a phrasal verb; an idiom that has an"
        " element of the sentence, has nothing to do with it, or means the same; one that does not"
        " exist; anything else.",
        notes=_notes(load_records(inputs.metrics, DetectionMetrics), with_verdicts=True),
    )


ERRORS_TABLE = Table(
    "idiots_errors",
    "Section 5.2.1",
    "Errors, and their types as people sorted them.",
    errors,
    all_runs,
    errors_numbers,
    printed=("text_numbers",),
    otherwise=_OTHER_SETTING,
)


def dataset_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our counts of the test suite (section 3).

    Without a manifest, the first note of the inputs is the reason why there are no counts.
    """
    numbers = OurNumbers(inputs.study)
    if "manifest" not in inputs.files:
        numbers.add({}, COUNTS, None, not_run=inputs.notes[0])
        return numbers.frame()
    manifest = load_record(inputs.files["manifest"], IdiotsManifest)
    is_verified_by_counts = manifest.verified == "counts"
    obstacles = [SELF_VERIFIED] if is_verified_by_counts else of_origin(manifest)
    numbers.add({}, COUNTS, manifest, obstacles=obstacles)
    return numbers.frame()


def dataset(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of the counts of the test suite (section 3)."""
    labels = {
        "idioms": "PIEs",
        "sentences": "Sentences",
        "idiomatic": "Idiomatic sentences",
        "distractors": "Distractors",
    }
    # Without keys, all numbers are in one row.
    (counts,) = rows_of(numbers, ()).values()
    rows = [
        number_row((label,), [Column(measure, "Number")], counts)
        for measure, label in labels.items()
    ]
    notes: tuple[str, ...] = ()
    if "manifest" in inputs.files:
        manifest = load_record(inputs.files["manifest"], IdiotsManifest)
        notes = data_notes([manifest])
        for kind, label in KIND_LABELS.items():
            distractors_of_kind = manifest.distractors_by_kind.get(kind, 0)
            if distractors_of_kind:
                rows.append(Row((f"– {label}",), (Cell(text=str(distractors_of_kind)),)))
    return TableContent(
        heads=((Head("IdioTS"), Head("Number")),),
        groups=(Group(tuple(rows)),),
        caption="The test suite. The public distractors are not marked by kind.",
        notes=notes,
        wide=False,
    )


def _dataset_inputs(study: ConfiguredStudy) -> DisplayInputs:
    """Return the inputs of the table of counts: the manifest, or a note on why there is none."""
    inputs = study.display_inputs()
    reason = no_data_reason(study)
    if reason:
        return inputs.model_copy(update={"notes": (reason,)})
    return inputs.with_files(manifest=paths.MANIFEST)


DATASET_TABLE = Table(
    "idiots_dataset",
    "Section 3",
    "PIEs and sentences of the test suite.",
    dataset,
    _dataset_inputs,
    dataset_numbers,
    printed=("text_numbers",),
)


def prompt(inputs: DisplayInputs) -> TableContent:
    """Build the table with the prompt (Figure 1) and the layout of the prompt for Llama 2."""
    system, user = load_prompt(inputs.files["prompt"]).messages(sentence="sentence")
    content_by_role = {
        "system": system.content,
        "user": user.content,
        "for Llama 2": _LLAMA2.format(system=system.content, user=user.content),
    }
    rows = [Row((role,), (Cell(text=content),)) for role, content in content_by_role.items()]
    return TableContent(
        heads=((Head("Role"), Head("Content")),),
        groups=tuple(Group((row,)) for row in rows),
        caption="The prompt (Figure 1; the sentence is the user's turn), and its layout for Llama 2"
        " as the paper has it from llama-cpp-python (Figure 2). The entry llama-2-7b-chat sets this"
        " layout; other local models use the template of their entry or weights.",
        wraps=True,
    )


def _prompt_inputs(study: ConfiguredStudy) -> DisplayInputs:
    return study.display_inputs().with_files(prompt=study.project.here(paths.PROMPT))


PROMPT_TABLE = Table(
    "idiots_prompt",
    "Figures 1 and 2",
    "The prompt, and its layout for Llama 2.",
    prompt,
    _prompt_inputs,
)


def _table(
    numbers: pd.DataFrame,
    inputs: DisplayInputs,
    columns: Sequence[Column],
    caption: str,
    *,
    with_verdicts: bool = True,
) -> TableContent:
    """Lay out one of Tables 1 to 3; `with_verdicts` adds a note on who judged the answers."""
    content = TableContent(
        heads=(headers(["Model"], columns),),
        groups=(Group(tuple(_rows(numbers, inputs, columns))),),
        caption=caption,
        notes=_notes(load_records(inputs.metrics, DetectionMetrics), with_verdicts=with_verdicts),
    )
    return mark_best(content, different=2)


def _notes(metrics: Sequence[DetectionMetrics], *, with_verdicts: bool) -> tuple[str, ...]:
    """Return the notes on a table's data and, if `with_verdicts`, on who judged the answers."""
    notes = data_notes(metrics)
    if not with_verdicts:
        return notes
    human_verdicts = sum(run_metrics.verdicts["human"] for run_metrics in metrics)
    automatic_verdicts = sum(run_metrics.verdicts["automatic"] for run_metrics in metrics)
    note = (
        f"People judged {human_verdicts} of the {human_verdicts + automatic_verdicts} answers that"
        " found an idiom, the matching function the others."
    )
    return (note, *notes)


def data_notes(records: Sequence[Described]) -> tuple[str, ...]:
    """Return table notes on sample data, and on data of which only the counts were verified."""
    notes = []
    if any(record.origin == "sample" for record in records):
        notes.append(SAMPLE_NOTE)
    if any(record.data_note == BY_COUNTS for record in records):
        notes.append(BY_COUNTS)
    return tuple(notes)


def _rows(numbers: pd.DataFrame, inputs: DisplayInputs, columns: Sequence[Column]) -> Iterator[Row]:
    """Yield the table row of each run, with one cell per column."""
    numbers_by_run = in_order(rows_of(numbers, RUN), inputs)
    labels = run_labels(list(numbers_by_run), inputs.models)
    for label, numbers_of_run in zip(labels, numbers_by_run.values(), strict=True):
        yield number_row((label,), columns, numbers_of_run)


def _obstacles(metrics: DetectionMetrics) -> list[str]:
    """Return why the scores of a run are not comparable with the printed scores."""
    return of_origin(metrics) + list(metrics.conditions.deviations)


def of_origin(record: Described) -> list[str]:
    """Return why numbers from this data are not comparable with printed numbers; may be empty."""
    reasons_by_origin: dict[Origin, list[str]] = {
        "sample": ["sample data, not the public IdioTS"],
        "unverified": [record.data_note],
        "released": [],
        "own": ["own data, the paper IdioTS"],
    }
    return reasons_by_origin[record.origin]
