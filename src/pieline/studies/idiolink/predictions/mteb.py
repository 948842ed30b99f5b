"""IdioLink as MTEB tasks: a writer of BEIR data, and a reader of MTEB's predictions."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import FiniteFloat

from pieline.core.errors import UserError
from pieline.core.files import read_json, write_text
from pieline.core.records import validated
from pieline.studies.idiolink.datasets.dataset import meaning_qrels
from pieline.studies.idiolink.predictions.query_texts import instructed_text
from pieline.studies.idiolink.records import Document, Query

MTEB_INSTRUCTION_FORMAT = "instruction_newline_query"
"""Instruction format of the exported queries; MTEB would append instructions to the queries."""
_NO_PREDICTIONS = "use a TASK_predictions.json file that MTEB wrote for one of our tasks"


def write_mteb_data(
    files: Mapping[str, str], documents: Sequence[Document], queries: Sequence[Query]
) -> None:
    """Write the data of the tasks with and without instructions, in BEIR format.

    Args:
        files: Paths of `corpus`, `qrels`, `queries_sentence` and `queries_instruction_sentence`.
        documents: Documents of the index.
        queries: Queries of the split.
    """
    instructed = {
        query.id: instructed_text(query, instruction_format=MTEB_INSTRUCTION_FORMAT).text
        for query in queries
    }
    _write(files["corpus"], {document.id: document.sentence for document in documents}, title="")
    _write(files["queries_sentence"], {query.id: query.sentence for query in queries})
    _write(files["queries_instruction_sentence"], instructed)
    lines = ["query-id\tcorpus-id\tscore"]
    for query, relevant in meaning_qrels(queries, documents).items():
        lines += [f"{query}\t{document}\t{score}" for document, score in relevant.items()]
    write_text(files["qrels"], "\n".join(lines) + "\n")


def _write(path: str | Path, texts: Mapping[str, str], **more: str) -> None:
    lines = (
        json.dumps({"_id": name, **more, "text": text}, ensure_ascii=False) + "\n"
        for name, text in texts.items()
    )
    write_text(path, "".join(lines))


def mteb_scores(path: str | Path) -> dict[str, dict[str, float]]:
    """Return MTEB's scores by query and document, from subset `default` and split `test`.

    Raises:
        UserError: The file does not contain valid predictions for this subset and split.
    """
    predictions: Any = read_json(path)
    for name in ("default", "test"):
        if not isinstance(predictions, dict) or name not in predictions:
            raise UserError(f"no predictions for {name!r}", where=path, hint=_NO_PREDICTIONS)
        predictions = predictions[name]
    return validated(
        dict[str, dict[str, FiniteFloat]], predictions, where=path, hint=_NO_PREDICTIONS
    )


def task_of(path: str | Path) -> str:
    """Return the task name in the name of a prediction file; it ends in the query mode."""
    return Path(path).name.removesuffix(".json").removesuffix("_predictions")
