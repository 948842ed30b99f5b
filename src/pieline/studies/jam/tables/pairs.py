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
    count_unreadable,
    has_results,
    inputs_with_baselines,
    label_with_unreadable_answers,
    languages_of,
    missing_runs,
    notes_on,
    obstacles_of,
    run_inputs,
    run_numbers,
    runs_with_files,
    title_of,
)


def runs_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the numbers of every run and seed: accuracy, drift (also by usage) and F1 of tags."""
    # Unlike means over seeds, the counts of one seed are integers.
    success, flipped = replace(SUCCESS, decimals=0), replace(FLIPPED, decimals=0)
    measures = (ACCURACY, success, flipped, DRIFT, *LITERAL, *IDIOMATIC, *TAGS, UNREADABLE)
    return run_numbers(inputs, measures)


def runs(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table of accuracy, S, F, ND and unreadable answers for every run and seed."""
    model_labels = inputs.labels()
    metrics = load_records(inputs.metrics, JamMetrics)
    unreadable_as_text: dict[tuple[str, ...], str] = {}
    for record in metrics:
        unreadable, answers = count_unreadable([record])
        key_of_seed = (record.model, record.setting, record.language, str(record.seed))
        unreadable_as_text[key_of_seed] = f"{unreadable} of {answers}"
    columns = [
        Column("accuracy", "Accuracy (%)", interval=1),
        Column("success", "S_M", "$S_M$"),
        Column("flipped", "F_M", "$F_M$"),
        Column("negative_drift", "ND_M (%)", r"$\mathit{ND}_M$ (\%)", interval=1),
    ]
    rows = []
    numbers_by_seed = rows_of(numbers, ("model", "setting", "language", "seed"))
    for key, numbers_of_seed in in_order(numbers_by_seed, inputs).items():
        model, setting, language, seed = key
        labels = (model_labels[model], title_of(setting), code_of(language), seed)
        row = number_row(labels, columns, numbers_of_seed)
        unreadable_cell = Cell(numbers_of_seed["unreadable"], text=unreadable_as_text.get(key, ""))
        rows.append(Row(labels, (*row.cells, unreadable_cell), row.reason))
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
    inputs_with_baselines,
    runs_numbers,
)


def _name_of_run(key: RunKey) -> str:
    """Return a run's name `<model>/<setting>`, which is the key `against` of a comparison."""
    return f"{key.model}/{key.setting}"


def pairs_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the difference in negative drift of every pair of runs in a language.

    The difference is the drift of the first run minus the drift of the second run, in percentage
    points over all seeds. The key `against` of the frame names the second run.
    """
    numbers = OurNumbers(inputs.study)
    metrics: dict[RunKey, list[JamMetrics]] = {}
    files: dict[RunKey, list[str]] = {}
    for key, records in runs_with_files(inputs).items():
        metrics_of_run = [metrics_of_seed for metrics_of_seed, _ in records]
        has_variants = metrics_of_run[0].overall.variants > 0
        if has_variants:
            metrics[key] = metrics_of_run
            files[key] = [path for _, path in records]
    for language in languages_of(metrics):
        judged = {
            key: [metrics_of_seed.judged for metrics_of_seed in metrics_of_run]
            for key, metrics_of_run in metrics.items()
            if key.language == language
        }
        tests = compare_drifts(judged, permutations=inputs.options["permutations"], seed=0)
        for (first, second), test in tests.items():
            numbers.add(
                {**first._asdict(), "against": _name_of_run(second)},
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
    metrics_by_run = by_run(metrics)
    key_by_name = {(key.language, _name_of_run(key)): key for key in metrics_by_run}
    permutations = inputs.options["permutations"]
    rows = []
    for difference in numbers_of(numbers):
        first = RunKey(difference.setting, difference.model, difference.language)
        second = key_by_name.get((difference.language, difference.against))
        labels = (
            get_language(difference.language).label,
            _label_of_run(first, metrics_by_run, inputs),
            _label_of_run(second, metrics_by_run, inputs) if second else "",
        )
        p_value = _probability_cell(difference.p_value)
        p_holm = _probability_cell(difference.p_holm)
        rows.append(Row(labels, (Cell(difference), p_value, p_holm), difference.missing))
    caption = (
        "Negative drift of every pair of runs on the same originals ({drift} of the first minus"
        " that of the second, in points, over all seeds), with the {p}-value of a two-sided paired"
        f" randomization test that swaps two runs on whole originals (at most {permutations:,}"
        " patterns), also corrected within a language (Holm). A run without any success has no"
        " drift."
    )
    p_value_heads = (Head("p", latex="$p$"), Head("p corrected", latex="$p$ corrected"))
    return TableContent(
        heads=((*headers(["Language", "First", "Second", "difference"]), *p_value_heads),),
        groups=(Group(tuple(rows)),),
        caption=caption.format(drift="ND_M", p="p"),
        caption_latex=caption.format(drift=r"$\mathit{ND}_M$", p="$p$"),
        notes=(*notes_on(metrics, inputs), PROMPTS),
        long=True,
        label_widths=(0.08, 0.28, 0.28),
    )


def _label_of_run(key: RunKey, runs: Runs, inputs: DisplayInputs) -> str:
    """Return the model and setting of a run, and the number of unreadable answers if any."""
    label = f"{inputs.labels()[key.model]}, {title_of(key.setting)}"
    return label_with_unreadable_answers(label, runs.get(key, []))


def _probability_cell(p_value: float | None) -> Cell:
    return Cell() if p_value is None else Cell(text=probability(p_value))


def _pair_inputs(study: ConfiguredStudy) -> DisplayInputs | None:
    if not has_results(study):
        return None
    options = {"permutations": study.settings.permutations}
    return run_inputs(study, "predictions").model_copy(update={"options": options})


PAIRS_TABLE = Table(
    "jam_pairs",
    NOT_IN_PAPER,
    "Which of two runs drifts more, by a paired randomization test over originals.",
    pairs,
    _pair_inputs,
    pairs_numbers,
)
