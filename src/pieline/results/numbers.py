"""Collect all numbers of a run: our numbers, and every number that the papers print.

published/tables.yaml defines which printed numbers count, and the kind of each number.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pandas as pd

from pieline.core.errors import pluralize
from pieline.core.imports import import_object
from pieline.core.records import Frozen
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.latex import render_latex
from pieline.reporting.numbers import (
    COMPARED,
    STATES,
    Number,
    add_origin_and_tables,
    join,
    numbers_of,
)
from pieline.reporting.ours import DEVIATION, KEYS, OurNumbers, join_without_duplicates
from pieline.reporting.published import (
    Catalogue,
    Kind,
    PrintedTable,
    first_table,
    load_catalogue,
    printed_frame,
    read_released,
)

NOWHERE = "nothing in this project computes it"
NO_NUMBER = "the papers print no numbers for this data"
REAL_DATA = "the papers' data in place of the sample"
UNPUBLISHED = "something that was never published"
UNKNOWN_WAY = "a way to compute them, which this project does not have"
FULL_GRID = "config/paper.yaml"
"""Configuration that computes all numbers of the papers."""
_MOST_TARGETS = 5
"""Largest number of metric files in a number's command; with more, the command names the table."""
_WORDS = {
    "english": "English",
    "german": "German",
    "zero_shot": "zero-shot",
    "zero_shot_schema": "zero-shot, JSON",
    "few_shot_sc_cotbest": "few-shot with self-consistency and CoTBest",
    "fine_tuned": "fine-tuned",
    "success": "success count",
    "success_literal": "success count on literal sentences",
    "success_idiomatic": "success count on idiomatic sentences",
    "negative_drift_literal": "negative drift on literal sentences",
    "negative_drift_idiomatic": "negative drift on idiomatic sentences",
    "r_precision": "R-Precision",
    "ndcg_at_10": "nDCG@10",
    "false_positives_on_associated_pie": "false positives on the associated PIE",
    "pies": "PIEs",
}
"""Words for the values of a number's keys. In all other values, spaces replace underscores."""
_MODES = {
    "sentence": "sentences",
    "span": "spans",
    "instruction_sentence": "instructions and sentences",
    "instruction_span": "instructions and spans",
}
"""What a model embeds in each training mode."""
COSTS = ("a laptop and time", "a GPU", "keys", "something that nobody can provide")
"""What a number may require, cheapest first."""
_FREE, _GPU, _KEYS, _IMPOSSIBLE = COSTS
_SETTINGS_WITHOUT_EFFECT = {"mirror", "llm"}
"""Settings that change no result."""
_IMPOSSIBLE_NEEDS = (UNPUBLISHED, UNKNOWN_WAY, "(not published)", "provider ended the model")


class TableNumbers(Frozen):
    """A table of this run that has numbers.

    Attributes:
        ours: Function that returns our rows of the frame of numbers, named as `module:function`.
        inputs: Inputs of the table.
    """

    ours: str
    inputs: DisplayInputs


class Requirements(Frozen):
    """What the comparison of this run's numbers with the printed numbers requires.

    Attributes:
        models: Requirement for running each model, by the model's name in models.yaml.
        absent: Why this run does not make a table, by name of the table.
        general: Requirement for comparing any number; empty if there is none.
    """

    models: Mapping[str, str] = {}
    absent: Mapping[str, str] = {}
    general: str = ""


def all_numbers(
    tables: Sequence[TableNumbers],
    published: Mapping[str, str],
    catalogue: Catalogue,
    models: Mapping[str, Sequence[str]],
    *,
    requirements: Requirements,
    options: Sequence[str] = (),
) -> list[Number]:
    """Return the numbers of all tables, and all other numbers that the papers print.

    Args:
        tables: Tables of this run that have numbers.
        published: Paths of the files with printed numbers, by name without extension; empty for the
            user's own data.
        catalogue: Printed tables by name of their file.
        models: Names in models.yaml by the name that the papers print, the usual name first.
        requirements: What the comparison of the numbers requires.
        options: Options of snakemake that select this run.
    """
    # The loops below add entries, which must not change the arguments.
    published, catalogue, models = dict(published), dict(catalogue), dict(models)
    for table in tables:
        _add_printed_tables(table.inputs, published, catalogue)
    # If tables name different models of this run, the first table takes precedence.
    for table in reversed(tables):
        models |= table.inputs.names()
    inputs_by_table = {table.inputs.display: table.inputs for table in tables}

    def why_missing(printed_row: Mapping[str, Any]) -> str:
        """Return why this run does not compute the number in a row of printed numbers."""
        table = first_table(printed_row["shown_by"] or ())
        if not table:
            return NOWHERE
        if table in inputs_by_table:
            return inputs_by_table[table].why_missing(printed_row)
        return requirements.absent.get(table, NOWHERE)

    frame = join(
        _our_rows(tables),
        printed_frame(published, catalogue, models),
        why=why_missing,
        released=read_released(published, models),
        prefer={name: table.prefer for name, table in catalogue.items()},
    )
    numbers = []
    for number in numbers_of(frame):
        needs = _needs(number, catalogue, requirements)
        numbers.append(replace(number, needs=needs, command=_command(number, options)))
    return numbers


def _add_printed_tables(
    inputs: DisplayInputs, published: dict[str, str], catalogue: dict[str, PrintedTable]
) -> None:
    """Add the printed tables of a study that has its own tables.yaml (see examples/).

    Args:
        inputs: Inputs of a table of the study.
        published: Paths of files with printed numbers by name, to which paths are added.
        catalogue: Printed tables by name, to which tables are added.
    """
    if inputs.data != "own" and "tables" in inputs.files:
        tables_of_study = load_catalogue(inputs.files["tables"])
        catalogue |= tables_of_study
        published |= {name: path for name, path in inputs.files.items() if name in tables_of_study}


def _our_rows(tables: Sequence[TableNumbers]) -> pd.DataFrame:
    """Return our rows of the frame of numbers for all tables.

    A number that several tables show has one row, which names all of these tables.
    """
    nonempty_frames = []
    for table in tables:
        compute_rows = import_object(table.ours)
        frame = add_origin_and_tables(compute_rows(table.inputs), table.inputs)
        if len(frame):
            nonempty_frames.append(frame)
    if not nonempty_frames:
        no_rows = OurNumbers("").frame()
        return add_origin_and_tables(no_rows, DisplayInputs())
    return _merge_repeated(pd.concat(nonempty_frames, ignore_index=True))


def _merge_repeated(rows: pd.DataFrame) -> pd.DataFrame:
    """Merge the rows of each number into one row, which names the tables of all merged rows.

    The other columns are from the number's first row with metric files or, if the number has no
    such row, from its first row.
    """
    tables_by_keys = rows.groupby(list(KEYS), sort=False)["tables"].agg(join_without_duplicates)
    has_files = rows["files"].map(len) > 0
    rows_with_files_first = pd.concat([rows[has_files], rows[~has_files]])
    one_row_per_number = rows_with_files_first.drop_duplicates(list(KEYS)).sort_index()
    without_tables = one_row_per_number.drop(columns="tables")
    return without_tables.merge(tables_by_keys.reset_index(), on=list(KEYS), how="left")


def _needs(number: Number, catalogue: Catalogue, requirements: Requirements) -> tuple[str, ...]:
    """Return what the comparison of our number with the printed number requires.

    The result is empty if the two were compared, or if the number does not count among the papers'
    numbers.
    """
    if number.verdict in COMPARED or not number.counts:
        return ()
    if not number.tables:
        return (UNKNOWN_WAY,)
    if number.reason.startswith("not published"):
        return (UNPUBLISHED,)
    first_place = number.printed_at[0]
    needs_by_table = catalogue[first_place.file].needs
    needs = [
        requirements.general,
        *needs_by_table.get(number.tables[0], ()),
        requirements.models.get(number.model, ""),
    ]
    return tuple(dict.fromkeys(need for need in needs if need))


def _command(number: Number, options: Sequence[str]) -> str:
    """Return the command that computes a number; empty if no table shows the number.

    A printed number that this run did not compare needs the papers' full grid.
    """
    table = number.tables[0] if number.tables else ""
    is_of_run = number.verdict in COMPARED or not number.kind
    return command_of(table, number.files, options if is_of_run else None)


def counted(numbers: Iterable[Number]) -> list[Number]:
    """Return the numbers that count among the papers' numbers."""
    return [number for number in numbers if number.counts]


def summarize(numbers: Sequence[Number]) -> str:
    """Return a phrase that counts the papers' numbers, in total and by verdict.

    If none of the numbers counts, the phrase is `NO_NUMBER`.
    """
    numbers_of_papers = counted(numbers)
    if not numbers_of_papers:
        return NO_NUMBER
    verdicts = describe(numbers_of_papers)
    if not any(number.verdict == "reproduced" for number in numbers_of_papers):
        verdicts = f"none reproduced, {verdicts}"
    return f"{len(numbers_of_papers):,} printed numbers: {verdicts}"


def describe(numbers: Sequence[Number]) -> str:
    """Return a phrase that counts numbers by verdict, and the reproduced numbers also by kind."""
    count_by_verdict = Counter(number.verdict for number in numbers)
    phrases = []
    for verdict in STATES:
        count = count_by_verdict[verdict]
        if not count:
            continue
        phrase = f"{count:,} {verdict}"
        if verdict == "reproduced":
            phrase += f" ({kinds_of(numbers)})"
        phrases.append(phrase)
    return ", ".join(phrases)


def kinds_of(numbers: Iterable[Number]) -> str:
    """Return a phrase that counts the reproduced numbers by kind; empty if none is reproduced."""
    counts = Counter(number.kind for number in numbers if number.verdict == "reproduced")
    return ", ".join(pluralize(counts[kind], kind) for kind in get_args(Kind) if counts[kind])


def ranked(texts: Iterable[str]) -> Counter[str]:
    """Count how often each text occurs; the most frequent text comes first, ties are sorted."""
    count_by_text = Counter(texts)
    by_frequency = sorted(count_by_text, key=lambda text: (-count_by_text[text], text))
    return Counter({text: count_by_text[text] for text in by_frequency})


def cost_of(number: Number) -> str:
    """Return the element of `COSTS` for the most expensive requirement of a number."""
    costs = [_cost_of_need(need) for need in number.needs]
    return max(costs, key=COSTS.index, default=_FREE)


def _cost_of_need(need: str) -> str:
    """Return the element of `COSTS` that follows from the words of a requirement."""
    if any(phrase in need for phrase in _IMPOSSIBLE_NEEDS):
        return _IMPOSSIBLE
    if re.search(r"\bkeys?\b|GPT-", need):
        return _KEYS
    return _GPU if "GPU" in need else _FREE


def first_reason(number: Number) -> str:
    """Return the main reason why a number was not compared; empty if it was compared."""
    return "" if number.verdict in COMPARED else number.reason.partition("; ")[0]


def write_numbers_as_latex(
    path: str | Path,
    numbers: Sequence[Number],
    *,
    template: str | Path,
    papers: Mapping[str, str],
    labels: Mapping[str, str],
    mark: str = "",
) -> None:
    """Write a LaTeX table of the papers' numbers for which this run has a value.

    Args:
        path: Path of the LaTeX file.
        numbers: All numbers of a run.
        template: LaTeX template.
        papers: Titles of the papers, by name of the study.
        labels: Labels of models, by name in models.yaml.
        mark: Notice to show above the table; empty for no notice.
    """
    known_numbers = [number for number in counted(numbers) if number.ours is not None]
    render_latex(
        template,
        path,
        numbers=[(number, in_words(number, labels)) for number in known_numbers],
        papers=papers,
        summary=f"{summarize(numbers)}.",
        mark=mark,
    )


def command_of(table: str, metrics: Sequence[str], options: Sequence[str] | None) -> str:
    """Return the command that computes a number of a table.

    Args:
        table: Name of the table; if the name is empty, the command is empty, too.
        metrics: Metric files behind the number.
        options: Options of snakemake that select the run; None for the papers' full grid.
    """
    if not table:
        return ""
    targets: Sequence[str] = [f"paper_tables/{table}.tex"]
    if options is None:
        options = ["--configfile", FULL_GRID]
    elif 0 < len(metrics) <= _MOST_TARGETS:
        targets = metrics
    return shlex.join(["snakemake", "--cores", "all", *options, "--", *targets])


def trace_command(table: str, measure: str, options: Sequence[str]) -> str:
    """Return the command that prints the code and the files behind a number.

    Args:
        table: Name of the table that shows the number.
        measure: Name of the number's measure.
        options: Options that select the run, both for snakemake and for `pieline trace`.
    """
    return shlex.join(["pieline", "trace", table, measure, *options])


def run_options(
    project: Path, configuration: Sequence[str], settings: Mapping[str, Any]
) -> list[str]:
    """Return the options with which snakemake, called in the project's folder, repeats this run.

    Folders outside the project are replaced by `FOLDER`, so that results do not depend on their
    paths. Settings that change no result are omitted.

    Args:
        project: Folder of the project.
        configuration: Configuration files in addition to config.yaml.
        settings: Settings given on the command line (`--config`), by name.
    """
    options = []
    folder = _below_project(".", project)
    if folder != ".":
        options += ["--directory", folder]
    if configuration:
        options += ["--configfile", *(_below_project(file, project) for file in configuration)]
    arguments = []
    for name, value in settings.items():
        if name not in _SETTINGS_WITHOUT_EFFECT:
            arguments.append(f"{name}={_format_setting(_hide_folders(value))}")
    if arguments:
        options += ["--config", *arguments]
    return options


def _below_project(path: str, project: Path) -> str:
    """Return a path relative to the project. Outside the project, `FOLDER` replaces its folder."""
    absolute_path, root = Path(path).resolve(), project.resolve()
    if absolute_path.is_relative_to(root):
        return str(absolute_path.relative_to(root))
    return _hide_folder(absolute_path)


def _hide_folder(path: Path) -> str:
    return "FOLDER" if path.is_dir() else f"FOLDER/{path.name}"


def _hide_folders(value: Any) -> Any:
    """Return the value of a setting, with `FOLDER` instead of the folder of each absolute path."""
    if isinstance(value, Mapping):
        return {name: _hide_folders(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_hide_folders(inner) for inner in value]
    if isinstance(value, str) and Path(value).is_absolute():
        return _hide_folder(Path(value))
    return value


def _format_setting(value: Any) -> str:
    """Format the value of a setting for the command line."""
    if isinstance(value, list | dict):
        return json.dumps(value)
    return "" if value is None else str(value)


def in_words(number: Number, labels: Mapping[str, str]) -> str:
    """Describe a number in words: its model, run and measure.

    A number from the running text is described by its `what` instead.

    Args:
        number: Number to describe.
        labels: Labels of models, by name in models.yaml.
    """
    if number.what:
        return number.what
    model = labels.get(number.model, number.model)
    training = f" fine-tuned on {_MODES[number.train_mode]}" if number.train_mode else ""
    phrases = (f"{model}{training}", run_in_words(number), measure_in_words(number))
    return ", ".join(filter(None, phrases))


def run_in_words(number: Number) -> str:
    """Describe the run of a number in words, without the model."""
    query_mode = number.query_mode.replace("_", " + ")
    phrases = (
        word(number.setting),
        f"{query_mode} mode" if query_mode else "",
        word(number.language),
        word(number.scope),
        f"seed {number.seed}" if number.seed else "",
    )
    return ", ".join(filter(None, phrases))


def measure_in_words(number: Number) -> str:
    """Describe the measure of a number in words."""
    words = word(number.measure.removesuffix(DEVIATION))
    return f"deviation of {words}" if number.measure.endswith(DEVIATION) else words


def word(value: str) -> str:
    """Return words for the value of a key, such as `zero-shot` for `zero_shot`."""
    return _WORDS.get(value, value.replace("_", " "))
