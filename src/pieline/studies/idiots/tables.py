"""Tables of IdioTS: Tables 1 to 3, counts of section 3, errors of section 5.2.1, and the prompt."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Literal, Protocol, get_args

from pieline.core.outcomes import READABLE, OutcomeName
from pieline.core.records import load_record, load_records
from pieline.core.upstream import BY_COUNTS, SELF_VERIFIED
from pieline.llm.prompts import load_prompt
from pieline.reporting.columns import (
    Column,
    Source,
    headers,
    mark_best,
    row,
    sources,
    text_cell,
)
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.printed import PrintedRow, read_published
from pieline.reporting.tables import Cell, Group, Head, Row, TableContent
from pieline.studies.idiots import paths
from pieline.studies.idiots.datasets import IdiotsManifest, Origin
from pieline.studies.idiots.inputs import no_data
from pieline.studies.idiots.metrics.detection import DetectionMetrics, Score
from pieline.studies.idiots.records import DistractorKind
from pieline.studies.idiots.verdicts import ErrorType

PAPER_SETTING = "zero_shot"
"""Setting of the printed numbers."""

DECIMALS = 3

_RUN = ("model", "setting", "seed")
"""Key of a run."""
SETTING_LABELS = {"zero_shot": "zero-shot", "zero_shot_schema": "zero-shot, JSON"}
KIND_LABELS = {
    "whole_phrase": "whole phrase",
    "parts": "parts",
    "other_role": "other role",
    "look_alike": "look-alike",
}


class Described(Protocol):
    """A record that states the origin of its data."""

    @property
    def origin(self) -> Origin:
        """Origin of the sentences."""

    @property
    def data_note(self) -> str:
        """Note on how the data was verified or differs from the paper's."""


UNSORTED = "its wrong idioms are not sorted yet (error type, in the cases to judge)"
_IN_TEXT = {
    "Llama-2-7b-chat": "llama2",
    "Mistral-7b-Instruct": "mistral",
    "Vicuna-7b": "vicuna",
}
"""Names of the models in published/text_numbers.csv."""

_LLAMA2 = "<s>[INST] <<SYS>>\n{system}\n<</SYS>> {user} [/INST]"


def _score(
    name: str,
    header: str,
    score: Callable[[DetectionMetrics], Score] | None = None,
    best: Literal["highest", "lowest"] = "highest",
) -> Column[DetectionMetrics]:
    """Return a column for a fraction with its interval; `score` defaults to the field `name`."""
    get = score or attrgetter(name)
    return Column(
        name,
        header,
        lambda item: get(item).value,
        decimals=DECIMALS,
        best=best,
        details=lambda source: {"interval_95": _interval(*map(get, source.records))},
    )


def _count(
    name: str, header: str, value: Callable[[DetectionMetrics], int | None], unknown: str = ""
) -> Column[DetectionMetrics]:
    return Column(name, header, value, decimals=0, unknown=unknown)


def _entry(field: str, key: str) -> Callable[[DetectionMetrics], int]:
    """Return a getter for one count in a field that maps names to counts."""
    return lambda item: int(getattr(item, field)[key])


def _error_type(name: ErrorType, header: str) -> Column[DetectionMetrics]:
    def value(item: DetectionMetrics) -> int | None:
        return None if _unsorted(item) else item.error_types.get(name, 0)

    return _count(name, header, value, unknown=UNSORTED)


def _of_kind(kind: DistractorKind) -> tuple[Column[DetectionMetrics], ...]:
    """Return the columns for a kind of distractor."""
    return (
        _score(
            f"ratio_{kind}",
            KIND_LABELS[kind],
            lambda item: item.by_distractor_kind[kind]["distractor_pie_ratio"],
            best="lowest",
        ),
        _count(
            f"distractors_{kind}",
            "",
            lambda item: item.by_distractor_kind[kind]["distractor_pie_ratio"].of,
        ),
        _score(
            f"specificity_{kind}", "", lambda item: item.by_distractor_kind[kind]["specificity"]
        ),
    )


DETECTION = (
    _score("accuracy", "Accuracy ↑"),
    _score("misclassification_rate", "MR ↓", best="lowest"),
    _score("recall", "Recall ↑"),
    _score("specificity", "Spec. ↑"),
    _score("precision", "Precision ↑"),
    _score("balanced_accuracy", "BA ↑"),
    _count(
        "answers_unreadable",
        "Unread.",
        lambda item: sum(item.outcomes[name] for name in item.outcomes.keys() - READABLE),
    ),
    *(
        _count(f"answers_{name}", "", _entry("outcomes", name))
        for name in sorted(get_args(OutcomeName))
    ),
)
CONSISTENCY = (
    _count("positives", "Idiomatic", lambda item: item.idiomatic),
    _count("true_positives", "TP", lambda item: item.true_positive_consistency.of),
    _count(
        "true_positives_with_correct_idiom",
        "Correct idiom",
        lambda item: item.true_positive_consistency.count,
    ),
    _score("true_positive_consistency", "TPC ↑"),
    _count("verdicts_human", "Judged", _entry("verdicts", "human")),
    Column[DetectionMetrics]("kappa", "κ", lambda item: item.kappa, decimals=DECIMALS),
    _count("verdicts_automatic", "", _entry("verdicts", "automatic")),
)
DISTRACTORS = (
    _count("distractors", "Distractors", lambda item: item.distractors),
    _count("false_positives_on_associated_pie", "FP", lambda item: item.distractor_pie_ratio.count),
    _score("ratio", "Ratio ↓", lambda item: item.distractor_pie_ratio, best="lowest"),
    _count("verdicts_automatic", "", _entry("verdicts", "automatic")),
    _count("verdicts_human", "", _entry("verdicts", "human")),
)
ERRORS = (
    _count("false_negatives", "Missed", _entry("errors", "false_negatives")),
    _count("wrong_idiom", "Other idiom", _entry("errors", "wrong_idiom")),
    _count("false_positives_on_pie", "Distractor: PIE", _entry("errors", "false_positives_on_pie")),
    _count(
        "false_positives_elsewhere",
        "Distractor: else",
        _entry("errors", "false_positives_elsewhere"),
    ),
)
ERROR_TYPES = (
    _error_type("phrasal_verb", "phrasal verb"),
    _error_type("idiom_of_element", "of an element"),
    _error_type("unrelated_idiom", "unrelated"),
    _error_type("same_meaning", "same meaning"),
    _error_type("invented", "invented"),
    _error_type("other", "else"),
)
DATASET = (
    Column[IdiotsManifest]("idioms", "PIEs", lambda manifest: manifest.pies, decimals=0),
    Column[IdiotsManifest](
        "sentences", "Sentences", lambda manifest: manifest.sentences, decimals=0
    ),
    Column[IdiotsManifest](
        "idiomatic", "Idiomatic sentences", lambda manifest: manifest.idiomatic, decimals=0
    ),
    Column[IdiotsManifest](
        "distractors", "Distractors", lambda manifest: manifest.distractors, decimals=0
    ),
)


def run_labels(runs: Sequence[tuple[str, ...]], models: Sequence[ModelDescription]) -> list[str]:
    """Return the label of each run: the model, and the setting and seed if runs differ in them.

    Args:
        runs: Model, setting and seed of each run; an empty seed means all seeds.
        models: Descriptions of the models.
    """
    labels = {model.name: model.label for model in models}
    several_settings = len({setting for _, setting, _ in runs}) > 1
    several_seeds = len({seed for _, _, seed in runs if seed}) > 1

    def label(model: str, setting: str, seed: str) -> str:
        details = [SETTING_LABELS.get(setting, setting)] if several_settings else []
        details += [f"seed {seed}"] if several_seeds and seed else []
        return f"{labels[model]} ({', '.join(details)})" if details else labels[model]

    return [label(*run) for run in runs]


def run_of(item: DetectionMetrics) -> tuple[str, str, str]:
    """Return the model, setting and seed of a run."""
    return item.model, item.setting, str(item.seed)


def _not_made(
    inputs: DisplayInputs, runs: Sequence[tuple[str, ...]], printed: Collection[tuple[str, ...]]
) -> dict[tuple[str, ...], str]:
    """Return why runs have no numbers: they were left out, or are only in the paper.

    If no seed of a model and setting was run, the seeds are merged into one run without a seed.
    """
    settings = {run[:2] for run in runs}
    left_out: dict[tuple[str, ...], str] = {
        (model, setting, seed if (model, setting) in settings else ""): reason
        for (model, setting, seed), reason in inputs.left_out().items()
    }
    of_paper: dict[tuple[str, ...], str] = {
        (model.name, PAPER_SETTING, ""): inputs.why_not(model.name) or "not in this setting"
        for model in (*inputs.models, *inputs.absent)
        if (model.published_as,) in printed and (model.name, PAPER_SETTING) not in settings
    }
    return of_paper | left_out


def detection(inputs: DisplayInputs) -> TableContent:
    """Build Table 1: the first level of evaluation, and the number of unreadable answers."""
    return _table(
        inputs,
        DETECTION,
        "Automatic metrics of idiom detection on IdioTS (MR: misclassification rate, Spec.:"
        " specificity, BA: balanced accuracy). The last column counts the answers that could not be"
        " read: they are wrong in all metrics but precision, in which they have no place. A dash:"
        " nothing to measure.",
        with_verdicts=False,
    )


def all_runs(study: ConfiguredStudy) -> DisplayInputs:
    """Return inputs with all runs, and the paper's models that are not configured."""
    return study.display_inputs(study.plan.metrics(), study.settings.models, "llm")


DETECTION_TABLE = Table(
    "idiots_detection",
    "Table 1",
    "Automatic metrics of idiom detection.",
    detection,
    all_runs,
    printed="idiots_table1",
)


def consistency(inputs: DisplayInputs) -> TableContent:
    """Build Table 2: the share of true positives that name the right idiom."""
    return _table(
        inputs,
        CONSISTENCY,
        "True Positive Consistency (TPC) on IdioTS: of the true positives (TP) among the"
        " idiomatic sentences, those whose named idiom is the right one. Judged: answers (also on"
        " distractors) that a person judged; κ: Cohen's kappa of these verdicts and the automatic"
        " ones.",
    )


CONSISTENCY_TABLE = Table(
    "idiots_consistency",
    "Table 2",
    "True positives that name the right idiom.",
    consistency,
    all_runs,
    printed="idiots_table2",
)


def distractors(inputs: DisplayInputs) -> TableContent:
    """Build Table 3: distractors whose PIE was given a figurative meaning, in total and by kind."""
    metrics = load_records(inputs.metrics, DetectionMetrics)
    marked_kinds = {kind for item in metrics for kind in item.by_distractor_kind}
    kinds = {kind: _of_kind(kind) for kind in get_args(DistractorKind) if kind in marked_kinds}
    ratios = (ratio for ratio, *_ in kinds.values())
    others = (column for kind in sorted(kinds) for column in kinds[kind][1:])
    return _table(
        inputs,
        (*DISTRACTORS[:3], *ratios, *others, *DISTRACTORS[3:]),
        "Distractors of IdioTS whose associated PIE was given a figurative meaning (FP),"
        " and the ratio by kind of distractor.",
    )


DISTRACTORS_TABLE = Table(
    "idiots_distractors",
    "Table 3",
    "Distractors whose PIE was given a figurative meaning.",
    distractors,
    all_runs,
    printed="idiots_table3",
)


def errors(inputs: DisplayInputs) -> TableContent:
    """Build the table of errors (section 5.2.1), with error types assigned by people."""
    text = read_published(inputs.files["text_numbers"], ["id"])
    models = (*inputs.models, *inputs.absent)
    in_text = {model.name: _IN_TEXT.get(model.published_as or "") for model in models}

    def identified(column: Column[DetectionMetrics]) -> Column[DetectionMetrics]:
        """Return a copy of the column that adds the ids of printed numbers to the CSV."""

        def details(source: Source[DetectionMetrics]) -> dict[str, str]:
            name = f"idiots.{column.name}_{in_text[source.key['model']]}"
            return {"metric": "value", "id": name} if column.name in source.printed else {}

        return replace(column, details=details)

    printed: dict[tuple[str, ...], PrintedRow] = {
        (label,): {
            column.name: text[name,]["value"]
            for column in (*ERRORS, *ERROR_TYPES)
            if (name := f"idiots.{column.name}_{suffix}",) in text
        }
        for label, suffix in _IN_TEXT.items()
    }
    blank = (Cell(text=" "),) * (len(ERROR_TYPES) - len(ERRORS))
    count_rows = _rows(inputs, list(map(identified, ERRORS)), printed)
    type_rows = _rows(inputs, list(map(identified, ERROR_TYPES)), printed, _unsorted)
    return TableContent(
        heads=((*headers(["Model"], ERRORS), *(Head("") for _ in blank)),),
        groups=(
            Group(tuple(replace(row, cells=(*row.cells, *blank)) for row in count_rows)),
            Group(tuple(type_rows), heads=(headers(["Other idiom"], ERROR_TYPES),)),
        ),
        caption="Errors on IdioTS: idiomatic sentences without an idiom for the model, and those"
        " where it names another one; distractors in which it takes the PIE, or something else, for"
        " an idiom. Below, how people sorted the other idioms: a phrasal verb; an idiom that has an"
        " element of the sentence, has nothing to do with it, or means the same; one that does not"
        " exist; anything else.",
        notes=_notes(load_records(inputs.metrics, DetectionMetrics), with_verdicts=True),
        decimals=0,
    )


ERRORS_TABLE = Table(
    "idiots_errors",
    "Section 5.2.1",
    "Errors, and their types as people sorted them.",
    errors,
    all_runs,
    text_numbers=True,
)


def dataset(inputs: DisplayInputs) -> TableContent:
    """Build the table of the counts in section 3."""
    manifest = inputs.files.get("manifest")
    record = load_record(manifest, IdiotsManifest) if manifest else None
    obstacles = of_origin(record) if record else [f"not made: {inputs.notes[0]}"]
    if record and record.verified == "counts":
        obstacles = [SELF_VERIFIED]
    text = read_published(inputs.files["text_numbers"], ["id"])
    source = Source({}, [record] if record else [], obstacles=obstacles)
    reason = "" if record else inputs.notes[0]
    rows = [
        Row((column.header,), (text_cell(column, source, "idiots", text),), reason)
        for column in DATASET
    ]
    kinds = record.distractors_by_kind if record else {}
    rows += [
        Row((f"– {KIND_LABELS[kind]}",), (Cell(text=str(count)),))
        for kind in get_args(DistractorKind)
        if (count := kinds.get(kind))
    ]
    return TableContent(
        heads=((Head("IdioTS"), Head("Number")),),
        groups=(Group(tuple(rows)),),
        caption="The test suite. The released distractors are not marked by kind.",
        notes=data_notes([record] if record else []),
        wide=False,
    )


def _manifest(study: ConfiguredStudy) -> DisplayInputs:
    if obstacle := no_data(study):
        return DisplayInputs(notes=(obstacle,))
    return DisplayInputs(files={"manifest": paths.MANIFEST})


DATASET_TABLE = Table(
    "idiots_dataset",
    "Section 3",
    "PIEs and sentences of the test suite.",
    dataset,
    _manifest,
    text_numbers=True,
)


def prompt(inputs: DisplayInputs) -> TableContent:
    """Build the table with the prompt (Figure 1) and its layout for Llama 2 (Figure 2)."""
    system, user = load_prompt(inputs.files["prompt"]).messages(sentence="sentence")
    parts = {
        "system": system.content,
        "user": user.content,
        "for Llama 2": _LLAMA2.format(system=system.content, user=user.content),
    }
    return TableContent(
        heads=((Head("Role"), Head("Content")),),
        groups=tuple(
            Group((Row((role,), (Cell(text=content),)),)) for role, content in parts.items()
        ),
        caption="The prompt (Figure 1; the sentence is the user's turn), and its layout for Llama 2"
        " as the paper has it from llama-cpp-python (Figure 2). The entry llama-2-7b-chat sets this"
        " layout; other local models use the template of their entry or weights.",
        wraps=True,
    )


def _prompt(study: ConfiguredStudy) -> DisplayInputs:
    return DisplayInputs(files={"prompt": study.project.here(paths.PROMPT)})


PROMPT_TABLE = Table(
    "idiots_prompt",
    "Figures 1 and 2",
    "The prompt, and its layout for Llama 2.",
    prompt,
    _prompt,
)


def _table(
    inputs: DisplayInputs,
    columns: Sequence[Column[DetectionMetrics]],
    caption: str,
    *,
    with_verdicts: bool = True,
) -> TableContent:
    """Build one of Tables 1 to 3; the CSV also has intervals and the columns without a header."""
    printed = read_published(inputs.files["published"], ["model"])
    content = TableContent(
        heads=(headers(["Model"], columns),),
        groups=(Group(tuple(_rows(inputs, columns, printed))),),
        caption=caption,
        notes=_notes(load_records(inputs.metrics, DetectionMetrics), with_verdicts=with_verdicts),
        decimals=DECIMALS,
    )
    return mark_best(content, columns, different=2)


def _notes(metrics: Sequence[DetectionMetrics], *, with_verdicts: bool) -> tuple[str, ...]:
    by_people = sum(item.verdicts["human"] for item in metrics)
    total = sum(sum(item.verdicts.values()) for item in metrics)
    note = (
        f"People judged {by_people} of the {total} answers that found an idiom, the matching"
        " function the others."
    )
    return (*([note] if with_verdicts else []), *data_notes(metrics))


def data_notes(described: Sequence[Described]) -> tuple[str, ...]:
    """Return notes on sample data and on data verified only by counts."""
    return (
        *([SAMPLE_NOTE] if any(item.origin == "sample" for item in described) else []),
        *([BY_COUNTS] if any(item.data_note == BY_COUNTS for item in described) else []),
    )


def _rows(
    inputs: DisplayInputs,
    columns: Sequence[Column[DetectionMetrics]],
    printed: Mapping[tuple[str, ...], PrintedRow],
    reason: Callable[[DetectionMetrics], str] = lambda _: "",
) -> Iterator[Row]:
    """Yield one row per run, then one per run without numbers; `reason` returns a note on a run.

    If only this run's models have rows, these are in the order of the configuration.
    """
    sources_by_run = sources(inputs, DetectionMetrics, _RUN, _obstacles)
    models = (*inputs.models, *inputs.absent)
    published_as = {model.name: model.published_as or "" for model in models}
    in_rows = printed if inputs.rows == "paper" else ()
    missing = _not_made(inputs, list(sources_by_run), in_rows)
    runs = [*sources_by_run, *missing]
    if inputs.rows == "run":
        runs.sort(key=lambda run: inputs.place(run[0]))
    for run, label in zip(runs, run_labels(runs, models), strict=True):
        in_paper = printed.get((published_as[run[0]],), {}) if run[1] == PAPER_SETTING else {}
        source = replace(
            sources_by_run.get(run) or Source({}, not_run=missing[run]),
            key=dict(zip(_RUN, run, strict=True)) | {"metric": "", "interval_95": ""},
            printed=in_paper,
        )
        cells = [
            (column, source if source.records or column.name in in_paper else None)
            for column in columns
        ]
        yield row((label,), cells, reason=missing.get(run) or reason(*source.records))


def _unsorted(item: DetectionMetrics) -> str:
    """Return why the wrong idioms of a run have no error types; empty if they have types."""
    return UNSORTED if item.errors["wrong_idiom"] and not item.error_types else ""


def _obstacles(item: DetectionMetrics) -> list[str]:
    """Return why a run is not comparable with the paper's."""
    return list(dict.fromkeys([*of_origin(item), *item.conditions.deviations]))


def of_origin(described: Described) -> list[str]:
    """Return why numbers on these data are not comparable with the paper's."""
    reasons: dict[Origin, list[str]] = {
        "sample": ["sample data, not the released IdioTS"],
        "unverified": [described.data_note],
        "released": [],
        "own": ["own data, the paper IdioTS"],
    }
    return reasons[described.origin]


def _interval(score: Score | None = None) -> str:
    if score is None or score.low is None or score.high is None:
        return ""
    return f"{score.low:.{DECIMALS}f} to {score.high:.{DECIMALS}f}"
