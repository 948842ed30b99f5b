"""The human baseline and the neutral-context ablation, by hand-made labels and predictions."""

from pathlib import Path

import pytest

from pieline.core.errors import UserError
from pieline.studies.jam.metrics.humans import HumanMetrics, human_metrics, read_labels
from pieline.studies.jam.metrics.neutral import neutral_metrics
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence


def made(original: int, number: int, *, figurative: bool) -> JamSentence:
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
    made(original, number, figurative=original > 20)
    for original in range(1, 179)
    for number in range(4)
]


def write(path: Path, rows: list[tuple[str, str, str, str]]) -> Path:
    lines = ["variant_id,first,second,origin", *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def score(path: Path) -> HumanMetrics:
    return human_metrics(read_labels(path), SENTENCES, where=path, released=True, computed_from={})


def test_printed_accuracies_and_agreement(tmp_path: Path) -> None:
    """161 and 155 of 178 right and 145 alike are the printed 90.4, 87.1 and 81.5 %."""
    rows = []
    for number in range(1, 179):
        gold, other = ("figurative", "literal") if number > 20 else ("literal", "figurative")
        # 17 and 23 are wrong; both on 1-7, of which they agree on 1-2: 178 - 10 - 16 - 5 - 2 alike.
        first = gold if number > 17 else other
        second = other if number <= 2 or number in range(18, 34) else gold
        if number in range(3, 8):
            second = "ambiguous"
        rows.append((f"o{number}-v2", first, second, "people"))
    found = score(write(tmp_path / "labels.csv", rows))
    assert found.variants == 178
    assert f"{100 * found.first.accuracy:.1f}" == "90.4"
    assert f"{100 * found.second.accuracy:.1f}" == "87.1"
    agree = sum(row[1] == row[2] for row in rows)
    assert found.agreement == agree / 178
    assert found.first.accuracy_literal == 3 / 20
    assert found.first.accuracy_figurative == 1
    assert found.second.ambiguous == 5 / 178
    assert not found.simulated
    assert f"{100 * 145 / 178:.1f}" == "81.5"


def test_kappa_by_hand(tmp_path: Path) -> None:
    # Agreement 3/4; by chance (1/2 * 3/4 + 1/2 * 1/4) = 1/2: kappa 1/2.
    labels = [("literal", "literal"), ("literal", "literal"), ("figurative", "literal")]
    labels.append(("figurative", "figurative"))
    rows = [(f"o{n}-v1", *pair, "people") for n, pair in enumerate(labels, start=1)]
    found = score(write(tmp_path / "labels.csv", rows))
    assert (found.agreement, found.kappa) == (0.75, 0.5)


def test_kappa_is_unknown_for_one_label(tmp_path: Path) -> None:
    rows = [(f"o{n}-v1", "literal", "literal", "simulated") for n in (1, 2)]
    found = score(write(tmp_path / "labels.csv", rows))
    assert (found.kappa, found.agreement, found.simulated) == (None, 1, True)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("o1-v1", "literal", "maybe", "people")], r"labels.csv:2: second: .*'maybe'"),
        ([("o1-v1", "literal", "literal", "someone")], "origin: .*'someone'"),
        ([("o1-v1", "literal", "literal", "people")] * 2, r"labels.csv:3: 'o1-v1' stands twice"),
        (
            [
                ("o1-v1", "literal", "literal", "people"),
                ("o2-v1", "literal", "literal", "simulated"),
            ],
            "origins are mixed",
        ),
        ([], "no labels"),
        ([("o999-v1", "literal", "literal", "people")], "no variant 'o999-v1'"),
        ([("o1", "literal", "literal", "people")], "no variant 'o1'"),
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


def test_printed_share_of_neutral_variants() -> None:
    """25 of 58 neutral variants confuse: the printed 43.1 %."""
    neutral = [made(number, 1, figurative=True) for number in range(1, 59)]
    predictions = {
        item.id: IdiomPrediction(
            id=item.id, outcome="ok", idioms=() if number < 25 else ("go dutch",)
        )
        for number, item in enumerate(neutral)
    }
    found = neutral_metrics(
        neutral,
        predictions,
        language="english",
        model="gpt-4o-mini",
        setting="zero_shot",
        seed=42,
        confusing=58,
        scoring="paper",
        released=True,
        resamples=500,
        computed_from={},
    )
    assert (found.confusing, found.neutral, found.still_confused) == (58, 58, 25)
    assert f"{100 * (found.share or 0):.1f}" == "43.1"
    assert found.interval is not None
    assert found.interval.low < 25 / 58 < found.interval.high


def test_no_neutral_variant_has_no_share() -> None:
    found = neutral_metrics(
        [], {}, language="english", model="m", setting="zero_shot", seed=1, confusing=0,
        scoring="paper", released=False, resamples=10, computed_from={},
    )  # fmt: skip
    assert (found.share, found.interval) == (None, None)
