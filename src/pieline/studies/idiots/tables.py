"""Tables of IdioTS: Tables 1 to 3, counts of section 3, errors of section 5.2.1, and the prompt."""

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
from pieline.studies.idiots.paths import no_data

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
    """A record that states the origin of its data."""

    @property
    def origin(self) -> Origin:
        """Origin of the sentences."""

    @property
    def data_note(self) -> str:
        """Note on how the data was verified or differs from the paper's."""


_LLAMA2 = "<s>[INST] <<SYS>>\n{system}\n<</SYS>> {user} [/INST]"


def run_labels(runs: Sequence[tuple[str, ...]], models: Sequence[ModelDescription]) -> list[str]:
    """Return the label of each run: the model, and the setting and seed if runs differ in them.

    Args:
        runs: Model, setting and seed of each run; an empty seed means all seeds.
        models: Descriptions of the models.
    """
    labels = {model.name: model.label for model in models}
    several_settings = len({setting for _, setting, _ in runs}) > 1
    several_seeds = len({seed for _, _, seed in runs if seed}) > 1
    run_labels = []
    for model, setting, seed in runs:
        details = []
        if several_settings:
            details.append(SETTING_LABELS.get(setting, setting))
        if several_seeds and seed:
            details.append(f"seed {seed}")
        label = labels[model]
        run_labels.append(f"{label} ({', '.join(details)})" if details else label)
    return run_labels


def run_of(item: DetectionMetrics) -> dict[str, str]:
    """Return the keys of a run."""
    return {"model": item.model, "setting": item.setting, "seed": str(item.seed)}


def _runs(inputs: DisplayInputs, measures: Sequence[Measure[DetectionMetrics]]) -> pd.DataFrame:
    """Return our numbers of every run."""
    records = zip(load_records(inputs.metrics, DetectionMetrics), inputs.metrics, strict=True)
    return of_runs(inputs, records, measures, run_of, _obstacles)


def detection_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of Table 1."""
    return _runs(inputs, DETECTION)


def detection(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 1: the first level of evaluation, and the number of unreadable answers."""
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
    """Return inputs with all runs, and the paper's models that are not configured."""
    return study.display_inputs(study.plan.runs, "llm", models=study.settings.models)


_ELSEWHERE = "not in this setting"
"""Why the paper has a number of a model, but this run has none."""
DETECTION_TABLE = Table(
    "idiots_detection",
    "Table 1",
    "Automatic metrics of idiom detection.",
    detection,
    all_runs,
    detection_numbers,
    printed=("idiots_table1",),
    otherwise=_ELSEWHERE,
)


def consistency_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of Table 2."""
    return _runs(inputs, CONSISTENCY)


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
    otherwise=_ELSEWHERE,
)


def distractors_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of Table 3, in total and by kind of distractor."""
    metrics = load_records(inputs.metrics, DetectionMetrics)
    marked_kinds = {kind for item in metrics for kind in item.by_distractor_kind}
    measures = list(DISTRACTORS)
    for kind, measures_of_kind in BY_KIND.items():
        if kind in marked_kinds:
            measures += measures_of_kind
    return _runs(inputs, measures)


def distractors(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 3: distractors whose PIE was given a figurative meaning."""
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
    otherwise=_ELSEWHERE,
)


def errors_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of section 5.2.1."""
    return _runs(inputs, [*ERRORS, *ERROR_TYPES])


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
    # The counts have fewer columns than the types below them.
    missing = len(types) - len(counts)
    blank_heads = (Head(""),) * missing
    blank_cells = (Cell(text=" "),) * missing
    count_rows = tuple(
        replace(row, cells=row.cells + blank_cells) for row in _rows(numbers, inputs, counts)
    )
    type_rows = tuple(_rows(numbers, inputs, types))
    return TableContent(
        heads=(headers(["Model"], counts) + blank_heads,),
        groups=(
            Group(count_rows),
            Group(type_rows, heads=(headers(["Other idiom"], types),)),
        ),
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
    otherwise=_ELSEWHERE,
)


def dataset_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our counts of section 3."""
    numbers = OurNumbers(inputs.study)
    if manifest := inputs.files.get("manifest"):
        record = load_record(manifest, IdiotsManifest)
        by_counts = record.verified == "counts"
        obstacles = [SELF_VERIFIED] if by_counts else of_origin(record)
        numbers.add({}, COUNTS, record, obstacles=obstacles)
    else:
        numbers.add({}, COUNTS, None, not_run=inputs.notes[0])
    return numbers.frame()


def dataset(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of the counts in section 3."""
    labels = {
        "idioms": "PIEs",
        "sentences": "Sentences",
        "idiomatic": "Idiomatic sentences",
        "distractors": "Distractors",
    }
    (counts,) = rows_of(numbers, ()).values()
    rows = [
        number_row((label,), [Column(measure, "Number")], counts)
        for measure, label in labels.items()
    ]
    notes: tuple[str, ...] = ()
    if manifest := inputs.files.get("manifest"):
        record = load_record(manifest, IdiotsManifest)
        notes = data_notes([record])
        for kind, label in KIND_LABELS.items():
            if count := record.distractors_by_kind.get(kind):
                rows.append(Row((f"– {label}",), (Cell(text=str(count)),)))
    return TableContent(
        heads=((Head("IdioTS"), Head("Number")),),
        groups=(Group(tuple(rows)),),
        caption="The test suite. The public distractors are not marked by kind.",
        notes=notes,
        wide=False,
    )


def _manifest(study: ConfiguredStudy) -> DisplayInputs:
    given = study.display_inputs()
    if obstacle := no_data(study):
        return given.model_copy(update={"notes": (obstacle,)})
    return given.with_files(manifest=paths.MANIFEST)


DATASET_TABLE = Table(
    "idiots_dataset",
    "Section 3",
    "PIEs and sentences of the test suite.",
    dataset,
    _manifest,
    dataset_numbers,
    printed=("text_numbers",),
)


def prompt(inputs: DisplayInputs) -> TableContent:
    """Build the table with the prompt (Figure 1) and its layout for Llama 2 (Figure 2)."""
    system, user = load_prompt(inputs.files["prompt"]).messages(sentence="sentence")
    parts = {
        "system": system.content,
        "user": user.content,
        "for Llama 2": _LLAMA2.format(system=system.content, user=user.content),
    }
    return TableContent(
        heads=((Head("Role"), Head("Content")),),
        groups=tuple(
            Group((Row((role,), (Cell(text=content),)),)) for role, content in parts.items()
        ),
        caption="The prompt (Figure 1; the sentence is the user's turn), and its layout for Llama 2"
        " as the paper has it from llama-cpp-python (Figure 2). The entry llama-2-7b-chat sets this"
        " layout; other local models use the template of their entry or weights.",
        wraps=True,
    )


def _prompt(study: ConfiguredStudy) -> DisplayInputs:
    return study.display_inputs().with_files(prompt=study.project.here(paths.PROMPT))


PROMPT_TABLE = Table(
    "idiots_prompt",
    "Figures 1 and 2",
    "The prompt, and its layout for Llama 2.",
    prompt,
    _prompt,
)


def _table(
    numbers: pd.DataFrame,
    inputs: DisplayInputs,
    columns: Sequence[Column],
    caption: str,
    *,
    with_verdicts: bool = True,
) -> TableContent:
    """Lay out one of Tables 1 to 3."""
    content = TableContent(
        heads=(headers(["Model"], columns),),
        groups=(Group(tuple(_rows(numbers, inputs, columns))),),
        caption=caption,
        notes=_notes(load_records(inputs.metrics, DetectionMetrics), with_verdicts=with_verdicts),
    )
    return mark_best(content, different=2)


def _notes(metrics: Sequence[DetectionMetrics], *, with_verdicts: bool) -> tuple[str, ...]:
    notes = data_notes(metrics)
    if not with_verdicts:
        return notes
    by_people = sum(item.verdicts["human"] for item in metrics)
    total = sum(sum(item.verdicts.values()) for item in metrics)
    note = (
        f"People judged {by_people} of the {total} answers that found an idiom, the matching"
        " function the others."
    )
    return (note, *notes)


def data_notes(described: Sequence[Described]) -> tuple[str, ...]:
    """Return notes on sample data and on data verified only by counts."""
    notes = []
    if any(item.origin == "sample" for item in described):
        notes.append(SAMPLE_NOTE)
    if any(item.data_note == BY_COUNTS for item in described):
        notes.append(BY_COUNTS)
    return tuple(notes)


def _rows(numbers: pd.DataFrame, inputs: DisplayInputs, columns: Sequence[Column]) -> Iterator[Row]:
    """Yield one row per run."""
    by_run = in_order(rows_of(numbers, RUN), inputs)
    labels = run_labels(list(by_run), inputs.models)
    for label, of_run in zip(labels, by_run.values(), strict=True):
        yield number_row((label,), columns, of_run)


def _obstacles(item: DetectionMetrics) -> list[str]:
    """Return why the scores of a run are not comparable with the paper's."""
    return of_origin(item) + list(item.conditions.deviations)


def of_origin(described: Described) -> list[str]:
    """Return why numbers on this data are not comparable with the paper's."""
    reasons: dict[Origin, list[str]] = {
        "sample": ["sample data, not the public IdioTS"],
        "unverified": [described.data_note],
        "released": [],
        "own": ["own data, the paper IdioTS"],
    }
    return reasons[described.origin]
