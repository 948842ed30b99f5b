"""Define tasks for language models, which make questions and read answers."""

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
"""Default length of an answer: a small JSON object that contains a sentence."""


class Ask(Protocol):
    """Interface of a function that returns recorded answers and asks the model for missing ones."""

    def __call__(self, questions: Sequence[Question]) -> Mapping[str, Answer]:
        """Return the answers to all questions by key.

        Raises:
            UserError: If some answers are unavailable.
        """


class Task(Frozen, ABC):
    """A task for one language model, which makes the questions and reads the answers.

    The workflow passes a task as canonical JSON to one script for all studies. Cost estimates use
    the same object.

    Attributes:
        model: Name in models.yaml.
        spec: Execution spec of the model's entry.
        inputs: Files that the questions are made from, by name.
        outputs: Files that the answers are written to, by name.
        recordings: File that stores the answers. It is not the output of a rule, so that Snakemake
            never deletes it.
    """

    model: str
    spec: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    recordings: str

    @abstractmethod
    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return all questions that can be made from the inputs and the recorded answers.

        Questions of a later round, which contain earlier answers, are included if `recordings` has
        those answers.
        """

    def likely_output_tokens(self) -> int:
        """Return the expected tokens of one answer, without thoughts.

        It is used if too few answers are recorded. Recorded answers to tasks of the same class with
        the same value are averaged.
        """
        return LIKELY_OUTPUT_TOKENS

    @abstractmethod
    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask the questions, read the answers, and write the outputs."""

    @abstractmethod
    def reading(self, answer: Answer) -> Parsed[Any]:
        """Parse one answer."""

    def entry(self) -> LLMEntry:
        """Return the entry of the model."""
        return LLMEntry.from_spec(self.spec, label=self.model)

    @classmethod
    def path(cls) -> str:
        """Return `module:class`, from which the script loads the task."""
        return f"{cls.__module__}:{cls.__qualname__}"


def by_kind_and_model(tasks: Iterable[Task]) -> dict[tuple[str, str], list[Task]]:
    """Group tasks by class name and model, in order."""
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in tasks:
        groups.setdefault((type(task).__name__, task.model), []).append(task)
    return groups


def load_task(path: str, text: str) -> Task:
    """Load a task from its class path (`Task.path`) and its canonical JSON."""
    task: Task = import_object(path).model_validate_json(text)
    return task
