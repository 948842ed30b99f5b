"""Test the human baseline and the neutral-context ablation on small examples."""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest

from pieline.core.conditions import Evidence, RunIdentity
from pieline.core.errors import UserError
from pieline.studies.jam.metrics.humans import (
    HumanMetrics,
    Label,
    human_metrics,
    read_labels,
    sample_variants,
    write_form,
)
from pieline.studies.jam.metrics.scores import neutral_metrics
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence


def jam_sentence(original: int, number: int, *, figurative: bool) -> JamSentence:
    tags = ("B-IDIOM", "I-IDIOM") if figurative else ("O", "O")
    name = f"o{original}"
    return JamSentence.model_validate(
        {
            "language": "english",
            "sentence": "go dutch",
            "tokens": ("go ", "dutch"),
            "tags": tags,
            "pies": ("go dutch",),
            "true_idioms": ("go dutch",) if figurative else (),
            "is_figurative": figurative,
            "id": f"{name}-v{number}" if number else name,
            "original_id": name,
            "variant_number": number,
        }
    )


SENTENCES = [
    jam_sentence(original, number, figurative=original > 20)
    for original in range(1, 179)
    for number in range(4)
]


def write(path: Path, rows: list[tuple[str, str, str, str]]) -> Path:
    lines = ["variant_id,first,second,origin", *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def score(*paths: Path) -> HumanMetrics:
    where = ", ".join(map(str, paths))
    return human_metrics(
        read_labels(*paths), SENTENCES, where=where, released=True, computed_from={}
    )


def test_printed_accuracies_and_agreement(tmp_path: Path) -> None:
    """With 178 labels, 161 and 155 right ones give 90.4 and 87.1%."""
    rows = []
    for number in range(1, 179):
        gold, other = ("figurative", "literal") if number > 20 else ("literal", "figurative")
        # 17 and 23 labels are wrong; both people are wrong on 1 to 7, and agree on 1 and 2.
        first = gold if number > 17 else other
        second = other if number <= 2 or number in range(18, 34) else gold
        if number in range(3, 8):
            second = "ambiguous"
        rows.append((f"o{number}-v2", first, second, "people"))
    metrics = score(write(tmp_path / "labels.csv", rows))
    assert (metrics.variants, metrics.simulated) == (178, False)
    accuracies = (metrics.first.accuracy, metrics.second.accuracy)
    assert [f"{100 * accuracy:.1f}" for accuracy in accuracies] == ["90.4", "87.1"]
    assert metrics.agreement == sum(row[1] == row[2] for row in rows) / 178
    assert (metrics.first.accuracy_literal, metrics.first.accuracy_figurative) == (3 / 20, 1)
    assert metrics.second.ambiguous == 5 / 178


def test_kappa_by_hand(tmp_path: Path) -> None:
    # Agreement 3/4; by chance (1/2 * 3/4 + 1/2 * 1/4) = 1/2: kappa 1/2.
    labels = [("literal", "literal"), ("literal", "literal"), ("figurative", "literal")]
    labels.append(("figurative", "figurative"))
    rows = [(f"o{n}-v1", *pair, "people") for n, pair in enumerate(labels, start=1)]
    metrics = score(write(tmp_path / "labels.csv", rows))
    assert (metrics.agreement, metrics.kappa) == (0.75, 0.5)


def test_kappa_is_unknown_for_one_label(tmp_path: Path) -> None:
    rows = [(f"o{n}-v1", "literal", "literal", "simulated") for n in (1, 2)]
    metrics = score(write(tmp_path / "labels.csv", rows))
    assert (metrics.kappa, metrics.agreement, metrics.simulated) == (None, 1, True)


def test_a_table_of_both_people_may_have_the_text(tmp_path: Path) -> None:
    path = tmp_path / "both.csv"
    row = "variant_id,first,second,origin,sentence\no1-v1,literal,literal,people,{}\n"
    path.write_text(row.format(SENTENCES[1].sentence), encoding="utf-8")
    assert score(path).variants == 1
    path.write_text(row.format("Another text."), encoding="utf-8")
    with pytest.raises(UserError, match=r"both\.csv: 'o1-v1' was labeled with a different text"):
        score(path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("o1-v1", "literal", "maybe", "people")], r"labels.csv:2: second: .*'maybe'"),
        ([("o1-v1", "literal", "literal", "someone")], "origin: .*'someone'"),
        ([("o1-v1", "literal", "literal", "people")] * 2, r"labels.csv:3: 'o1-v1' occurs twice"),
        (
            [
                ("o1-v1", "literal", "literal", "people"),
                ("o2-v1", "literal", "literal", "simulated"),
            ],
            "mixed origins",
        ),
        ([], "no labels"),
        ([("o999-v1", "literal", "literal", "people")], "unknown variant 'o999-v1'"),
        ([("o1", "literal", "literal", "people")], "unknown variant 'o1'"),
        (
            [("o1-v1", "literal", "literal", "people"), ("o1-v2", "literal", "literal", "people")],
            "2 variants of 'o1'",
        ),
    ],
)
def test_wrong_labels_are_one_line(
    tmp_path: Path, rows: list[tuple[str, str, str, str]], message: str
) -> None:
    path = write(tmp_path / "labels.csv", rows)
    with pytest.raises(UserError, match=message):
        score(path)


class Form:
    """Annotation form, as written and as filled in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.csv, self.guidelines, self.tasks, self.labelling = (
            folder / name for name in ("form.csv", "form.txt", "tasks.json", "labelling.xml")
        )
        variants = sample_variants(SENTENCES, 1)
        write_form(
            variants,
            form=self.csv,
            guidelines=self.guidelines,
            tasks=self.tasks,
            labelling=self.labelling,
        )
        self.gold = {item.id: item.is_figurative for item in variants}
        with self.csv.open(encoding="utf-8", newline="") as stream:
            self.rows = list(csv.DictReader(stream))

    def filled(self, name: str, labels: dict[str, str], **changed: str) -> Path:
        """Write a copy with the labels of one annotator, by variant."""
        path = self.folder / name
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, self.rows[0])
            writer.writeheader()
            for row in self.rows:
                writer.writerow({**row, "label": labels.get(row["variant_id"], ""), **changed})
        return path

    def exported(self, name: str, *people: dict[str, str], control: str = "label") -> Path:
        """Write a Label Studio export of the tasks with the labels of each annotator."""
        tasks = json.loads(self.tasks.read_text("utf-8"))
        for task in tasks:
            task["annotations"] = [
                {
                    "completed_by": {"id": number},
                    "result": [{"from_name": control, "value": {"choices": [labels[variant]]}}],
                }
                for number, labels in enumerate(people)
                if (variant := task["data"]["variant_id"]) in labels
            ]
        path = self.folder / name
        path.write_text(json.dumps(tasks), encoding="utf-8")
        return path

    def labels(self, says: Callable[[int, bool], str]) -> dict[str, str]:
        """Return labels by position in the form and gold usage."""
        return {name: says(n, gold) for n, (name, gold) in enumerate(self.gold.items())}


@pytest.fixture
def form(tmp_path: Path) -> Form:
    return Form(tmp_path)


def right(_: int, figurative: bool) -> str:
    return "figurative" if figurative else "literal"


def often_unsure(place: int, figurative: bool) -> str:
    return "ambiguous" if place % 4 == 0 else right(place, figurative)


def test_one_variant_of_each_original_is_drawn_by_the_seed() -> None:
    drawn = sample_variants(SENTENCES, 1)
    assert [item.original_id for item in drawn] == [f"o{number}" for number in range(1, 179)]
    numbers = Counter(item.variant_number for item in drawn)
    assert set(numbers) == {1, 2, 3}
    assert min(numbers.values()) > 178 / 6
    assert sample_variants(SENTENCES, 1) == drawn
    assert sample_variants(SENTENCES, 2) != drawn
    # The choice for an original does not depend on other originals.
    assert sample_variants(SENTENCES[4:], 1) == drawn[1:]


def test_the_form_shows_the_text_and_the_expression_and_no_gold_label(form: Form) -> None:
    tasks = json.loads(form.tasks.read_text("utf-8"))
    shown = {"variant_id", "sentence", "pie"}
    assert {frozenset(task["data"]) for task in tasks} == {frozenset(shown)}
    assert [task["data"] | {"label": ""} for task in tasks] == form.rows
    assert form.rows[0]["sentence"] == form.rows[0]["pie"] == "go dutch"
    interface = ElementTree.parse(form.labelling).getroot()
    choices = {choice.get("value"): choice.get("html") for choice in interface.iter("Choice")}
    assert list(choices) == list(get_args(Label))
    guidelines = form.guidelines.read_text("utf-8").splitlines()
    assert [line.strip() for line in guidelines[-len(choices) :]] == list(choices.values())
    texts = " ".join(value for element in interface.iter() for value in element.attrib.values())
    assert set(re.findall(r"\$(\w+)", texts)) == {"sentence", "pie"}


def test_filled_in_forms_and_exports_are_scored_alike(form: Form) -> None:
    first, second = form.labels(right), form.labels(often_unsure)
    metrics = score(form.filled("a.csv", first), form.filled("b.csv", second))
    assert (metrics.variants, metrics.literal, metrics.simulated) == (178, 20, False)
    assert (metrics.first.accuracy, metrics.second.ambiguous) == (1, 45 / 178)
    assert metrics.second.accuracy == metrics.agreement == 133 / 178
    chance = (20 * 15 + 158 * 118) / 178**2
    assert metrics.kappa == pytest.approx((133 / 178 - chance) / (1 - chance))
    assert score(form.exported("both.json", first, second)) == metrics
    assert score(form.exported("a.json", first), form.exported("b.json", second)) == metrics
    assert score(form.filled("a.csv", first), form.exported("b.json", second)) == metrics
    swapped = score(form.filled("b.csv", second), form.filled("a.csv", first))
    assert (swapped.first, swapped.second) == (metrics.second, metrics.first)


def test_unlabeled_variants_are_ignored(form: Form) -> None:
    some = dict(list(form.labels(right).items())[:30])
    metrics = score(form.filled("a.csv", some), form.exported("b.json", some))
    assert (metrics.variants, metrics.literal, metrics.agreement) == (30, 20, 1)
    assert score(form.exported("both.json", some, some)) == metrics


Labels = dict[str, str]
WRONG: dict[str, tuple[Callable[[Form, Labels, Labels], list[Path]], str]] = {
    "blank": (
        lambda form, *_: [form.csv, form.csv],
        r"form\.csv: labels by 0 annotators instead of 2; name the files filled in by",
    ),
    "one person": (
        lambda form, labels, _: [form.exported("a.json", labels)],
        r"a\.json: labels by 1 annotator instead of 2",
    ),
    "three": (
        lambda form, labels, _: [form.exported("a.json", labels, labels, labels)],
        r"a\.json: labels by 3 annotators instead of 2",
    ),
    "same file": (
        lambda form, labels, _: [form.filled("a.csv", labels)] * 2,
        r"a\.csv:2 \(o1-v\d\): .*a\.csv labels 'o1-v\d' twice; keep one label",
    ),
    "copy": (
        lambda form, labels, _: [form.filled("a.csv", labels), form.filled("b.csv", labels)],
        r"b\.csv: the file is a copy of .*a\.csv; name one file per person, or",
    ),
    "one export": (
        lambda form, labels, _: [form.exported(name, labels) for name in ("a.json", "b.json")],
        r"b\.json: the file is a copy of .*a\.json",
    ),
    "one fewer": (
        lambda form, labels, fewer: [form.filled("a.csv", labels), form.filled("b.csv", fewer)],
        r"b\.csv: no label for 'o1-v\d', which the other person labeled",
    ),
    "one more": (
        lambda form, labels, fewer: [form.filled("a.csv", fewer), form.filled("b.csv", labels)],
        r"a\.csv: no label for 'o1-v\d', which the other person labeled",
    ),
    "other text": (
        lambda form, labels, _: [
            form.filled("a.csv", labels), form.filled("b.csv", labels, sentence="go Dutch"),
        ],
        r"'o1-v\d' was labeled with a different text; label the form written for",
    ),
    "label": (
        lambda form, labels, fewer: [
            form.filled("a.csv", fewer | {form.rows[4]["variant_id"]: "maybe"}),
            form.filled("b.csv", labels),
        ],
        r"a\.csv:6 \(o\d-v\d\): label: .*'maybe'.*; write one of figurative, literal",
    ),
    "control": (
        lambda form, labels, _: [form.exported("a.json", labels, labels, control="verdict")],
        r"a\.json: task 1 \(o1-v1\): unknown control 'verdict'; use our labeling",
    ),
    "both in one": (
        lambda form, labels, _: [form.filled("a.csv", labels)],
        r"a\.csv:1: no column 'first'; use the header variant_id,first,second,origin",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_forms_are_one_line(form: Form, fault: str) -> None:
    files, message = WRONG[fault]
    labels = form.labels(right)
    fewer = dict(list(labels.items())[1:])
    with pytest.raises(UserError, match=message):
        score(*files(form, labels, fewer))


def test_printed_share_of_neutral_variants() -> None:
    """If 25 of 58 neutral variants confuse, the fraction is the printed 43.1%."""
    neutral = [jam_sentence(number, 1, figurative=True) for number in range(1, 59)]
    predictions = {
        item.id: IdiomPrediction(
            id=item.id, outcome="ok", idioms=() if number < 25 else ("go dutch",)
        )
        for number, item in enumerate(neutral)
    }
    metrics = neutral_metrics(
        neutral,
        predictions,
        RunIdentity(language="english", model="gpt-4o-mini", setting="zero_shot", seed=42),
        Evidence(is_released=True, computed_from={}),
        confusing=58,
        scoring="paper",
        resamples=500,
    )
    assert (metrics.confusing, metrics.neutral, metrics.still_confused) == (58, 58, 25)
    assert f"{100 * (metrics.share or 0):.1f}" == "43.1"
    assert metrics.interval is not None
    assert metrics.interval.low < 25 / 58 < metrics.interval.high


def test_no_neutral_variant_has_no_share() -> None:
    metrics = neutral_metrics(
        [],
        {},
        RunIdentity(language="english", model="m", setting="zero_shot", seed=1),
        Evidence(is_released=False, computed_from={}),
        confusing=0,
        scoring="paper",
        resamples=10,
    )
    assert (metrics.share, metrics.interval) == (None, None)
