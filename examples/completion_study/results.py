"""Metric, table, figure and items of the study."""

from collections.abc import Iterator
from typing import Any, Self

import pandas as pd

from pieline.core.conditions import MetricRecord
from pieline.core.measures import Measure, share
from pieline.core.records import load_jsonl, load_records
from pieline.reporting.displays import ConfiguredStudy, Figure, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.items import Item, metrics_and_columns
from pieline.reporting.numbers import rows_of
from pieline.reporting.ours import of_runs
from pieline.reporting.tables import Column, Group, TableContent, headers, in_order, number_row
from pieline.studies.completion.questions import Completion


class CompletionMetrics(MetricRecord):
    """Metrics of a model: the fraction of idioms that it completes."""

    model: str
    seed: int = 0
    accuracy: float


ACCURACY: Measure[CompletionMetrics] = share(
    "accuracy", lambda metrics: metrics.accuracy, better="high"
)
"""Measure of the metric file, in percent."""


def accuracy_numbers(inputs: DisplayInputs) -> pd.DataFrame:
    """Return one number per run, with the reasons why the number is not comparable."""
    metrics = zip(load_records(inputs.metrics, CompletionMetrics), inputs.metrics, strict=True)
    return of_runs(
        inputs,
        metrics,
        [ACCURACY],
        keys=lambda metrics: {"model": metrics.model},
        obstacles=lambda metrics: metrics.conditions.deviations,
    )


def accuracy_table(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out our numbers and the printed ones, with a row per model."""
    labels = inputs.labels()
    columns = [Column("accuracy", "Accuracy")]
    by_model = in_order(rows_of(numbers, ["model"]), inputs)
    rows = [number_row((labels[model],), columns, row) for (model,), row in by_model.items()]
    return TableContent(
        heads=(headers(["Model"], columns),),
        groups=(Group(tuple(rows)),),
        caption="Completed idioms in percent.",
    )


def all_runs(study: ConfiguredStudy) -> DisplayInputs:
    """Return inputs with all runs and the printed numbers."""
    inputs = study.display_inputs(study.plan.runs, "llm", models=study.settings.models)
    files = {"completion_table1": "completion_table1.csv", "tables": "tables.yaml"}
    here = study.project.here("src/pieline/studies/completion")
    return inputs.with_files(**{name: f"{here}/{file}" for name, file in files.items()})


TABLE = Table(
    "completion_accuracy",
    "Table 1",
    "Idioms completed.",
    accuracy_table,
    all_runs,
    accuracy_numbers,
)


def accuracy_figure(inputs: DisplayInputs) -> Any:
    """Draw the accuracy of each model as a bar."""
    from matplotlib import pyplot

    labels = inputs.labels()
    metrics = load_records(inputs.metrics, CompletionMetrics)
    drawing, axis = pyplot.subplots(figsize=(4, 2), layout="constrained")
    axis.barh([labels[item.model] for item in metrics], [item.accuracy for item in metrics])
    axis.set(xlim=(0, 1), xlabel="accuracy")
    return drawing


BARS = Figure("completion_bars", "Figure 1", "Idioms completed.", accuracy_figure, all_runs)


class CompletionItem(Item):
    """A model's answer as a row of results/items/completion.parquet."""

    id: str
    word: str
    answer: str | None
    outcome: str
    answer_key: str
    correct: bool

    @classmethod
    def of(cls, inputs: DisplayInputs) -> Iterator[Self]:
        """Yield the answers of all models."""
        for metric, shared in metrics_and_columns(inputs):
            for row in load_jsonl(metric.predictions(".jsonl")[0], Completion):
                answer = row.model_dump(include={"id", "word", "answer", "outcome", "answer_key"})
                yield cls(**shared, **answer, language="english", correct=row.is_correct())
