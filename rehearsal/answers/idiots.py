"""Answers to the sentences of IdioTS that reproduce each model's printed numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pieline.reporting.printed import read_published
from pieline.studies.idiots.records import IdiotsSentence
from rehearsal.answers.jam import sampled, shuffle_key
from rehearsal.answers.printed_runs import text_numbers


class DetectionCounts(NamedTuple):
    """Counts of a model's answers to the paper's 164 idiomatic sentences and 86 distractors.

    Attributes:
        idiomatic: Number of idiomatic sentences.
        distractors: Number of distractors.
        true_positives: Number of idiomatic sentences in which the model finds an idiom.
        right_idiom: Number of true positives in which the model names the PIE.
        true_negatives: Number of distractors in which the model finds no idiom.
        pie_in_distractor: Number of distractors whose PIE the model names as an idiom.
    """

    idiomatic: int
    distractors: int
    true_positives: int
    right_idiom: int
    true_negatives: int
    pie_in_distractor: int


class DrawnDetection(NamedTuple):
    """Content of an answer: whether it names an idiom, and whether that idiom is the PIE."""

    has_idiom: bool
    is_pie: bool


def printed_counts(published: Path) -> dict[str, DetectionCounts]:
    """Return the counts behind Tables 1 to 3, by printed model name.

    Args:
        published: Folder of the printed numbers.
    """
    first, second, third = (
        {name: row for (name,), row in read_published(path, ["model"]).items()}
        for path in (published / f"idiots_table{number}.csv" for number in (1, 2, 3))
    )
    idiomatic = round(text_numbers(published)["idiots.idiomatic"])
    return {
        model: DetectionCounts(
            idiomatic=idiomatic,
            distractors=round(third[model]["distractors"]),
            true_positives=round(row["true_positives"]),
            right_idiom=round(row["true_positives_with_correct_idiom"]),
            true_negatives=round(first[model]["specificity"] * third[model]["distractors"]),
            pie_in_distractor=round(third[model]["false_positives_on_associated_pie"]),
        )
        for model, row in second.items()
    }


def drawn_detections(
    sentences: Sequence[IdiotsSentence], counts: DetectionCounts | None
) -> dict[str, DrawnDetection]:
    """Return the contents of answers that reproduce a model's counts, by sentence id.

    If the numbers of sentences differ from the paper's, the proportions are kept as closely as
    whole numbers allow. If `counts` is None, all answers are correct.
    """
    pie = DrawnDetection(has_idiom=True, is_pie=True)
    other = DrawnDetection(has_idiom=True, is_pie=False)
    none = DrawnDetection(has_idiom=False, is_pie=False)
    if counts is None:
        return {item.id: pie if item.is_idiomatic else none for item in sentences}
    positives, right = counts.true_positives, counts.right_idiom
    wrong, pies = counts.distractors - counts.true_negatives, counts.pie_in_distractor
    answers = {
        True: [pie] * right
        + [other] * (positives - right)
        + [none] * (counts.idiomatic - positives),
        False: [pie] * pies + [other] * (wrong - pies) + [none] * counts.true_negatives,
    }
    answers_by_id: dict[str, DrawnDetection] = {}
    for label, drawn in answers.items():
        names = sorted(
            (item.id for item in sentences if item.is_idiomatic == label), key=shuffle_key
        )
        answers_by_id |= dict(zip(names, sampled(drawn, len(names)), strict=True))
    return answers_by_id
