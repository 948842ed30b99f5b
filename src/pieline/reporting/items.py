"""Export of a study's predictions as Parquet and gzipped CSV, and for the results page."""

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
"""Class of a sentence, by whether it is idiomatic."""
_ROWS_AT_ONCE = 50_000
_ARROW = {bool: "bool", int: "int64", float: "float64", str: "string"}


class Item(Frozen, ABC):
    """Base class of rows, with the columns that all studies share (described in docs/items.md).

    Attributes:
        language: Language of the sentence.
        model: Name of the model.
        label: Display name of the model; a fine-tuned model has the label of its base model.
        seed: Seed of the run.
        metrics: Path of the metric file to which the row belongs.
        note: Notice that the row is not a result (sample data) or uses the user's own data;
            otherwise null.
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
        """Yield the rows of all runs of a study, run by run."""

    @classmethod
    def evidence(cls, metric: MetricFile, pool: Pool, depth: int) -> Json | None:
        """Return the predictions behind a metric file for the results page.

        The result is None if the metric file was not computed from a single prediction file.
        Otherwise, its `kind` selects the layout on the page, and its `rows` contain all queries,
        sentences or originals. Texts are added to the pool; `depth` is the number of documents per
        query.
        """
        return None

    @classmethod
    def columns(cls) -> list[str]:
        """Return the names of the study's own columns, followed by those of the shared columns."""
        shared = Item.model_fields
        return [*(name for name in cls.model_fields if name not in shared), *shared]


def runs(inputs: DisplayInputs) -> Iterator[tuple[MetricFile, dict[str, Any]]]:
    """Yield each metric file with the values of the shared columns, except the language."""
    labels = inputs.labels()
    note = " ".join(filter(None, (inputs.mark, *inputs.notes))) or None
    for run in inputs.runs:
        if not run.not_run:
            metric = load_metric_file(run.metrics)
            yield (
                metric,
                {
                    "model": metric.fields["model"],
                    "label": labels[run.keys["model"]],
                    "seed": metric.fields["seed"],
                    "metrics": run.metrics,
                    "note": note,
                },
            )


def write_items(
    kind: type[Item], rows: Iterable[Item], *, parquet: str | Path, csv: str | Path
) -> None:
    """Write rows of one kind in batches; identical rows produce byte-identical files.

    In the CSV, booleans are true and false, and null is an empty field without quotes.
    """
    # Imported here because the results page imports this module but does not need pyarrow.
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    schema = pa.schema(
        [(name, _arrow_type(kind.model_fields[name].annotation)) for name in kind.columns()]
    )
    waiting = iter(rows)
    with (
        atomic_path(parquet) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd") as table,
        open_gzip(csv) as stream,
        pa_csv.CSVWriter(stream, schema) as text,
    ):
        while some := list(islice(waiting, _ROWS_AT_ONCE)):
            batch = pa.RecordBatch.from_pylist(list(map(vars, some)), schema=schema)
            table.write_batch(batch)
            text.write_batch(batch)


def _arrow_type(annotation: Any) -> str:
    """Return the Arrow type for the annotation of a field."""
    while parts := get_args(annotation):
        # For `a | None`, this is a; for a literal, the type of its values.
        first = parts[0]
        annotation = first if isinstance(first, type) or get_args(first) else type(first)
    return _ARROW[annotation]
