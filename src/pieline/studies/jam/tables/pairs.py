"""Build the tables of individual runs (with intervals, per seed) and of paired tests of runs."""

from dataclasses import replace

import pandas as pd

from pieline.core.records import load_records
from pieline.languages.registry import get_language
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import numbers_of, rows_of
from pieline.reporting.ours import OurNumbers
from pieline.reporting.printed import probability
from pieline.reporting.tables import (
    Cell,
    Column,
    Group,
    Head,
    Row,
    TableContent,
    headers,
    in_order,
    number_row,
)
from pieline.studies.jam.metrics.drift import DIFFERENCE, compare_drifts
from pieline.studies.jam.metrics.scores import (
    ACCURACY,
    DRIFT,
    FLIPPED,
    IDIOMATIC,
    LITERAL,
    SUCCESS,
    TAGS,
    UNREADABLE,
    JamMetrics,
)
from pieline.studies.jam.tables.common import (
    PROMPTS,
    RunKey,
    Runs,
    by_run,
    code_of,
    has_results,
    languages_of,
    marked,
    missing_runs,
    notes_on,
    obstacles_of,
    run_numbers,
    runs_of,
    runs_with_files,
    title_of,
    unreadable,
    with_baselines,
)


def runs_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our numbers of every run and seed, also by usage, and the F1 of tags."""
    # Counts of one seed are integers.
    success, flipped = replace(SUCCESS, decimals=0), replace(FLIPPED, decimals=0)
    measures = (ACCURACY, success, flipped, DRIFT, *LITERAL, *IDIOMATIC, *TAGS, UNREADABLE)
    return run_numbers(inputs, measures)


def runs(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of accuracy, S, F, ND and unreadable answers for every run and seed."""
    labels, metrics = inputs.labels(), load_records(inputs.metrics, JamMetrics)
    unreadable_of_all = {}
    for item in metrics:
        number, total = unreadable([item])
        key = (item.model, item.setting, item.language, str(item.seed))
        unreadable_of_all[key] = f"{number} of {total}"
    columns = [
        Column("accuracy", "Accuracy (%)", interval=1),
        Column("success", "S_M", "$S_M$"),
        Column("flipped", "F_M", "$F_M$"),
        Column("negative_drift", "ND_M (%)", r"$\mathit{ND}_M$ (\%)", interval=1),
    ]
    rows = []
    by_seed = rows_of(numbers, ("model", "setting", "language", "seed"))
    for (model, setting, language, seed), of_run in in_order(by_seed, inputs).items():
        names = (labels[model], title_of(setting), code_of(language), seed)
        row = number_row(names, columns, of_run)
        text = unreadable_of_all.get((model, setting, language, seed), "")
        rows.append(Row(names, (*row.cells, Cell(of_run["unreadable"], text=text)), row.reason))
    return TableContent(
        heads=((*headers(["Model", "Setting", "Language", "Seed"], columns), Head("unreadable")),),
        groups=(Group(tuple(rows)),),
        caption="Every run and seed, with 95% bootstrap intervals over originals and the number of"
        " unreadable answers.",
        notes=(*notes_on(metrics, inputs), PROMPTS),
    )


RUNS_TABLE = Table(
    "jam_runs",
    NOT_IN_PAPER,
    "Every run with its seeds and intervals.",
    runs,
    with_baselines,
    runs_numbers,
)


def _name(key: RunKey) -> str:
    return f"{key.model}/{key.setting}"


def pairs_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the differences in negative drift of every pair of runs, by language.

    Differences are in percentage points, first minus second run, over all seeds; the key `against`
    names the second run.
    """
    numbers = OurNumbers(inputs.study)
    metrics: dict[RunKey, list[JamMetrics]] = {}
    files: dict[RunKey, list[str]] = {}
    for key, seeds in runs_with_files(inputs).items():
        if seeds[0][0].overall.variants:
            metrics[key] = [item for item, _ in seeds]
            files[key] = [path for _, path in seeds]
    for language in languages_of(metrics):
        judged = {
            key: [item.judged for item in seeds]
            for key, seeds in metrics.items()
            if key.language == language
        }
        tests = compare_drifts(judged, permutations=inputs.options["permutations"], seed=0)
        for (first, second), test in tests.items():
            numbers.add(
                {**first._asdict(), "against": _name(second)},
                [DIFFERENCE],
                test,
                files=files[first] + files[second],
                obstacles=obstacles_of(*metrics[first], *metrics[second]),
                p_value=test.p_value,
                p_holm=test.p_holm,
            )
    for key, reason in missing_runs(inputs, metrics).items():
        numbers.add(key._asdict(), [DIFFERENCE], None, not_run=reason)
    return numbers.frame()


def pairs(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table that compares the negative drift of every pair of runs, by language."""
    metrics = load_records(inputs.metrics, JamMetrics)
    runs = by_run(metrics)
    by_name = {(key.language, _name(key)): key for key in runs}
    permutations = inputs.options["permutations"]
    rows = []
    for number in numbers_of(numbers):
        first = RunKey(number.setting, number.model, number.language)
        second = by_name.get((number.language, number.against))
        labels = (
            get_language(number.language).label,
            _label(first, runs, inputs),
            _label(second, runs, inputs) if second else "",
        )
        cells = (Cell(number), _probability_cell(number.p_value), _probability_cell(number.p_holm))
        rows.append(Row(labels, cells, number.missing))
    about = (
        "Negative drift of every pair of runs on the same originals ({drift} of the first minus"
        " that of the second, in points, over all seeds), with the {p}-value of a two-sided paired"
        f" randomization test that swaps two runs on whole originals (at most {permutations:,}"
        " patterns), also corrected within a language (Holm). A run without any success has no"
        " drift."
    )
    p_values = (Head("p", latex="$p$"), Head("p corrected", latex="$p$ corrected"))
    return TableContent(
        heads=((*headers(["Language", "First", "Second", "difference"]), *p_values),),
        groups=(Group(tuple(rows)),),
        caption=about.format(drift="ND_M", p="p"),
        caption_latex=about.format(drift=r"$\mathit{ND}_M$", p="$p$"),
        notes=(*notes_on(metrics, inputs), PROMPTS),
        long=True,
        label_widths=(0.08, 0.28, 0.28),
    )


def _label(key: RunKey, runs: Runs, inputs: DisplayInputs) -> str:
    """Return the model and setting of a run, with its number of unreadable answers if any."""
    name = f"{inputs.labels()[key.model]}, {title_of(key.setting)}"
    return marked(name, {"": runs.get(key, [])})


def _probability_cell(chance: float | None) -> Cell:
    return Cell() if chance is None else Cell(text=probability(chance))


def _pairs(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_results(study):
        return None
    options = {"permutations": study.settings.permutations}
    return runs_of(study, "predictions").model_copy(update={"options": options})


PAIRS_TABLE = Table(
    "jam_pairs",
    NOT_IN_PAPER,
    "Which of two runs drifts more, by a paired randomization test over originals.",
    pairs,
    _pairs,
    pairs_numbers,
)
