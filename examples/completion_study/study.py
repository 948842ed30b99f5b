"""Declaration of the study."""

import json
from collections.abc import Callable, Iterator

from pydantic import Field

from pieline.core.conditions import Conditions
from pieline.core.files import sha256
from pieline.core.settings import Settings
from pieline.models.names import LanguageModelName
from pieline.plan import Run
from pieline.studies.completion.questions import CompletionTask
from pieline.studies.completion.results import BARS, TABLE, all_runs
from pieline.study import Items, LLMTaskSpec, Study

FOLDER = "src/pieline/studies/completion"
PREDICTIONS = "results/predictions/completion/{model}.jsonl"
SCORES = "results/metrics/completion/{model}.json"
PRINTED = {
    "idioms.jsonl": "48b6d3519a455f5590db44a48a49753d4636178891c3e8fcd1c8c3ba61620eaa",
    "complete.jinja": "2168a7922fe8350eae3d54a7404aecd2ba2faa634eae413315ec9cc3041c0de7",
}
"""Digests of the files behind the printed numbers. If a file differs, no number is compared."""


class CompletionSettings(Settings):
    """Section `completion` of config.yaml; the defaults are the paper's values."""

    models: list[LanguageModelName] = Field(
        default=["smollm2-135m-instruct"], description="Language models of models.yaml."
    )
    temperature: float = Field(default=0, ge=0, description="Sampling temperature.")
    max_tokens: int = Field(default=80, ge=1, description="Maximum tokens per answer.")


class CompletionStudy(Study[CompletionSettings]):
    """Study of idiom completion: its runs, questions, conditions and displays."""

    name = "completion"
    paper = "Completion"
    Settings = CompletionSettings
    displays = (TABLE, BARS)

    def models(self) -> list[str]:
        """Return the names of the configured models."""
        return list(self.settings.models)

    def configured_runs(self) -> Iterator[Run]:
        """Yield a run per model."""
        for model in self.settings.models:
            yield Run(
                study=self.name,
                model=model,
                keys={"model": model},
                kind="llm",
                where={"model": model},
                predictions=PREDICTIONS.format(model=model),
                metrics=SCORES.format(model=model),
                conditions=self.conditions(model),
                recordings=self.project.recordings(self.name, f"{model}.jsonl"),
            )

    def conditions(self, model: str) -> Conditions:
        """Return what determines a model's numbers, and the deviations from the paper."""
        files = {name: sha256(self.project.here(f"{FOLDER}/{name}")) for name in PRINTED}
        changed = [f"{name} is not the paper's" for name in files if files[name] != PRINTED[name]]
        sent, others = self.as_sent(model, self.settings, ignored={"models"})
        del sent["models"]
        return Conditions(
            settings={**sent, "files": files},
            weights=json.loads(self.project.language_model(model).execution_spec()),
            deviations=(*changed, *others),
        )

    def conditions_by_pattern(self) -> dict[str, Callable[..., Conditions]]:
        """Return the function that computes conditions, by the path pattern of metric files."""
        return {SCORES: self.conditions}

    def task(self, model: str) -> CompletionTask:
        """Return the task that asks a model."""
        here = self.project.here
        return CompletionTask(
            model=model,
            spec=self.project.language_model(model).execution_spec(),
            inputs={
                "rows": here(f"{FOLDER}/idioms.jsonl"),
                "prompt": here(f"{FOLDER}/complete.jinja"),
            },
            outputs={"predictions": PREDICTIONS.format(model=model)},
            recordings=self.project.recordings(self.name, f"{model}.jsonl"),
            parameters=self.settings.model_dump(include={"temperature", "max_tokens"}),
        )

    def llm_tasks(self) -> list[LLMTaskSpec]:
        """Return the specification of the only task, which runs once per model."""
        return [
            LLMTaskSpec(
                name="completion_ask",
                task=CompletionTask,
                make=self.task,
                runs=[{"model": model} for model in self.settings.models],
            )
        ]

    def items(self) -> Items:
        """Return the declaration of the items: every answer as a row."""
        record = "pieline.studies.completion.results:CompletionItem"
        predictions = tuple(run.predictions for run in self.plan.made())
        return Items("completion", record, all_runs(self), predictions)
