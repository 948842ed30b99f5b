"""Answers of ID10M-JAM's runs per sentence, for the export of items and for the results page."""

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple, Self

from pieline.core.outcomes import OutcomeName
from pieline.core.records import load_jsonl
from pieline.reporting.evidence import KEY_SHOWN, Json, MetricFile, Pool, input_of
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.items import CLASSES, Class, Item, metrics_and_columns
from pieline.studies.jam.bio import span_text, spans_of
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence, load_sentences


class JamItem(Item):
    """A run's answer to one sentence, with the judgment in the run's metric file.

    Attributes:
        id: Sentence id.
        original_id: Id of the sentence's original.
        variant: Variant number; 0 for an original.
        gold: Whether the PIE is used as an idiom.
        answer: Whether the answer names any idiom; null if the answer is unreadable.
        named: Named idioms, joined by "; "; null if the answer is unreadable.
        correct: Whether the answer is correct under the metric file's scoring rule; null for a
            variant whose original is missing, because no metric counts the variant.
        original_correct: Whether the answer to the original is correct; if it is, S_M counts the
            variant. Null if the original is missing.
        drifted: Whether the answer to the original is correct and the answer to the variant is not;
            if so, F_M counts the variant. Null if the original is missing.
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
    def of(cls, inputs: DisplayInputs) -> Iterator[Self]:
        """Yield one item per run and sentence, run by run and in the order of the dataset."""
        pool = Pool()
        for metric, shared_columns in metrics_and_columns(inputs):
            for judged in _judged_answers(metric, pool):
                sentence, idioms = judged.sentence, judged.answer.idioms
                yield cls(
                    **shared_columns,
                    language=metric.fields["language"],
                    setting=metric.fields["setting"],
                    id=sentence.id,
                    original_id=sentence.original_id,
                    variant=sentence.variant_number,
                    pie="; ".join(sentence.pies),
                    usage="figurative" if sentence.is_figurative else "literal",
                    gold=CLASSES[sentence.is_figurative],
                    answer=None if idioms is None else CLASSES[bool(idioms)],
                    named=None if idioms is None else "; ".join(idioms),
                    outcome=judged.answer.outcome,
                    correct=judged.correct,
                    original_correct=judged.original_correct,
                    drifted=judged.drifted,
                )

    @classmethod
    def evidence(cls, metric: MetricFile, pool: Pool, depth: int) -> Json | None:
        """Return the answers to each original and to the original's variants, as JSON for the page.

        The result is None if the metric file has no judgments, or if its metrics were not computed
        from exactly one prediction file.
        """
        prediction_paths = metric.predictions(".jsonl")
        if len(prediction_paths) != 1 or "judged" not in metric.fields:
            return None
        sentences_path = _sentences_path(metric)
        answers_by_original: dict[str, list[Json]] = {}
        for judged in _judged_answers(metric, pool):
            sentence, answer = judged.sentence, judged.answer
            pool.add(sentences_path, sentence.id, partial(_page_text, sentence))
            answers_by_original.setdefault(sentence.original_id, []).append(
                {
                    "sentence": sentence.id,
                    "right": judged.correct,
                    "answer": _page_answer(answer),
                    "keys": [sample.key[:KEY_SHOWN] for sample in answer.samples],
                }
            )
        return {
            "kind": "identification",
            "predictions": prediction_paths[0],
            "sentences": sentences_path,
            "rows": [
                {"original": original_id, "sentences": answers}
                for original_id, answers in answers_by_original.items()
            ],
        }


class _JudgedAnswer(NamedTuple):
    """Answer to a sentence, with judgments of this answer and of the answer to its original.

    The judgments `correct` and `original_correct` are None for a variant without its original.
    """

    sentence: JamSentence
    answer: IdiomPrediction
    correct: bool | None
    original_correct: bool | None

    @property
    def drifted(self) -> bool | None:
        """Whether this answer is wrong although the answer to the original is correct.

        The result is None if the original is missing.
        """
        if self.correct is None:
            return None
        return bool(self.original_correct) and not self.correct


def _sentences_path(metric: MetricFile) -> str:
    """Return the path of the dataset from which a metric file was computed."""
    return input_of(metric, f"/{metric.fields['language']}.jsonl")


def _judged_answers(metric: MetricFile, pool: Pool) -> Iterator[_JudgedAnswer]:
    """Yield a run's answers with their judgments, in the order of the sentences in the dataset."""
    (predictions_path,) = metric.predictions(".jsonl")
    answers = {answer.id: answer for answer in load_jsonl(predictions_path, IdiomPrediction)}
    correct_by_id: dict[str, bool] = {}
    for original in metric.fields["judged"]:
        correct_by_id[original["id"]] = original["correct"]
        correct_by_id |= original["variants"]
    for sentence in pool.read(_sentences_path(metric), load_sentences):
        yield _JudgedAnswer(
            sentence,
            answers[sentence.id],
            correct=correct_by_id.get(sentence.id),
            original_correct=correct_by_id.get(sentence.original_id),
        )


def _page_answer(answer: IdiomPrediction) -> str:
    """Return the text that the results page shows for an answer: the idioms, or the outcome."""
    if answer.idioms is None:
        return answer.outcome
    return f"idiom: {'; '.join(answer.idioms)}" if answer.idioms else "no idiom"


def _page_text(sentence: JamSentence) -> Json:
    """Return a sentence as JSON for the results page, which highlights the PIE."""
    return {
        "parts": _split_around_pie(sentence),
        "usage": "figurative" if sentence.is_figurative else "literal",
        "pie": "; ".join(sentence.pies),
        "variant": sentence.variant_number,
    }


def _split_around_pie(sentence: JamSentence) -> list[str]:
    """Return the text before the PIE, the PIE, and the text after the PIE.

    If the PIE cannot be located, the first text is the complete sentence, and the others are empty.
    """
    text = sentence.sentence
    spans = spans_of(sentence.tags)
    if spans:
        first_span = spans[0]
        pie = span_text(sentence.tokens, first_span)
        start = len("".join(sentence.tokens[: first_span.start]))
    else:
        # A literal PIE has no tags. In a variant, the original is last, so search from the end.
        pie = sentence.pies[0]
        start = text.lower().rfind(pie.lower())
        if start < 0:
            return [text, "", ""]
    end = start + len(pie)
    return [text[:start], text[start:end], text[end:]]
