"""Build the displays that need no run: Figures 1 and 4, Tables 1 and 4."""

from itertools import chain
from operator import attrgetter

from pieline.core.upstream import load_upstream
from pieline.languages.registry import get_language, language_names
from pieline.llm.prompts import load_prompt
from pieline.reporting import described
from pieline.reporting.columns import headers
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import read_printed, state
from pieline.reporting.tables import BESIDE, Cell, Group, Number, Row, TableContent
from pieline.studies.jam import inputs as given
from pieline.studies.jam import paths
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.files import Jam
from pieline.studies.jam.questions import prompt_files
from pieline.studies.jam.records import by_original
from pieline.studies.jam.settings import JamFineTuning
from pieline.studies.jam.tables.common import code_of, title_of

_FILES = {
    "MAGPIE": "magpie/MAGPIE_unfiltered.jsonl",
    "ID10M gold": "id10m/test_{language}.tsv",
    "ID10M silver": "id10m/train_{language}.tsv",
    "ID10M-JAM": "id10m-jam/{language}.json",
}
"""Paths in data/upstream.yaml of those datasets in Table 1 that this project reads."""
_UNREAD = "this project does not read it"
_SHOWN = "shown, not compared"
_ROLES = {"system": "System prompt", "user": "User prompt", "assistant": "Answer"}


def example(inputs: DisplayInputs) -> TableContent:
    """Return Figure 1 with sentences of this run: an original of each usage and a hard variant.

    `inputs.files` maps languages to dataset files.
    """
    groups = []
    for language, path in inputs.files.items():
        rows: dict[str, list[Row]] = {}
        for original, *variants in by_original(load_sentences(path)).values():
            usage = "figurative" if original.is_figurative else "literal"
            if usage in rows or not variants:
                continue
            rows[usage] = []
            for what, item in (("original", original), ("hard variant", variants[0])):
                key = {"language": language, "usage": usage, "metric": what, "id": item.id}
                cell = Cell(Number(key, state(item.sentence, "", reason=_SHOWN)))
                rows[usage].append(Row((f"{original.pies[0]} ({usage})", what), (cell,)))
        shown = tuple(row for pair in rows.values() for row in pair)
        groups.append(Group(shown, get_language(language).label))
    return TableContent(
        heads=(headers(["Language", "PIE", "", "Sentence"]),),
        groups=tuple(groups),
        caption="An original of each usage with one of its hard variants, whose added context"
        " evokes the other usage. They are the first in this run's data, not the paper's example.",
        notes=inputs.notes,
        wraps=True,
    )


def _datasets(study: ConfiguredStudy) -> DisplayInputs | None:
    if not given.has_results(study):
        return None
    files = {name: paths.DATASET.format(language=name) for name in study.settings.languages}
    return DisplayInputs(files=files, notes=study.notes())


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
    for row in read_printed(inputs.files["published"]):
        name, printed = row["dataset"], row["languages"]
        file = _FILES.get(name, "")
        available = {
            code_of(one) for one in language_names() if file.format(language=one) in public
        }
        ours = " ".join(code for code in printed.split() if code in available)
        reason = "" if ours else _UNREAD
        partly = "" if ours == printed else "this project reads no file in the others"
        stated = state(ours, printed, reason=reason or partly)
        rows.append(Row((name,), (described.described(stated, dataset=name),), reason))
    return TableContent(
        heads=(headers(["Dataset", "Languages here"]),),
        groups=(Group(tuple(rows)),),
        caption="Datasets of idioms and the languages (ISO 639-1) of which this project reads"
        f" files. {BESIDE}",
        wide=False,
        texts=True,
    )


def _public_files(study: ConfiguredStudy) -> DisplayInputs | None:
    if not given.has_results(study):
        return None
    return DisplayInputs(files={"upstream": study.project.upstream})


DATASETS_TABLE = Table(
    "jam_datasets",
    "Table 1",
    "Datasets of idioms and their languages.",
    datasets,
    _public_files,
    printed="jam_table1",
)


def hyperparameters(inputs: DisplayInputs) -> TableContent:
    """Return Table 4: the fine-tuning hyperparameters of this run's encoders.

    `inputs.options` are the fine-tuning settings; empty if no encoder is fine-tuned.
    """
    tuning = JamFineTuning.model_validate(inputs.options)
    values = {
        "epochs": ("Epochs", tuning.epochs),
        "batch_size": ("Batch size", tuning.batch_size),
        "learning_rate": ("Learning rate", tuning.learning_rate),
    }
    absent = "no encoder is fine-tuned in this configuration"
    numbers = {
        name: (label, value if inputs.options else None, absent)
        for name, (label, value) in values.items()
    }
    return described.hyperparameters(inputs, numbers, "Fine-tuning hyperparameters of encoders.")


def _fine_tuning(study: ConfiguredStudy) -> DisplayInputs | None:
    if not given.has_results(study):
        return None
    tunes = study.plan.select(kind="encoder", experiment="")
    options = study.settings.fine_tuning.stated(*JamFineTuning.model_fields) if tunes else {}
    return DisplayInputs(options=options)


HYPERPARAMETERS_TABLE = Table(
    "jam_hyperparameters",
    "Table 4",
    "Hyperparameters of encoders, as set in this run.",
    hyperparameters,
    _fine_tuning,
    printed="jam_table4",
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
        values = {"idioms": ["{idiom}"], "literal_pie": ""} if is_example else {}
        turns = loaded.messages(sentence="{sentence}", language="{language}", **values)
        about = loaded.about.get("source") or loaded.about.get("purpose", "")
        notes += [f"{title}: {' '.join(str(about).split())}"] if about else []
        rows = []
        for role, text in turns:
            key = {"prompt": setting, "metric": role}
            rows.append(Row((_ROLES[role],), (Cell(Number(key, state(text, "", reason=_SHOWN))),)))
        groups.append(Group(tuple(rows), title))
    return TableContent(
        heads=(headers(["Prompt", "Turn", "Text"]),),
        groups=tuple(groups),
        caption="The prompts for idiom identification in this run, with placeholders in braces.",
        notes=tuple(notes),
        wraps=True,
    )


def _prompts(study: Jam) -> DisplayInputs | None:
    if not given.has_results(study):
        return None
    settings, setting_of = study.settings, dict[str, str]()
    for setting in chain(settings.settings, *settings.settings_by_model.values()):
        for kind, file in prompt_files(study, setting).items():
            setting_of.setdefault(file, setting if kind == "prompt" else "few_shot_example")
    files = {setting: file for file, setting in setting_of.items()}
    return DisplayInputs(files=files, options={"prompts": list(files)})


PROMPT_TABLE = Table(
    "jam_prompt",
    "Figure 4",
    "The prompts of this run.",
    prompt,
    _prompts,
)


def _checkpoints(study: ConfiguredStudy) -> DisplayInputs | None:
    if not given.has_results(study):
        return None
    names = study.project.names("llm", "encoder", "causal_lm")
    return described.checkpoint_options(study, names, attrgetter("published_as"))


CHECKPOINTS_TABLE = Table(
    "jam_checkpoints",
    "Table 7",
    "Checkpoints, their licenses, sizes and pinned revisions.",
    described.checkpoints,
    _checkpoints,
    printed="jam_table7",
)


def _artifacts(study: ConfiguredStudy) -> DisplayInputs | None:
    return described.artifact_inputs(study) if given.has_results(study) else None


ARTIFACTS_TABLE = Table(
    "jam_artifacts",
    "Table 8",
    "Data and software, their licenses and pinned versions.",
    described.artifacts,
    _artifacts,
    printed="jam_table8",
)
