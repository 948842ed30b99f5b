"""The items of IdioTS: what every run says of every sentence."""

from collections.abc import Iterator
from typing import Literal, Self

from pieline.core.outcomes import OutcomeName
from pieline.core.records import load_jsonl
from pieline.reporting.evidence import Pool, input_of
from pieline.reporting.given import Given
from pieline.reporting.items import CLASSES, Class, Item, runs
from pieline.studies.idiots.records import DetectionPrediction, DistractorKind, IdiotsSentence
from pieline.studies.idiots.verdicts import Run, human_verdicts, names_pie, paired, read_cases


class IdiotsItem(Item):
    """What a run says of a sentence.

    Attributes:
        id, pie_id: of the sentence and of its PIE.
        distractor_kind: null for idiomatic sentences, and where nobody marked the distractors.
        gold: whether the sentence is idiomatic.
        answer: whether an idiom was found; null where the answer could not be read.
        named: the idiom that the answer names.
        correct: whether answer and gold agree; an answer that could not be read is wrong.
        names_pie: whether an idiom was found and is the sentence's PIE: on idiomatic sentences the
            numerator of True Positive Consistency, on distractors that of the distractor PIE ratio.
        judged_by: who says so, a person or the matching function.
        answer_key: under which the answer is recorded.
    """

    id: str
    pie_id: str
    pie: str
    usage: Literal["idiomatic", "distractor"]
    distractor_kind: DistractorKind | None
    setting: str
    gold: Class
    answer: Class | None
    named: str | None
    outcome: OutcomeName
    correct: bool
    names_pie: bool
    judged_by: Literal["person", "matching"]
    answer_key: str

    @classmethod
    def of(cls, given: Given) -> Iterator[Self]:
        """The rows of all runs, sentences in the order of the dataset."""
        pool, reviewed = Pool(), given.files.get("verdicts")
        cases = read_cases(reviewed) if reviewed else []
        for metric, shared in runs(given):
            (path,) = metric.predictions(".jsonl")
            setting = metric.fields["setting"]
            answers = load_jsonl(path, DetectionPrediction)
            run = Run(shared["model"], setting, shared["seed"])
            verdicts = human_verdicts(cases, answers, run, where=reviewed or "")
            sentences = pool.read(input_of(metric, "/sentences.jsonl"), _load_sentences)
            for sentence, answer in paired(sentences, answers):
                verdict = verdicts.get(sentence.id)
                yield cls(
                    **shared,
                    language="english",
                    setting=setting,
                    id=sentence.id,
                    pie_id=sentence.pie_id,
                    pie=sentence.pie,
                    usage="idiomatic" if sentence.is_idiomatic else "distractor",
                    distractor_kind=sentence.distractor_kind,
                    gold=CLASSES[sentence.is_idiomatic],
                    answer=CLASSES.get(answer.has_idiom),
                    named=answer.idiom,
                    outcome=answer.outcome,
                    correct=answer.has_idiom == sentence.is_idiomatic,
                    names_pie=(
                        verdict.verdict == "yes" if verdict else names_pie(sentence, answer)
                    ),
                    judged_by="person" if verdict else "matching",
                    answer_key=answer.answer_key,
                )


def _load_sentences(path: str) -> list[IdiotsSentence]:
    return load_jsonl(path, IdiotsSentence)
