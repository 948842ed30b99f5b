"""Per-sentence results of IdioTS, as exported items and as evidence on the results page."""

from collections.abc import Iterator
from functools import partial
from typing import Literal, Self

from pieline.core.conditions import RunIdentity
from pieline.core.outcomes import OutcomeName
from pieline.core.records import load_jsonl
from pieline.reporting.evidence import KEY_SHOWN, Json, MetricFile, Pool, input_of
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.items import CLASSES, Class, Item, runs
from pieline.studies.idiots.records import DetectionPrediction, DistractorKind, IdiotsSentence
from pieline.studies.idiots.verdicts import (
    human_verdicts,
    names_pie,
    paired,
    read_cases,
)


class IdiotsItem(Item):
    """Answer of one run to one sentence.

    Attributes:
        id, pie_id: Ids of the sentence and of its PIE.
        distractor_kind: Kind of distractor; null for idiomatic sentences and unmarked distractors.
        gold: Whether the sentence is idiomatic.
        answer: Whether the model detected an idiom; null if the answer is unreadable.
        named: Idiom named in the answer; null if there is none.
        correct: Whether answer and gold agree; unreadable answers are wrong.
        names_pie: Whether the model detected an idiom and named the sentence's PIE. The number of
            these answers is the numerator of True Positive Consistency for idiomatic sentences, and
            of the distractor PIE ratio for distractors.
        judged_by: Source of `names_pie`: a person or the matching function.
        answer_key: Key of the recorded answer.
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
    def of(cls, inputs: DisplayInputs) -> Iterator[Self]:
        """Yield the items of all runs, with sentences in dataset order."""
        pool = Pool()
        verdicts_path = inputs.files.get("verdicts", "")
        cases = read_cases(verdicts_path) if verdicts_path else []
        for metric, shared in runs(inputs):
            setting = metric.fields["setting"]
            answered = answers_behind(metric, pool)
            run = RunIdentity(shared["model"], setting, shared["seed"])
            answers = [answer for _, answer in answered]
            verdicts = human_verdicts(cases, answers, run, where=verdicts_path)
            for sentence, answer in answered:
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

    @classmethod
    def evidence(cls, metric: MetricFile, pool: Pool, depth: int) -> Json | None:
        """Return the answer to each sentence.

        Returns None if the metrics were not computed from exactly one prediction file.
        """
        if len(metric.predictions(".jsonl")) != 1:
            return None
        sentences_path = input_of(metric, _SENTENCES)
        rows = []
        for sentence, answer in answers_behind(metric, pool):
            pool.add(sentences_path, sentence.id, partial(_page_text, sentence))
            rows.append(
                {
                    "sentence": sentence.id,
                    "right": answer.has_idiom == sentence.is_idiomatic,
                    "answer": _page_answer(answer),
                    "outcome": answer.outcome,
                    "keys": [answer.answer_key[:KEY_SHOWN]],
                }
            )
        return {
            "kind": "detection",
            "predictions": metric.predictions(".jsonl")[0],
            "sentences": sentences_path,
            "rows": rows,
        }


def _page_text(sentence: IdiotsSentence) -> Json:
    return {
        "parts": [sentence.sentence, "", ""],
        "usage": "idiomatic" if sentence.is_idiomatic else "distractor",
        "pie": sentence.pie,
    }


_SENTENCES = "/sentences.jsonl"


def answers_behind(
    metric: MetricFile, pool: Pool
) -> list[tuple[IdiotsSentence, DetectionPrediction]]:
    """Return each sentence of a metric file's run with its answer."""
    (path,) = metric.predictions(".jsonl")
    sentences = pool.read(input_of(metric, _SENTENCES), _load_sentences)
    return paired(sentences, load_jsonl(path, DetectionPrediction))


def _load_sentences(path: str) -> list[IdiotsSentence]:
    return load_jsonl(path, IdiotsSentence)


def _page_answer(answer: DetectionPrediction) -> str:
    if answer.has_idiom is None:
        return f"{answer.outcome}: {answer.reason}" if answer.reason else answer.outcome
    if not answer.has_idiom:
        return "no idiom"
    meaning = f" ({answer.meaning})" if answer.meaning else ""
    return f"idiom: {answer.idiom or 'none named'}{meaning}"
