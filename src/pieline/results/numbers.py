"""Account for every number printed in the papers (all files in published/).

published/tables.yaml defines which numbers count, and the kind of each number.
"""

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pieline.core.errors import pluralize
from pieline.core.records import Frozen
from pieline.core.tables import read_table, write_csv
from pieline.reporting.latex import render_latex
from pieline.reporting.printed import VERDICTS, number_in, read_printed
from pieline.results.cells import COMPARED, ComparedCell, missing
from pieline.results.claims.tables import (
    TEXT_NUMBERS,
    Kind,
    OurNumbers,
    Place,
    PrintedTable,
)

STATES = (*VERDICTS.values(), "not comparable", "not run")
"""Possible verdicts on a printed number."""
NOWHERE = "nothing in this project computes it"
NO_NUMBER = "the papers print no numbers for this data"
REAL_DATA = "the papers' data in place of the sample"
UNPUBLISHED = "something that was never published"
FULL_GRID = "config/paper.yaml"
"""Configuration that computes all numbers of the papers."""
_MOST_TARGETS = 6
"""Number of metric files from which a command names the table instead."""
_JOIN = " + "
_WORDS = {
    "english": "English",
    "german": "German",
    "zero_shot": "zero-shot",
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
"""Words for values and columns of printed tables; for others, spaces replace underscores."""
_MODES = {
    "sentence": "sentences",
    "span": "spans",
    "instruction_sentence": "instructions and sentences",
    "instruction_span": "instructions and spans",
}
"""What a query mode or a training mode embeds."""
_LISTS = ("needs", "also_in")
"""Fields of a printed number that are lists, which a CSV joins."""
_NOT_OF_RUN = ("model", "metric", "interval_95", "seeds")
"""Keys of a cell that do not distinguish runs of one model."""


class PrintedNumber(Frozen):
    """A number printed in a paper, and our number.

    Attributes:
        paper: Study name.
        place: Place in the paper ("Table 2", "Section 5").
        file: Name of our CSV in paper_tables/, without extension; empty if nothing computes the
            number.
        what: Row and column, or the description of a number in the text.
        kind: `score`, `count` or `parameter`.
        model: Printed model name; empty if the row does not belong to a model.
        ours: Our number; empty if there is none.
        verdict: One of `STATES`.
        reason: Reason why the number was not compared; empty if it was.
        needs: Requirements for comparing the number; empty if it was compared.
        also_in: Further places that print the same number, such as "Table 5".
        command: Command that computes our number again: with the configuration of this run if the
            number was compared, else with the papers' full grid. Empty if nothing computes it.
    """

    paper: str
    place: str
    file: str
    what: str
    kind: str
    model: str
    printed: str
    ours: str
    verdict: str
    reason: str
    needs: tuple[str, ...]
    also_in: tuple[str, ...] = ()
    command: str = ""

    @property
    def difference(self) -> str:
        """Our number minus the printed one; empty if there is none of ours."""
        printed = number_in(self.printed)
        return f"{float(self.ours) - printed:.4g}" if self.ours and printed is not None else ""


def account_for(
    folder: Path,
    catalogue: Mapping[str, PrintedTable],
    ours: OurNumbers,
    *,
    absent: Mapping[str, str],
    models: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
    mark: str = "",
    general_need: str = "",
    options: Sequence[str] = (),
) -> list[PrintedNumber]:
    """Determine the verdict on every printed number.

    A number that several places print (`PrintedTable.repeats`) is one number, listed with its
    first place.

    Args:
        folder: Path of published/.
        catalogue: Printed tables by name.
        ours: Our cells by table.
        absent: Reasons why other CSVs were not made, by name.
        models: Requirements for running a model, by printed name.
        labels: Labels of models, by printed name.
        mark: Prefix of every reason in this run, which is removed.
        general_need: Requirement for comparing any number; empty if there is none.
        options: Options of snakemake that select this run.
    """
    numbers: dict[Place, PrintedNumber] = {}
    repeated: dict[Place, list[str]] = {}
    for name, table in catalogue.items():
        for row in read_printed(folder / f"{name}.csv"):
            is_text, model = name == TEXT_NUMBERS, row.get("model", "")
            file = row["table"] if is_text else table.ours.files[0] if table.ours else ""
            key = tuple(row[column] for column in table.keys)
            kinds = {"value": row["kind"]} if is_text else table.kinds
            for column, printed in row.items():
                kind = kinds.get(column, table.kind)
                if not kind or column in table.keys or number_in(printed) is None:
                    continue
                place = (name, key, column)
                if other := table.repeats.get(column):
                    first = other.place(row, catalogue[other.table].keys, column)
                    if first != place:
                        repeated.setdefault(first, []).append(table.number)
                        continue
                cell = ours.get(name, {}).get((key, column))
                if cell is None:
                    why = absent.get(file, f"{file}.csv has no such row") if file else NOWHERE
                    cell = missing(why)
                is_compared = cell.verdict in COMPARED
                reason = _first_reason(cell.reason, mark)
                needs = [general_need, *table.needs.get(file, ()), models.get(model, "")]
                if not file:
                    needs = ["a way to compute them, which this project does not have"]
                elif reason.startswith("not published"):
                    needs = [UNPUBLISHED]
                numbers[place] = PrintedNumber(
                    paper=row["study"] if is_text else str(table.paper),
                    place=f"Section {row['section']}" if is_text else table.number,
                    file=file,
                    what=row["what"]
                    if is_text
                    else in_words(dict(zip(table.keys, key, strict=True)), column, labels or {}),
                    kind=kind,
                    model=model,
                    printed=printed,
                    ours="" if cell.value is None else f"{cell.value:g}",
                    verdict=cell.verdict,
                    reason="" if is_compared else reason,
                    needs=() if is_compared else tuple(filter(None, needs)),
                    command=command_of(file, cell.metrics, options if is_compared else None),
                )
    return [
        number.model_copy(update={"also_in": tuple(dict.fromkeys(repeated.get(place, ())))})
        for place, number in numbers.items()
    ]


def summarize(numbers: Sequence[PrintedNumber]) -> str:
    """Return a line with the counts of all printed numbers by verdict, or `NO_NUMBER`."""
    if not numbers:
        return NO_NUMBER
    none = "" if kinds_of(numbers) else "none reproduced, "
    return f"{len(numbers):,} printed numbers: {none}{describe(numbers)}"


def describe(numbers: Sequence[PrintedNumber]) -> str:
    """Return a phrase with the counts of numbers by verdict, and of reproduced numbers by kind."""
    counts = Counter(number.verdict for number in numbers)
    kinds = {"reproduced": f" ({kinds_of(numbers)})"}
    return ", ".join(
        f"{counts[state]:,} {state}{kinds.get(state, '')}" for state in STATES if counts[state]
    )


def kinds_of(numbers: Iterable[PrintedNumber]) -> str:
    """Return a phrase with the counts of reproduced numbers by kind; empty if there are none."""
    counts = Counter(number.kind for number in numbers if number.verdict == "reproduced")
    return ", ".join(pluralize(counts[kind], kind) for kind in get_args(Kind) if counts[kind])


def ranked(texts: Iterable[str]) -> Counter[str]:
    """Count texts; the counter lists the most frequent first, and ties alphabetically."""
    counted = Counter(texts)
    return Counter(dict(sorted(counted.items(), key=lambda item: (-item[1], item[0]))))


def write_numbers(path: str | Path, numbers: Iterable[PrintedNumber]) -> None:
    """Write the numbers as CSV with one row each."""
    rows = (
        number.model_dump() | {name: _JOIN.join(getattr(number, name)) for name in _LISTS}
        for number in numbers
    )
    write_csv(path, PrintedNumber.model_fields, rows)


def write_numbers_as_latex(
    path: str | Path,
    numbers: Sequence[PrintedNumber],
    *,
    template: str | Path,
    papers: Mapping[str, str],
    mark: str = "",
) -> None:
    """Write a LaTeX table of the printed numbers that have a number of ours.

    Args:
        path: LaTeX output.
        numbers: Printed numbers; the caption counts all of them.
        template: LaTeX template.
        papers: Titles of the papers by study.
        mark: Notice about the run, if any.
    """
    summary = f"{summarize(numbers)}."
    shown = [number for number in numbers if number.ours]
    render_latex(template, path, numbers=shown, papers=papers, summary=summary, mark=mark)


def read_numbers(path: str | Path) -> list[PrintedNumber]:
    """Read a CSV written by `write_numbers`.

    Raises:
        UserError: The file is missing or is not a CSV of printed numbers.
    """
    hint = "name printed_numbers.csv of paper_tables/"
    # Files of earlier versions lack some columns.
    required = [name for name, field in PrintedNumber.model_fields.items() if field.is_required()]
    rows = read_table(path, required, hint=hint)
    return [
        PrintedNumber.model_validate(
            row | {name: tuple(filter(None, row.get(name, "").split(_JOIN))) for name in _LISTS}
        )
        for _, row in rows
    ]


def command_of(file: str, metrics: Sequence[str], options: Sequence[str] | None) -> str:
    """Return the command that computes a number of a table.

    Args:
        file: Name of the table's CSV without extension; without it, the result is empty.
        metrics: Metric files behind the number.
        options: Options of snakemake that select the run that computed it; None for the papers'
            full grid.
    """
    if not file:
        return ""
    is_of_run = options is not None and 0 < len(metrics) < _MOST_TARGETS
    targets = metrics if is_of_run else [f"paper_tables/{file}.tex"]
    selected = ["--configfile", FULL_GRID] if options is None else options
    return shlex.join(["snakemake", "--cores", "all", *selected, "--", *targets])


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
        for the folder. What changes no result is left out: the mirror, and how models are asked.
    """
    root = project.resolve()

    def named(path: str) -> str:
        place = Path(path).resolve()
        if place.is_relative_to(root):
            return str(place.relative_to(root))
        return elsewhere(place)

    def elsewhere(place: Path) -> str:
        return "FOLDER" if place.is_dir() else f"FOLDER/{place.name}"

    def placed(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: placed(each) for name, each in value.items()}
        if isinstance(value, list):
            return [placed(each) for each in value]
        is_place = isinstance(value, str) and Path(value).is_absolute()
        return elsewhere(Path(value)) if is_place else value

    def stated(value: Any) -> str:
        if isinstance(value, list | dict):
            return json.dumps(value)
        return "" if value is None else str(value)

    folder = named(".")
    files = [named(file) for file in configuration]
    words = [
        f"{name}={stated(placed(value))}"
        for name, value in settings.items()
        if name not in {"mirror", "llm"}
    ]
    return [
        *([] if folder == "." else ["--directory", folder]),
        *(["--configfile", *files] if files else []),
        *(["--config", *words] if words else []),
    ]


def in_words(keys: Mapping[str, str], column: str, labels: Mapping[str, str]) -> str:
    """Return the row and column of a printed number in words, starting with the model."""
    parts = {name: _WORDS.get(value, value.replace("_", " ")) for name, value in keys.items()}
    if "query_mode" in parts:
        parts["query_mode"] = (
            f"{parts['query_mode'].replace('instruction ', 'instruction + ')} mode"
        )
    if "model" in parts:
        model = labels.get(keys["model"], keys["model"])
        tuned = parts.pop("train_mode", "") and f" fine-tuned on {_MODES[keys['train_mode']]}"
        parts = {"model": model + tuned} | {name: parts[name] for name in parts if name != "model"}
    name = column.replace("_pct", "")
    what = name.removesuffix("_std")
    words = _WORDS.get(what, what.replace("_", " "))
    if column != "value":
        parts["column"] = f"deviation of {words}" if name.endswith("_std") else words
    return ", ".join(parts.values())


def score_in_words(cell: ComparedCell) -> tuple[str, str]:
    """Return the run of a cell without its model, and its metric with our number, in words."""
    run = {key: text for key, text in cell.keys.items() if text and key not in _NOT_OF_RUN}
    if "seed" in run:
        run["seed"] = f"seed {run['seed']}"
    metric = in_words({}, cell.keys["metric"], {})
    return in_words(run, "value", {}), f"{metric} {cell.ours}"


def _first_reason(reason: str, mark: str) -> str:
    first = reason.removeprefix(mark).strip().partition("; ")[0]
    return first.removeprefix("not run: ").removeprefix("not made: ")
