"""The items of ID10M-JAM: what every run says of every original and hard variant."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from pieline.core.outcomes import OutcomeName
from pieline.core.records import load_jsonl
from pieline.reporting.evidence import MetricFile, Pool, input_of
from pieline.reporting.given import Given
from pieline.reporting.items import CLASSES, Class, Item, runs
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.records import IdiomPrediction


class JamItem(Item):
    """What a run says of a sentence, as the run's metric file judges it.

    Attributes:
        id, original_id: of the sentence and of its original.
        variant: its number among the variants; 0 for an original.
        gold: whether the PIE is an idiom here.
        answer: whether any idiom is named; null where the answer could not be read.
        named: the idioms that are named, joined by "; "; null where the answer could not be read.
        correct: whether this is right about the PIE, under the scoring of the metric file; null for
            a variant without its original, which no metric counts.
        original_correct: the same of its original: S_M counts the variants where it holds.
        drifted: whether it is a variant that turns a right decision into a wrong one: F_M.
    """

    id: str
    original_id: str
    variant: int
    pie: str
    usage: Literal["figurative", "literal"]
    setting: str
    gold: Class
    answer: Class | None
    named: str | None
    outcome: OutcomeName
    correct: bool | None
    original_correct: bool | None
    drifted: bool | None

    @classmethod
    def of(cls, given: Given) -> Iterator[Self]:
        """The rows of all runs, sentences in the order of the dataset."""
        pool = Pool()
        for metric, shared in runs(given):
            (path,) = metric.predictions(".jsonl")
            language = metric.fields["language"]
            answers = {item.id: item for item in load_jsonl(path, IdiomPrediction)}
            decisions = _decisions(metric)
            for sentence in pool.read(input_of(metric, f"/{language}.jsonl"), load_sentences):
                answer = answers[sentence.id]
                right, first = map(decisions.get, (sentence.id, sentence.original_id))
                yield cls(
                    **shared,
                    language=language,
                    setting=metric.fields["setting"],
                    id=sentence.id,
                    original_id=sentence.original_id,
                    variant=sentence.variant_number,
                    pie="; ".join(sentence.pies),
                    usage="figurative" if sentence.is_figurative else "literal",
                    gold=CLASSES[sentence.is_figurative],
                    answer=None if answer.idioms is None else CLASSES[bool(answer.idioms)],
                    named=None if answer.idioms is None else "; ".join(answer.idioms),
                    outcome=answer.outcome,
                    correct=right,
                    original_correct=first,
                    drifted=None if right is None else bool(first) and not right,
                )


def _decisions(metric: MetricFile) -> Mapping[str, bool]:
    """Whether each sentence was judged rightly."""
    found: dict[str, Any] = {}
    for item in metric.fields["judged"]:
        found |= {item["id"]: item["correct"], **item["variants"]}
    return found
