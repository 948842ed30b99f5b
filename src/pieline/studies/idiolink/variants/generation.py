"""Having documents and queries written by language models (section 3.2.2)."""

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
from pieline.studies.idiolink.originals.domains import TEXTS_PER_PAIR, Collection, TextId
from pieline.studies.idiolink.originals.pairs import Pair
from pieline.studies.idiolink.records import PieText, Usage
from pieline.studies.idiolink.settings import GenerationParameters

TEXT_TOKENS = 45
"""Output tokens of one text, about, with its marks and quotes."""

_MARK = re.compile(r"\[\[(.*?)\]\]")


class GeneratedText(PieText):
    """A text as a model wrote it; `answer_key` names the recorded answer that holds it."""

    usage: Usage
    answer_key: str

    @property
    def marked(self) -> str:
        """The sentence with its span in double square brackets."""
        return self.sentence.replace(self.span, f"[[{self.span}]]", 1)


class WrittenTexts(Record):
    """A model's answer: marked texts by usage. Queries are of the first two usages only."""

    literal: list[str]
    idiomatic: list[str]
    simplification: list[str] = Field([])
    sense: list[str] = Field([])


class GenerationReport(Record):
    """How the writing went.

    Attributes:
        collection: documents or queries.
        model: name in models.yaml.
        pairs, texts: written.
        answers: number of answers by what became of them; `unusable` could be read but lack texts
            or marks.
        asked_again: pairs whose first answer did not serve.
        origins: answers by origin; `hand-written` ones are of the sample and no model wrote them.
        dropped_parameters: wanted, but not accepted by the provider, so not sent.
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
    """A model as writer or as validator, with its prompt.

    `name` is its name in models.yaml; `times` the most answers asked of a writer for one pair, or
    the validator's votes on each text.
    """

    name: str
    spec: LLMEntry
    prompt: Prompt
    parameters: Mapping[str, Any]
    times: int

    def question(self, name: str, sample: int, *, pie: str, **said: object) -> Question:
        """A question of this role about a PIE, with what its prompt is filled in with."""
        self.prompt.check_shows("pie", **said)
        messages = self.prompt.messages(pie=pie, **said)
        return make_question(self.spec, messages, self.parameters, sample=sample, name=name)


class RoleTask(Task):
    """A task of the construction; one of its `inputs` is `prompt`."""

    parameters: GenerationParameters

    def role(self, entry: LLMEntry, times: int) -> Role:
        """The model in its role."""
        prompt = load_prompt(self.inputs["prompt"])
        return Role(self.model, entry, prompt, self.parameters.model_dump(), times)


def generation_question(
    pair: Pair, writer: Role, collection: Collection, *, attempt: int
) -> Question:
    """What a writer is asked about a pair; a later attempt is another sample."""
    texts = TEXTS_PER_PAIR[collection]
    return writer.question(pair.name, attempt, pie=pair.pie, domain=pair.domain, texts=texts)


def generate(
    pairs: Sequence[Pair], writer: Role, collection: Collection, ask: Ask
) -> tuple[list[GeneratedText], GenerationReport]:
    """Have the texts of every pair written, sorted by id.

    An answer that cannot be read, or lacks texts or marks, is asked again as another sample.

    Raises:
        UserError: pairs that still have no texts after all attempts.
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
            f" (last of {pair.name}: {problem})",
            where=f"{writer.name}, {collection}",
            hint="raise idiolink.construction.attempts or change the prompt",
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
    """The documents or the queries of every (PIE, domain) pair.

    `inputs` are `pairs` and `prompt`, `outputs` are `texts` and `report`.
    """

    collection: Collection
    attempts: int

    def writer(self, entry: LLMEntry) -> Role:
        """The model that writes."""
        return self.role(entry, self.attempts)

    def questions(self, entry: LLMEntry) -> list[Question]:
        """The first one on every pair, and a later one where the recorded answer does not serve."""
        writer, waiting = self.writer(entry), load_jsonl(self.inputs["pairs"], Pair)
        known: list[Question] = []
        for attempt in range(self.attempts):
            asked = [
                generation_question(pair, writer, self.collection, attempt=attempt)
                for pair in waiting
            ]
            known += asked
            recorded = read_answers(self.recordings, {question.key for question in asked})
            waiting = [
                pair
                for pair, question in zip(waiting, asked, strict=True)
                if (answer := recorded.get(question.key))
                and not _serves(answer, pair, self.collection)
            ]
        return known

    def likely_output_tokens(self) -> int:
        """Estimate the output tokens for all texts of a pair."""
        return TEXT_TOKENS * sum(TEXTS_PER_PAIR[self.collection].values())

    def reading(self, answer: Answer) -> Parsed[WrittenTexts]:
        """Return the texts by usage, including rejected ones."""
        return parse_object(answer, WrittenTexts)

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask until every pair has its texts, and write them."""
        pairs = load_jsonl(self.inputs["pairs"], Pair)
        texts, report = generate(pairs, self.writer(entry), self.collection, ask)
        save_jsonl(self.outputs["texts"], texts)
        write_json(self.outputs["report"], report.model_dump())


def _serves(answer: Answer, pair: Pair, collection: Collection) -> bool:
    try:
        _texts_in(parse_object(answer, WrittenTexts), pair, collection, answer.key)
    except ValueError:
        return False
    return True


def _texts_in(
    parsed: Parsed[WrittenTexts], pair: Pair, collection: Collection, answer_key: str
) -> list[GeneratedText]:
    """The texts of an answer.

    Raises:
        ValueError: what is wrong with it.
    """
    if parsed.value is None:
        raise ValueError(parsed.reason or parsed.outcome.value)
    texts = []
    for usage, wanted in TEXTS_PER_PAIR[collection].items():
        marked: list[str] = getattr(parsed.value, usage)
        if len(marked) != wanted:
            raise ValueError(f"{len(marked)} {usage} texts instead of {wanted}")
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
    """Sentence and span of a text with its span in double square brackets.

    Raises:
        ValueError: not exactly one pair of brackets, or nothing in it.
    """
    marks = _MARK.findall(text)
    if len(marks) != 1 or not marks[0].strip():
        raise ValueError(f"{len(marks)} marked spans instead of one in {text[:60]!r}")
    sentence = " ".join(_MARK.sub(r"\1", text).split())
    if "[[" in sentence or "]]" in sentence:
        raise ValueError(f"a stray bracket in {text[:60]!r}")
    return sentence, " ".join(marks[0].split())
