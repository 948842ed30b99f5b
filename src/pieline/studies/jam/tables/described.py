"""Build the displays that need no run: Figures 1 and 4, Tables 1, 2 and 4."""

from itertools import chain
from operator import attrgetter

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
    statistics_of,
    title_of,
)

_FILES = {
    "MAGPIE": "magpie/MAGPIE_unfiltered.jsonl",
    "ID10M gold": "id10m/test_{language}.tsv",
    "ID10M silver": "id10m/train_{language}.tsv",
    "ID10M-JAM": "id10m-jam/{language}.json",
}
"""Paths in data/upstream.yaml of the datasets in Table 1 that this project reads."""
_UNREAD = "this project does not read it"
_ROLES = {"system": "System prompt", "user": "User prompt", "assistant": "Answer"}


def example(inputs: DisplayInputs) -> TableContent:
    """Return Figure 1 with sentences of this run: an original of each usage and a hard variant.

    `inputs.files` maps languages to dataset files.
    """
    groups = []
    for language, path in inputs.files.items():
        rows: dict[str, list[Row]] = {}
        for sentences in by_original(load_sentences(path)).values():
            original = sentences[0]
            usage = "figurative" if original.is_figurative else "literal"
            if usage in rows or len(sentences) == 1:
                continue
            label = f"{original.pies[0]} ({usage})"
            rows[usage] = [
                text_row((label, "original"), original.sentence),
                text_row((label, "hard variant"), sentences[1].sentence),
            ]
        rows_of_usages = tuple(chain.from_iterable(rows.values()))
        groups.append(Group(rows_of_usages, get_language(language).label))
    return TableContent(
        heads=(headers(["Language", "PIE", "", "Sentence"]),),
        groups=tuple(groups),
        caption="An original of each usage with one of its hard variants, whose added context"
        " evokes the other usage. They are the first in this run's data, not the paper's example.",
        notes=inputs.notes,
        wraps=True,
    )


def _datasets(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_results(study):
        return None
    files = {name: paths.DATASET.format(language=name) for name in study.settings.languages}
    return study.display_inputs().with_files(**files)


EXAMPLE_TABLE = Table(
    "jam_example",
    "Figure 1",
    "An original of each usage and a hard variant of it.",
    example,
    _datasets,
)


def datasets(inputs: DisplayInputs) -> TableContent:
    """Return Table 1: the languages of idiom datasets, and which of them this project reads."""
    public = load_upstream(inputs.files["upstream"])
    rows = []
    for row in read_printed(inputs.files["jam_table1"]):
        name, printed = row["dataset"], row["languages"]
        file = _FILES.get(name, "")
        available = {
            code_of(one) for one in language_names() if file.format(language=one) in public
        }
        ours = " ".join(code for code in printed.split() if code in available)
        reason = "" if ours else _UNREAD
        difference = "" if ours == printed else "this project reads no file in the others"
        stated = state(ours, printed, reason=reason or difference)
        rows.append(text_row((name,), stated, reason=reason))
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
"""Hyperparameters by label."""


def hyperparameter_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the fine-tuning hyperparameters of this run's encoders.

    `inputs.options` are the fine-tuning settings; empty if no encoder is fine-tuned.
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
    """Lay out Table 4."""
    labels = {measure.name: label for label, measure in HYPERPARAMETERS.items()}
    return described.hyperparameters(numbers, labels, "Fine-tuning hyperparameters of encoders.")


def _fine_tuning(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_results(study):
        return None
    tunes = study.plan.select(kind="encoder", experiment="")
    options = study.settings.fine_tuning.model_dump() if tunes else {}
    return study.display_inputs().model_copy(update={"options": options})


HYPERPARAMETERS_TABLE = Table(
    "jam_hyperparameters",
    "Table 4",
    "Hyperparameters of encoders, as set in this run.",
    hyperparameters,
    _fine_tuning,
    hyperparameter_numbers,
    printed=("jam_table4",),
)


def prompt(inputs: DisplayInputs) -> TableContent:
    """Return Figure 4: the messages of each prompt, with placeholders in braces.

    `inputs.files` maps settings and `few_shot_example` to templates; the option `prompts` lists
    them in order.
    """
    groups, notes = [], []
    for setting in inputs.options["prompts"]:
        is_example = setting == "few_shot_example"
        title = "Few-shot example" if is_example else title_of(setting)
        loaded = load_prompt(inputs.files[setting])
        values = {"idioms": ["{idiom}"]} if is_example else {}
        turns = loaded.messages(sentence="{sentence}", language="{language}", **values)
        if about := loaded.about.get("source") or loaded.about.get("purpose"):
            notes.append(f"{title}: {' '.join(str(about).split())}")
        groups.append(Group(tuple(text_row((_ROLES[role],), text) for role, text in turns), title))
    return TableContent(
        heads=(headers(["Prompt", "Turn", "Text"]),),
        groups=tuple(groups),
        caption="The prompts for idiom identification in this run, with placeholders in braces.",
        notes=tuple(notes),
        wraps=True,
    )


def _prompts(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_results(study):
        return None
    settings = list(study.settings.settings)
    for model in study.settings.by_model:
        settings += study.settings.settings_of(model)
    names: dict[str, str] = {}
    for setting in settings:
        for kind, file in paths.prompt_files(study, setting).items():
            # Settings that share a template are listed once.
            names.setdefault(file, setting if kind == "prompt" else "few_shot_example")
    files = {name: file for file, name in names.items()}
    inputs = study.display_inputs().with_files(**files)
    return inputs.model_copy(update={"options": {"prompts": list(files)}})


PROMPT_TABLE = Table(
    "jam_prompt",
    "Figure 4",
    "The prompts of this run.",
    prompt,
    _prompts,
)


def _checkpoints(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_results(study):
        return None
    names = study.project.names("llm", "encoder", "causal_lm")
    return described.checkpoint_options(study, names, attrgetter("published_as"))


def checkpoints(inputs: DisplayInputs) -> TableContent:
    """Return Table 7."""
    return described.checkpoints(inputs, read_printed(inputs.files["jam_table7"]))


CHECKPOINTS_TABLE = Table(
    "jam_checkpoints",
    "Table 7",
    "Checkpoints, their licenses, sizes and pinned revisions.",
    checkpoints,
    _checkpoints,
    printed=("jam_table7",),
)


def _artifacts(study: ConfiguredStudy) -> DisplayInputs | None:
    return described.artifact_inputs(study) if has_results(study) else None


def artifacts(inputs: DisplayInputs) -> TableContent:
    """Return Table 8."""
    return described.artifacts(inputs, read_printed(inputs.files["jam_table8"]))


ARTIFACTS_TABLE = Table(
    "jam_artifacts",
    "Table 8",
    "Data and software, their licenses and pinned versions.",
    artifacts,
    _artifacts,
    printed=("jam_table8",),
)


DATASETS = {"ID10M": ID10M, "ID10M-JAM": JAM}
"""Measures by printed name of a dataset."""


def statistics_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our counts of Table 2 and of the text.

    For ID10M-JAM, the test sentences are the originals in the dataset. Without variants, released
    originals are counted instead, because they equal the dataset's originals; counts of other
    originals remain unknown.
    """
    numbers = OurNumbers(inputs.study)
    for item, path in zip(load_records(inputs.metrics, JamStatistics), inputs.metrics, strict=True):
        for dataset, measures in DATASETS.items():
            keys = {"scope": dataset, "language": item.language}
            for measure in measures:
                obstacles = _obstacles(item, dataset)
                if measure.name == "test_variants" and item.data_note == BY_COUNTS:
                    obstacles.append(SELF_VERIFIED)
                numbers.add(keys, [measure], item, files=[path], obstacles=obstacles)
    return numbers.frame()


def statistics(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out Table 2, with the number of distinct PIEs."""
    columns = [
        Column("train_sentences", "# Sentences"),
        Column("test_sentences", "# Sentences"),
        Column("test_variants", "# Variants"),
        Column("unique_pies", "# PIEs"),
    ]
    records = load_records(inputs.metrics, JamStatistics)
    by_row = rows_of(numbers, ("scope", "language"))
    groups = []
    for dataset in DATASETS:
        rows = []
        for item in records:
            of_row = by_row[dataset, item.language]
            cells = tuple(_count_cell(of_row.get(column.measure)) for column in columns)
            rows.append(Row((code_of(item.language),), cells))
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
    """Return a cell with a count that has thousands separators."""
    text = "" if number is None or number.ours is None else f"{number.ours:,.0f}"
    return Cell(number, text=text)


STATISTICS_TABLE = Table(
    "jam_statistics",
    "Table 2",
    "Sentences and variants of ID10M and ID10M-JAM.",
    statistics,
    statistics_of,
    statistics_numbers,
    printed=("jam_table2", "text_numbers"),
)


def _obstacles(item: JamStatistics, dataset: str) -> list[str]:
    """Return why the numbers of a dataset are not comparable with the printed ones."""
    if item.conditions.deviations:
        return list(item.conditions.deviations)
    if not item.originals_are_released:
        return ["sample data or other than the public originals"]
    if dataset == "ID10M-JAM" and item.dataset_is_released is False:
        return [item.data_note or f"{item.variants_source} variants, not the public ones"]
    return []
