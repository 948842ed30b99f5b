"""Human baseline (ID10M-JAM, section 5.1): annotation form, accuracy and agreement."""

import filecmp
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from statistics import fmean
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
    """Labels that two annotators gave to one variant.

    Attributes:
        variant_id: Variant id.
        first: Label by the first annotator.
        second: Label by the second annotator.
        origin: Whether people or a simulation gave the labels.
        shown: Texts of the variant that the annotators saw; empty if unknown.
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
    """Accuracy of one annotator (overall and by gold usage) and share of "ambiguous" labels.

    All scores are fractions; an undefined accuracy is null.
    """

    accuracy: float
    accuracy_figurative: float | None
    accuracy_literal: float | None
    ambiguous: float


class HumanMetrics(Measured):
    """Scores of two annotators who judged hard variants, and their agreement.

    Attributes:
        language: Language of the variants.
        simulated: Whether the labels are simulated to demonstrate the computation.
        variants: Number of labeled variants.
        figurative: Number of labeled variants with figurative gold usage.
        literal: Number of labeled variants with literal gold usage.
        first: Scores of the first annotator.
        second: Scores of the second annotator.
        agreement: Fraction of variants to which both annotators gave the same label.
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


def _measures_of_annotator(annotator: Literal["first", "second"]) -> list[Measure[HumanMetrics]]:
    """Return a measure of the annotator for each score in `AnnotatorScores`."""
    return [
        share(f"human_{field}_{annotator}", attrgetter(f"{annotator}.{field}"), decimals=1)
        for field in AnnotatorScores.model_fields
    ]


HUMANS: dict[str, list[Measure[HumanMetrics]]] = {
    "variants labeled": [Measure("human_variants", attrgetter("variants"), decimals=0)],
    "first": _measures_of_annotator("first"),
    "second": _measures_of_annotator("second"),
    "agreement": [share("human_agreement", attrgetter("agreement"), decimals=1)],
    "Cohen's kappa": [Measure("human_kappa", attrgetter("kappa"))],
}
"""Measures of section 5.1, by row of the table of the human baseline."""


def sample_variants(sentences: Iterable[JamSentence], seed: int = 42) -> list[JamSentence]:
    """Choose a random variant of each original that has variants.

    The choice depends only on the seed, on the original's id, and on its variants.
    """
    sample = []
    for original_id, group in by_original(sentences).items():
        _original, *variants = group
        if variants:
            random_seed = f"human baseline {seed}:{original_id}"
            generator = random.Random(random_seed)  # noqa: S311 - not for secrets
            sample.append(generator.choice(variants))
    return sample


def write_form(
    variants: Iterable[JamSentence], *, form: Path, guidelines: Path, tasks: Path, labelling: Path
) -> None:
    """Write the annotation form, without gold labels, as CSV and for Label Studio.

    Args:
        variants: One variant per original.
        form: Path of the CSV form. Each annotator fills in the column `label` of a copy.
        guidelines: Path of the form's guidelines (text), which explain the labels.
        tasks: Path of the Label Studio tasks (JSON), one per variant.
        labelling: Path of the Label Studio labeling configuration (XML).
    """
    rows = [
        {"variant_id": variant.id, "sentence": variant.sentence, "pie": variant.pies[0]}
        for variant in variants
    ]
    write_sheet(form, ["variant_id", "sentence", "pie", "label"], rows)
    write_guidelines(guidelines, ["label"], {f"label: {_QUESTION}": meanings(LABELS)})
    write_tasks(tasks, rows)
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
            or only one annotator labeled a variant. The message states the file and, if known, the
            line, task or annotator.
    """
    is_csv_of_both_annotators = len(paths) == 1 and Path(paths[0]).suffix != ".json"
    if is_csv_of_both_annotators:
        return _read_csv_of_both_annotators(paths[0])
    labels_by_person = _read_labels_by_person(paths)
    if len(labels_by_person) != 2:
        problem = f"labels by {pluralize(len(labels_by_person), 'annotator')} instead of 2"
        names = ", ".join(str(path) for path in paths)
        raise UserError(problem, where=names, hint="name the files filled in by two people")
    _check_files_differ(paths)
    (first_person, first_labels), (second_person, second_labels) = labels_by_person.items()
    _check_all_labeled(second_person, second_labels, labels_of_other=first_labels)
    _check_all_labeled(first_person, first_labels, labels_of_other=second_labels)
    labeled_variants = []
    for variant_id, first in first_labels.items():
        second = second_labels[variant_id]
        labeled_variants.append(
            LabeledVariant(
                variant_id=variant_id,
                first=first.label,
                second=second.label,
                origin="people",
                shown=(first.sentence, second.sentence),
            )
        )
    return labeled_variants


class _OneLabel(Frozen):
    """Label that one annotator gave to one variant, and the text that the annotator saw."""

    variant_id: Id
    sentence: str
    label: Label


def _read_labels_by_person(paths: Sequence[str | Path]) -> dict[str, dict[str, _OneLabel]]:
    """Read the labels in filled-in forms or Label Studio exports, by person and variant id.

    The name of a person consists of the path of the file and, in an export, the annotator.

    Raises:
        UserError: The columns are wrong, a label is unknown, or a person labels a variant twice.
    """
    labels_by_person: dict[str, dict[str, _OneLabel]] = defaultdict(dict)
    for path in paths:
        shown = ("variant_id", "sentence")
        for where, annotator, fields in reviewed_rows(
            path, shown, controls={"label": "label"}, hint=_FORM
        ):
            if not fields["label"]:
                continue
            person = f"{path} {annotator}".strip()
            label = validated(_OneLabel, fields, where=where, hint=_LABELS)
            if label.variant_id in labels_by_person[person]:
                problem = f"{person} labels {label.variant_id!r} twice"
                raise UserError(problem, where=where, hint="keep one label")
            labels_by_person[person][label.variant_id] = label
    return labels_by_person


def _check_files_differ(paths: Sequence[str | Path]) -> None:
    """Raise a `UserError` if two files have the same content."""
    for path, other_path in combinations(paths, 2):
        if filecmp.cmp(path, other_path, shallow=False):
            hint = f"name one file per person, or combine them with the columns {','.join(COLUMNS)}"
            raise UserError(f"the file is a copy of {path}", where=other_path, hint=hint)


def _check_all_labeled(
    person: str, labels: Collection[str], *, labels_of_other: Collection[str]
) -> None:
    """Raise a `UserError` if a person did not label a variant that the other person labeled.

    `labels` and `labels_of_other` contain the ids of the labeled variants.
    """
    missing = sorted(set(labels_of_other) - set(labels))
    if missing:
        problem = f"no label for {missing[0]!r}, which the other person labeled"
        raise UserError(problem, where=person, hint="have both label the same variants")


def _read_csv_of_both_annotators(path: str | Path) -> list[LabeledVariant]:
    """Read one CSV that contains the labels of both annotators.

    Raises:
        UserError: A column is missing, a label is unknown, a variant occurs twice, origins are
            mixed, or there are no labels.
    """
    values_hint = f"{_LABELS}, of {', '.join(get_args(Origin))}"
    header_hint = f"use the header {','.join(COLUMNS)}, or name the files filled in by two people"
    labeled_variants: list[LabeledVariant] = []
    seen_ids: set[str] = set()
    for line, row in read_table(path, COLUMNS, for_people=True, hint=header_hint):
        where = f"{path}:{line}"
        fields: dict[str, object] = {column: row[column] for column in COLUMNS}
        if "sentence" in row:
            fields["shown"] = (row["sentence"],)
        labeled = validated(LabeledVariant, fields, where=where, hint=values_hint)
        if labeled.variant_id in seen_ids:
            raise UserError(
                f"{labeled.variant_id!r} occurs twice", where=where, hint="keep one line"
            )
        if labeled_variants and labeled.origin != labeled_variants[0].origin:
            raise UserError("mixed origins", where=where, hint="use one file per origin")
        seen_ids.add(labeled.variant_id)
        labeled_variants.append(labeled)
    if not labeled_variants:
        raise UserError("no labels", where=path, hint="write one line per variant")
    return labeled_variants


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
    """Score the labels of two annotators; the label "ambiguous" always counts as wrong.

    Args:
        labels: Labels by both annotators.
        sentences: Originals and variants of the dataset.
        where: Path of the labels, for error messages.
        released: Whether the dataset is the public ID10M-JAM.
        data_note: Note on the data for tables; may be empty.
        computed_from: SHA-256 of each input file, by path.
        conditions: Conditions to store in the result.

    Raises:
        UserError: A variant is unknown, two variants belong to the same original, or a label refers
            to a different text.
    """
    variants = {sentence.id: sentence for sentence in sentences if not sentence.is_original}
    _check_labels(labels, variants, where=where)
    first_labels = [labeled.first for labeled in labels]
    second_labels = [labeled.second for labeled in labels]
    label_pairs = zip(first_labels, second_labels, strict=True)
    agreements = sum(first == second for first, second in label_pairs)
    figurative = sum(variants[labeled.variant_id].is_figurative for labeled in labels)
    return HumanMetrics(
        language=sentences[0].language,
        dataset_is_released=released,
        data_note=data_note,
        simulated=labels[0].origin == "simulated",
        variants=len(labels),
        figurative=figurative,
        literal=len(labels) - figurative,
        first=_score_annotator(labels, first_labels, variants),
        second=_score_annotator(labels, second_labels, variants),
        agreement=agreements / len(labels),
        kappa=cohen_kappa(first_labels, second_labels),
        computed_from=computed_from,
        conditions=conditions,
    )


def _check_labels(
    labels: Sequence[LabeledVariant], variants: Mapping[str, JamSentence], *, where: str | Path
) -> None:
    """Raise a `UserError` if a label is about an unknown variant or about another text.

    Two labeled variants of the same original are an error, too. `variants` are the known variants
    by id.
    """
    for labeled in labels:
        if labeled.variant_id not in variants:
            hint = "label variants of this dataset"
            raise UserError(f"unknown variant {labeled.variant_id!r}", where=where, hint=hint)
    for labeled in labels:
        sentence = nfc(variants[labeled.variant_id].sentence.strip())
        if any(nfc(shown.strip()) != sentence for shown in labeled.shown):
            problem = f"{labeled.variant_id!r} was labeled with a different text"
            raise UserError(problem, where=where, hint="label the form written for this dataset")
    variants_per_original = Counter(variants[labeled.variant_id].original_id for labeled in labels)
    original_id, number_of_variants = variants_per_original.most_common(1)[0]
    if number_of_variants > 1:
        hint = "label only one variant per original"
        raise UserError(f"{number_of_variants} variants of {original_id!r}", where=where, hint=hint)


def _score_annotator(
    labels: Sequence[LabeledVariant], answers: Sequence[Label], variants: Mapping[str, JamSentence]
) -> AnnotatorScores:
    """Compute the accuracy of one annotator, and the share of the answer "ambiguous".

    Args:
        labels: Labeled variants.
        answers: Answer of the annotator to each of the labeled variants.
        variants: Variants with their gold usage, by id.
    """
    right_on_figurative, right_on_literal = [], []
    for labeled, answer in zip(labels, answers, strict=True):
        if variants[labeled.variant_id].is_figurative:
            right_on_figurative.append(answer == "figurative")
        else:
            right_on_literal.append(answer == "literal")
    return AnnotatorScores(
        accuracy=fmean(right_on_figurative + right_on_literal),
        accuracy_figurative=fmean(right_on_figurative) if right_on_figurative else None,
        accuracy_literal=fmean(right_on_literal) if right_on_literal else None,
        ambiguous=fmean(answer == "ambiguous" for answer in answers),
    )
