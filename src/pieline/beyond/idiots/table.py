"""Table that compares custom prompts of IdioTS by sensitivity and criterion."""

from operator import attrgetter
from typing import Any

from pieline.beyond.extended import Extended
from pieline.beyond.idiots.metrics import BiasMetrics, SettingSignal, SignalEstimate
from pieline.beyond.settings import BeyondIdiots
from pieline.core.records import load_records
from pieline.reporting.columns import Column, Source, headers, row
from pieline.reporting.displays import NOT_IN_PAPER, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import per_cent, probability, rounded
from pieline.reporting.tables import Group, Row, TableContent
from pieline.studies.idiots.settings import IdiotsSettings
from pieline.studies.idiots.tables import SETTING_LABELS, data_notes, of_origin


def _yes_rate(name: str, header: str) -> Column[SettingSignal]:
    get = attrgetter(name)
    unknown = "no answer could be read"
    return Column(name, header, lambda item: per_cent(get(item)), decimals=1, unknown=unknown)


def _estimate(name: str, header: str) -> Column[SettingSignal]:
    """Return a column for an estimate; its interval has separate columns in the CSV."""
    get = attrgetter(name)

    def value(item: SettingSignal) -> float | None:
        estimate: SignalEstimate | None = get(item)
        return None if estimate is None else estimate.value

    def ends(item: SettingSignal) -> list[str]:
        estimate: SignalEstimate | None = get(item)
        return (
            [rounded(end, 2) for _, end in estimate.interval]
            if estimate and estimate.interval
            else []
        )

    def text(item: SettingSignal) -> str:
        return f"{rounded(value(item), 2)} [{', '.join(ends(item))}]" if ends(item) else ""

    def details(source: Source[SettingSignal]) -> dict[str, str]:
        bounds = ends(source.records[0]) if source.records else []
        return dict(zip(("low", "high"), bounds or ("", ""), strict=True))

    return Column(name, header, value, decimals=2, details=details, text=text)


def _corrected(name: str) -> Column[SettingSignal]:
    get = attrgetter(name)

    def value(item: SettingSignal) -> float | None:
        estimate: SignalEstimate | None = get(item)
        return None if estimate is None else estimate.p_holm

    def text(item: SettingSignal) -> str:
        p_value = value(item)
        return "" if p_value is None else probability(p_value)

    no_bounds = {"low": "", "high": ""}
    return Column(f"{name}_p_holm", "p", value, decimals=4, details=lambda _: no_bounds, text=text)


BIAS = (
    _yes_rate("hits", "Hits (%)"),
    _yes_rate("false_alarms", "False alarms (%)"),
    _estimate("d_prime", "d′"),
    _estimate("d_prime_change", "change"),
    _corrected("d_prime_change"),
    _estimate("criterion", "c"),
    _estimate("criterion_change", "change"),
    _corrected("criterion_change"),
    Column[SettingSignal]("unreadable", "Unread.", lambda item: item.unreadable, decimals=0),
)


def bias(inputs: DisplayInputs) -> TableContent:
    """Build the table that compares custom prompts with a setting by sensitivity and criterion."""
    labels = inputs.labels()
    metrics = load_records(inputs.metrics, BiasMetrics)
    groups: dict[str, list[Row]] = {}

    def add(model: str, setting: str, reason: str = "", **source: Any) -> None:
        # Include all additional CSV columns to keep their order.
        key = {"model": model, "setting": setting, "metric": "", "low": "", "high": ""}
        numbers = Source[SettingSignal](key, not_run=reason, **source)
        cells = [(column, numbers) for column in BIAS]
        name = SETTING_LABELS.get(setting, setting)
        groups.setdefault(model, []).append(row((name,), cells, reason=reason))

    for item, path in zip(metrics, inputs.metrics, strict=True):
        for signal in item.settings:
            obstacles = list(dict.fromkeys([*of_origin(item), *signal.deviations]))
            add(item.model, signal.setting, records=[signal], files=(path,), obstacles=obstacles)
    rows_with_numbers = {
        (item.model, signal.setting) for item in metrics for signal in item.settings
    }
    missing: dict[tuple[str, str], str] = {}
    left_out_seeds = []
    for (model, setting, seed), reason in inputs.left_out().items():
        if (model, setting) in rows_with_numbers:
            run = f"{labels[model]} ({SETTING_LABELS.get(setting, setting)})"
            left_out_seeds.append(f"Without seed {seed} of {run}: {reason}.")
        else:
            missing[model, setting] = reason
    for (model, setting), reason in missing.items():
        add(model, setting, reason)
    if inputs.rows == "run":
        groups = dict(sorted(groups.items(), key=lambda group: inputs.place(group[0])))
    against = inputs.options["against"]
    return TableContent(
        heads=(headers(["Model", "Prompt"], BIAS),),
        groups=tuple(Group(tuple(rows), labels[model]) for model, rows in groups.items()),
        caption="Effects of prompts on the criterion c and on d′: an idiom is the signal; c is"
        " negative if a model readily says yes. Rates are corrected log-linearly. Changes"
        f" are against {SETTING_LABELS.get(against, against)}. Intervals are 95% percentiles of"
        " a bootstrap over PIEs; p is of a paired randomization test over PIEs, corrected within a"
        " model (Holm), for d′ and c apart.",
        notes=(*left_out_seeds, *data_notes(metrics)),
    )


def compared_prompts(study: Extended[IdiotsSettings, BeyondIdiots]) -> DisplayInputs | None:
    """Return inputs with the signal detection of all settings, if `prompts_against` is set."""
    if not study.beyond.prompts_against:
        return None
    inputs = study.display_inputs(study.plan.others, study.settings.models, "llm")
    options = {"against": study.beyond.prompts_against}
    return inputs.model_copy(update={"absent": (), "options": options})


BIAS_TABLE = Table(
    "idiots_bias",
    NOT_IN_PAPER,
    "Effects of prompts on the criterion and on d′.",
    bias,
    compared_prompts,
)
