"""IdioTS's tables: Tables 1 to 3, the counts of section 3, the errors of 5.2.1, and the prompt."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from pieline.core.outcomes import READABLE
from pieline.core.records import load_record, load_records
from pieline.core.upstream import BY_COUNTS, SELF_VERIFIED
from pieline.llm.prompts import load_prompt
from pieline.reporting.given import Given
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.printed import compare, read_published
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.idiots.datasets import IdiotsManifest, Origin
from pieline.studies.idiots.metrics import DetectionMetrics, Score
from pieline.studies.idiots.records import DistractorKind
from pieline.studies.idiots.verdicts import ErrorType

PAPER_SETTING = "zero_shot"
"""The setting of the printed numbers."""

DECIMALS = 3

SETTING_LABELS = {"zero_shot": "zero-shot", "zero_shot_schema": "zero-shot, JSON"}
KIND_LABELS = {
    "whole_phrase": "whole phrase",
    "parts": "parts",
    "other_role": "other role",
    "look_alike": "look-alike",
}

_FIRST_LEVEL = (
    "accuracy",
    "misclassification_rate",
    "recall",
    "specificity",
    "precision",
    "balanced_accuracy",
)
_COLUMNS = {
    "detection": (*_FIRST_LEVEL, "answers_unreadable"),
    "consistency": (
        "positives",
        "true_positives",
        "true_positives_with_correct_idiom",
        "true_positive_consistency",
        "verdicts_human",
        "kappa",
    ),
    "distractors": ("distractors", "false_positives_on_associated_pie", "ratio"),
    "errors": (
        "false_negatives",
        "wrong_idiom",
        "false_positives_on_pie",
        "false_positives_elsewhere",
    ),
    "error_types": get_args(ErrorType),
}
_COUNTS = {
    "positives",
    "true_positives",
    "true_positives_with_correct_idiom",
    "distractors",
    "false_positives_on_associated_pie",
    *_COLUMNS["errors"],
    *_COLUMNS["error_types"],
}
_LOWER_IS_BETTER = ("misclassification_rate", "ratio")

_TYPE_LABELS: dict[ErrorType, str] = {
    "phrasal_verb": "phrasal verb",
    "idiom_of_element": "of an element",
    "unrelated_idiom": "unrelated",
    "same_meaning": "same meaning",
    "invented": "invented",
    "other": "else",
}
UNSORTED = "nobody has sorted its wrong idioms (error type, in the cases to judge)"
_BLANK = (Cell(text=" "),) * 2
_IN_TEXT = {
    "Llama-2-7b-chat": "llama2",
    "Mistral-7b-Instruct": "mistral",
    "Vicuna-7b": "vicuna",
}
"""How published/text_numbers.csv calls the models."""

_LLAMA2 = "<s>[INST] <<SYS>>\n{system}\n<</SYS>> {user} [/INST]"

Numbers = dict[str, Score | float | None]
"""Numbers of one run by name: scores, which are fractions, counts, and agreement."""


def run_labels(
    runs: Sequence[tuple[str, str, str]], models: Sequence[ModelDescription]
) -> list[str]:
    """What a table or figure calls each run: the model, and what else tells the runs apart.

    Args:
        runs: model, setting and seed of each; no seed where all seeds are meant.
        models: what to say of the models.
    """
    labels = {model.name: model.label for model in models}
    several_settings = len({setting for _, setting, _ in runs}) > 1
    several_seeds = len({seed for _, _, seed in runs if seed}) > 1
    names = []
    for model, setting, seed in runs:
        details = [SETTING_LABELS.get(setting, setting)] if several_settings else []
        details += [f"seed {seed}"] if several_seeds and seed else []
        label = labels[model]
        names.append(f"{label} ({', '.join(details)})" if details else label)
    return names


def run_of(item: DetectionMetrics) -> tuple[str, str, str]:
    """Model, setting and seed of a run."""
    return item.model, item.setting, str(item.seed)


def _not_made(
    given: Given, made: Sequence[tuple[str, str, str]], printed: Collection[tuple[str, ...]]
) -> dict[tuple[str, str, str], str]:
    """The runs without numbers and why: those left out, and those that only the paper has.

    Where no seed of a model and setting was run, they are one run without a seed.
    """
    settings = {run[:2] for run in made}
    left_out = {
        (model, setting, seed if (model, setting) in settings else ""): reason
        for (model, setting, seed), reason in given.left_out().items()
    }
    of_paper = {
        (model.name, PAPER_SETTING, ""): given.why_not(model.name) or "not in this setting"
        for model in (*given.models, *given.absent)
        if (model.published_as,) in printed and (model.name, PAPER_SETTING) not in settings
    }
    return of_paper | left_out


def detection(given: Given) -> TableContent:
    """Table 1: the first level of evaluation, and how many answers could not be read."""
    return _table(
        "detection",
        given,
        heads=(
            Head("Accuracy ↑"),
            Head("MR ↓"),
            Head("Recall ↑"),
            Head("Spec. ↑"),
            Head("Precision ↑"),
            Head("BA ↑"),
            Head("Unread."),
        ),
        caption="Automatic metrics of idiom detection on IdioTS (MR: misclassification rate, Spec.:"
        " specificity, BA: balanced accuracy). The last column counts the answers that could not be"
        " read: they are wrong in all metrics but precision, in which they have no place. A dash:"
        " nothing to measure.",
    )


def consistency(given: Given) -> TableContent:
    """Table 2: of the true positives, those that name the right idiom."""
    return _table(
        "consistency",
        given,
        heads=(
            Head("Idiomatic"),
            Head("TP"),
            Head("Correct idiom"),
            Head("TPC ↑"),
            Head("Judged"),
            Head("κ"),
        ),
        caption="True Positive Consistency (TPC) on IdioTS: of the true positives (TP) among the"
        " idiomatic sentences, those whose named idiom is the right one. Judged: answers (also on"
        " distractors) that a person judged; κ: Cohen's kappa of these verdicts and the automatic"
        " ones.",
    )


def distractors(given: Given) -> TableContent:
    """Table 3: distractors whose PIE was given a figurative meaning, also by kind."""
    return _table(
        "distractors",
        given,
        heads=(Head("Distractors"), Head("FP"), Head("Ratio ↓")),
        caption="Distractors of IdioTS whose associated PIE was given a figurative meaning (FP),"
        " and the ratio by kind of distractor.",
    )


def errors(given: Given) -> TableContent:
    """The errors of section 5.2.1, counted, and what a person says of their types."""
    text = read_published(given.files["text_numbers"], ["id"])
    printed: dict[tuple[str, ...], dict[str, float]] = {
        (model,): {
            name: text[identifier,]["value"]
            for name in (*_COLUMNS["errors"], *_COLUMNS["error_types"])
            if (identifier := _text_id(name, model),) in text
        }
        for model in _IN_TEXT
    }
    counted, typed = (
        _rows(table, given, printed, _COLUMNS[table]) for table in ("errors", "error_types")
    )
    counted = tuple(replace(row, cells=(*row.cells, *_BLANK)) for row in counted)
    heads = ("Missed", "Other idiom", "Distractor: PIE", "Distractor: else", "", "")
    return TableContent(
        heads=((Head("Model"), *map(Head, heads)),),
        groups=(
            Group(counted),
            Group(typed, heads=((Head("Other idiom"), *map(Head, _TYPE_LABELS.values())),)),
        ),
        caption="Errors on IdioTS: idiomatic sentences without an idiom for the model, and those"
        " where it names another one; distractors in which it takes the PIE, or something else, for"
        " an idiom. Below, how people sorted the other idioms: a phrasal verb; an idiom that has an"
        " element of the sentence, has nothing to do with it, or means the same; one that does not"
        " exist; anything else.",
        notes=_notes(load_records(given.metrics, DetectionMetrics), with_verdicts=True),
        decimals=0,
    )


def dataset(given: Given) -> TableContent:
    """The counts of section 3."""
    source = given.files.get("manifest")
    made = load_record(source, IdiotsManifest) if source else None
    obstacles = _of_origin(made) if made else [f"not made: {given.notes[0]}"]
    if made and made.verified == "counts":
        obstacles = [SELF_VERIFIED]
    text = read_published(given.files["text_numbers"], ["id"])
    labels = {
        "idioms": ("PIEs", "pies"),
        "sentences": ("Sentences", "sentences"),
        "idiomatic": ("Idiomatic sentences", "idiomatic"),
        "distractors": ("Distractors", "distractors"),
    }
    rows = [
        Row(
            (label,),
            (
                Cell(
                    Number(
                        {"id": f"idiots.{name}", "metric": "value"},
                        compare(
                            getattr(made, field) if made else None,
                            text[f"idiots.{name}",]["value"],
                            obstacles=obstacles,
                            decimals=0,
                        ),
                    )
                ),
            ),
            given.notes[0] if given.notes else "",
        )
        for name, (label, field) in labels.items()
    ]
    kinds = made.distractors_by_kind if made else {}
    rows += [
        Row((f"– {KIND_LABELS[kind]}",), (Cell(text=str(count)),))
        for kind in get_args(DistractorKind)
        if (count := kinds.get(kind))
    ]
    return TableContent(
        heads=((Head("IdioTS"), Head("Number")),),
        groups=(Group(tuple(rows)),),
        caption="The test suite. The released distractors are not marked by kind.",
        notes=_data_notes([made] if made else []),
        wide=False,
    )


def prompt(given: Given) -> TableContent:
    """Figure 1, the prompt; and Figure 2, how llama-cpp-python laid it out for Llama 2."""
    system, user = load_prompt(given.files["prompt"]).messages(sentence="sentence")
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
        " as the paper has it from llama-cpp-python (Figure 2). Here the server of a local model"
        " lays it out by the template in the file of its weights.",
        wraps=True,
    )


def _table(table: str, given: Given, *, heads: tuple[Head, ...], caption: str) -> TableContent:
    """One of the three tables.

    The CSV has, besides, the 95 % intervals, the counts of outcomes and verdicts, and what only
    our data can tell (kinds of distractors).
    """
    printed = read_published(given.files["published"], ["model"])
    metrics = load_records(given.metrics, DetectionMetrics)
    kinds = [
        kind
        for kind in get_args(DistractorKind)
        if table == "distractors" and any(kind in item.by_distractor_kind for item in metrics)
    ]
    columns = [*_COLUMNS[table], *(f"ratio_{kind}" for kind in kinds)]
    return TableContent(
        heads=((Head("Model"), *heads, *(Head(KIND_LABELS[kind]) for kind in kinds)),),
        groups=(Group(_rows(table, given, printed, columns)),),
        caption=caption,
        notes=_notes(metrics, with_verdicts=table != "detection"),
        decimals=DECIMALS,
    )


def _notes(metrics: Sequence[DetectionMetrics], *, with_verdicts: bool) -> tuple[str, ...]:
    notes = []
    if with_verdicts:
        human = sum(item.verdicts["human"] for item in metrics)
        judged = sum(sum(item.verdicts.values()) for item in metrics)
        notes.append(
            f"People judged {human} of the {judged} answers that found an idiom, the matching"
            " function the others."
        )
    return (*notes, *_data_notes(metrics))


def _data_notes(described: Sequence[DetectionMetrics | IdiotsManifest]) -> tuple[str, ...]:
    """That the data are the sample's, or were verified by counts."""
    return (
        *([SAMPLE_NOTE] if any(item.origin == "sample" for item in described) else []),
        *([BY_COUNTS] if any(item.data_note == BY_COUNTS for item in described) else []),
    )


def _rows(
    table: str,
    given: Given,
    printed: Mapping[tuple[str, ...], Mapping[str, float]],
    columns: Sequence[str],
) -> tuple[Row, ...]:
    """A row of each run, then one of each that was not made, with the reason."""
    metrics = load_records(given.metrics, DetectionMetrics)
    models = (*given.models, *given.absent)
    published_as = {model.name: model.published_as or "" for model in models}
    rows: list[Row] = []
    scores = [_numbers(table, item) for item in metrics]
    best = {name: _best([row.get(name) for row in scores], name) for name in columns}
    made = [run_of(item) for item in metrics]
    sources = {run: (path,) for run, path in zip(made, given.metrics, strict=True)}
    missing = _not_made(given, made, printed)
    labels = dict(zip([*made, *missing], run_labels([*made, *missing], models), strict=True))

    def number(
        run: tuple[str, str, str],
        name: str,
        value: Score | float | None,
        of_paper: Mapping[str, float],
        obstacles: Sequence[str],
    ) -> Number:
        key = _key(*run, name, _interval(value))
        if table.startswith("error") and name in of_paper:
            key |= {"metric": "value", "id": _text_id(name, published_as[run[0]])}
        compared = compare(
            value.value if isinstance(value, Score) else value,
            of_paper.get(name),
            obstacles=obstacles,
            decimals=0 if isinstance(value, int) or name in _COUNTS else DECIMALS,
        )
        return Number(key, compared, sources.get(run, ()))

    for run, item, row in zip(made, metrics, scores, strict=True):
        in_paper = printed.get((published_as[item.model],), {})
        of_paper = in_paper if item.setting == PAPER_SETTING else {}
        unsorted = table == "error_types" and _is_unsorted(item)
        obstacles = [*([UNSORTED] if unsorted else []), *_obstacles(item)]
        numbers = {
            name: number(run, name, value, of_paper, obstacles) for name, value in row.items()
        }
        cells = tuple(
            Cell(numbers.get(name), best=_is_best(row.get(name), best[name])) for name in columns
        )
        others = tuple(each for name, each in numbers.items() if name not in columns)
        rows.append(Row((labels[run],), cells, UNSORTED if unsorted else "", others))
    for run, reason in missing.items():
        of_paper = printed.get((published_as[run[0]],), {}) if run[1] == PAPER_SETTING else {}
        cells = tuple(
            Cell(
                number(run, name, None, of_paper, [f"not run: {reason}"])
                if name in of_paper
                else None
            )
            for name in columns
        )
        rows.append(Row((labels[run],), cells, reason))
    return tuple(rows)


def _numbers(table: str, item: DetectionMetrics) -> Numbers:
    """All numbers of a run that a table's CSV shows: the printed ones first."""
    verdicts: Numbers = {f"verdicts_{name}": count for name, count in item.verdicts.items()}
    if table == "detection":
        scores: Numbers = {name: getattr(item, name) for name in _FIRST_LEVEL}
        scores |= {f"answers_{name}": count for name, count in item.outcomes.items()}
        unreadable = sum(count for name, count in item.outcomes.items() if name not in READABLE)
        return scores | {"answers_unreadable": unreadable}
    if table == "consistency":
        consistency: Numbers = {
            "positives": item.idiomatic,
            "true_positives": item.true_positive_consistency.of or 0,
            "true_positives_with_correct_idiom": item.true_positive_consistency.count or 0,
            "true_positive_consistency": item.true_positive_consistency,
            "kappa": item.kappa,
        }
        return consistency | verdicts
    if table == "errors":
        return dict(item.errors)
    if table == "error_types":
        nothing = None if _is_unsorted(item) else 0
        return {name: item.error_types.get(name, nothing) for name in get_args(ErrorType)}
    numbers: Numbers = {
        "distractors": item.distractors,
        "false_positives_on_associated_pie": item.distractor_pie_ratio.count or 0,
        "ratio": item.distractor_pie_ratio,
    }
    for kind, scores_of_kind in item.by_distractor_kind.items():
        numbers[f"distractors_{kind}"] = scores_of_kind["distractor_pie_ratio"].of or 0
        numbers[f"ratio_{kind}"] = scores_of_kind["distractor_pie_ratio"]
        numbers[f"specificity_{kind}"] = scores_of_kind["specificity"]
    return numbers | verdicts


def _is_unsorted(item: DetectionMetrics) -> bool:
    """Whether there are wrong idioms, and nobody gave any of them a type."""
    return bool(item.errors["wrong_idiom"]) and not item.error_types


def _best(column: Sequence[Score | float | None], name: str) -> float | None:
    """The best of several different scores of a column; None where there is nothing to mark."""
    scores = {
        round(item.value, DECIMALS)
        for item in column
        if isinstance(item, Score) and item.value is not None
    }
    choose = min if name.startswith(_LOWER_IS_BETTER) else max
    return choose(scores) if len(scores) > 1 else None


def _is_best(number: Score | float | None, best: float | None) -> bool:
    if not isinstance(number, Score) or number.value is None or best is None:
        return False
    return round(number.value, DECIMALS) == best


def _obstacles(item: DetectionMetrics) -> list[str]:
    """What makes a run incomparable with the paper's."""
    return list(dict.fromkeys([*_of_origin(item), *item.conditions.deviations]))


def _of_origin(described: DetectionMetrics | IdiotsManifest) -> list[str]:
    """What makes numbers on data of this origin incomparable with the paper's."""
    reasons: dict[Origin, list[str]] = {
        "sample": ["sample data, not the released IdioTS"],
        "unverified": [described.data_note],
        "released": [],
        "own": ["own data, the paper IdioTS"],
    }
    return reasons[described.origin]


def _text_id(name: str, model: str) -> str:
    """How published/text_numbers.csv calls a number of a model."""
    return f"idiots.{name}_{_IN_TEXT.get(model, model)}"


def _key(model: str, setting: str, seed: str, metric: str, interval: str) -> dict[str, str]:
    return {
        "model": model,
        "setting": setting,
        "seed": seed,
        "metric": metric,
        "interval_95": interval,
    }


def _interval(number: Score | float | None) -> str:
    if not isinstance(number, Score) or number.low is None or number.high is None:
        return ""
    return f"{number.low:.{DECIMALS}f} to {number.high:.{DECIMALS}f}"
