"""From a metric file down to the sentences behind it: rankings, answers, predictions.

Nothing here is computed again. What a metric file says it was computed from is read, after its
digest was checked, and cut down to what a page can hold.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pieline.core.errors import UserError
from pieline.core.files import read_json, sha256
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.predictions.runs import read_run
from pieline.studies.idiolink.raw.released import meaning_qrels
from pieline.studies.idiolink.records import Document, Query
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.jam.bio import spans_of
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence, by_original

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """How much of a run the page holds.

    Attributes:
        items: queries, sentences or originals shown for a metric file, evenly spread.
        depth: documents shown for a query.
    """

    items: int = 40
    depth: int = 10


@dataclass
class Pool:
    """Texts that metric files share, by dataset file and id; each stands in the page once."""

    texts: dict[str, dict[str, Json]] = field(default_factory=dict)
    _loaded: dict[tuple[str, str], Any] = field(default_factory=dict)

    def read(self, path: str, load: Callable[[str], T]) -> T:
        """What `load` makes of a file, read once."""
        key = (path, load.__qualname__)
        if key not in self._loaded:
            self._loaded[key] = load(path)
        found: T = self._loaded[key]
        return found

    def add(self, path: str, name: str, text: Json) -> None:
        """Keep a text."""
        self.texts.setdefault(path, {})[name] = text


@dataclass(frozen=True)
class MetricFile:
    """A metric file as the page needs it: its path, digest and fields."""

    path: str
    digest: str
    study: str
    fields: Json

    @property
    def inputs(self) -> dict[str, str]:
        """Digests of the files that it was computed from."""
        return dict(self.fields["computed_from"])


def load_metric_file(path: str | Path) -> MetricFile:
    """Read a metric file of any study.

    Raises:
        UserError: the file does not say what it was computed from.
    """
    fields = read_json(path)
    if not isinstance(fields, dict) or not isinstance(fields.get("computed_from"), dict):
        raise UserError("no field 'computed_from'", where=path, mend="make it again")
    study = Path(path).parts[Path(path).parts.index("metrics") + 1]
    return MetricFile(str(path), sha256(path), study, fields)


def check_inputs(metrics: Iterable[MetricFile]) -> None:
    """Check that the files behind the numbers are still those that they were computed from.

    Raises:
        UserError: a file is missing or has another digest.
    """
    known: dict[str, str] = {}
    for metric in metrics:
        for path, digest in metric.inputs.items():
            if path not in known:
                if not Path(path).is_file():
                    raise UserError(
                        f"{path} is missing, from which it was computed",
                        where=metric.path,
                        mend="run snakemake again",
                    )
                known[path] = sha256(path)
            if known[path] != digest:
                raise UserError(
                    f"computed from another {path} than the one there",
                    where=metric.path,
                    mend="run snakemake again",
                )


def evidence_of(metric: MetricFile, pool: Pool, limits: Limits) -> Json | None:
    """What lies behind a metric file, or None where that is not one file of predictions."""
    predictions = [name for name in metric.inputs if name.startswith("results/predictions/")]
    if metric.study == "idiolink":
        runs = [name for name in predictions if name.endswith(".run.gz")]
        return _ranking(metric, runs[0], pool, limits) if len(runs) == 1 else None
    lines = [name for name in predictions if name.endswith(".jsonl")]
    if metric.study == "idiots" and lines:
        return _detection(metric, lines[0], pool, limits)
    if metric.study == "jam" and lines and "judged" in metric.fields:
        return _identification(metric, lines[0], pool, limits)
    return None


def spread(items: Sequence[T], count: int) -> list[T]:
    """At most `count` items, evenly spread over all."""
    if len(items) <= count:
        return list(items)
    return [items[number * len(items) // count] for number in range(count)]


def _input(metric: MetricFile, ending: str) -> str:
    """The one input of a metric file whose name has this ending.

    Raises:
        UserError: there is none.
    """
    found = [name for name in metric.inputs if name.endswith(ending)]
    if not found:
        raise UserError(f"computed from no …{ending}", where=metric.path, mend="make it again")
    return found[0]


def _marked(sentence: str, span: str) -> list[str]:
    """The sentence in three parts, the span in the middle."""
    start = sentence.find(span)
    return [sentence[:start], span, sentence[start + len(span) :]]


def _ranking(metric: MetricFile, run_path: str, pool: Pool, limits: Limits) -> Json:
    documents_path = _input(metric, "/documents.jsonl")
    queries_path = _input(metric, "/queries.jsonl")
    documents = pool.read(documents_path, _load_documents)
    queries = pool.read(queries_path, _load_queries)
    shown = spread(queries, limits.items)
    qrels = meaning_qrels(shown, list(documents.values()))
    run = read_run(run_path)
    rows = []
    for query in shown:
        best = list(run.get(query.id, {}).items())[: limits.depth]
        relevant = qrels[query.id]
        pool.add(queries_path, query.id, _text_of(query))
        for name, _ in best:
            pool.add(documents_path, name, _text_of(documents[name]))
        rows.append(
            {
                "query": query.id,
                "best": [[name, round(score, 4), int(name in relevant)] for name, score in best],
            }
        )
    return {
        "kind": "ranking",
        "predictions": run_path,
        "queries": queries_path,
        "documents": documents_path,
        "of": len(queries),
        "rows": rows,
    }


def _load_documents(path: str) -> dict[str, Document]:
    return {item.id: item for item in load_jsonl(path, Document)}


def _load_queries(path: str) -> list[Query]:
    return load_jsonl(path, Query)


def _text_of(item: Document | Query) -> Json:
    return {
        "parts": _marked(item.sentence, item.span),
        "usage": item.usage,
        "pie": item.pie,
        "subject": item.subject,
    }


def _detection(metric: MetricFile, path: str, pool: Pool, limits: Limits) -> Json:
    sentences_path = _input(metric, "/sentences.jsonl")
    sentences = pool.read(sentences_path, _load_idiots)
    answers = {item.id: item for item in load_jsonl(path, DetectionPrediction)}
    rows = []
    for sentence in spread(sentences, limits.items):
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
                "answer": _detection_answer(answer),
                "outcome": answer.outcome,
                "key": answer.answer_key,
            }
        )
    return {
        "kind": "detection",
        "predictions": path,
        "sentences": sentences_path,
        "of": len(sentences),
        "rows": rows,
    }


def _load_idiots(path: str) -> list[IdiotsSentence]:
    return load_jsonl(path, IdiotsSentence)


def _detection_answer(answer: DetectionPrediction) -> str:
    if answer.has_idiom is None:
        return f"{answer.outcome}: {answer.reason}" if answer.reason else answer.outcome
    if not answer.has_idiom:
        return "no idiom"
    meaning = f" ({answer.meaning})" if answer.meaning else ""
    return f"idiom: {answer.idiom or 'none named'}{meaning}"


def _identification(metric: MetricFile, path: str, pool: Pool, limits: Limits) -> Json:
    language = metric.fields["language"]
    sentences_path = _input(metric, f"/{language}.jsonl")
    groups = pool.read(sentences_path, _load_jam)
    answers = {item.id: item for item in load_jsonl(path, IdiomPrediction)}
    judged = {item["id"]: item for item in metric.fields["judged"]}
    rows = []
    for name, sentences in spread(list(groups.items()), limits.items):
        decisions = _decisions(judged.get(name))
        answered = []
        for sentence in sentences:
            if sentence.id not in answers:
                continue
            pool.add(sentences_path, sentence.id, _jam_text(sentence))
            answered.append(
                {
                    "sentence": sentence.id,
                    "right": decisions.get(sentence.id),
                    "answer": _identification_answer(answers[sentence.id]),
                }
            )
        rows.append({"original": name, "sentences": answered})
    return {
        "kind": "identification",
        "predictions": path,
        "sentences": sentences_path,
        "of": len(groups),
        "rows": rows,
    }


def _load_jam(path: str) -> dict[str, list[JamSentence]]:
    return by_original(load_sentences(path))


def _decisions(judged: Mapping[str, Any] | None) -> dict[str, bool]:
    """Whether each sentence of an original was judged rightly."""
    return {} if judged is None else {judged["id"]: judged["correct"], **judged["variants"]}


def _identification_answer(answer: IdiomPrediction) -> str:
    if answer.idioms is None:
        return answer.outcome
    return f"idiom: {'; '.join(answer.idioms)}" if answer.idioms else "no idiom"


def _jam_text(sentence: JamSentence) -> Json:
    """The sentence with its PIE marked, figurative or not."""
    parts = [sentence.sentence, "", ""]
    spans = spans_of(sentence.tags)
    if spans:
        start, end = spans[0]
        before = "".join(sentence.tokens[:start])
        span = "".join(sentence.tokens[start:end])
        after = "".join(sentence.tokens[end:])
        marked = span.rstrip()
        parts = [before, marked, span[len(marked) :] + after]
    else:
        # The PIE of a literal sentence has no tags; in a variant it stands last.
        place = sentence.sentence.lower().rfind(sentence.pies[0].lower())
        if place >= 0:
            end = place + len(sentence.pies[0])
            text = sentence.sentence
            parts = [text[:place], text[place:end], text[end:]]
    return {
        "parts": parts,
        "usage": "figurative" if sentence.is_figurative else "literal",
        "pie": "; ".join(sentence.pies),
        "variant": sentence.variant_number,
    }
