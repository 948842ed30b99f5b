"""What people make of hard variants (ID10M-JAM, section 5.1): accuracy and agreement of two."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from pieline.core.conditions import NO_CONDITIONS, Conditions, MetricRecord
from pieline.core.errors import UserError
from pieline.core.records import Frozen, Id, validated
from pieline.core.tables import read_table
from pieline.studies.jam.records import JamSentence

Label = Literal["figurative", "literal", "ambiguous"]
Origin = Literal["people", "simulated"]


class LabelledVariant(Frozen):
    """Two people's labels of one variant; `origin` says whether they are people at all."""

    variant_id: Id
    first: Label
    second: Label
    origin: Origin


COLUMNS = tuple(LabelledVariant.model_fields)


class AnnotatorScores(Frozen):
    """One person's accuracy (fractions): overall and by gold usage, and how often they gave up."""

    accuracy: float
    accuracy_figurative: float | None
    accuracy_literal: float | None
    ambiguous: float


class HumanMetrics(MetricRecord):
    """The human baseline.

    Attributes:
        language: of the variants.
        dataset_is_released: whether the variants are those of the paper.
        simulated: whether the labels are made up to show the computation.
        variants, figurative, literal: number of labelled variants, and of each gold usage.
        first, second: the two annotators.
        agreement: share of variants that both labelled alike.
        kappa: Cohen's kappa; null where both gave one and the same label throughout.
    """

    language: str
    dataset_is_released: bool
    simulated: bool
    variants: int
    figurative: int
    literal: int
    first: AnnotatorScores
    second: AnnotatorScores
    agreement: float
    kappa: float | None


def read_labels(path: str | Path) -> list[LabelledVariant]:
    """Read a CSV with the columns variant_id, first, second and origin.

    Raises:
        UserError: a missing column, an unknown label, a variant twice, origins mixed; names file
            and line.
    """
    mend = f"write one of {', '.join(get_args(Label))}, of {', '.join(get_args(Origin))}"
    rows: list[LabelledVariant] = []
    for line, row in read_table(path, COLUMNS, mend=f"write {','.join(COLUMNS)} first"):
        where, fields = f"{path}:{line}", {name: row[name] for name in COLUMNS}
        made = validated(LabelledVariant, fields, where=where, mend=mend)
        if any(made.variant_id == other.variant_id for other in rows):
            raise UserError(f"{made.variant_id!r} stands twice", where=where, mend="keep one line")
        if rows and made.origin != rows[0].origin:
            raise UserError("origins are mixed", where=where, mend="use one file for each origin")
        rows.append(made)
    if not rows:
        raise UserError("no labels", where=path, mend="write one line for each variant")
    return rows


def human_metrics(
    labels: Sequence[LabelledVariant],
    sentences: Sequence[JamSentence],
    *,
    where: str | Path,
    released: bool,
    data_note: str = "",
    computed_from: dict[str, str],
    conditions: Conditions = NO_CONDITIONS,
) -> HumanMetrics:
    """Score two people's labels (file `where`) against gold. "ambiguous" is never right.

    Raises:
        UserError: a variant that the dataset lacks, or two of one original.
    """
    from sklearn.metrics import cohen_kappa_score

    variants = {item.id: item for item in sentences if not item.is_original}
    if unknown := [item.variant_id for item in labels if item.variant_id not in variants]:
        mend = "label variants of this dataset"
        raise UserError(f"no variant {unknown[0]!r}", where=where, mend=mend)
    originals = Counter(variants[label.variant_id].original_id for label in labels)
    name, number = originals.most_common(1)[0]
    if number > 1:
        mend = "label one variant of each original"
        raise UserError(f"{number} variants of {name!r}", where=where, mend=mend)
    first, second = [item.first for item in labels], [item.second for item in labels]
    kappa = float(cohen_kappa_score(first, second)) if len({*first, *second}) > 1 else None
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
        kappa=kappa,
        computed_from=computed_from,
        conditions=conditions,
    )


def _scores(
    labels: Sequence[LabelledVariant], given: Sequence[Label], variants: Mapping[str, JamSentence]
) -> AnnotatorScores:
    gold = [
        "figurative" if variants[item.variant_id].is_figurative else "literal" for item in labels
    ]
    right = [one == other for one, other in zip(given, gold, strict=True)]

    def share(usage: str) -> float | None:
        chosen = [value for value, kind in zip(right, gold, strict=True) if kind == usage]
        return sum(chosen) / len(chosen) if chosen else None

    return AnnotatorScores(
        accuracy=sum(right) / len(right),
        accuracy_figurative=share("figurative"),
        accuracy_literal=share("literal"),
        ambiguous=sum(label == "ambiguous" for label in given) / len(given),
    )
