"""What people make of hard variants (ID10M-JAM, section 5.1): accuracy and agreement of two."""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from sklearn.metrics import cohen_kappa_score

from pieline.core.conditions import MetricRecord
from pieline.core.errors import UserError
from pieline.core.files import read_text
from pieline.core.records import Frozen
from pieline.studies.jam.records import JamSentence

Label = Literal["figurative", "literal", "ambiguous"]
Origin = Literal["people", "simulated"]
COLUMNS = ("variant_id", "first", "second", "origin")


class LabelledVariant(NamedTuple):
    """Two people's labels of one variant; `origin` says whether they are people at all."""

    variant_id: str
    first: Label
    second: Label
    origin: Origin


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
    reader = csv.DictReader(StringIO(read_text(path)))
    if missing := [name for name in COLUMNS if name not in (reader.fieldnames or [])]:
        raise UserError(
            f"no column {missing[0]!r}", where=path, mend=f"write {','.join(COLUMNS)} first"
        )
    rows: list[LabelledVariant] = []
    for row in reader:
        where = f"{path}:{reader.line_num}"
        for name, known in (("first", Label), ("second", Label), ("origin", Origin)):
            if row[name] not in get_args(known):
                mend = f"write one of {', '.join(get_args(known))}"
                raise UserError(f"{name} is {row[name]!r}", where=where, mend=mend)
        made = LabelledVariant(
            row["variant_id"],
            cast(Label, row["first"]),
            cast(Label, row["second"]),
            cast(Origin, row["origin"]),
        )
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
    computed_from: dict[str, str],
) -> HumanMetrics:
    """Score two people's labels against gold. "ambiguous" is never right.

    Args:
        labels: of variants, at most one of each original.
        sentences: the dataset of one language.
        where: the labels' file, for errors.
        released: whether the dataset is the paper's.
        computed_from: digests of the files behind the numbers.

    Raises:
        UserError: a variant that the dataset lacks, or two of one original.
    """
    variants = {item.id: item for item in sentences if not item.is_original}
    for label in labels:
        if label.variant_id not in variants:
            mend = "label variants of this dataset"
            raise UserError(f"no variant {label.variant_id!r}", where=where, mend=mend)
    originals = Counter(variants[label.variant_id].original_id for label in labels)
    name, number = originals.most_common(1)[0]
    if number > 1:
        mend = "label one variant of each original"
        raise UserError(f"{number} variants of {name!r}", where=where, mend=mend)
    first, second = [item.first for item in labels], [item.second for item in labels]
    kappa = None
    if len({*first, *second}) > 1:
        kappa = float(cohen_kappa_score(first, second))
    figurative = sum(variants[item.variant_id].is_figurative for item in labels)
    return HumanMetrics(
        language=sentences[0].language,
        dataset_is_released=released,
        simulated=labels[0].origin == "simulated",
        variants=len(labels),
        figurative=figurative,
        literal=len(labels) - figurative,
        first=_scores(labels, first, variants),
        second=_scores(labels, second, variants),
        agreement=sum(one == other for one, other in zip(first, second, strict=True)) / len(labels),
        kappa=kappa,
        computed_from=computed_from,
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
