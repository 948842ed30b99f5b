"""IdioLink as MTEB tasks: write the data in BEIR format, and read MTEB's predictions."""

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
"""Format of the exported queries with instructions. The queries contain the instructions, because
MTEB would put instructions after the queries."""
_NO_PREDICTIONS = "use a TASK_predictions.json file that MTEB wrote for one of our tasks"


def write_mteb_data(
    files: Mapping[str, str], documents: Sequence[Document], queries: Sequence[Query]
) -> None:
    """Write the data of the tasks with and without instructions, in BEIR format.

    Args:
        files: Paths of the files to write, by name: `corpus`, `qrels`, `queries_sentence` and
            `queries_instruction_sentence`.
        documents: Documents of the index.
        queries: Queries of the split.
    """
    document_texts = {document.id: document.sentence for document in documents}
    query_texts = {query.id: query.sentence for query in queries}
    instructed_query_texts = {
        query.id: instructed_text(query, instruction_format=MTEB_INSTRUCTION_FORMAT).text
        for query in queries
    }
    _write_texts(files["corpus"], document_texts, title="")
    _write_texts(files["queries_sentence"], query_texts)
    _write_texts(files["queries_instruction_sentence"], instructed_query_texts)
    lines = ["query-id\tcorpus-id\tscore"]
    for query_id, relevance in meaning_qrels(queries, documents).items():
        lines += [f"{query_id}\t{document_id}\t{score}" for document_id, score in relevance.items()]
    write_text(files["qrels"], "\n".join(lines) + "\n")


def _write_texts(path: str | Path, texts: Mapping[str, str], **more_fields: str) -> None:
    """Write one JSON object per line for each text by id; add `more_fields` to every object."""
    lines = (
        json.dumps({"_id": text_id, **more_fields, "text": text}, ensure_ascii=False) + "\n"
        for text_id, text in texts.items()
    )
    write_text(path, "".join(lines))


def mteb_scores(path: str | Path) -> dict[str, dict[str, float]]:
    """Read MTEB's scores by query id and document id (subset `default`, split `test`).

    Raises:
        UserError: The file does not contain valid predictions for this subset and split.
    """
    predictions: Any = read_json(path)
    # The subset and the split are nested keys.
    for key in ("default", "test"):
        if not isinstance(predictions, dict) or key not in predictions:
            raise UserError(f"no predictions for {key!r}", where=path, hint=_NO_PREDICTIONS)
        predictions = predictions[key]
    return validated(
        dict[str, dict[str, FiniteFloat]], predictions, where=path, hint=_NO_PREDICTIONS
    )


def task_of(path: str | Path) -> str:
    """Return the task name in the name of a prediction file; task names end in the query mode."""
    return Path(path).name.removesuffix(".json").removesuffix("_predictions")
