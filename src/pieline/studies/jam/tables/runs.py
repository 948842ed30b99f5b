"""Build the tables of individual runs (with intervals, per seed) and of paired tests of runs."""

from dataclasses import replace
from operator import attrgetter

from pieline.languages.registry import get_language
from pieline.reporting.columns import (
    Column,
    Source,
    bounds,
    cell,
    headers,
    records_of,
    row,
    sources,
)
from pieline.reporting.displays import NOT_IN_PAPER, ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import per_cent, probability, rounded
from pieline.reporting.tables import Cell, Group, Head, Row, TableContent
from pieline.studies.jam.inputs import has_results, runs_of, with_baselines
from pieline.studies.jam.metrics.drift import DriftComparison, compare_drifts
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.metrics.seeds import RunKey, unreadable
from pieline.studies.jam.tables.common import (
    PROMPTS,
    code_of,
    languages_of,
    marked,
    missing_runs,
    notes_on,
    obstacles_of,
    percentage,
    run_sources,
    seeds_of,
    title_of,
)


def _count(name: str, usage: str, header: str = "") -> Column[JamMetrics]:
    value = attrgetter(f"{usage}.{name}")
    return Column(
        f"{name}_{usage}",
        header,
        value,
        latex=f"${header}$",
        text=lambda item: rounded(value(item), 0),
    )


def _drift(usage: str, header: str = "") -> Column[JamMetrics]:
    part = attrgetter(usage)
    return percentage(
        f"negative_drift_{usage}",
        header,
        lambda item: (part(item).negative_drift, part(item).interval),
        latex=r"$\mathit{ND}_M$ (\%)",
    )


def _f1(of: str, sentences: str) -> Column[JamMetrics]:
    value = attrgetter(f"tagging_of_{sentences}.{of}_f1")
    return Column(f"{of}_f1_{sentences}", "", lambda item: per_cent(value(item)))


RUNS: list[Column[JamMetrics]] = [
    percentage("accuracy", "Accuracy (%)", lambda item: (item.accuracy, item.accuracy_interval)),
    _count("success", "overall", "S_M"),
    _count("flipped", "overall", "F_M"),
    _drift("overall", "ND_M (%)"),
    *(
        column
        for usage in ("literal", "idiomatic")
        for column in (_count("success", usage), _count("flipped", usage), _drift(usage))
    ),
    _f1("span", "originals"),
    _f1("token", "originals"),
    Column(
        "unreadable",
        "unreadable",
        lambda item: unreadable([item])[0],
        text=lambda item: "{} of {}".format(*unreadable([item])),
    ),
]
TAGS_OF_VARIANTS = [_f1("span", "variants"), _f1("token", "variants")]


def runs(inputs: DisplayInputs) -> TableContent:
    """Build the table of accuracy, S, F, ND and unreadable answers for every run and seed.

    Only the CSV has S, F and ND by usage, and the F1 of tags. The paper prints no numbers per seed
    for comparison.
    """
    labels = inputs.labels()
    sources_by_key = sources(inputs, JamMetrics, (*RunKey._fields, "seed"), obstacles_of)
    left_out = (
        Source[JamMetrics](RunKey(setting, model, language)._asdict() | {"seed": seed}, not_run=why)
        for (model, setting, language, seed), why in inputs.left_out().items()
    )
    rows = []
    every = [*sources_by_key.values(), *left_out]
    if inputs.rows == "run":
        every.sort(key=lambda source: inputs.place(source.key["model"]))
    for source in every:
        setting, model, language, seed = source.key.values()
        names = (labels[model], title_of(setting), code_of(language), seed)
        blank = {"metric": "", **bounds(None)} if source.records else {}
        run = replace(source, key={**source.key, **blank})
        tagged = all(item.tagging_of_variants for item in run.records)
        columns = [*RUNS, *(TAGS_OF_VARIANTS if tagged else ())]
        rows.append(row(names, [(column, run) for column in columns], reason=run.not_run))
    return TableContent(
        heads=(headers(["Model", "Setting", "Language", "Seed"], RUNS),),
        groups=(Group(tuple(rows)),),
        caption="Every run and seed, with 95% bootstrap intervals over originals and the number of"
        " unreadable answers.",
        notes=(*notes_on(records_of(sources_by_key), inputs), PROMPTS),
    )


RUNS_TABLE = Table(
    "jam_runs",
    NOT_IN_PAPER,
    "Every run with its seeds and intervals.",
    runs,
    with_baselines,
)


def _p_values(source: Source[DriftComparison]) -> dict[str, str]:
    return {name: f"{getattr(test, name):.4g}" for test in source.records for name in _P_VALUES}


_P_VALUES = {
    "p_value": Head("p", latex="$p$"),
    "p_holm": Head("p corrected", latex="$p$ corrected"),
}
DIFFERENCE = Column[DriftComparison](
    "negative_drift_difference",
    "difference",
    lambda test: 100 * test.difference,
    details=_p_values,
)


def pairs(inputs: DisplayInputs) -> TableContent:
    """Build the table that compares the negative drift of every pair of runs, by language.

    Differences are in percentage points, first minus second run, over all seeds.
    """
    our_runs, labels, permutations = (
        run_sources(inputs),
        inputs.labels(),
        inputs.options["permutations"],
    )
    with_variants = {
        key: item for key, item in our_runs.items() if item.records[0].overall.variants
    }
    rows = []

    def label(key: RunKey) -> str:
        return f"{labels[key.model]}, {title_of(key.setting)}"

    for language in languages_of(with_variants):
        judged = {
            key: [item.judged for item in source.records]
            for key, source in with_variants.items()
            if key.language == language
        }
        for couple, test in compare_drifts(judged, permutations=permutations, seed=0).items():
            (one, first), (other, second) = ((key, with_variants[key]) for key in couple)
            source = Source(
                {
                    "language": language,
                    "first": f"{one.model}/{one.setting}",
                    "second": f"{other.model}/{other.setting}",
                    "first_seeds": seeds_of(first),
                    "second_seeds": seeds_of(second),
                },
                [test],
                (*first.files, *second.files),
                obstacles=obstacles_of(*first.records, *second.records),
            )
            names = (marked(label(key), {"": with_variants[key].records}) for key in couple)
            chances = (Cell(text=probability(getattr(test, name))) for name in _P_VALUES)
            rows.append(
                Row((get_language(language).label, *names), (cell(DIFFERENCE, source), *chances))
            )
    for key in missing_runs(inputs, with_variants):
        reason = inputs.why_not(key.model, key.setting, key.language)
        run = {"language": key.language, "first": f"{key.model}/{key.setting}", "second": ""}
        cells = (cell(DIFFERENCE, Source(run, not_run=reason)), Cell(), Cell())
        rows.append(Row((get_language(key.language).label, label(key), ""), cells, reason))
    about = (
        "Negative drift of every pair of runs on the same originals ({drift} of the first minus"
        " that of the second, in points, over all seeds), with the {p}-value of a two-sided paired"
        f" randomization test that swaps two runs on whole originals (at most {permutations:,}"
        " patterns), also corrected within a language (Holm). A run without any success has no"
        " drift."
    )
    return TableContent(
        heads=((*headers(["Language", "First", "Second"], [DIFFERENCE]), *_P_VALUES.values()),),
        groups=(Group(tuple(rows)),),
        caption=about.format(drift="ND_M", p="p"),
        caption_latex=about.format(drift=r"$\mathit{ND}_M$", p="$p$"),
        notes=(*notes_on(records_of(our_runs), inputs), PROMPTS),
        long=True,
        label_widths=(0.08, 0.28, 0.28),
    )


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
)
