"""A study's predictions, one row each: as Parquet, as gzipped CSV, and for the results page."""

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
"""What is said of a sentence, by whether that is "idiom"."""
_ROWS_AT_ONCE = 50_000
_ARROW = {bool: "bool", int: "int64", float: "float64", str: "string"}


class Item(Frozen, ABC):
    """A row, and what the rows of all studies have; docs/items.md describes every column.

    Attributes:
        language: of the sentence.
        model, label: the model's name here and for readers; a fine-tuned one has its base's label.
        seed: of the run.
        metrics: the metric file that the row counts in.
        note: why the row is no result (sample data, a rehearsal), or whose data it is of; or null.
    """

    language: str
    model: str
    label: str
    seed: int
    metrics: str
    note: str | None

    @classmethod
    @abstractmethod
    def of(cls, given: DisplayInputs) -> Iterator[Self]:
        """The rows of all runs of a study, one run after the other."""

    @classmethod
    def evidence(cls, metric: MetricFile, pool: Pool, depth: int) -> Json | None:
        """The predictions behind a metric file, for the results page.

        None if it does not come from one file of predictions. `kind` decides how the page shows
        them, `rows` are all queries, sentences or originals; `depth` is the number of documents
        shown for a query. Their texts go into the pool.
        """
        return None

    @classmethod
    def columns(cls) -> list[str]:
        """The study's own columns, then those of all studies."""
        shared = Item.model_fields
        return [*(name for name in cls.model_fields if name not in shared), *shared]


def runs(given: DisplayInputs) -> Iterator[tuple[MetricFile, dict[str, Any]]]:
    """Each metric file, with what all its rows say but the language."""
    labels = given.labels()
    note = " ".join(filter(None, (given.mark, *given.notes))) or None
    for path in given.metrics:
        metric = load_metric_file(path)
        model = metric.fields["model"]
        yield (
            metric,
            {
                "model": model,
                "label": labels[model.partition("+")[0]],
                "seed": metric.fields["seed"],
                "metrics": path,
                "note": note,
            },
        )


def write_items(
    kind: type[Item], rows: Iterable[Item], *, parquet: str | Path, csv: str | Path
) -> None:
    """Write rows of a kind, of which few are in memory at a time; equal rows give equal bytes.

    In the CSV booleans are true and false, and null is an empty field without quotes.
    """
    # Only here: the results page imports this module, too.
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
    """The type of a column, from the annotation of its field."""
    while parts := get_args(annotation):
        # Of `a | None` the type, of a literal that of its values, which are all of one.
        first = parts[0]
        annotation = first if isinstance(first, type) or get_args(first) else type(first)
    return _ARROW[annotation]
