"""Answers behind a metric file: what the model said of each sentence."""

from pieline.core.records import load_jsonl
from pieline.reporting.evidence import KEY_SHOWN, Json, MetricFile, Pool, input_of
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence


def evidence(metric: MetricFile, pool: Pool, depth: int) -> Json | None:
    """The answers behind a metric file, or None where they are not of one run."""
    lines = metric.predictions(".jsonl")
    if len(lines) != 1:
        return None
    (path,) = lines
    sentences_path = input_of(metric, "/sentences.jsonl")
    sentences = pool.read(sentences_path, _load_sentences)
    answers = {item.id: item for item in load_jsonl(path, DetectionPrediction)}
    rows = []
    for sentence in sentences:
        answer = answers[sentence.id]
        pool.add(
            sentences_path,
            sentence.id,
            {
                "parts": [sentence.sentence, "", ""],
                "usage": "idiomatic" if sentence.is_idiomatic else "distractor",
                "pie": sentence.pie,
            },
        )
        rows.append(
            {
                "sentence": sentence.id,
                "right": answer.has_idiom == sentence.is_idiomatic,
                "answer": _answer(answer),
                "outcome": answer.outcome,
                "keys": [answer.answer_key[:KEY_SHOWN]],
            }
        )
    return {
        "kind": "detection",
        "predictions": path,
        "sentences": sentences_path,
        "rows": rows,
    }


def _load_sentences(path: str) -> list[IdiotsSentence]:
    return load_jsonl(path, IdiotsSentence)


def _answer(answer: DetectionPrediction) -> str:
    if answer.has_idiom is None:
        return f"{answer.outcome}: {answer.reason}" if answer.reason else answer.outcome
    if not answer.has_idiom:
        return "no idiom"
    meaning = f" ({answer.meaning})" if answer.meaning else ""
    return f"idiom: {answer.idiom or 'none named'}{meaning}"
