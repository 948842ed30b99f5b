"""Automatic validation: a model judges every text several times, the majority decides (3.2.4)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from pieline.core.records import Record, load_jsonl, save_jsonl
from pieline.llm.answers import Answer
from pieline.llm.parsing import parse_object
from pieline.llm.prompts import Prompt, PromptFolder
from pieline.llm.questions import Question, make_question
from pieline.llm.task import Ask, Task
from pieline.models.llm import LLMEntry, LLMSpec
from pieline.studies.idiolink.settings import GenerationParameters
from pieline.studies.idiolink.variants.generation import GeneratedText, answered

CRITERIA = ("fluent", "unambiguous", "on_domain", "span_fits")
"""The four conditions of section 3.2.3, in its order."""

Label = Literal["valid", "invalid", "undecided"]


class Judgement(BaseModel):
    """A model's view of one text; the text is valid if all four criteria are met."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int
    fluent: bool
    unambiguous: bool
    on_domain: bool
    span_fits: bool
    comment: str = ""

    @property
    def failed(self) -> list[str]:
        """Criteria that are not met."""
        return [name for name in CRITERIA if not getattr(self, name)]


class Judgements(BaseModel):
    """A model's answer about the texts of one pair."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    judgements: list[Judgement]


class TextVerdict(Record):
    """What the runs say of one text.

    Attributes:
        id: of the text.
        votes: one for each run: `valid`, `invalid`, or why there is none: `unparseable`,
            `refused`, `truncated`, or `missing` from an answer that could be read.
        label: by majority.
        failed: runs that found a criterion not met, by criterion.
        comments: of those runs.
        answer_keys: recorded answers behind the votes.
    """

    id: str
    votes: list[str]
    label: Label
    failed: dict[str, int]
    comments: list[str]
    answer_keys: list[str]

    @property
    def flagged(self) -> bool:
        """Whether people must look at the text: everything that is not judged valid."""
        return self.label != "valid"


@dataclass(frozen=True)
class Judge:
    """A model in the role of validator, with its prompt; `runs` is the number of votes."""

    name: str
    spec: LLMSpec
    prompt: Prompt
    parameters: Mapping[str, Any]
    runs: int


def majority(votes: Sequence[str]) -> Label:
    """The label with more than half of all votes, counting those that say nothing.

    Of three runs, two that agree decide, whatever the third is. One valid, one invalid and one
    unparseable answer decide nothing: the text is `undecided` and goes to people. An answer that
    cannot be read is so never taken for either.
    """
    counts = Counter(votes)
    decisive: tuple[Label, ...] = ("valid", "invalid")
    for label in decisive:
        if 2 * counts[label] > len(votes):
            return label
    return "undecided"


def validation_questions(
    texts: Sequence[GeneratedText], judge: Judge
) -> list[tuple[Question, list[GeneratedText]]]:
    """The questions about texts of one collection, and which texts each is about.

    One question for each (PIE, domain) pair and run, all its texts in it, as section 3.2.4 has it.
    """
    pairs: dict[tuple[str, str], list[GeneratedText]] = defaultdict(list)
    for text in sorted(texts, key=lambda text: text.id):
        pairs[text.pie, text.subject].append(text)
    asked = []
    for (pie, domain), members in pairs.items():
        messages = judge.prompt.messages(pie=pie, domain=domain, texts=members)
        for run in range(judge.runs):
            name = f"{pie} / {domain}, run {run + 1}"
            question = make_question(judge.spec, messages, judge.parameters, sample=run, name=name)
            asked.append((question, members))
    return asked


def validate(texts: Sequence[GeneratedText], judge: Judge, ask: Ask) -> list[TextVerdict]:
    """Judge texts of one collection by majority vote; sorted by id.

    Raises:
        UserError: the provider did not answer some question.
    """
    asked = validation_questions(texts, judge)
    answers = answered(ask, [question for question, _ in asked])
    votes: dict[str, list[tuple[str, Judgement | None, str]]] = defaultdict(list)
    for question, members in asked:
        found = _judgements(answers[question.key], len(members))
        for number, text in enumerate(members, start=1):
            vote, judgement = found(number)
            votes[text.id].append((vote, judgement, question.key))
    verdicts = []
    for name in sorted(votes):
        judged = [judgement for _, judgement, _ in votes[name] if judgement]
        verdicts.append(
            TextVerdict(
                id=name,
                votes=[vote for vote, _, _ in votes[name]],
                label=majority([vote for vote, _, _ in votes[name]]),
                failed=dict(Counter(failed for item in judged for failed in item.failed)),
                comments=[item.comment for item in judged if item.failed and item.comment],
                answer_keys=[key for _, _, key in votes[name]],
            )
        )
    return verdicts


class Validation(Task):
    """The votes on all texts of a collection.

    `inputs` are `texts` and `prompt`, the only output is `verdicts`.
    """

    parameters: GenerationParameters
    runs: int

    def judge(self, entry: LLMEntry) -> Judge:
        """The model in its role."""
        prompt = Path(self.inputs["prompt"])
        return Judge(
            self.model,
            entry,
            PromptFolder(prompt.parent).load(prompt.name),
            self.parameters.model_dump(),
            self.runs,
        )

    def questions(self, entry: LLMEntry) -> list[Question]:
        """All of them, once the texts are written."""
        asked = validation_questions(self._texts(), self.judge(entry))
        return [question for question, _ in asked]

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask for every vote and write what the majority says."""
        save_jsonl(self.outputs["verdicts"], validate(self._texts(), self.judge(entry), ask))

    def _texts(self) -> list[GeneratedText]:
        return load_jsonl(self.inputs["texts"], GeneratedText)


Vote = Callable[[int], tuple[str, Judgement | None]]


def _judgements(answer: Answer, texts: int) -> Vote:
    """A function from the number of a text to its vote and judgement in an answer."""
    parsed = parse_object(answer, Judgements)
    if parsed.value is None:
        return lambda number: (parsed.outcome.value, None)
    numbers = Counter(item.number for item in parsed.value.judgements)
    if any(count > 1 or not 1 <= number <= texts for number, count in numbers.items()):
        # Which judgement belongs to which text is then anybody's guess.
        return lambda number: ("unparseable", None)
    by_number = {item.number: item for item in parsed.value.judgements}

    def vote(number: int) -> tuple[str, Judgement | None]:
        judgement = by_number.get(number)
        if judgement is None:
            return "missing", None
        return ("invalid" if judgement.failed else "valid"), judgement

    return vote
