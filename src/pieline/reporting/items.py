"""Export the predictions of a study's runs as Parquet, as gzipped CSV and to the results page."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pieline.core.files import atomic_path, open_gzip
from pieline.core.records import Frozen
from pieline.reporting.evidence import Json, MetricFile, Pool, load_metric_file
from pieline.reporting.inputs import DisplayInputs

Class = Literal["idiom", "no idiom"]
CLASSES: Mapping[bool | None, Class] = {True: "idiom", False: "no idiom"}
"""Class of a sentence, by whether the sentence is idiomatic."""
_ROWS_PER_BATCH = 50_000
_ARROW_TYPES = {bool: "bool", int: "int64", float: "float64", str: "string"}


class Item(Frozen, ABC):
    """Base class of a prediction's row, with the columns that all studies share.

    docs/items.md describes all columns.

    Attributes:
        language: Language of the sentence.
        model: Name of the model.
        label: Display name of the model; for a fine-tuned model, the name of its base model.
        seed: Seed of the run.
        metrics: Path of the metric file that scores the prediction.
        note: Notice that the data is a sample, limited or the user's own; otherwise null.
    """

    language: str
    model: str
    label: str
    seed: int
    metrics: str
    note: str | None

    @classmethod
    @abstractmethod
    def of(cls, inputs: DisplayInputs) -> Iterator[Self]:
        """Yield the rows of all predictions of a study, run by run."""

    @classmethod
    def evidence(cls, metric: MetricFile, pool: Pool, depth: int) -> Json | None:
        """Return the predictions behind a metric file, as JSON for the results page.

        Args:
            metric: Metric file.
            pool: Pool to which the texts of the predictions are added.
            depth: Number of documents to show per query.

        Returns:
            None if the metrics were not computed from exactly one prediction file. Otherwise, the
            field `kind` selects the layout on the page, and `rows` contains all queries, sentences
            or originals.
        """
        return None

    @classmethod
    def columns(cls) -> list[str]:
        """Return the names of the study's own columns, then those that all studies share."""
        shared_columns = list(Item.model_fields)
        own_columns = [name for name in cls.model_fields if name not in shared_columns]
        return own_columns + shared_columns


def metrics_and_columns(inputs: DisplayInputs) -> Iterator[tuple[MetricFile, dict[str, Any]]]:
    """Yield each run's metric file, and the columns that all rows of the run share.

    The column `language` is not included.
    """
    labels = inputs.labels()
    note = " ".join(filter(None, (inputs.mark, *inputs.notes))) or None
    for run in inputs.runs:
        if run.not_run:
            continue
        metric_file = load_metric_file(run.metrics)
        shared_columns = {
            "model": metric_file.fields["model"],
            "label": labels[run.keys["model"]],
            "seed": metric_file.fields["seed"],
            "metrics": run.metrics,
            "note": note,
        }
        yield metric_file, shared_columns


def write_items(
    kind: type[Item], rows: Iterable[Item], *, parquet: str | Path, csv: str | Path
) -> None:
    """Write rows as Parquet and as gzipped CSV; identical rows produce byte-identical files.

    In the CSV file, booleans are written as `true` and `false`, and null is an empty field.

    Args:
        kind: Class of the rows.
        rows: Rows, which are written in batches to save memory.
        parquet: Path of the Parquet file.
        csv: Path of the CSV file.
    """
    # Imported here because the results page imports this module, but does not need pyarrow.
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    schema = pa.schema(
        [(name, _arrow_type(kind.model_fields[name].annotation)) for name in kind.columns()]
    )
    remaining_rows = iter(rows)
    with (
        atomic_path(parquet) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd") as parquet_writer,
        open_gzip(csv) as stream,
        pa_csv.CSVWriter(stream, schema) as csv_writer,
    ):
        while rows_of_batch := list(islice(remaining_rows, _ROWS_PER_BATCH)):
            fields_of_rows = [vars(row) for row in rows_of_batch]
            batch = pa.RecordBatch.from_pylist(fields_of_rows, schema=schema)
            parquet_writer.write_batch(batch)
            csv_writer.write_batch(batch)


def _arrow_type(annotation: Any) -> str:
    """Return the name of the Arrow type for a field with this annotation.

    For a union such as `str | None`, the first type determines the Arrow type; for a literal, the
    type of its values.
    """
    arguments = get_args(annotation)
    if not arguments:
        return _ARROW_TYPES[annotation]
    first = arguments[0]
    is_type = isinstance(first, type) or bool(get_args(first))
    return _arrow_type(first if is_type else type(first))
