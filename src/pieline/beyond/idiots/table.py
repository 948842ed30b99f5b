"""Table that compares custom prompts of IdioTS by sensitivity and criterion."""

from typing import Any

import pandas as pd

from pieline.beyond.idiots.metrics import CHANGES, RATES, BiasMetrics
from pieline.beyond.settings import ExtendedStudy
from pieline.core.records import load_records
from pieline.reporting.displays import NOT_IN_PAPER, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import rows_of
from pieline.reporting.ours import OurNumbers
from pieline.reporting.tables import (
    Column,
    Group,
    Row,
    TableContent,
    headers,
    in_order,
    number_row,
)
from pieline.studies.idiots.tables import SETTING_LABELS, data_notes, of_origin


def bias_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return the measures of each setting, and its differences from the reference setting."""
    numbers, against = OurNumbers(inputs.study), inputs.options["against"]
    made = set()
    for path in inputs.metrics:
        (item,) = load_records([path], BiasMetrics)
        for signal in item.settings:
            keys = {"model": item.model, "setting": signal.setting, "against": against}
            made.add((item.model, signal.setting))
            shared: dict[str, Any] = {
                "files": [path],
                "obstacles": [*of_origin(item), *signal.deviations],
            }
            numbers.add(keys, RATES, signal, **shared)
            for change in CHANGES:
                estimate = getattr(signal, change.name)
                p_holm = estimate.p_holm if estimate else None
                numbers.add(keys, [change], signal, p_holm=p_holm, **shared)
    for run in inputs.left_out():
        where = run.keys["model"], run.keys["setting"]
        if where not in made:
            made.add(where)
            keys = {**run.keys, "against": against, "seed": ""}
            numbers.add(keys, (*RATES, *CHANGES), None, not_run=run.not_run)
    return numbers.frame()


def bias(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table that compares custom prompts with a setting."""
    labels = inputs.labels()
    columns = [
        Column("hits", "Hits (%)"),
        Column("false_alarms", "False alarms (%)"),
        Column("d_prime", "d′", interval=2),
        Column("d_prime_change", "change", interval=2),
        Column("d_prime_change", "p", p_value=True),
        Column("criterion", "c", interval=2),
        Column("criterion_change", "change", interval=2),
        Column("criterion_change", "p", p_value=True),
        Column("unreadable", "Unread."),
    ]
    groups: dict[str, list[Row]] = {}
    by_setting = in_order(rows_of(numbers, ("model", "setting")), inputs)
    for (model, setting), of_setting in by_setting.items():
        label = SETTING_LABELS.get(setting, setting)
        groups.setdefault(model, []).append(number_row((label,), columns, of_setting))
    left_out = (
        f"Without seed {run.keys['seed']} of {labels[run.keys['model']]}"
        f" ({SETTING_LABELS.get(run.keys['setting'], run.keys['setting'])}): {run.not_run}."
        for run in inputs.left_out()
        if by_setting[run.keys["model"], run.keys["setting"]]["hits"].files
    )
    against = inputs.options["against"]
    return TableContent(
        heads=(headers(["Model", "Prompt"], columns),),
        groups=tuple(Group(tuple(rows), labels[model]) for model, rows in groups.items()),
        caption="Effects of prompts on the criterion c and on d′: an idiom is the signal; c is"
        " negative if a model readily says yes. Rates are corrected log-linearly. Changes"
        f" are against {SETTING_LABELS.get(against, against)}. Intervals are 95% percentiles of"
        " a bootstrap over PIEs; p is of a paired randomization test over PIEs, corrected within a"
        " model (Holm), for d′ and c apart.",
        notes=(*left_out, *data_notes(load_records(inputs.metrics, BiasMetrics))),
    )


def compared_prompts(study: ExtendedStudy) -> DisplayInputs | None:
    """Return inputs with the signal detection of all settings, if `prompts_against` is set."""
    if not (against := study.beyond.prompts_against):
        return None
    left_out = [run for run in study.plan if run.lacks]
    inputs = study.display_inputs(left_out, models=study.settings.models, others=study.plan.others)
    return inputs.model_copy(update={"options": {"against": against}})


BIAS_TABLE = Table(
    "idiots_bias",
    NOT_IN_PAPER,
    "Effects of prompts on the criterion and on d′.",
    bias,
    compared_prompts,
    bias_numbers,
)
