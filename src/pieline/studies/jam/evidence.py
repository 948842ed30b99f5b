"""Answers behind a metric file: each original with its variants."""

from collections.abc import Mapping
from typing import Any

from pieline.core.records import load_jsonl
from pieline.reporting.evidence import KEY_SHOWN, Json, MetricFile, Pool, input_of
from pieline.studies.jam.bio import span_text, spans_of
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence, by_original


def evidence(metric: MetricFile, pool: Pool, depth: int) -> Json | None:
    """The answers behind a metric file, or None where it judges no originals."""
    lines = metric.predictions(".jsonl")
    if len(lines) != 1 or "judged" not in metric.fields:
        return None
    (path,) = lines
    language = metric.fields["language"]
    sentences_path = input_of(metric, f"/{language}.jsonl")
    groups = pool.read(sentences_path, _load_originals)
    answers = {item.id: item for item in load_jsonl(path, IdiomPrediction)}
    judged = {item["id"]: item for item in metric.fields["judged"]}
    rows = []
    for name, sentences in groups.items():
        decisions = _decisions(judged.get(name))
        answered = []
        for sentence in sentences:
            if sentence.id not in answers:
                continue
            pool.add(sentences_path, sentence.id, _text_of(sentence))
            answered.append(
                {
                    "sentence": sentence.id,
                    "right": decisions.get(sentence.id),
                    "answer": _answer(answers[sentence.id]),
                    "keys": [sample.key[:KEY_SHOWN] for sample in answers[sentence.id].samples],
                }
            )
        rows.append({"original": name, "sentences": answered})
    return {
        "kind": "identification",
        "predictions": path,
        "sentences": sentences_path,
        "rows": rows,
    }


def _load_originals(path: str) -> dict[str, list[JamSentence]]:
    return by_original(load_sentences(path))


def _decisions(judged: Mapping[str, Any] | None) -> dict[str, bool]:
    """Whether each sentence of an original was judged rightly."""
    return {} if judged is None else {judged["id"]: judged["correct"], **judged["variants"]}


def _answer(answer: IdiomPrediction) -> str:
    if answer.idioms is None:
        return answer.outcome
    return f"idiom: {'; '.join(answer.idioms)}" if answer.idioms else "no idiom"


def _text_of(sentence: JamSentence) -> Json:
    """The sentence with its PIE marked, figurative or not."""
    text = sentence.sentence
    if spans := spans_of(sentence.tags):
        place = len("".join(sentence.tokens[: spans[0].start]))
        marked = span_text(sentence.tokens, spans[0])
    else:
        # The PIE of a literal sentence has no tags; in a variant it stands last.
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
