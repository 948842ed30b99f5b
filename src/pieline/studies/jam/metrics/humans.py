"""Human baseline (ID10M-JAM, section 5.1): annotation form, accuracy and agreement."""

import filecmp
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from typing import Literal, get_args

from pieline.core.conditions import NO_CONDITIONS, Conditions, Measured
from pieline.core.errors import UserError, pluralize
from pieline.core.files import write_text
from pieline.core.measures import Measure, share
from pieline.core.records import Frozen, Id, validated
from pieline.core.review import (
    choices,
    meanings,
    reviewed_rows,
    write_guidelines,
    write_sheet,
    write_tasks,
)
from pieline.core.significance import cohen_kappa
from pieline.core.tables import read_table
from pieline.core.texts import nfc
from pieline.studies.jam.records import JamSentence, by_original

Label = Literal["figurative", "literal", "ambiguous"]
Origin = Literal["people", "simulated"]
LABELS = {
    "figurative": "it has its figurative meaning",
    "literal": "its words have their ordinary meanings",
    "ambiguous": "both are possible",
}
"""Labels as shown to annotators."""

_FORM = "fill in the form written by the workflow"
_LABELS = f"write one of {', '.join(get_args(Label))}"


class LabeledVariant(Frozen):
    """Labels of one variant by two annotators.

    Attributes:
        variant_id: Variant id.
        first: Label by the first annotator.
        second: Label by the second annotator.
        origin: Origin of the labels: people or simulation.
        shown: Texts shown to the annotators, if recorded.
    """

    variant_id: Id
    first: Label
    second: Label
    origin: Origin
    shown: tuple[str, ...] = ()


COLUMNS = ("variant_id", "first", "second", "origin")

_QUESTION = "How is the expression used in this text?"
_LABELLING = f"""<View>
  <Header value="Expression: $pie"/>
  <Text name="sentence" value="$sentence"/>
  <Header size="5" value="{_QUESTION}"/>
  <Choices name="label" toName="sentence" choice="single" required="true">
{choices(LABELS)}
  </Choices>
</View>
"""


class AnnotatorScores(Frozen):
    """An annotator's accuracy, overall and by gold usage, and share of "ambiguous" labels."""

    accuracy: float
    accuracy_figurative: float | None
    accuracy_literal: float | None
    ambiguous: float


class HumanMetrics(Measured):
    """Human baseline scores.

    Attributes:
        language: Language of the variants.
        simulated: Whether the labels are simulated to demonstrate the computation.
        variants: Number of labeled variants.
        figurative: Number of labeled variants with figurative gold usage.
        literal: Number of labeled variants with literal gold usage.
        first: Scores of the first annotator.
        second: Scores of the second annotator.
        agreement: Share of variants to which both annotators gave the same label.
        kappa: Cohen's kappa; null if all labels of both annotators are the same.
    """

    language: str
    simulated: bool
    variants: int
    figurative: int
    literal: int
    first: AnnotatorScores
    second: AnnotatorScores
    agreement: float
    kappa: float | None


def _of_person(person: str) -> list[Measure[HumanMetrics]]:
    return [
        share(f"human_{field}_{person}", attrgetter(f"{person}.{field}"), decimals=1)
        for field in AnnotatorScores.model_fields
    ]


HUMANS: dict[str, list[Measure[HumanMetrics]]] = {
    "variants labeled": [Measure("human_variants", attrgetter("variants"), decimals=0)],
    "first": _of_person("first"),
    "second": _of_person("second"),
    "agreement": [share("human_agreement", attrgetter("agreement"), decimals=1)],
    "Cohen's kappa": [Measure("human_kappa", attrgetter("kappa"))],
}
"""Measures of section 5.1: of the sample, of each annotator, and of their agreement."""


def sample_variants(sentences: Iterable[JamSentence], seed: int = 42) -> list[JamSentence]:
    """Choose a random variant of each original, independently of the other originals."""
    chosen = []
    for name, group in by_original(sentences).items():
        if variants := group[1:]:
            chooser = random.Random(f"human baseline {seed}:{name}")  # noqa: S311 - not for secrets
            chosen.append(chooser.choice(variants))
    return chosen


def write_form(
    variants: Iterable[JamSentence], *, form: Path, guidelines: Path, tasks: Path, labelling: Path
) -> None:
    """Write the annotation form, without gold labels, as a CSV and for Label Studio.

    Args:
        variants: One variant per original.
        form: Path of the CSV form; each annotator fills in the column `label` of a copy.
        guidelines: Path of the form's guidelines (text), with the allowed labels.
        tasks: Path of the same variants as Label Studio tasks (JSON).
        labelling: Path of the Label Studio labeling configuration (XML).
    """
    fields = [
        {"variant_id": item.id, "sentence": item.sentence, "pie": item.pies[0]} for item in variants
    ]
    write_sheet(form, ["variant_id", "sentence", "pie", "label"], fields)
    write_guidelines(guidelines, ["label"], {f"label: {_QUESTION}": meanings(LABELS)})
    write_tasks(tasks, fields)
    write_text(labelling, _LABELLING)


def read_labels(*paths: str | Path) -> list[LabeledVariant]:
    """Read the labels of two annotators.

    Args:
        paths: Either one CSV with the columns variant_id, first, second and origin, and optionally
            `sentence` to verify the text; or two filled-in copies of the form; or Label Studio
            exports (JSON) with one or both annotators.

    Raises:
        UserError: A column is missing, there are no labels, a label is unknown, a variant occurs
            twice, origins are mixed, there are not exactly two annotators, two files are identical,
            or only one annotator labeled a variant; the message states the file and, if known, the
            line, task or annotator.
    """
    if len(paths) == 1 and Path(paths[0]).suffix != ".json":
        return _read_both(paths[0])
    people = _labels_by_person(paths)
    if len(people) != 2:
        problem = f"labels by {pluralize(len(people), 'annotator')} instead of 2"
        names = ", ".join(map(str, paths))
        raise UserError(problem, where=names, hint="name the files filled in by two people")
    for one, other in combinations(paths, 2):
        if filecmp.cmp(one, other, shallow=False):
            hint = f"name one file per person, or combine them with the columns {','.join(COLUMNS)}"
            raise UserError(f"the file is a copy of {one}", where=other, hint=hint)
    first, second = people
    _check_labels_of_other(people[first], people[second], person=second)
    _check_labels_of_other(people[second], people[first], person=first)
    first_labels, second_labels = people[first], people[second]
    return [
        LabeledVariant(
            variant_id=name,
            first=label.label,
            second=second_labels[name].label,
            origin="people",
            shown=(label.sentence, second_labels[name].sentence),
        )
        for name, label in first_labels.items()
    ]


class _OneLabel(Frozen):
    """Label of one variant by one annotator, with the text shown to the annotator."""

    variant_id: Id
    sentence: str
    label: Label


def _labels_by_person(paths: Sequence[str | Path]) -> dict[str, dict[str, _OneLabel]]:
    """Read the labels in forms or exports, by annotator and variant id."""
    people: dict[str, dict[str, _OneLabel]] = defaultdict(dict)
    for path in paths:
        rows = reviewed_rows(path, ("variant_id", "sentence"), {"label": "label"}, hint=_FORM)
        for where, annotator, fields in rows:
            if not fields["label"]:
                continue
            person = f"{path} {annotator}".strip()
            label = validated(_OneLabel, fields, where=where, hint=_LABELS)
            if label.variant_id in people[person]:
                problem = f"{person} labels {label.variant_id!r} twice"
                raise UserError(problem, where=where, hint="keep one label")
            people[person][label.variant_id] = label
    return people


def _check_labels_of_other(
    needed: Collection[str], labels: Collection[str], *, person: str
) -> None:
    """Raise a `UserError` if a person's labels lack a variant that the other person labeled."""
    if missing := sorted(set(needed) - set(labels)):
        problem = f"no label for {missing[0]!r}, which the other person labeled"
        raise UserError(problem, where=person, hint="have both label the same variants")


def _read_both(path: str | Path) -> list[LabeledVariant]:
    """Read a CSV with the labels of both annotators."""
    hint = f"{_LABELS}, of {', '.join(get_args(Origin))}"
    header = f"use the header {','.join(COLUMNS)}, or name the files filled in by two people"
    rows: list[LabeledVariant] = []
    for line, row in read_table(path, COLUMNS, for_people=True, hint=header):
        where = f"{path}:{line}"
        fields: dict[str, object] = {name: row[name] for name in COLUMNS}
        if "sentence" in row:
            fields["shown"] = (row["sentence"],)
        record = validated(LabeledVariant, fields, where=where, hint=hint)
        if any(record.variant_id == other.variant_id for other in rows):
            raise UserError(
                f"{record.variant_id!r} occurs twice", where=where, hint="keep one line"
            )
        if rows and record.origin != rows[0].origin:
            raise UserError("mixed origins", where=where, hint="use one file per origin")
        rows.append(record)
    if not rows:
        raise UserError("no labels", where=path, hint="write one line per variant")
    return rows


def human_metrics(
    labels: Sequence[LabeledVariant],
    sentences: Sequence[JamSentence],
    *,
    where: str | Path,
    released: bool,
    data_note: str = "",
    computed_from: dict[str, str],
    conditions: Conditions = NO_CONDITIONS,
) -> HumanMetrics:
    """Score two annotators' labels; "ambiguous" always counts as wrong.

    `where` is the path of the labels, for error messages.

    Raises:
        UserError: A variant is unknown, two variants belong to the same original, or a label refers
            to a different text.
    """
    variants = {item.id: item for item in sentences if not item.is_original}
    _check_labels(labels, variants, where=where)
    first, second = [item.first for item in labels], [item.second for item in labels]
    figurative = sum(variants[item.variant_id].is_figurative for item in labels)
    return HumanMetrics(
        language=sentences[0].language,
        dataset_is_released=released,
        data_note=data_note,
        simulated=labels[0].origin == "simulated",
        variants=len(labels),
        figurative=figurative,
        literal=len(labels) - figurative,
        first=_scores(labels, first, variants),
        second=_scores(labels, second, variants),
        agreement=sum(one == other for one, other in zip(first, second, strict=True)) / len(labels),
        kappa=cohen_kappa(first, second),
        computed_from=computed_from,
        conditions=conditions,
    )


def _check_labels(
    labels: Sequence[LabeledVariant], variants: Mapping[str, JamSentence], *, where: str | Path
) -> None:
    """Raise a `UserError` unless the labels are about these variants, one per original."""
    if unknown := [item.variant_id for item in labels if item.variant_id not in variants]:
        hint = "label variants of this dataset"
        raise UserError(f"unknown variant {unknown[0]!r}", where=where, hint=hint)
    for item in labels:
        ours = nfc(variants[item.variant_id].sentence.strip())
        if any(nfc(text.strip()) != ours for text in item.shown):
            problem = f"{item.variant_id!r} was labeled with a different text"
            raise UserError(problem, where=where, hint="label the form written for this dataset")
    originals = Counter(variants[label.variant_id].original_id for label in labels)
    name, number = originals.most_common(1)[0]
    if number > 1:
        hint = "label only one variant per original"
        raise UserError(f"{number} variants of {name!r}", where=where, hint=hint)


def _scores(
    labels: Sequence[LabeledVariant], answers: Sequence[Label], variants: Mapping[str, JamSentence]
) -> AnnotatorScores:
    """Score one annotator's answers, which have the order of `labels`."""
    figurative, literal = [], []
    for item, answer in zip(labels, answers, strict=True):
        if variants[item.variant_id].is_figurative:
            figurative.append(answer == "figurative")
        else:
            literal.append(answer == "literal")
    return AnnotatorScores(
        accuracy=(sum(figurative) + sum(literal)) / len(answers),
        accuracy_figurative=sum(figurative) / len(figurative) if figurative else None,
        accuracy_literal=sum(literal) / len(literal) if literal else None,
        ambiguous=sum(label == "ambiguous" for label in answers) / len(answers),
    )
