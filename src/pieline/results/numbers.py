"""All numbers of a run: ours, and every number that the papers print, with what they add up to.

published/tables.yaml defines which printed numbers count, and the kind of each.
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
from pieline.reporting.numbers import COMPARED, STATES, Number, join, numbers_of, of_display
from pieline.reporting.ours import DEVIATION, KEYS, OurNumbers
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
_MOST_TARGETS = 6
"""Number of metric files from which a command names the table instead."""
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
"""Words for keys; for others, spaces replace underscores."""
_MODES = {
    "sentence": "sentences",
    "span": "spans",
    "instruction_sentence": "instructions and sentences",
    "instruction_span": "instructions and spans",
}
"""What a query mode or a training mode embeds."""
COSTS = ("a laptop and time", "a GPU", "keys", "something that nobody can provide")
"""Kinds of what a number costs, cheapest first."""
_NOT_PROVIDED = (UNPUBLISHED, UNKNOWN_WAY, "(not published)", "provider ended the model")


class TableNumbers(Frozen):
    """A table with numbers: `module:function` of our rows, and its inputs."""

    ours: str
    inputs: DisplayInputs


class Requirements(Frozen):
    """What the numbers of a run require.

    Attributes:
        models: Requirements for running a model, by its name in models.yaml.
        absent: Why this run does not make certain tables, by name.
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
    """Return the numbers of all tables, and every other number that the papers print.

    Args:
        tables: Tables of this run with numbers.
        published: Paths of the files with printed numbers, by name; empty for the user's own data.
        catalogue: Printed tables by name.
        models: Names in models.yaml by printed name, the first being the usual one.
        requirements: What the numbers require.
        options: Options of snakemake that select this run.
    """
    published, catalogue = dict(published), dict(catalogue)
    for table in tables:
        _add_own(table.inputs, published, catalogue)
    names = dict(models) | {
        printed: of_run
        for table in reversed(tables)
        for printed, of_run in table.inputs.names().items()
    }
    ours = _ours(tables)
    inputs = {table.inputs.display: table.inputs for table in tables}

    def why(row: Mapping[str, Any]) -> str:
        table = first_table(row["shown_by"] or ())
        if not table:
            return NOWHERE
        if table in inputs:
            return inputs[table].why_missing(row)
        return requirements.absent.get(table, NOWHERE)

    frame = join(
        ours,
        printed_frame(published, catalogue, names),
        why=why,
        released=read_released(published, names),
        prefer={name: table.prefer for name, table in catalogue.items()},
    )
    return [_accounted(number, catalogue, requirements, options) for number in numbers_of(frame)]


def _add_own(
    inputs: DisplayInputs, published: dict[str, str], catalogue: dict[str, PrintedTable]
) -> None:
    """Add the printed numbers of a study that has its own tables.yaml (see examples/)."""
    if inputs.data != "own" and "tables" in inputs.files:
        own = load_catalogue(inputs.files["tables"])
        catalogue |= own
        published |= {name: path for name, path in inputs.files.items() if name in own}


def _ours(tables: Sequence[TableNumbers]) -> pd.DataFrame:
    """Return our rows of all tables; a row that several tables show occurs once and names them."""
    frames = [of_display(import_object(table.ours)(table.inputs), table.inputs) for table in tables]
    empty = of_display(OurNumbers("").frame(), DisplayInputs())
    rows = pd.concat([frame for frame in frames if len(frame)] or [empty], ignore_index=True)
    shown_in = rows.groupby(list(KEYS), sort=False)["tables"].agg(_joined)
    # If a table has no record of a number, another may have one.
    has_record = rows["files"].map(len) > 0
    preferred = pd.concat([rows[has_record], rows[~has_record]])
    unique = preferred.drop_duplicates(list(KEYS)).sort_index()
    return unique.drop(columns="tables").merge(shown_in.reset_index(), on=list(KEYS), how="left")


def _joined(tables: Iterable[tuple[str, ...]]) -> Any:
    return tuple(dict.fromkeys(name for each in tables for name in each))


def _accounted(
    number: Number, catalogue: Catalogue, requirements: Requirements, options: Sequence[str]
) -> Number:
    """Return a number with its requirements and the command that computes it."""
    is_compared = number.verdict in COMPARED
    table = number.tables[0] if number.tables else ""
    needs: Sequence[str] = ()
    if number.counts and not is_compared:
        of_table = catalogue[number.printed_at[0].file].needs.get(table, ())
        needs = (requirements.general, *of_table, requirements.models.get(number.model, ""))
        if not table:
            needs = [UNKNOWN_WAY]
        elif number.reason.startswith("not published"):
            needs = [UNPUBLISHED]
    is_of_run = is_compared or not number.kind
    return replace(
        number,
        needs=tuple(filter(None, dict.fromkeys(needs))),
        command=command_of(table, number.files, options if is_of_run else None),
    )


def counted(numbers: Iterable[Number]) -> list[Number]:
    """Return the numbers that count among those that the papers print."""
    return [number for number in numbers if number.counts]


def summarize(numbers: Sequence[Number]) -> str:
    """Return a line with the counts of the papers' numbers by verdict, or `NO_NUMBER`."""
    of_papers = counted(numbers)
    if not of_papers:
        return NO_NUMBER
    none = "" if kinds_of(of_papers) else "none reproduced, "
    return f"{len(of_papers):,} printed numbers: {none}{describe(of_papers)}"


def describe(numbers: Sequence[Number]) -> str:
    """Return a phrase that counts the numbers by verdict, and the reproduced ones by kind."""
    counts = Counter(number.verdict for number in numbers)
    kinds = {"reproduced": f" ({kinds_of(numbers)})"}
    return ", ".join(
        f"{counts[state]:,} {state}{kinds.get(state, '')}" for state in STATES if counts[state]
    )


def kinds_of(numbers: Iterable[Number]) -> str:
    """Return a phrase with the counts of reproduced numbers by kind; empty if there are none."""
    counts = Counter(number.kind for number in numbers if number.verdict == "reproduced")
    return ", ".join(pluralize(counts[kind], kind) for kind in get_args(Kind) if counts[kind])


def ranked(texts: Iterable[str]) -> Counter[str]:
    """Count texts; the counter lists the most frequent first, and ties alphabetically."""
    found = Counter(texts)
    return Counter(dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))))


def cost_of(number: Number) -> str:
    """Return the kind of the most expensive requirement of a number (see `COSTS`)."""

    def place(need: str) -> int:
        if any(words in need for words in _NOT_PROVIDED):
            return 3
        if re.search(r"\bkeys?\b|GPT-", need):
            return 2
        return int("GPU" in need)

    return COSTS[max(map(place, number.needs), default=0)]


def first_reason(number: Number) -> str:
    """Return the main reason why a number was not compared; empty if it was."""
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
    """Write a LaTeX table of the papers' numbers that have a number of ours.

    Args:
        path: LaTeX output.
        numbers: All numbers of a run.
        template: LaTeX template.
        papers: Titles of the papers by study.
        labels: Labels of models by name.
        mark: Notice about the run, if any.
    """
    shown = [
        (number, in_words(number, labels)) for number in counted(numbers) if number.ours is not None
    ]
    summary = f"{summarize(numbers)}."
    render_latex(template, path, numbers=shown, papers=papers, summary=summary, mark=mark)


def command_of(table: str, metrics: Sequence[str], options: Sequence[str] | None) -> str:
    """Return the command that computes a number of a table.

    Args:
        table: Name of the table; without it, the result is empty.
        metrics: Metric files behind the number.
        options: Options of snakemake that select the run that computed it; None for the papers'
            full grid.
    """
    if not table:
        return ""
    is_of_run = options is not None and 0 < len(metrics) < _MOST_TARGETS
    targets = metrics if is_of_run else [f"paper_tables/{table}.tex"]
    selected = ["--configfile", FULL_GRID] if options is None else options
    return shlex.join(["snakemake", "--cores", "all", *selected, "--", *targets])


def trace_command(table: str, measure: str, options: Sequence[str]) -> str:
    """Return the command that prints what makes a number.

    Args:
        table: Name of the table that shows the number.
        measure: Name of the number's measure.
        options: Options of snakemake that select the run, which `pieline trace` also has.
    """
    return shlex.join(["pieline", "trace", table, measure, *options])


def run_options(
    project: Path, configuration: Sequence[str], settings: Mapping[str, Any]
) -> list[str]:
    """Return the options of snakemake, called in the project's folder, that select this run.

    Args:
        project: Folder of the project.
        configuration: Configuration files besides config.yaml.
        settings: Settings of the command line (`--config`).

    Returns:
        `--directory`, unless the working directory is the project, `--configfile` and `--config`. A
        place outside the project is not named, so that results do not depend on it: `FOLDER` stands
        for the folder. Settings that change no result are left out: the mirror, and those for
        querying models.
    """
    options = []
    folder = _below_project(".", project)
    if folder != ".":
        options += ["--directory", folder]
    if configuration:
        options += ["--configfile", *(_below_project(file, project) for file in configuration)]
    words = []
    for name, value in settings.items():
        if name not in {"mirror", "llm"}:
            words.append(f"{name}={_setting_word(_without_places(value))}")
    if words:
        options += ["--config", *words]
    return options


def _below_project(path: str, project: Path) -> str:
    """Return a path relative to the project; outside it, `FOLDER` stands for the folder."""
    place, root = Path(path).resolve(), project.resolve()
    return str(place.relative_to(root)) if place.is_relative_to(root) else _elsewhere(place)


def _elsewhere(place: Path) -> str:
    return "FOLDER" if place.is_dir() else f"FOLDER/{place.name}"


def _without_places(value: Any) -> Any:
    """Return the value of a setting, in which `FOLDER` stands for the folder of absolute paths."""
    if isinstance(value, Mapping):
        return {name: _without_places(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_places(each) for each in value]
    is_place = isinstance(value, str) and Path(value).is_absolute()
    return _elsewhere(Path(value)) if is_place else value


def _setting_word(value: Any) -> str:
    """Return the value of a setting as written on the command line."""
    if isinstance(value, list | dict):
        return json.dumps(value)
    return "" if value is None else str(value)


def in_words(number: Number, labels: Mapping[str, str]) -> str:
    """Return what a number measures in words, starting with the model.

    Args:
        number: A number.
        labels: Labels of models by name.
    """
    if number.what:
        return number.what
    model = labels.get(number.model, number.model)
    if number.train_mode:
        model += f" fine-tuned on {_MODES[number.train_mode]}"
    parts = (model, run_in_words(number), measure_in_words(number))
    return ", ".join(filter(None, parts))


def run_in_words(number: Number) -> str:
    """Return the run of a number without its model, in words."""
    mode = number.query_mode.replace("_", " + ")
    parts = (
        word(number.setting),
        f"{mode} mode" if mode else "",
        word(number.language),
        word(number.scope),
        f"seed {number.seed}" if number.seed else "",
    )
    return ", ".join(filter(None, parts))


def measure_in_words(number: Number) -> str:
    """Return the measure of a number in words."""
    words = word(number.measure.removesuffix(DEVIATION))
    return f"deviation of {words}" if number.measure.endswith(DEVIATION) else words


def word(value: str) -> str:
    """Return the value of a key in words."""
    return _WORDS.get(value, value.replace("_", " "))
