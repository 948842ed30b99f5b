"""Build the displays that need no predictions: Figures 1 and 4, Tables 1, 2, 4, 7 and 8."""

from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd

from pieline.core.measures import Measure
from pieline.core.records import load_records
from pieline.core.upstream import BY_COUNTS, SELF_VERIFIED, load_upstream
from pieline.languages.registry import get_language, language_names
from pieline.llm.prompts import load_prompt
from pieline.reporting import described
from pieline.reporting.described import text_row
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import Number, rows_of
from pieline.reporting.ours import OurNumbers
from pieline.reporting.printed import read_printed, state
from pieline.reporting.tables import BESIDE, Cell, Column, Group, Head, Row, TableContent, headers
from pieline.studies.jam import paths
from pieline.studies.jam.metrics.statistics import ID10M, JAM, JamStatistics
from pieline.studies.jam.records import by_original, load_sentences
from pieline.studies.jam.settings import JamFineTuning
from pieline.studies.jam.tables.common import (
    code_of,
    data_notes,
    has_results,
    statistics_inputs,
    title_of,
)

_FILES = {
    "MAGPIE": "magpie/MAGPIE_unfiltered.jsonl",
    "ID10M gold": "id10m/test_{language}.tsv",
    "ID10M silver": "id10m/train_{language}.tsv",
    "ID10M-JAM": "id10m-jam/{language}.json",
}
"""Path patterns in data/upstream.yaml of the datasets in Table 1 that this project reads."""
_UNREAD = "this project does not read it"
_EXAMPLE = "few_shot_example"
"""Name of the template of a few-shot example among the prompts of Figure 4."""
_ROLES = {"system": "System prompt", "user": "User prompt", "assistant": "Answer"}


def example(inputs: DisplayInputs) -> TableContent:
    """Return Figure 1: an original of each usage in this run's data, and one of its hard variants.

    `inputs.files` contains the dataset of each language.
    """
    groups = [
        Group(_example_rows(path), get_language(language).label)
        for language, path in inputs.files.items()
    ]
    return TableContent(
        heads=(headers(["Language", "PIE", "", "Sentence"]),),
        groups=tuple(groups),
        caption="An original of each usage with one of its hard variants, whose added context"
        " evokes the other usage. They are the first in this run's data, not the paper's example.",
        notes=inputs.notes,
        wraps=True,
    )


def _example_rows(dataset: str | Path) -> tuple[Row, ...]:
    """Return two rows per usage: the first original that has variants, and its first variant."""
    rows: list[Row] = []
    shown_usages = set()
    for original, *variants in by_original(load_sentences(dataset)).values():
        usage = "figurative" if original.is_figurative else "literal"
        if variants and usage not in shown_usages:
            shown_usages.add(usage)
            label = f"{original.pies[0]} ({usage})"
            rows.append(text_row((label, "original"), original.sentence))
            rows.append(text_row((label, "hard variant"), variants[0].sentence))
    return tuple(rows)


def _dataset_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_results(study):
        return None
    files = {
        language: paths.DATASET.format(language=language) for language in study.settings.languages
    }
    return study.display_inputs().with_files(**files)


EXAMPLE_TABLE = Table(
    "jam_example",
    "Figure 1",
    "An original of each usage and a hard variant of it.",
    example,
    _dataset_inputs,
)


def datasets(inputs: DisplayInputs) -> TableContent:
    """Return Table 1: the languages in which this project reads each dataset of idioms."""
    public_files = load_upstream(inputs.files["upstream"])
    rows = []
    for printed_row in read_printed(inputs.files["jam_table1"]):
        dataset, printed_codes = printed_row["dataset"], printed_row["languages"]
        available_codes = set()
        if dataset in _FILES:
            for language in language_names():
                if _FILES[dataset].format(language=language) in public_files:
                    available_codes.add(code_of(language))
        our_codes = " ".join(code for code in printed_codes.split() if code in available_codes)
        if our_codes:
            is_complete = our_codes == printed_codes
            reason = "" if is_complete else "this project reads no file in the others"
            rows.append(text_row((dataset,), state(our_codes, printed_codes, reason=reason)))
        else:
            stated = state(our_codes, printed_codes, reason=_UNREAD)
            rows.append(text_row((dataset,), stated, reason=_UNREAD))
    return TableContent(
        heads=(headers(["Dataset", "Languages here"]),),
        groups=(Group(tuple(rows)),),
        caption="Datasets of idioms and the languages (ISO 639-1) of which this project reads"
        f" files. {BESIDE}",
        wide=False,
        texts=True,
    )


def _public_files(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_results(study):
        return None
    return study.display_inputs().with_files(upstream=study.project.upstream)


DATASETS_TABLE = Table(
    "jam_datasets",
    "Table 1",
    "Datasets of idioms and their languages.",
    datasets,
    _public_files,
    printed=("jam_table1",),
)


HYPERPARAMETERS = {
    "Epochs": Measure[JamFineTuning]("epochs", attrgetter("epochs"), decimals=0),
    "Batch size": Measure("batch_size", attrgetter("batch_size"), decimals=0),
    "Learning rate": Measure("learning_rate", attrgetter("learning_rate"), decimals=5),
}
"""Measures of hyperparameters, by row label."""


def hyperparameter_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the hyperparameters with which this run fine-tunes encoders.

    `inputs.options` are the settings of fine-tuning; they are empty if no encoder is fine-tuned.
    """
    tuning = JamFineTuning.model_validate(inputs.options) if inputs.options else None
    return described.hyperparameter_numbers(
        inputs,
        HYPERPARAMETERS.values(),
        tuning,
        file="jam_table4",
        not_run="" if tuning else "no encoder is fine-tuned in this configuration",
    )


def hyperparameters(numbers: pd.DataFrame, _: DisplayInputs) -> TableContent:
    """Lay out Table 4, the hyperparameters of encoders."""
    labels = {measure.name: label for label, measure in HYPERPARAMETERS.items()}
    return described.hyperparameters(numbers, labels, "Fine-tuning hyperparameters of encoders.")


def _fine_tuning_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return the settings of fine-tuning if an encoder is fine-tuned, otherwise no settings.

    Returns None without models or hard variants.
    """
    if not has_results(study):
        return None
    encoder_runs = study.plan.select(kind="encoder", experiment="")
    options = study.settings.fine_tuning.model_dump() if encoder_runs else {}
    return study.display_inputs().model_copy(update={"options": options})


HYPERPARAMETERS_TABLE = Table(
    "jam_hyperparameters",
    "Table 4",
    "Hyperparameters of encoders, as set in this run.",
    hyperparameters,
    _fine_tuning_inputs,
    hyperparameter_numbers,
    printed=("jam_table4",),
)


def prompt(inputs: DisplayInputs) -> TableContent:
    """Return Figure 4: the messages of each prompt, with placeholders in braces.

    The option `prompts` lists the names of the prompts: prompt settings, and `_EXAMPLE` for the
    template of a few-shot example. `inputs.files` contains the template of each prompt.
    """
    groups, notes = [], []
    for name in inputs.options["prompts"]:
        template = load_prompt(inputs.files[name])
        placeholders: dict[str, Any] = {"sentence": "{sentence}", "language": "{language}"}
        if name == _EXAMPLE:
            title = "Few-shot example"
            placeholders["idioms"] = ["{idiom}"]
        else:
            title = title_of(name)
        messages = template.messages(**placeholders)
        rows = tuple(text_row((_ROLES[role],), content) for role, content in messages)
        groups.append(Group(rows, title))
        description = template.about.get("source") or template.about.get("purpose")
        if description:
            on_one_line = " ".join(str(description).split())
            notes.append(f"{title}: {on_one_line}")
    return TableContent(
        heads=(headers(["Prompt", "Turn", "Text"]),),
        groups=tuple(groups),
        caption="The prompts for idiom identification in this run, with placeholders in braces.",
        notes=tuple(notes),
        wraps=True,
    )


def _prompt_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    """Return the prompt templates of language models; None without models or hard variants."""
    if not has_results(study):
        return None
    settings = list(study.settings.settings)
    for model in study.settings.by_model:
        settings += study.settings.settings_of(model)
    template_by_name: dict[str, str] = {}
    for setting in settings:
        for kind, template in paths.prompt_files(study, setting).items():
            # Settings that share a template are listed once.
            if template not in template_by_name.values():
                template_by_name[setting if kind == "prompt" else _EXAMPLE] = template
    inputs = study.display_inputs().with_files(**template_by_name)
    return inputs.model_copy(update={"options": {"prompts": list(template_by_name)}})


PROMPT_TABLE = Table(
    "jam_prompt",
    "Figure 4",
    "The prompts of this run.",
    prompt,
    _prompt_inputs,
)


def _checkpoint_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_results(study):
        return None
    names = study.project.names("llm", "encoder", "causal_lm")
    return described.checkpoint_options(study, names, attrgetter("published_as"))


def checkpoints(inputs: DisplayInputs) -> TableContent:
    """Return Table 7, the checkpoints of this project's models."""
    return described.checkpoints(inputs, read_printed(inputs.files["jam_table7"]))


CHECKPOINTS_TABLE = Table(
    "jam_checkpoints",
    "Table 7",
    "Checkpoints, their licenses, sizes and pinned revisions.",
    checkpoints,
    _checkpoint_inputs,
    printed=("jam_table7",),
)


def _artifact_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    return described.artifact_inputs(study) if has_results(study) else None


def artifacts(inputs: DisplayInputs) -> TableContent:
    """Return Table 8, the data and software that this project uses."""
    return described.artifacts(inputs, read_printed(inputs.files["jam_table8"]))


ARTIFACTS_TABLE = Table(
    "jam_artifacts",
    "Table 8",
    "Data and software, their licenses and pinned versions.",
    artifacts,
    _artifact_inputs,
    printed=("jam_table8",),
)


DATASETS = {"ID10M": ID10M, "ID10M-JAM": JAM}
"""Measures of each dataset, by the printed name of the dataset."""


def statistics_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our counts in Table 2 and in the text.

    For ID10M-JAM, the test sentences are the originals in the dataset. Without variants, the public
    originals are counted instead, because the public dataset contains all of them. Other originals
    are not counted.
    """
    numbers = OurNumbers(inputs.study)
    records = zip(load_records(inputs.metrics, JamStatistics), inputs.metrics, strict=True)
    for statistics_of_language, path in records:
        for dataset, measures in DATASETS.items():
            keys = {"scope": dataset, "language": statistics_of_language.language}
            for measure in measures:
                obstacles = _obstacles(statistics_of_language, dataset)
                is_by_counts = statistics_of_language.data_note == BY_COUNTS
                if measure.name == "test_variants" and is_by_counts:
                    obstacles.append(SELF_VERIFIED)
                numbers.add(
                    keys, [measure], statistics_of_language, files=[path], obstacles=obstacles
                )
    return numbers.frame()


def statistics(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 2: the numbers of sentences, variants and distinct PIEs of both datasets."""
    columns = [
        Column("train_sentences", "# Sentences"),
        Column("test_sentences", "# Sentences"),
        Column("test_variants", "# Variants"),
        Column("unique_pies", "# PIEs"),
    ]
    records = load_records(inputs.metrics, JamStatistics)
    numbers_by_row = rows_of(numbers, ("scope", "language"))
    groups = []
    for dataset in DATASETS:
        rows = []
        for record in records:
            counts = numbers_by_row[dataset, record.language]
            cells = tuple(_count_cell(counts.get(column.measure)) for column in columns)
            rows.append(Row((code_of(record.language),), cells))
        groups.append(Group(tuple(rows), dataset))
    return TableContent(
        heads=(
            (*headers(["", "", "Train"]), Head("Test", 2), Head("")),
            headers(["Dataset", "Language"], columns),
        ),
        groups=tuple(groups),
        caption="ID10M (original sentences) and ID10M-JAM, whose instances are hard variants. A"
        " dash marks what a dataset does not have or what was not computed. PIEs that differ only"
        " in case, spaces or punctuation count once.",
        notes=data_notes(*records) + inputs.notes,
    )


def _count_cell(number: Number | None) -> Cell:
    """Return a cell with a count and its thousands separators, or a dash for an unknown count."""
    # A cell without text shows a dash.
    text = "" if number is None or number.ours is None else f"{number.ours:,.0f}"
    return Cell(number, text=text)


STATISTICS_TABLE = Table(
    "jam_statistics",
    "Table 2",
    "Sentences and variants of ID10M and ID10M-JAM.",
    statistics,
    statistics_inputs,
    statistics_numbers,
    printed=("jam_table2", "text_numbers"),
)


def _obstacles(counts: JamStatistics, dataset: str) -> list[str]:
    """Return why the counts of a dataset are not comparable with the printed counts."""
    if counts.conditions.deviations:
        return list(counts.conditions.deviations)
    if not counts.originals_are_released:
        return ["sample data or other than the public originals"]
    if dataset == "ID10M-JAM" and counts.dataset_is_released is False:
        return [counts.data_note or f"{counts.variants_source} variants, not the public ones"]
    return []
