"""Build the table that compares custom prompts of IdioTS by sensitivity and criterion."""

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
from pieline.studies.idiots.tables import data_notes, of_origin, setting_label


def bias_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return each setting's rates and estimates, and its differences from the reference setting."""
    numbers, against = OurNumbers(inputs.study), inputs.options["against"]
    settings_with_numbers: set[tuple[str, str]] = set()  # (model, setting)
    records = load_records(inputs.metrics, BiasMetrics)
    for metrics, path in zip(records, inputs.metrics, strict=True):
        for signal in metrics.settings:
            keys = {"model": metrics.model, "setting": signal.setting, "against": against}
            obstacles = [*of_origin(metrics), *signal.deviations]
            numbers.add(keys, RATES, signal, files=[path], obstacles=obstacles)
            for change in CHANGES:
                estimate = getattr(signal, change.name)
                p_holm = estimate.p_holm if estimate else None
                numbers.add(
                    keys, [change], signal, files=[path], obstacles=obstacles, p_holm=p_holm
                )
            settings_with_numbers.add((metrics.model, signal.setting))
    for run in inputs.left_out():
        model_and_setting = (run.keys["model"], run.keys["setting"])
        if model_and_setting not in settings_with_numbers:
            keys = {**run.keys, "against": against, "seed": ""}
            numbers.add(keys, (*RATES, *CHANGES), None, not_run=run.not_run)
            settings_with_numbers.add(model_and_setting)
    return numbers.frame()


def bias(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the table that compares custom prompts with the reference setting."""
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
    rows_by_model: dict[str, list[Row]] = {}
    numbers_by_setting = in_order(rows_of(numbers, ("model", "setting")), inputs)
    for (model, setting), setting_numbers in numbers_by_setting.items():
        row = number_row((setting_label(setting),), columns, setting_numbers)
        rows_by_model.setdefault(model, []).append(row)
    notes_on_missing_seeds = []
    for run in inputs.left_out():
        model, setting, seed = (run.keys[key] for key in ("model", "setting", "seed"))
        has_other_seeds = bool(numbers_by_setting[model, setting]["hits"].files)
        if has_other_seeds:
            notes_on_missing_seeds.append(
                f"Without seed {seed} of {labels[model]} ({setting_label(setting)}): {run.not_run}."
            )
    against = setting_label(inputs.options["against"])
    return TableContent(
        heads=(headers(["Model", "Prompt"], columns),),
        groups=tuple(Group(tuple(rows), labels[model]) for model, rows in rows_by_model.items()),
        caption="Effects of prompts on the criterion c and on d′: an idiom is the signal; c is"
        " negative if a model readily says yes. Rates are corrected log-linearly. Changes"
        f" are against {against}. Intervals are 95% percentiles of"
        " a bootstrap over PIEs; p is of a paired randomization test over PIEs, corrected within a"
        " model (Holm), for d′ and c apart.",
        notes=(*notes_on_missing_seeds, *data_notes(load_records(inputs.metrics, BiasMetrics))),
    )


def compared_prompts(study: ExtendedStudy) -> DisplayInputs | None:
    """Return inputs with the metrics of all compared settings; None if nothing is compared."""
    against = study.beyond.prompts_against
    if not against:
        return None
    impossible_runs = [run for run in study.plan if run.impossible_because]
    inputs = study.display_inputs(
        impossible_runs, models=study.settings.models, others=study.plan.others
    )
    return inputs.model_copy(update={"options": {"against": against}})


BIAS_TABLE = Table(
    "idiots_bias",
    NOT_IN_PAPER,
    "Effects of prompts on the criterion and on d′.",
    bias,
    compared_prompts,
    bias_numbers,
)
