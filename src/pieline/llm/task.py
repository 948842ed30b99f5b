"""Tasks for language models: making the questions and reading the answers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from pieline.core.imports import import_object
from pieline.core.records import Frozen
from pieline.llm.answers import Answer
from pieline.llm.parsing import Parsed
from pieline.llm.questions import Question
from pieline.models.llm import LLMEntry

LIKELY_OUTPUT_TOKENS = 80
"""Of an answer whose task says no more: a small JSON object with a sentence in it."""


class Ask(Protocol):
    """Gets answers: recorded ones, and where they lack the question, the model's."""

    def __call__(self, questions: Sequence[Question]) -> Mapping[str, Answer]:
        """Return the answers to all questions by key.

        Raises:
            UserError: some of them cannot be had.
        """


class Task(Frozen, ABC):
    """A task for one language model: makes the questions and reads the answers.

    The rule that asks hands a task's canonical JSON to one script for all studies, and the estimate
    of costs makes its questions from the very same object.

    Attributes:
        model: name in models.yaml.
        spec: execution spec of the model's entry.
        inputs: files that the questions are made from, by name.
        outputs: files that the answers are written to, by name.
        recordings: file that keeps the answers; no rule's output, so that nothing deletes it.
    """

    model: str
    spec: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    recordings: str

    @abstractmethod
    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return all questions that are known before anything is answered.

        Those of a later round, which hold earlier answers, are among them as far as `recordings`
        has the answers that they need.
        """

    def likely_output_tokens(self) -> int:
        """Estimate the tokens of one answer without thoughts, if no such answer is recorded.

        Tasks of one class that say the same are taken to have answers of one length.
        """
        return LIKELY_OUTPUT_TOKENS

    @abstractmethod
    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask, read the answers, and write the outputs."""

    @abstractmethod
    def reading(self, answer: Answer) -> Parsed[Any]:
        """Parse one answer: its value, its outcome, and the rule that read it."""

    def entry(self) -> LLMEntry:
        """The model."""
        return LLMEntry.from_spec(self.spec, label=self.model)

    @classmethod
    def path(cls) -> str:
        """Return `module:class`, by which the script loads the task."""
        return f"{cls.__module__}:{cls.__qualname__}"


def by_kind_and_model(tasks: Iterable[Task]) -> dict[tuple[str, str], list[Task]]:
    """Group tasks by the name of their class and their model, in order."""
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in tasks:
        groups.setdefault((type(task).__name__, task.model), []).append(task)
    return groups


def load_task(path: str, text: str) -> Task:
    """Load a task from the name of its class (`Task.path`) and its canonical JSON."""
    task: Task = import_object(path).model_validate_json(text)
    return task
