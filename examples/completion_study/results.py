"""Metric, table, figure and items of the study."""

from collections.abc import Iterator
from typing import Any, Self

from pieline.core.conditions import MetricRecord
from pieline.core.records import load_jsonl, load_records
from pieline.reporting.columns import Column, model_table
from pieline.reporting.displays import ConfiguredStudy, Figure, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.items import Item, runs
from pieline.reporting.tables import TableContent
from pieline.studies.completion.questions import Completion


class CompletionMetrics(MetricRecord):
    """Metrics of a model: the fraction of idioms that it completes."""

    model: str
    seed: int = 0
    accuracy: float


def accuracy_table(inputs: DisplayInputs) -> TableContent:
    """Return the table of accuracies with the printed ones."""
    column = Column[CompletionMetrics]("accuracy_pct", "Accuracy", lambda item: 100 * item.accuracy)
    return model_table(inputs, CompletionMetrics, [column], caption="Completed idioms in percent.")


def all_runs(study: ConfiguredStudy) -> DisplayInputs:
    """Return inputs with all runs and the printed numbers."""
    inputs = study.display_inputs(study.plan.metrics(), study.settings.models, "llm")
    published = study.project.here("src/pieline/studies/completion/published.csv")
    return inputs.with_files(published=published)


ACCURACY = Table("completion_accuracy", "Table 1", "Idioms completed.", accuracy_table, all_runs)


def accuracy_figure(inputs: DisplayInputs) -> Any:
    """Draw the accuracy of each model as a bar."""
    from matplotlib import pyplot

    metrics, labels = load_records(inputs.metrics, CompletionMetrics), inputs.labels()
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
        for metric, shared in runs(inputs):
            for row in load_jsonl(metric.predictions(".jsonl")[0], Completion):
                answer = row.model_dump(include={"id", "word", "answer", "outcome", "answer_key"})
                yield cls(**shared, **answer, language="english", correct=row.is_correct())
