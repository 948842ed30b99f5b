"""Questions to the models and their answers."""

from collections.abc import Mapping
from typing import Any

from pieline.core.outcomes import OutcomeName
from pieline.core.records import Id, Record, load_jsonl, save_jsonl
from pieline.llm.answers import Answer
from pieline.llm.parsing import Outcome, Parsed, answer_text
from pieline.llm.prompts import load_prompt
from pieline.llm.questions import Question, make_question
from pieline.llm.task import Ask, Task
from pieline.models.llm import LLMEntry


class Idiom(Record):
    """Row of idioms.jsonl: the beginning and the last word of an idiom."""

    id: Id
    beginning: str
    word: str


class Completion(Idiom):
    """Prediction of a model: an idiom with the answer, which is null if it is unreadable."""

    answer: str | None
    outcome: OutcomeName
    answer_key: str

    def is_correct(self) -> bool:
        """Return whether the answer contains the word."""
        return self.word in (self.answer or "").lower()


class CompletionTask(Task):
    """Task that asks a model one question per idiom, with these request parameters."""

    parameters: Mapping[str, Any]

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return one question per idiom, in order."""
        prompt = load_prompt(self.inputs["prompt"])
        return [
            make_question(
                entry, prompt.messages(beginning=row.beginning), self.parameters, name=row.id
            )
            for row in load_jsonl(self.inputs["rows"], Idiom)
        ]

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask the questions and write one prediction per idiom."""
        questions = self.questions(entry)
        answers = ask(questions)
        predictions = []
        for row, question in zip(load_jsonl(self.inputs["rows"], Idiom), questions, strict=True):
            parsed = self.reading(answers[question.key])
            predictions.append(
                Completion(
                    **row.model_dump(),
                    answer=parsed.value,
                    outcome=parsed.outcome.value,
                    answer_key=question.key,
                )
            )
        save_jsonl(self.outputs["predictions"], predictions)

    def reading(self, answer: Answer) -> Parsed[str]:
        """Parse an answer as its full text, without reasoning."""
        text, unreadable = answer_text(answer)
        return unreadable or Parsed(Outcome.OK, text.strip(), rule="text")
