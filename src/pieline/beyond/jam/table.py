"""Build the table that compares custom prompts, and training data of encoders, with a reference."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from pieline.beyond.extended import Extended
from pieline.beyond.jam.metrics import (
    USAGES,
    Effect,
    PromptMeasures,
    prompt_measures,
)
from pieline.beyond.settings import BeyondJam
from pieline.languages.registry import get_language
from pieline.reporting.columns import (
    Column,
    Source,
    bounds,
    headers,
    interval_text,
    records_of,
    row,
)
from pieline.reporting.displays import NOT_IN_PAPER, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import per_cent, probability
from pieline.reporting.tables import Group, Row, TableContent
from pieline.studies.jam import paths
from pieline.studies.jam.inputs import has_results, runs_of
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import RunKey
from pieline.studies.jam.predictions.baselines import BASELINES
from pieline.studies.jam.settings import BASELINE, FINE_TUNED, JamSettings
from pieline.studies.jam.tables.common import (
    languages_of,
    marked,
    missing_runs,
    notes_on,
    obstacles_of,
    run_sources,
    seeds_of,
    title_of,
)

NONE = "always-none"
"""Baseline that never drifts because it names no idiom."""


class PromptRow(NamedTuple):
    """Measures of one setting of a model on originals of one usage."""

    run: RunKey
    usage: str
    source: Source[JamMetrics]
    measures: PromptMeasures


def prompt_rows(inputs: DisplayInputs) -> Iterator[PromptRow]:
    """Yield a row for each language, model, usage and setting; the setting of `NONE` comes last.

    The options are `against` (reference setting for prompts, or null), `permutations` and
    `resamples`. The reference for encoders is the setting without added training texts.
    """
    our_runs = run_sources(inputs)
    counts = {name: inputs.options[name] for name in ("permutations", "resamples")}
    models = dict.fromkeys(key.model for key in our_runs if key.setting != BASELINE)
    for language in languages_of(our_runs):
        for model in models:
            runs = {key.setting: key for key in our_runs if key[1:] == (model, language)}
            none = RunKey(BASELINE, NONE, language)
            runs |= {BASELINE: none} if none in our_runs and runs else {}
            against = FINE_TUNED if FINE_TUNED in runs else inputs.options["against"]
            judged = {
                name: [item.judged for item in our_runs[key].records] for name, key in runs.items()
            }
            for usage in USAGES:
                measured = prompt_measures(judged, against, usage, uncompared=[BASELINE], **counts)
                for name, measures in measured.items():
                    key = RunKey(name, model, language)
                    yield PromptRow(key, usage, our_runs[runs[name]], measures)


def compared(inputs: DisplayInputs) -> str:
    """Return a description of what the table and the figure compare."""
    pairs = []
    if inputs.options["against"]:
        pairs.append(f"prompts of this project against {title_of(inputs.options['against'])}")
    if inputs.options["added"]:
        pairs.append("encoders trained with texts of other PIEs against those without")
    text = " and ".join(pairs)
    return text[:1].upper() + text[1:]


def prompt_label(setting: str) -> str:
    """Return the display name of a setting in the table and the figure."""
    return BASELINES[NONE] if setting == BASELINE else title_of(setting)


def _share(
    name: str, header: str, share: Callable[[PromptMeasures], float | None], latex: str
) -> Column[PromptMeasures]:
    return Column(
        name, header, lambda item: per_cent(share(item)), latex, unknown="there is nothing to count"
    )


def _effect(
    name: str, get: Callable[[PromptMeasures], Effect | None]
) -> tuple[Column[PromptMeasures], Column[PromptMeasures]]:
    """Return columns for a difference (percentage points) and its corrected p-value."""

    def value(item: PromptMeasures) -> float | None:
        effect = get(item)
        return None if effect is None else 100 * effect.difference

    def text(item: PromptMeasures) -> str:
        effect = get(item)
        return interval_text(value(item), effect.interval, 1) if effect else ""

    def details(source: Source[PromptMeasures]) -> Mapping[str, str]:
        effect = get(source.records[0]) if source.records else None
        chance = "" if effect is None else f"{effect.p_value:.4g}"
        return {**bounds(effect.interval if effect else None), "p_value": chance}

    def corrected(item: PromptMeasures) -> float | None:
        effect = get(item)
        return None if effect is None else effect.p_holm

    def shown(item: PromptMeasures) -> str:
        chance = corrected(item)
        return "" if chance is None else probability(chance)

    return (
        Column(f"{name}_difference", "difference", value, details=details, text=text),
        Column(f"{name}_p_holm", "p", corrected, "$p$", decimals=4, details=details, text=shown),
    )


COLUMNS: list[Column[PromptMeasures]] = [
    _share("accuracy", "Accuracy (%)", lambda item: item.accuracy, r"Accuracy (\%)"),
    Column("success", "S_M", lambda item: item.success, "$S_M$", decimals=0),
    _share("negative_drift", "ND_M (%)", lambda item: item.drift, r"$\mathit{ND}_M$ (\%)"),
    *_effect("negative_drift", lambda item: item.drift_effect),
    _share("variant_errors", "errors (%)", lambda item: item.errors, r"errors (\%)"),
    *_effect("variant_errors", lambda item: item.errors_effect),
]


def prompts(inputs: DisplayInputs) -> TableContent:
    """Build the table of the effects of prompts and training data, by usage."""
    labels = inputs.labels()
    our_runs = run_sources(inputs)
    groups: dict[tuple[str, str], list[Row]] = {}

    def title(key: RunKey) -> tuple[str, str]:
        return labels[key.model], get_language(key.language).label

    for key, usage, source, measures in prompt_rows(inputs):
        numbers = Source(
            {**key._asdict(), "usage": usage, "seeds": seeds_of(source)},
            [measures],
            source.files,
            obstacles=obstacles_of(*source.records),
        )
        names = (usage, marked(prompt_label(key.setting), {"": source.records}))
        groups.setdefault(title(key), []).append(
            row(names, [(column, numbers) for column in COLUMNS])
        )
    for key in missing_runs(inputs, our_runs):
        reason = inputs.why_not(key.model, key.setting, key.language)
        missing = Source[PromptMeasures](
            {**key._asdict(), "usage": "all", "seeds": ""}, not_run=reason
        )
        groups.setdefault(title(key), []).append(
            row(
                ("all", prompt_label(key.setting)),
                [(column, missing) for column in COLUMNS],
                reason=reason,
            )
        )
    return TableContent(
        heads=(headers(["Run", "PIE", "Setting"], COLUMNS),),
        groups=tuple(Group(tuple(rows), ", ".join(name)) for name, rows in groups.items()),
        caption=f"{compared(inputs)} on the same originals: negative drift, and errors on all"
        " variants, which are false alarms where the PIE is literal and misses where it is"
        " idiomatic. Differences are in points, with 95% bootstrap intervals over"
        " originals; p is of a two-sided paired randomization test that swaps two runs"
        " on whole originals, corrected within a model, language and usage (Holm).",
        notes=(
            f"{BASELINES[NONE]} never drifts and misses every idiom: a change that only lowers"
            " ND_M, or trades misses for false alarms, is no improvement.",
            *notes_on(records_of(our_runs), inputs),
        ),
        long=True,
        label_widths=(0.14, 0.07, 0.16),
    )


def effects(study: Extended[JamSettings, BeyondJam]) -> DisplayInputs | None:
    """Return inputs with the runs to compare, their references and `always-none`.

    The result is None unless `prompts_against` is set or encoders are trained with added texts.
    """
    settings, against = study.settings, study.beyond.prompts_against
    added = study.beyond.added_settings()
    if not (has_results(study) and (against or added)):
        return None
    given = runs_of(study)
    shown = {against, *([FINE_TUNED] if added else []), *added}
    shown |= {*settings.prompts} if against else set()
    made = [path for path in given.metrics if study.plan[path].where["setting"] in shown]
    none = [paths.baselines(language)[0] for language in settings.languages]
    options = {
        "against": against,
        "added": bool(added),
        "permutations": settings.permutations,
        "resamples": settings.bootstrap_resamples,
    }
    return given.model_copy(update={"metrics": (*made, *none), "absent": (), "options": options})


PROMPTS_TABLE = Table(
    "jam_prompts",
    NOT_IN_PAPER,
    "Effects of prompts and training data, on the same originals.",
    prompts,
    effects,
)
