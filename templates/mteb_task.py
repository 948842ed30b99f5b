"""IdioLink's test split as MTEB tasks, with sentences as queries, with or without an instruction.

`python idiolink_mteb.py run -m MODEL -t IdioLink_sentence --prediction-folder FOLDER` is `mteb run`
with these tasks; from Python, `mteb.evaluate(model, [IdioLinkSentence(), IdioLinkInstruction()])`.
"""

import csv
import hashlib
import json
from pathlib import Path
from statistics import fmean
from typing import Any

from datasets import Dataset
from mteb import TaskMetadata
from mteb.abstasks import AbsTaskRetrieval

_FOLDER = Path(__file__).parent
_CORPUS, _QRELS = _FOLDER / "corpus.jsonl", _FOLDER / "qrels.tsv"


def _metadata(mode: str, description: str) -> TaskMetadata:
    files = (_CORPUS, _QRELS, _queries(mode))
    revision = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    return TaskMetadata(
        name=f"IdioLink_{mode}",
        description=description,
        dataset={"path": "local/idiolink", "revision": revision},
        type="Retrieval",
        category="t2t",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="r_precision",
    )


def _queries(mode: str) -> Path:
    return _FOLDER / f"queries_{mode}.jsonl"


def _texts(path: Path) -> Dataset:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return Dataset.from_list([{"id": row["_id"], "text": row["text"]} for row in rows])


class _IdioLink(AbsTaskRetrieval):
    """Task that reads the files in this folder, and also reports R-Precision."""

    def load_data(self, *args: Any, **kwargs: Any) -> None:
        """Read corpus, queries and qrels."""
        relevant: dict[str, dict[str, int]] = {}
        with _QRELS.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                relevant.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
        split = {
            "corpus": _texts(_CORPUS),
            "queries": _texts(_queries(self.metadata.name.removeprefix("IdioLink_"))),
            "relevant_docs": relevant,
            "top_ranked": None,
        }
        self.dataset = {"default": {"test": split}}
        self.data_loaded = True

    def task_specific_scores(
        self,
        scores: Any,
        qrels: dict[str, dict[str, int]],
        results: dict[str, dict[str, float]],
        *args: Any,
        **kwargs: Any,
    ) -> dict[str, float]:
        """Return R-Precision, which MTEB does not compute."""
        scores_of_queries = []
        for query, relevant in qrels.items():
            ranked = results.get(query, {})
            # Ties are ordered as in trec_eval.
            best = sorted(ranked, key=lambda name: (ranked[name], name), reverse=True)
            scores_of_queries.append(
                len(relevant.keys() & {*best[: len(relevant)]}) / len(relevant)
            )
        return {"r_precision": fmean(scores_of_queries)}


class IdioLinkSentence(_IdioLink):
    """Task whose queries are sentences."""

    metadata = _metadata("sentence", "Sentences that convey the meaning of a query's expression.")


class IdioLinkInstruction(_IdioLink):
    """Task whose queries are an instruction that names the span, followed by the sentence."""

    metadata = _metadata("instruction_sentence", "The same with an instruction before each query.")


if __name__ == "__main__":
    from mteb.cli import main
    from mteb.get_tasks import _TASKS_REGISTRY

    _TASKS_REGISTRY.update({kind.metadata.name: kind for kind in _IdioLink.__subclasses__()})
    main()
