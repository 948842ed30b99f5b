"""Automatic validation: a model judges every text several times, the majority decides (3.2.4)."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Literal

from pieline.core.records import Record, load_jsonl, save_jsonl
from pieline.llm.answers import Answer
from pieline.llm.parsing import Parsed, parse_object
from pieline.llm.questions import Question
from pieline.llm.task import Ask
from pieline.models.llm import LLMEntry
from pieline.studies.idiolink.variants.generation import GeneratedText, Role, RoleTask

CRITERIA = ("fluent", "unambiguous", "on_domain", "span_fits")
"""The four conditions of section 3.2.3, in its order."""

Label = Literal["valid", "invalid", "undecided"]


class TextJudgement(Record):
    """A model's view of one text; the text is valid if all four criteria are met."""

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


class Judgements(Record):
    """A model's answer about the texts of one pair."""

    judgements: list[TextJudgement]


class TextVerdict(Record):
    """What the runs say of one text.

    Attributes:
        id: of the text.
        votes: one for each run: `valid`, `invalid`, or why there is none: the answer's
            outcome, or `missing` from an answer that could be read.
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


def majority(votes: Sequence[str]) -> Label:
    """The label with more than half of all votes, counting those that say nothing.

    Of three runs, two that agree decide, whatever the third is. One valid, one invalid and one
    unparseable answer decide nothing: the text is `undecided` and goes to people. An answer that
    cannot be read is so never taken for either.
    """
    decisive: tuple[Label, ...] = ("valid", "invalid")
    for label in decisive:
        if 2 * votes.count(label) > len(votes):
            return label
    return "undecided"


def validation_questions(
    texts: Sequence[GeneratedText], judge: Role
) -> list[tuple[Question, list[GeneratedText]]]:
    """The questions about texts of one collection, and which texts each is about.

    One question for each (PIE, domain) pair and run, all its texts in it, as section 3.2.4 has it.
    """
    pairs: dict[tuple[str, str], list[GeneratedText]] = defaultdict(list)
    for text in sorted(texts, key=lambda text: text.id):
        pairs[text.pie, text.subject].append(text)
    asked = []
    for (pie, domain), members in pairs.items():
        for run in range(judge.times):
            name = f"{pie} / {domain}, run {run + 1}"
            question = judge.question(name, run, pie=pie, domain=domain, texts=members)
            asked.append((question, members))
    return asked


def validate(texts: Sequence[GeneratedText], judge: Role, ask: Ask) -> list[TextVerdict]:
    """Judge texts of one collection by majority vote; sorted by id."""
    asked = validation_questions(texts, judge)
    answers = ask([question for question, _ in asked])
    votes: dict[str, list[tuple[str, TextJudgement | None, str]]] = defaultdict(list)
    for question, members in asked:
        found = _judgements(answers[question.key], len(members))
        for text, (vote, judgement) in zip(members, found, strict=True):
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


class Validation(RoleTask):
    """The votes on all texts of a collection.

    `inputs` are `texts` and `prompt`, the only output is `verdicts`.
    """

    runs: int

    def judge(self, entry: LLMEntry) -> Role:
        """The model that judges."""
        return self.role(entry, self.runs)

    def questions(self, entry: LLMEntry) -> list[Question]:
        """All of them, once the texts are written."""
        asked = validation_questions(self._texts(), self.judge(entry))
        return [question for question, _ in asked]

    def likely_output_tokens(self) -> int:
        """A number, four booleans and a comment for each of six texts.

        Six is the mean of a pair's ten documents and two queries.
        """
        return 6 * 40

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask for every vote and write what the majority says."""
        save_jsonl(self.outputs["verdicts"], validate(self._texts(), self.judge(entry), ask))

    def reading(self, answer: Answer) -> Parsed[Judgements]:
        """The judgments, one a text."""
        return parse_object(answer, Judgements)

    def _texts(self) -> list[GeneratedText]:
        return load_jsonl(self.inputs["texts"], GeneratedText)


def _judgements(answer: Answer, texts: int) -> list[tuple[str, TextJudgement | None]]:
    """The vote on each of the texts in an answer, and the judgment behind it."""
    parsed = parse_object(answer, Judgements)
    if parsed.value is None:
        return [(parsed.outcome.value, None)] * texts
    by_number = {item.number: item for item in parsed.value.judgements}
    numbers = range(1, texts + 1)
    if len(by_number) < len(parsed.value.judgements) or not by_number.keys() <= set(numbers):
        # Which judgment belongs to which text is then anybody's guess.
        return [("unparseable", None)] * texts
    found = [by_number.get(number) for number in numbers]
    return [
        ("missing" if item is None else "invalid" if item.failed else "valid", item)
        for item in found
    ]
