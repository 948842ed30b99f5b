"""The human baseline (ID10M-JAM, section 5.1): its form, accuracy and agreement of two people."""

import filecmp
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal, get_args
from xml.sax.saxutils import quoteattr

from pieline.core.conditions import NO_CONDITIONS, Conditions, MetricRecord
from pieline.core.errors import UserError, pluralize
from pieline.core.files import write_json, write_text
from pieline.core.records import Frozen, Id, validated
from pieline.core.review import reviewed_rows
from pieline.core.significance import cohen_kappa
from pieline.core.tables import read_table
from pieline.studies.jam.records import JamSentence, by_original

Label = Literal["figurative", "literal", "ambiguous"]
Origin = Literal["people", "simulated"]


_FORM = "fill in the form that the workflow wrote"
_LABELS = f"write one of {', '.join(get_args(Label))}"


class LabelledVariant(Frozen):
    """Two people's labels of one variant.

    Attributes:
        variant_id: of the variant.
        first, second: the labels.
        origin: whether they are people at all.
        shown: the texts that they saw, where that is recorded.
    """

    variant_id: Id
    first: Label
    second: Label
    origin: Origin
    shown: tuple[str, ...] = ()


COLUMNS = ("variant_id", "first", "second", "origin")

_LABELLING = """<View>
  <Header value="Expression: $pie"/>
  <Text name="sentence" value="$sentence"/>
  <Header size="5" value="How is the expression used in this text?"/>
  <Choices name="label" toName="sentence" choice="single" required="true">
{choices}  </Choices>
</View>
"""


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
        variants, figurative, literal: number of labeled variants, and of each gold usage.
        first, second: the two annotators.
        agreement: share of variants that both labeled alike.
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


def sample_variants(sentences: Iterable[JamSentence], seed: int) -> list[JamSentence]:
    """One variant of each original, chosen by the seed and the original alone."""
    return [
        random.Random(f"human baseline {seed}:{name}").choice(variants)  # noqa: S311 - not for secrets
        for name, (_, *variants) in by_original(sentences).items()
        if variants
    ]


def write_form(
    variants: Iterable[JamSentence], *, form: Path, tasks: Path, labelling: Path
) -> None:
    """Write variants for people to label, without their gold labels.

    Args:
        variants: one of each original.
        form: CSV; each person fills in the column `label` of a copy.
        tasks: the same as JSON tasks for Label Studio.
        labelling: their labelling configuration, XML.
    """
    import pandas as pd

    shown = [
        {"variant_id": item.id, "sentence": item.sentence, "pie": item.pies[0]} for item in variants
    ]
    table = pd.DataFrame(shown, columns=["variant_id", "sentence", "pie"]).assign(label="")
    write_text(form, table.to_csv(index=False, lineterminator="\n"))
    write_json(tasks, [{"data": item} for item in shown])
    choices = "".join(f"    <Choice value={quoteattr(label)}/>\n" for label in get_args(Label))
    write_text(labelling, _LABELLING.format(choices=choices))


def read_labels(*paths: str | Path) -> list[LabelledVariant]:
    """Read the labels of two people.

    Args:
        paths: one CSV with the columns variant_id, first, second and origin, and `sentence` if
            the text is to be compared; or two filled-in copies of the form; or exports of Label
            Studio (JSON), which hold one person each, or both.

    Raises:
        UserError: a missing column, an unknown label, a variant twice, origins mixed, not two
            people, a file twice, or a variant that only one of them labeled; names the file, and
            the line or task.
    """
    if len(paths) == 1 and Path(paths[0]).suffix != ".json":
        return _read_both(paths[0])
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
    names = ", ".join(map(str, paths))
    if len(people) != 2:
        problem = f"labels of {pluralize(len(people), 'person')}, not 2"
        raise UserError(problem, where=names, hint="name what two people filled in")
    for one, other in combinations(paths, 2):
        if filecmp.cmp(one, other, shallow=False):
            hint = f"name each person's file, or write {','.join(COLUMNS)} into one"
            raise UserError(f"a copy of {one}", where=other, hint=hint)
    (first, ours), (second, theirs) = people.items()
    for has, lacks, name in ((ours, theirs, second), (theirs, ours, first)):
        if missing := sorted(has.keys() - lacks.keys()):
            problem = f"no label of {missing[0]!r}, which the other person labels"
            raise UserError(problem, where=name, hint="have both label the same variants")
    return [
        LabelledVariant(
            variant_id=name,
            first=label.label,
            second=theirs[name].label,
            origin="people",
            shown=(label.sentence, theirs[name].sentence),
        )
        for name, label in ours.items()
    ]


class _OneLabel(Frozen):
    """One person's label of a variant, and the text that the person saw."""

    variant_id: Id
    sentence: str
    label: Label


def _read_both(path: str | Path) -> list[LabelledVariant]:
    hint = f"{_LABELS}, of {', '.join(get_args(Origin))}"
    header = f"write {','.join(COLUMNS)} first, or name what two people filled in"
    rows: list[LabelledVariant] = []
    for line, row in read_table(path, COLUMNS, hint=header):
        where = f"{path}:{line}"
        fields: dict[str, object] = {name: row[name] for name in COLUMNS}
        if "sentence" in row:
            fields["shown"] = (row["sentence"],)
        made = validated(LabelledVariant, fields, where=where, hint=hint)
        if any(made.variant_id == other.variant_id for other in rows):
            raise UserError(f"{made.variant_id!r} occurs twice", where=where, hint="keep one line")
        if rows and made.origin != rows[0].origin:
            raise UserError("origins are mixed", where=where, hint="use one file for each origin")
        rows.append(made)
    if not rows:
        raise UserError("no labels", where=path, hint="write one line for each variant")
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
        UserError: a variant that the dataset lacks, or two of one original, or a label of another
            text than the variant's.
    """
    variants = {item.id: item for item in sentences if not item.is_original}
    if unknown := [item.variant_id for item in labels if item.variant_id not in variants]:
        hint = "label variants of this dataset"
        raise UserError(f"no variant {unknown[0]!r}", where=where, hint=hint)
    for item in labels:
        if any(text.strip() != variants[item.variant_id].sentence.strip() for text in item.shown):
            problem = f"{item.variant_id!r} was labelled in another text"
            raise UserError(problem, where=where, hint="label the form of this dataset")
    originals = Counter(variants[label.variant_id].original_id for label in labels)
    name, number = originals.most_common(1)[0]
    if number > 1:
        hint = "label one variant of each original"
        raise UserError(f"{number} variants of {name!r}", where=where, hint=hint)
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
