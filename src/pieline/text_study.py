"""Base class of studies that ask language models one question per row of a file."""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import ClassVar, TypeVar

from pydantic import Field, NonNegativeFloat, PositiveInt

from pieline.core.conditions import Conditions
from pieline.core.files import sha256
from pieline.core.settings import Settings
from pieline.llm.text_task import TextTask
from pieline.plan import Run
from pieline.reporting.inputs import DisplayInputs
from pieline.study import LLMTaskSpec, Study


class TextSettings(Settings):
    """Settings of a text study. In subclasses, the defaults are the paper's values."""

    models: list[str] = Field(
        default=["smollm2-135m-instruct"], description="Language models of models.yaml."
    )
    temperature: NonNegativeFloat = Field(default=0, description="Sampling temperature.")
    max_tokens: PositiveInt = Field(default=80, description="Maximum tokens per answer.")


T = TypeVar("T", bound=TextSettings)


class TextStudy(Study[T]):
    """A study that asks each model one question per row; subclasses add tables, figures and items.

    Attributes:
        rows: Project file with one row per question (see `TextTask`).
        prompt: Project file with the question template.
        rows_sha256, prompt_sha256: Digests of the files behind the printed numbers. If a file
            differs, no number is compared.
        published: Project file with the printed numbers by model.
        predictions, scores: Path patterns of the prediction and metric files, with `{model}`.
        Task: Class that asks the questions and parses the answers.
    """

    rows: ClassVar[str]
    rows_sha256: ClassVar[str]
    prompt: ClassVar[str]
    prompt_sha256: ClassVar[str]
    published: ClassVar[str]
    predictions: ClassVar[str]
    scores: ClassVar[str]
    Task: ClassVar[type[TextTask]] = TextTask

    def check(self, where: str) -> None:
        """Raise a `UserError` if a configured model is unknown or is not a language model."""
        self.check_models(self.settings.models, "llm", where=f"{where}.models")

    def models(self) -> list[str]:
        """Return the names of the configured models."""
        return list(self.settings.models)

    def raw_files(self) -> list[str]:
        """Return an empty list, since the rows are part of the project."""
        return []

    def task(self, model: str) -> TextTask:
        """Return the task of a model."""
        return self.Task(
            model=model,
            spec=self.project.language_model(model).execution_spec(),
            inputs={"rows": self.project.here(self.rows), "prompt": self.project.here(self.prompt)},
            outputs={"predictions": self.predictions.format(model=model)},
            recordings=self.project.recordings(self.name, f"{model}.jsonl"),
            parameters=self.settings.model_dump(include={"temperature", "max_tokens"}),
        )

    def llm_tasks(self) -> list[LLMTaskSpec]:
        """Return the specification of the only task, which runs once per model."""
        return [
            LLMTaskSpec(
                name=f"{self.name}_ask",
                task=self.Task,
                outputs={"predictions": self.predictions},
                make=self.task,
                runs=[{"model": model} for model in self.settings.models],
                constraints={"model": self.project.constraint("llm")},
            )
        ]

    def configured_runs(self) -> Iterator[Run]:
        """Yield a run per model."""
        for model in self.settings.models:
            predictions = self.predictions.format(model=model)
            yield Run(
                study=self.name,
                model=model,
                key=f"{model}/0",
                kind="llm",
                where={"model": model},
                predictions=predictions,
                metrics=self.scores.format(model=model),
                conditions=self.conditions(model),
                recordings=self.project.recordings(self.name, f"{model}.jsonl"),
            )

    def lacks(self, runs: Sequence[Run], archived: Collection[str]) -> dict[str, str]:
        """Return why models cannot provide answers, by metric file."""
        return {
            run.metrics: reason
            for run in runs
            if (reason := self.project.unanswered(run.model, run.recordings))
        }

    def conditions_by_pattern(self) -> dict[str, Callable[..., Conditions]]:
        """Return the function that computes conditions, by the path pattern of metric files."""
        return {self.scores: self.conditions}

    def conditions(self, model: str) -> Conditions:
        """Return the conditions of a model's metrics."""
        printed = {self.rows: self.rows_sha256, self.prompt: self.prompt_sha256}
        files = {path: sha256(self.project.here(path)) for path in printed}
        changed = [f"{path} is not the paper's" for path in files if files[path] != printed[path]]
        sent, others = self.as_sent(model, self.settings, ignored={"models"})
        del sent["models"]
        return Conditions(
            settings={**sent, "files": files},
            weights=json.loads(self.project.language_model(model).execution_spec()),
            deviations=(*changed, *others),
        )

    def all_runs(self) -> DisplayInputs:
        """Return the inputs of tables, figures and items."""
        inputs = self.display_inputs(self.plan.metrics(), self.settings.models, "llm")
        return inputs.with_files(published=self.project.here(self.published))
