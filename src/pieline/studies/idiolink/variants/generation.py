"""Generation of documents and queries with language models (section 3.2.2)."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
"""Sampling temperature of writers and validators (section 3.2)."""
TEXT_TOKENS = 45
"""Approximate number of output tokens per text, including markup."""

_MARK = re.compile(r"\[\[(.*?)\]\]")


class GeneratedText(PieText):
    """A generated text; `answer_key` identifies the recorded answer that contains it."""

    answer_key: str

    @property
    def marked(self) -> str:
        """The sentence with its span in double square brackets."""
        return self.sentence.replace(self.span, f"[[{self.span}]]", 1)


class WrittenTexts(Record):
    """A model's answer: marked texts by usage; queries use only the first two usages."""

    literal: list[str]
    idiomatic: list[str]
    simplification: list[str] = Field([])
    sense: list[str] = Field([])


class GenerationReport(Record):
    """Statistics of the generation of one collection.

    Attributes:
        collection: `documents` or `queries`.
        model: Name in models.yaml.
        pairs, texts: Number of pairs processed and of texts generated.
        answers: Number of answers by outcome; `unusable` answers can be parsed but have a wrong
            number of texts or marks.
        asked_again: Names of the pairs whose first answer was rejected.
        origins: Number of answers by origin; `hand-written` answers are part of the sample and do
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
    """A model used as a writer or validator, with its prompt and parameters.

    Attributes:
        name: Name in models.yaml.
        times: Maximum number of attempts per pair for a writer; number of votes per text for a
            validator.
    """

    name: str
    spec: LLMEntry
    prompt: Prompt
    parameters: Mapping[str, Any]
    times: int

    def question(self, name: str, sample: int, *, pie: str, **variables: object) -> Question:
        """Return a question about a PIE; `pie` and `variables` fill in the prompt."""
        self.prompt.check_shows("pie", **variables)
        messages = self.prompt.messages(pie=pie, **variables)
        return make_question(self.spec, messages, self.parameters, sample=sample, name=name)


class RoleTask(Task):
    """Base class of the construction's language model tasks; `inputs` must contain `prompt`."""

    def limit_setting(self) -> str:
        """Return the name of the setting that limits the length of the answers."""
        return f"defaults.max_tokens of {self.model} in models.yaml"

    def role(self, entry: LLMEntry, times: int) -> Role:
        """Return the model with its prompt and parameters."""
        prompt = load_prompt(self.inputs["prompt"])
        return Role(self.model, entry, prompt, {"temperature": TEMPERATURE}, times)


def generation_question(
    pair: Pair, writer: Role, collection: Collection, *, attempt: int
) -> Question:
    """Return the question to a writer about a pair, with `attempt` as the sample number."""
    texts = TEXTS_PER_PAIR[collection]
    return writer.question(pair.name, attempt, pie=pair.pie, domain=pair.domain, texts=texts)


def generate(
    pairs: Sequence[Pair], writer: Role, collection: Collection, ask: Ask
) -> tuple[list[GeneratedText], GenerationReport]:
    """Generate the texts of every pair; return them sorted by id, with a report.

    If an answer cannot be parsed or has a wrong number of texts or marks, a new sample is
    requested.

    Raises:
        UserError: A pair has no usable answer after all attempts.
    """
    texts: list[GeneratedText] = []
    outcomes: Counter[str] = Counter()
    origins: Counter[str] = Counter()
    dropped: set[str] = set()
    problems: dict[Pair, str] = {}
    asked_again: list[str] = []
    waiting = list(pairs)
    for attempt in range(writer.times):
        questions = [
            generation_question(pair, writer, collection, attempt=attempt) for pair in waiting
        ]
        answers = ask(questions)
        problems = {}
        for pair, question in zip(waiting, questions, strict=True):
            answer = answers[question.key]
            parsed = parse_object(answer, WrittenTexts)
            origins[answer.origin] += 1
            dropped.update(question.dropped)
            try:
                texts += _texts_in(parsed, pair, collection, question.key)
                outcomes[parsed.outcome.value] += 1
            except ValueError as error:
                readable = parsed.outcome.is_readable
                outcomes["unusable" if readable else parsed.outcome.value] += 1
                problems[pair] = str(error)
        waiting = list(problems)
        if not waiting:
            break
        if attempt == 0:
            asked_again = [pair.name for pair in waiting]
    if problems:
        pair, problem = next(iter(problems.items()))
        raise UserError(
            f"{len(problems)} of {len(pairs)} pairs have no texts after {writer.times} attempts"
            f" (last problem, for {pair.name}: {problem})",
            where=f"{writer.name}, {collection}",
            hint="increase idiolink.construction.attempts, or change the prompt",
        )
    return sorted(texts, key=lambda text: text.id), GenerationReport(
        collection=collection,
        model=writer.name,
        pairs=len(pairs),
        texts=len(texts),
        answers=dict(outcomes),
        asked_again=asked_again,
        origins=dict(origins),
        dropped_parameters=sorted(dropped),
    )


class Writing(RoleTask):
    """Task that generates the documents or queries of every (PIE, domain) pair.

    `inputs` has `pairs` and `prompt`; `outputs` has `texts` and `report`.
    """

    collection: Collection
    attempts: int

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return the first question about every pair, and a retry per unusable recorded answer."""
        writer = self.role(entry, self.attempts)
        waiting = load_jsonl(self.inputs["pairs"], Pair)
        questions: list[Question] = []
        for attempt in range(self.attempts):
            batch = [
                generation_question(pair, writer, self.collection, attempt=attempt)
                for pair in waiting
            ]
            questions += batch
            recorded = read_answers(self.recordings, {question.key for question in batch})
            unusable = []
            for pair, question in zip(waiting, batch, strict=True):
                answer = recorded.get(question.key)
                if answer and not _is_usable(answer, pair, self.collection):
                    unusable.append(pair)
            waiting = unusable
        return questions

    def likely_output_tokens(self) -> int:
        """Return the estimated number of output tokens for all texts of a pair."""
        return TEXT_TOKENS * sum(TEXTS_PER_PAIR[self.collection].values())

    def reading(self, answer: Answer) -> Parsed[WrittenTexts]:
        """Return the texts in an answer by usage, even if generation rejects the answer."""
        return parse_object(answer, WrittenTexts)

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Generate and save the texts of every pair."""
        pairs = load_jsonl(self.inputs["pairs"], Pair)
        texts, report = generate(pairs, self.role(entry, self.attempts), self.collection, ask)
        save_jsonl(self.outputs["texts"], texts)
        write_json(self.outputs["report"], report.model_dump())


def _is_usable(answer: Answer, pair: Pair, collection: Collection) -> bool:
    try:
        _texts_in(parse_object(answer, WrittenTexts), pair, collection, answer.key)
    except ValueError:
        return False
    return True


def _texts_in(
    parsed: Parsed[WrittenTexts], pair: Pair, collection: Collection, answer_key: str
) -> list[GeneratedText]:
    """Return the texts in an answer.

    Raises:
        ValueError: The answer is unusable.
    """
    if parsed.value is None:
        raise ValueError(parsed.reason or parsed.outcome.value)
    texts = []
    for usage, count in TEXTS_PER_PAIR[collection].items():
        marked: list[str] = getattr(parsed.value, usage)
        if len(marked) != count:
            raise ValueError(f"{len(marked)} {usage} texts instead of {count}")
        for number, text in enumerate(marked, start=1):
            sentence, span = unmark(text)
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
    """Return the sentence and span of a text whose span is in double square brackets.

    Raises:
        ValueError: The text does not have exactly one marked span, the span is blank, or a bracket
            is unmatched.
    """
    marks = _MARK.findall(text)
    if len(marks) != 1 or not marks[0].strip():
        raise ValueError(f"{len(marks)} marked spans instead of one in {text[:60]!r}")
    sentence = " ".join(_MARK.sub(r"\1", text).split())
    if "[[" in sentence or "]]" in sentence:
        raise ValueError(f"a stray bracket in {text[:60]!r}")
    return sentence, " ".join(marks[0].split())
