"""Answers of IdioTS's runs to single sentences, for the export and the results page."""

from collections.abc import Iterator
from functools import partial
from typing import Literal, Self

from pieline.core.conditions import RunIdentity
from pieline.core.outcomes import OutcomeName
from pieline.core.records import load_jsonl
from pieline.reporting.evidence import KEY_SHOWN, Json, MetricFile, Pool, input_of
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.items import CLASSES, Class, Item, metrics_and_columns
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
        id, pie_id: Ids of the sentence and of the sentence's PIE.
        distractor_kind: Kind of distractor; null for idiomatic sentences and for distractors whose
            kind is unknown.
        gold: Class of the sentence: whether it is idiomatic.
        answer: Class that the model chose: whether it detected an idiom; null if the answer is
            unreadable.
        named: Idiom named in the answer; null if the answer names no idiom.
        correct: Whether `answer` and `gold` agree; unreadable answers are wrong.
        names_pie: Whether the model detected an idiom and named the PIE of the sentence. For
            idiomatic sentences, these answers are the numerator of True Positive Consistency. For
            distractors, they are the numerator of the distractor PIE ratio.
        judged_by: Whether a person or the matching function decided `names_pie`.
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
        """Yield the items of all runs; the items of a run have the order of the dataset."""
        pool = Pool()
        verdicts_path = inputs.files.get("verdicts", "")
        cases = read_cases(verdicts_path) if verdicts_path else []
        for metric, run_fields in metrics_and_columns(inputs):
            setting = metric.fields["setting"]
            run = RunIdentity(run_fields["model"], setting, run_fields["seed"])
            pairs = sentences_with_answers(metric, pool)
            answers = [answer for _, answer in pairs]
            judged_cases = human_verdicts(cases, answers, run, where=verdicts_path)
            for sentence, answer in pairs:
                judged_case = judged_cases.get(sentence.id)
                if judged_case:
                    is_pie_named = judged_case.verdict == "yes"
                else:
                    is_pie_named = names_pie(sentence, answer)
                yield cls(
                    **run_fields,
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
                    names_pie=is_pie_named,
                    judged_by="person" if judged_case else "matching",
                    answer_key=answer.answer_key,
                )

    @classmethod
    def evidence(cls, metric: MetricFile, pool: Pool, depth: int) -> Json | None:
        """Return the answers behind a metric file, for the results page.

        The result is None if the metrics were not computed from exactly one prediction file.
        """
        predictions_paths = metric.predictions(".jsonl")
        if len(predictions_paths) != 1:
            return None
        sentences_path = input_of(metric, _SENTENCES)
        rows = []
        for sentence, answer in sentences_with_answers(metric, pool):
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
            "predictions": predictions_paths[0],
            "sentences": sentences_path,
            "rows": rows,
        }


def _page_text(sentence: IdiotsSentence) -> Json:
    """Return a sentence as shown on the results page."""
    return {
        "parts": [sentence.sentence, "", ""],
        "usage": "idiomatic" if sentence.is_idiomatic else "distractor",
        "pie": sentence.pie,
    }


_SENTENCES = "/sentences.jsonl"
"""End of the path of the file with the sentences."""


def sentences_with_answers(
    metric: MetricFile, pool: Pool
) -> list[tuple[IdiotsSentence, DetectionPrediction]]:
    """Return each sentence with its answer, from the files behind a metric file."""
    (predictions_path,) = metric.predictions(".jsonl")
    sentences = pool.read(input_of(metric, _SENTENCES), _load_sentences)
    return paired(sentences, load_jsonl(predictions_path, DetectionPrediction))


def _load_sentences(path: str) -> list[IdiotsSentence]:
    return load_jsonl(path, IdiotsSentence)


def _page_answer(answer: DetectionPrediction) -> str:
    """Return an answer as shown on the results page."""
    if answer.has_idiom is None:
        return f"{answer.outcome}: {answer.reason}" if answer.reason else answer.outcome
    if not answer.has_idiom:
        return "no idiom"
    meaning = f" ({answer.meaning})" if answer.meaning else ""
    return f"idiom: {answer.idiom or 'none named'}{meaning}"
