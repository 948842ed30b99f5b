"""Automatic validation by majority vote of a model's repeated judgments (section 3.2.4)."""

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

VOTES = 3
"""Votes per text (section 3.2.3)."""
CRITERIA = ("fluent", "unambiguous", "on_domain", "span_fits")
"""The four criteria of section 3.2.3, in the order of the paper."""

Label = Literal["valid", "invalid", "undecided"]


class TextJudgment(Record):
    """A model's judgment of one text; a text is valid if it meets all four criteria."""

    number: int
    fluent: bool
    unambiguous: bool
    on_domain: bool
    span_fits: bool
    comment: str = ""

    @property
    def failed(self) -> list[str]:
        """Criteria that the text does not meet."""
        return [name for name in CRITERIA if not getattr(self, name)]


class Judgments(Record):
    """A model's answer, with a judgment of each text of one pair."""

    judgements: list[TextJudgment]


class TextVerdict(Record):
    """The outcome of the votes on one text.

    Attributes:
        id: Id of the text.
        votes: One vote per run: `valid`, `invalid`, or the reason for a missing vote (the answer's
            outcome, or `missing` if a parsed answer omits the text).
        label: Majority label.
        failed: Number of runs in which the text failed each criterion.
        comments: Comments from runs in which the text failed a criterion.
        answer_keys: Key of the recorded answer of each run.
    """

    id: str
    votes: list[str]
    label: Label
    failed: dict[str, int]
    comments: list[str]
    answer_keys: list[str]

    @property
    def flagged(self) -> bool:
        """Whether the text needs human review, because the majority did not judge it valid."""
        return self.label != "valid"


def majority(votes: Sequence[str]) -> Label:
    """Return the label with more than half of all votes, or `undecided`; missing votes count.

    With three runs, two equal labels win regardless of the third vote. One valid, one invalid and
    one unparseable vote give `undecided`, and the text goes to human review.
    """
    decisive: tuple[Label, ...] = ("valid", "invalid")
    for label in decisive:
        if 2 * votes.count(label) > len(votes):
            return label
    return "undecided"


def validation_questions(
    texts: Sequence[GeneratedText], judge: Role
) -> list[tuple[Question, list[GeneratedText]]]:
    """Return the questions about the texts of one collection, with the texts in each question.

    There is one question per (PIE, domain) pair and run, with all texts of the pair (section
    3.2.4).
    """
    pairs: dict[tuple[str, str], list[GeneratedText]] = defaultdict(list)
    for text in sorted(texts, key=lambda text: text.id):
        pairs[text.pie, text.subject].append(text)
    questions = []
    for (pie, domain), members in pairs.items():
        for run in range(judge.times):
            name = f"{pie} / {domain}, run {run + 1}"
            question = judge.question(name, run, pie=pie, domain=domain, texts=members)
            questions.append((question, members))
    return questions


def validate(texts: Sequence[GeneratedText], judge: Role, ask: Ask) -> list[TextVerdict]:
    """Judge the texts of one collection by majority vote; return the verdicts sorted by id."""
    questions = validation_questions(texts, judge)
    answers = ask([question for question, _ in questions])
    votes: dict[str, list[tuple[str, TextJudgment | None, str]]] = defaultdict(list)
    for question, members in questions:
        judgments = _judgments(answers[question.key], len(members))
        for text, (vote, judgment) in zip(members, judgments, strict=True):
            votes[text.id].append((vote, judgment, question.key))
    verdicts = []
    for name in sorted(votes):
        parsed_judgments = [judgment for _, judgment, _ in votes[name] if judgment]
        verdicts.append(
            TextVerdict(
                id=name,
                votes=[vote for vote, _, _ in votes[name]],
                label=majority([vote for vote, _, _ in votes[name]]),
                failed=dict(Counter(failed for item in parsed_judgments for failed in item.failed)),
                comments=[
                    item.comment for item in parsed_judgments if item.failed and item.comment
                ],
                answer_keys=[key for _, _, key in votes[name]],
            )
        )
    return verdicts


class Validation(RoleTask):
    """Task that validates all texts of a collection by repeated votes.

    `inputs` has `texts` and `prompt`; `outputs` has only `verdicts`.
    """

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return all questions about the texts, which must already exist."""
        questions = validation_questions(self._texts(), self.role(entry, VOTES))
        return [question for question, _ in questions]

    def likely_output_tokens(self) -> int:
        """Return the estimated number of output tokens per answer.

        A text takes about 40 tokens: its number, four booleans and a comment. A pair has six texts,
        the mean of ten documents and two queries.
        """
        return 6 * 40

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Request all votes and save the verdicts."""
        verdicts = validate(self._texts(), self.role(entry, VOTES), ask)
        save_jsonl(self.outputs["verdicts"], verdicts)

    def reading(self, answer: Answer) -> Parsed[Judgments]:
        """Return the judgments in an answer."""
        return parse_object(answer, Judgments)

    def _texts(self) -> list[GeneratedText]:
        return load_jsonl(self.inputs["texts"], GeneratedText)


def _judgments(answer: Answer, texts: int) -> list[tuple[str, TextJudgment | None]]:
    """Return an answer's vote on each text, with the judgment; None for a missing vote."""
    parsed = parse_object(answer, Judgments)
    if parsed.value is None:
        return [(parsed.outcome.value, None)] * texts
    by_number = {item.number: item for item in parsed.value.judgements}
    numbers = range(1, texts + 1)
    if len(by_number) < len(parsed.value.judgements) or not by_number.keys() <= set(numbers):
        # The judgments cannot be assigned to texts.
        return [("unparseable", None)] * texts
    judgments = [by_number.get(number) for number in numbers]
    return [
        ("missing" if item is None else "invalid" if item.failed else "valid", item)
        for item in judgments
    ]
