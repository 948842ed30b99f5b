"""Generation of documents and queries with language models (section 3.2.2)."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import Field

from pieline.core.errors import UserError
from pieline.core.files import write_json
from pieline.core.records import Record, load_jsonl, save_jsonl
from pieline.llm.answers import Answer
from pieline.llm.parsing import Parsed, parse_object
from pieline.llm.prompts import Prompt, load_prompt
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import read_answers
from pieline.llm.task import Ask, Task
from pieline.models.llm import LLMEntry
from pieline.studies.idiolink.originals.pairs import Pair
from pieline.studies.idiolink.records import TEXTS_PER_PAIR, Collection, PieText, TextId

TEMPERATURE = 1.0
"""Sampling temperature of the models that write and validate texts (section 3.2)."""
TEXT_TOKENS = 45
"""Approximate number of output tokens per text, including markup."""

_MARKED_SPAN = re.compile(r"\[\[(.*?)\]\]")


class GeneratedText(PieText):
    """A generated text; `answer_key` identifies the recorded answer that contains the text."""

    answer_key: str

    @property
    def marked(self) -> str:
        """The sentence, with the span in double square brackets."""
        return self.sentence.replace(self.span, f"[[{self.span}]]", 1)


class WrittenTexts(Record):
    """A model's answer: texts by usage, with the spans in double square brackets.

    Answers with queries have only the usages `literal` and `idiomatic`.
    """

    literal: list[str]
    idiomatic: list[str]
    simplification: list[str] = Field([])
    sense: list[str] = Field([])


class GenerationReport(Record):
    """Statistics of the generation of one collection.

    Attributes:
        collection: `documents` or `queries`.
        model: Name in models.yaml.
        pairs: Number of (PIE, domain) pairs.
        texts: Number of generated texts.
        answers: Number of answers by outcome. `unusable` answers can be parsed, but have a wrong
            number of texts or of marked spans.
        asked_again: Names of the pairs whose first answer was rejected.
        origins: Number of answers by origin. `hand-written` answers are part of the sample and do
            not come from a model.
        dropped_parameters: Configured parameters that the provider does not accept.
    """

    collection: str
    model: str
    pairs: int
    texts: int
    answers: dict[str, int]
    asked_again: list[str]
    origins: dict[str, int]
    dropped_parameters: list[str]


@dataclass(frozen=True)
class Role:
    """A model that writes or validates texts, with its prompt and parameters.

    Attributes:
        name: Name of the model in models.yaml.
        entry: Entry of the model in models.yaml.
        prompt: Prompt for the task.
        parameters: Parameters of the requests.
        times: For a writer, the maximum number of attempts per pair; for a validator, the number of
            votes per text.
    """

    name: str
    entry: LLMEntry
    prompt: Prompt
    parameters: Mapping[str, Any]
    times: int

    def question(self, name: str, sample: int, *, pie: str, **variables: object) -> Question:
        """Return a question about a PIE.

        Args:
            name: Name of the question in messages.
            sample: Number that distinguishes repetitions of a question.
            pie: The PIE, a variable of the prompt.
            **variables: Further variables of the prompt.
        """
        self.prompt.check_shows("pie", **variables)
        messages = self.prompt.messages(pie=pie, **variables)
        return make_question(self.entry, messages, self.parameters, sample=sample, name=name)


class RoleTask(Task):
    """Base class for the construction's tasks for language models.

    `inputs` has `prompt`, the path of the prompt.
    """

    def limit_setting(self) -> str:
        """Return the name of the setting that limits the length of the answers."""
        return f"defaults.max_tokens of {self.model} in models.yaml"

    def role(self, entry: LLMEntry, times: int) -> Role:
        """Return the task's model with its prompt and parameters; for `times`, see `Role`."""
        prompt = load_prompt(self.inputs["prompt"])
        return Role(self.model, entry, prompt, {"temperature": TEMPERATURE}, times)


def generation_question(
    pair: Pair, writer: Role, collection: Collection, *, attempt: int
) -> Question:
    """Return the question that asks a writer for all texts of a pair.

    `attempt` counts from 0; every attempt requests another sample.
    """
    texts = TEXTS_PER_PAIR[collection]
    return writer.question(pair.name, attempt, pie=pair.pie, domain=pair.domain, texts=texts)


class _Attempt(NamedTuple):
    """A question about a pair, the answer, and the texts in the answer.

    Attributes:
        pair: The pair.
        question: The question.
        answer: The answer.
        outcome: Outcome of the answer, as in `GenerationReport.answers`.
        texts: The texts in the answer; empty if the answer is not usable.
        problem: Why the answer is not usable; empty if it is usable.
    """

    pair: Pair
    question: Question
    answer: Answer
    outcome: str
    texts: list[GeneratedText]
    problem: str


def generate(
    pairs: Sequence[Pair], writer: Role, collection: Collection, ask: Ask
) -> tuple[list[GeneratedText], GenerationReport]:
    """Generate the texts of every pair; return them sorted by id, with a report.

    If an answer cannot be parsed or has a wrong number of texts or of marked spans, a new sample
    is requested.

    Raises:
        UserError: A pair has no usable answer after all attempts.
    """
    attempts: list[_Attempt] = []
    failed_attempts: list[_Attempt] = []
    pairs_to_ask = list(pairs)
    for attempt_number in range(writer.times):
        questions = [
            generation_question(pair, writer, collection, attempt=attempt_number)
            for pair in pairs_to_ask
        ]
        answers = ask(questions)
        new_attempts = [
            _read_attempt(pair, question, answers[question.key], collection)
            for pair, question in zip(pairs_to_ask, questions, strict=True)
        ]
        attempts += new_attempts
        failed_attempts = [attempt for attempt in new_attempts if attempt.problem]
        pairs_to_ask = [attempt.pair for attempt in failed_attempts]
        if not failed_attempts:
            break
    if failed_attempts:
        example = failed_attempts[0]
        raise UserError(
            f"{len(failed_attempts)} of {len(pairs)} pairs have no texts after"
            f" {writer.times} attempts (last problem, for {example.pair.name}: {example.problem})",
            where=f"{writer.name}, {collection}",
            hint="increase idiolink.construction.attempts, or change the prompt",
        )
    texts = [text for attempt in attempts for text in attempt.texts]
    first_attempts = attempts[: len(pairs)]
    report = GenerationReport(
        collection=collection,
        model=writer.name,
        pairs=len(pairs),
        texts=len(texts),
        answers=dict(Counter(attempt.outcome for attempt in attempts)),
        asked_again=[attempt.pair.name for attempt in first_attempts if attempt.problem],
        origins=dict(Counter(attempt.answer.origin for attempt in attempts)),
        dropped_parameters=sorted(
            {parameter for attempt in attempts for parameter in attempt.question.dropped}
        ),
    )
    return sorted(texts, key=lambda text: text.id), report


def _read_attempt(
    pair: Pair, question: Question, answer: Answer, collection: Collection
) -> _Attempt:
    """Parse the answer to a question about a pair; return the question, answer and texts."""
    parsed = parse_object(answer, WrittenTexts)
    outcome = parsed.outcome.value
    try:
        texts = _to_texts(parsed, pair, collection, question.key)
    except ValueError as error:
        if parsed.outcome.is_readable:
            outcome = "unusable"
        return _Attempt(pair, question, answer, outcome, texts=[], problem=str(error))
    return _Attempt(pair, question, answer, outcome, texts, problem="")


class Writing(RoleTask):
    """Task that generates the documents or queries of every (PIE, domain) pair.

    `inputs` has `pairs` and `prompt`; `outputs` has `texts` and `report`.
    """

    collection: Collection
    attempts: int

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return the questions that are known so far.

        The first question about every pair is known. If the recorded answer to a question is
        unusable, the next question about the pair is known, too.
        """
        writer = self.role(entry, self.attempts)
        questions: list[Question] = []
        pairs_to_ask = load_jsonl(self.inputs["pairs"], Pair)
        for attempt in range(self.attempts):
            questions_of_attempt = [
                generation_question(pair, writer, self.collection, attempt=attempt)
                for pair in pairs_to_ask
            ]
            questions += questions_of_attempt
            keys = {question.key for question in questions_of_attempt}
            recorded_answers = read_answers(self.recordings, keys)
            pairs_to_ask_again = []
            for pair, question in zip(pairs_to_ask, questions_of_attempt, strict=True):
                answer = recorded_answers.get(question.key)
                if answer and not _is_usable(answer, pair, self.collection):
                    pairs_to_ask_again.append(pair)
            pairs_to_ask = pairs_to_ask_again
        return questions

    def likely_output_tokens(self) -> int:
        """Return the estimated number of output tokens for all texts of a pair."""
        return TEXT_TOKENS * sum(TEXTS_PER_PAIR[self.collection].values())

    def reading(self, answer: Answer) -> Parsed[WrittenTexts]:
        """Return the texts in an answer, by usage.

        The number of texts and the spans are not checked, so generation may reject the answer.
        """
        return parse_object(answer, WrittenTexts)

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Generate and save the texts of every pair."""
        pairs = load_jsonl(self.inputs["pairs"], Pair)
        texts, report = generate(pairs, self.role(entry, self.attempts), self.collection, ask)
        save_jsonl(self.outputs["texts"], texts)
        write_json(self.outputs["report"], report.model_dump())


def _is_usable(answer: Answer, pair: Pair, collection: Collection) -> bool:
    """Return whether an answer contains all texts of a pair, as `_to_texts` requires."""
    try:
        _to_texts(parse_object(answer, WrittenTexts), pair, collection, answer.key)
    except ValueError:
        return False
    return True


def _to_texts(
    parsed: Parsed[WrittenTexts], pair: Pair, collection: Collection, answer_key: str
) -> list[GeneratedText]:
    """Return the texts in an answer about a pair.

    Raises:
        ValueError: The answer cannot be parsed, or has a wrong number of texts or marked spans.
    """
    if parsed.value is None:
        raise ValueError(parsed.reason or parsed.outcome.value)
    texts = []
    for usage, count in TEXTS_PER_PAIR[collection].items():
        marked_texts: list[str] = getattr(parsed.value, usage)
        if len(marked_texts) != count:
            raise ValueError(f"{len(marked_texts)} {usage} texts instead of {count}")
        for number, marked_text in enumerate(marked_texts, start=1):
            sentence, span = unmark(marked_text)
            texts.append(
                GeneratedText(
                    id=str(TextId(collection, pair.pie_number, pair.domain, usage, number)),
                    sentence=sentence,
                    pie=pair.pie,
                    span=span,
                    subject=pair.domain,
                    is_gold=False,
                    usage=usage,  # type: ignore[arg-type]  # a key of TEXTS_PER_PAIR
                    answer_key=answer_key,
                )
            )
    return texts


def unmark(text: str) -> tuple[str, str]:
    """Return the sentence and the span of a text whose span is in double square brackets.

    Raises:
        ValueError: The text does not have exactly one marked span, the span is blank, or a pair of
            brackets is unmatched.
    """
    spans = _MARKED_SPAN.findall(text)
    if len(spans) != 1 or not spans[0].strip():
        raise ValueError(f"{len(spans)} marked spans instead of one in {text[:60]!r}")
    text_without_marks = _MARKED_SPAN.sub(r"\1", text)
    if "[[" in text_without_marks or "]]" in text_without_marks:
        raise ValueError(f"a stray bracket in {text[:60]!r}")
    return _single_spaced(text_without_marks), _single_spaced(spans[0])


def _single_spaced(text: str) -> str:
    return " ".join(text.split())
