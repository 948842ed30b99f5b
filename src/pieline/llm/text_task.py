"""Define a generic task: one question per row of a file, answered with a text."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict

from pieline.core.errors import UserError
from pieline.core.outcomes import OutcomeName
from pieline.core.records import Id, Record, load_jsonl, save_jsonl
from pieline.llm.answers import Answer
from pieline.llm.parsing import Outcome, Parsed, answer_text
from pieline.llm.prompts import load_prompt
from pieline.llm.questions import Question, make_question
from pieline.llm.task import Ask, Task
from pieline.models.llm import LLMEntry


class TextRow(Record):
    """Row with an id and any other fields, from which a question is made."""

    model_config = ConfigDict(extra="allow")

    id: Id


class TextPrediction(TextRow):
    """Row with a model's answer; a study can derive a class that declares the fields of its rows.

    Attributes:
        answer: Text of the answer; null if the answer is unreadable.
        outcome: Outcome of parsing.
        answer_key: Key of the recorded answer.
    """

    answer: str | None
    outcome: OutcomeName
    answer_key: str


class TextTask(Task):
    """A task that asks one question per row and writes each row with its answer.

    `inputs` are `rows` (JSONL) and `prompt`, whose template may use the fields of a row. The only
    output is `predictions`, a file of `TextPrediction`. For answers in another format, override
    `reading` in a subclass.

    Attributes:
        parameters: Request parameters by name.
    """

    parameters: Mapping[str, Any]

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return one question per row, in order.

        Raises:
            UserError: The prompt or a row is invalid, or all questions are the same.
        """
        prompt = load_prompt(self.inputs["prompt"])
        rows = self._rows()
        asked = [prompt.messages(**row.model_dump()) for row in rows]
        if len(rows) > 1 and len(set(asked)) == 1:
            hint = f"use a field of {self.inputs['rows']}, for example {{{{ id }}}}"
            raise UserError("asks the same question for each row", where=prompt.path, hint=hint)
        return [
            make_question(entry, messages, self.parameters, name=row.id)
            for row, messages in zip(rows, asked, strict=True)
        ]

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask the questions and write one prediction per row."""
        questions = self.questions(entry)
        answers = ask(questions)
        predictions = []
        for row, question in zip(self._rows(), questions, strict=True):
            parsed = self.reading(answers[question.key])
            predictions.append(
                TextPrediction(
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

    def _rows(self) -> list[TextRow]:
        return load_jsonl(self.inputs["rows"], TextRow)
