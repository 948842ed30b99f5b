"""Define tasks for language models: making questions and reading answers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pieline.core.imports import import_object
from pieline.core.records import Frozen
from pieline.llm.answers import Answer
from pieline.llm.parsing import Parsed
from pieline.llm.questions import Question
from pieline.models.llm import LLMEntry

LIKELY_OUTPUT_TOKENS = 80
"""Default number of tokens that is expected for an answer: a small JSON object with a sentence."""


class PaperSize(NamedTuple):
    """Size of a task on the paper's data, for estimates before this data exists.

    Attributes:
        questions: Number of questions.
        input_tokens: Mean input tokens of a question, measured as in docs/maintaining.md.
        max_tokens: Maximum tokens of an answer; None if the request sends no limit.
    """

    questions: int = 0
    input_tokens: int = 0
    max_tokens: int | None = None


class Ask(Protocol):
    """Interface of a function that returns recorded answers and requests missing ones."""

    def __call__(self, questions: Sequence[Question]) -> Mapping[str, Answer]:
        """Return the answers to all questions, by key of the question.

        Raises:
            UserError: Some answers are unavailable.
        """


class Task(Frozen, ABC):
    """A task for one language model, with methods to make questions and to read answers.

    The workflow passes each task as canonical JSON to `scripts/ask.py`, which runs the tasks of all
    studies. Cost estimates use the same object.

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

        Some questions contain the answers to earlier questions. Such questions are included if
        `recordings` has the earlier answers.
        """

    def likely_output_tokens(self) -> int:
        """Return the expected number of tokens of one answer, without thinking tokens.

        Cost estimates use this number if too few answers are recorded. Otherwise, cost estimates
        use the mean length of the recorded answers to all tasks of the same class for which this
        number is the same.
        """
        return LIKELY_OUTPUT_TOKENS

    def paper_size(self) -> PaperSize:
        """Return the size of the task on the paper's data; with 0 questions if it is unknown."""
        return PaperSize()

    def limit_setting(self) -> str:
        """Return the name of the setting that limits the length of the answers, for messages."""
        return "max_tokens"

    @abstractmethod
    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask the questions, read the answers, and write the outputs."""

    @abstractmethod
    def reading(self, answer: Answer) -> Parsed[Any]:
        """Parse one answer to a question of this task."""

    def is_readable(self, answer: Answer) -> bool:
        """Return whether an answer to a question of this task can be parsed."""
        return self.reading(answer).outcome.is_readable

    def entry(self) -> LLMEntry:
        """Return the entry of the model."""
        return LLMEntry.from_spec(self.spec, label=self.model)

    @classmethod
    def path(cls) -> str:
        """Return the class path `module:class`, from which `scripts/ask.py` loads the task."""
        return f"{cls.__module__}:{cls.__qualname__}"


def by_kind_and_model(tasks: Iterable[Task]) -> dict[tuple[str, str], list[Task]]:
    """Map each pair of a class name and a model to its tasks, in the order of the tasks."""
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in tasks:
        groups.setdefault((type(task).__name__, task.model), []).append(task)
    return groups


def load_task(path: str, text: str) -> Task:
    """Load a task of the class at `path` (see `Task.path`) from its canonical JSON."""
    task: Task = import_object(path).model_validate_json(text)
    return task
