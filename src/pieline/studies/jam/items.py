"""Per-sentence results of ID10M-JAM, as exported items and as evidence on the results page."""

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple, Self

from pieline.core.outcomes import OutcomeName
from pieline.core.records import load_jsonl
from pieline.reporting.evidence import KEY_SHOWN, Json, MetricFile, Pool, input_of
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.items import CLASSES, Class, Item, runs
from pieline.studies.jam.bio import span_text, spans_of
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence, load_sentences


class JamItem(Item):
    """A run's answer to one sentence, judged as in the run's metric file.

    Attributes:
        id: Sentence id.
        original_id: Id of the sentence's original.
        variant: Variant number; 0 for an original.
        gold: Whether the PIE is used as an idiom.
        answer: Whether the answer names any idiom; null if it is unreadable.
        named: Named idioms, joined by "; "; null if the answer is unreadable.
        correct: Whether the answer is correct under the metric file's scoring rule; null for a
            variant whose original is missing, because no metric counts the variant.
        original_correct: Whether the answer to the original is correct, so that S_M counts the
            variant; null if the original is missing.
        drifted: Whether the variant turned a correct decision into a wrong one, so that F_M counts
            the variant; null if the original is missing.
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
        """Yield the items of all runs, with sentences in dataset order."""
        pool = Pool()
        for metric, shared in runs(inputs):
            for sentence, answer, correct, original_correct in _judged_answers(metric, pool):
                yield cls(
                    **shared,
                    language=metric.fields["language"],
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
                    correct=correct,
                    original_correct=original_correct,
                    drifted=None if correct is None else bool(original_correct) and not correct,
                )

    @classmethod
    def evidence(cls, metric: MetricFile, pool: Pool, depth: int) -> Json | None:
        """Return the answers to each original and its variants.

        Returns None if the metric file has no judgments, or if the metrics were not computed from
        exactly one prediction file.
        """
        if len(metric.predictions(".jsonl")) != 1 or "judged" not in metric.fields:
            return None
        sentences_path = _sentences_path(metric)
        originals: dict[str, list[Json]] = {}
        for sentence, answer, correct, _ in _judged_answers(metric, pool):
            pool.add(sentences_path, sentence.id, partial(_page_text, sentence))
            originals.setdefault(sentence.original_id, []).append(
                {
                    "sentence": sentence.id,
                    "right": correct,
                    "answer": _page_answer(answer),
                    "keys": [sample.key[:KEY_SHOWN] for sample in answer.samples],
                }
            )
        return {
            "kind": "identification",
            "predictions": metric.predictions(".jsonl")[0],
            "sentences": sentences_path,
            "rows": [
                {"original": name, "sentences": sentences} for name, sentences in originals.items()
            ],
        }


class _JudgedAnswer(NamedTuple):
    """Answer to a sentence, and whether the answers to it and to its original are correct.

    Both judgments are None for a variant whose original is missing.
    """

    sentence: JamSentence
    answer: IdiomPrediction
    correct: bool | None
    original_correct: bool | None


def _sentences_path(metric: MetricFile) -> str:
    return input_of(metric, f"/{metric.fields['language']}.jsonl")


def _judged_answers(metric: MetricFile, pool: Pool) -> Iterator[_JudgedAnswer]:
    """Yield the judged answers of a run in dataset order: an original, then its variants."""
    (path,) = metric.predictions(".jsonl")
    answers = {item.id: item for item in load_jsonl(path, IdiomPrediction)}
    correct: dict[str, bool] = {}
    for original in metric.fields["judged"]:
        correct[original["id"]] = original["correct"]
        correct |= original["variants"]
    for sentence in pool.read(_sentences_path(metric), load_sentences):
        yield _JudgedAnswer(
            sentence,
            answers[sentence.id],
            correct.get(sentence.id),
            correct.get(sentence.original_id),
        )


def _page_answer(answer: IdiomPrediction) -> str:
    if answer.idioms is None:
        return answer.outcome
    return f"idiom: {'; '.join(answer.idioms)}" if answer.idioms else "no idiom"


def _page_text(sentence: JamSentence) -> Json:
    """Return a sentence for the results page, split around its PIE for highlighting."""
    text = sentence.sentence
    if spans := spans_of(sentence.tags):
        place = len("".join(sentence.tokens[: spans[0].start]))
        marked = span_text(sentence.tokens, spans[0])
    else:
        # A literal PIE has no tags. In a variant, the original is last, so search from the end.
        marked = sentence.pies[0]
        place = text.lower().rfind(marked.lower())
    end = place + len(marked)
    parts = [text[:place], text[place:end], text[end:]] if place >= 0 else [text, "", ""]
    return {
        "parts": parts,
        "usage": "figurative" if sentence.is_figurative else "literal",
        "pie": "; ".join(sentence.pies),
        "variant": sentence.variant_number,
    }
