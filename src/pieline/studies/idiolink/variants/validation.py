"""Validation of texts by majority vote of a model, human review and corrections (section 3.2.4)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pydantic import ValidationError, model_validator

from pieline.core.errors import UserError
from pieline.core.files import write_text
from pieline.core.records import Id, Record, check_unique_ids, explain, load_jsonl, save_jsonl
from pieline.core.review import (
    choices,
    headers,
    meanings,
    reviewed_rows,
    write_guidelines,
    write_sheet,
    write_tasks,
)
from pieline.core.texts import nfc
from pieline.llm.answers import Answer
from pieline.llm.parsing import Parsed, parse_object
from pieline.llm.questions import Question
from pieline.llm.task import Ask
from pieline.models.llm import LLMEntry
from pieline.studies.idiolink.records import parse_id
from pieline.studies.idiolink.variants.generation import GeneratedText, Role, RoleTask

VOTES = 3
"""Votes per text (section 3.2.3)."""
CRITERIA = {
    "fluent": "It is fluent and coherent, and a reader understands it without another text.",
    "unambiguous": "It is clearly of its kind. It has no idiom other than the PIE, which is in"
    " literal and idiomatic texts exactly once, and not in the others.",
    "on_domain": "Its content belongs to the domain.",
    "span_fits": "The span is in the text, and contains exactly the words that carry the meaning of"
    " the PIE.",
}
"""The four criteria of section 3.2.3, in the order of the paper, as shown to reviewers."""

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
    votes: dict[str, list[_Vote]] = defaultdict(list)
    for question, members in questions:
        votes_of_answer = _votes(answers[question.key], len(members))
        for text, vote in zip(members, votes_of_answer, strict=True):
            votes[text.id].append(vote)
    return [_verdict(name, votes[name]) for name in sorted(votes)]


class _Vote(NamedTuple):
    """An answer's vote on a text: `valid`, `invalid` or why it is missing, with the judgment."""

    value: str
    judgment: TextJudgment | None
    answer_key: str


def _verdict(name: str, votes: Sequence[_Vote]) -> TextVerdict:
    """Return the outcome of the votes on the text with the id `name`."""
    values = [vote.value for vote in votes]
    judgments = [vote.judgment for vote in votes if vote.judgment]
    return TextVerdict(
        id=name,
        votes=values,
        label=majority(values),
        failed=dict(Counter(chain.from_iterable(judgment.failed for judgment in judgments))),
        comments=[each.comment for each in judgments if each.failed and each.comment],
        answer_keys=[vote.answer_key for vote in votes],
    )


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


def _votes(answer: Answer, texts: int) -> list[_Vote]:
    """Return an answer's votes on its texts; `texts` is the number of texts."""
    parsed = parse_object(answer, Judgments)
    if parsed.value is None:
        return [_Vote(parsed.outcome.value, None, answer.key)] * texts
    by_number = {item.number: item for item in parsed.value.judgements}
    numbers = range(1, texts + 1)
    if len(by_number) < len(parsed.value.judgements) or not by_number.keys() <= set(numbers):
        # The judgments cannot be assigned to texts.
        return [_Vote("unparseable", None, answer.key)] * texts
    votes = []
    for number in numbers:
        judgment = by_number.get(number)
        votes.append(_Vote(_vote_value(judgment), judgment, answer.key))
    return votes


def _vote_value(judgment: TextJudgment | None) -> str:
    if judgment is None:
        return "missing"
    return "invalid" if judgment.failed else "valid"


Action = Literal["valid", "span_corrected", "text_revised", "replaced"]
Cause = Literal[
    "", "wrong_span", "usage_mismatch", "ambiguous", "unclear", "other_idiom", "off_domain"
]

ACTIONS = {
    "valid": "it meets all criteria and stays as it is",
    "span_corrected": "only the span changes; enter new_span",
    "text_revised": "the text is changed as little as possible; enter new_sentence, and new_span if"
    " the span changes",
    "replaced": "the text cannot be repaired; write another of its kind in new_sentence, with"
    " new_span if the span changes",
}
CAUSES = {
    "wrong_span": "the span has the wrong words",
    "usage_mismatch": "the text is of another kind, such as literal instead of idiomatic",
    "ambiguous": "more than one reading is possible",
    "unclear": "the text is not fluent, or not understandable by itself",
    "other_idiom": "the text has another idiom, or the PIE too often",
    "off_domain": "the content does not belong to the domain",
}
_USAGES = {
    "literal": "contains the PIE, whose words have their ordinary meanings",
    "idiomatic": "contains the PIE with its figurative meaning",
    "simplification": "an idiomatic text in which plain words replace the PIE",
    "sense": "expresses the figurative meaning of the PIE in plain words, independently",
}

_SHOWN = ("id", "pie", "domain", "usage", "sentence", "span")
_DECISION = ("action", "cause", "new_sentence", "new_span")
_GUIDELINES = {
    "Kinds of texts (usage) about a potentially idiomatic expression (PIE)": meanings(_USAGES),
    "A text is valid if it meets all of these criteria": [
        f"{number}. {criterion}" for number, criterion in enumerate(CRITERIA.values(), start=1)
    ],
}
_SHEET_GUIDELINES = {
    **_GUIDELINES,
    "action: one of these, for every text": meanings(ACTIONS),
    "cause: one of these, or empty; why the text is not valid": meanings(CAUSES),
    "new_sentence, new_span: the new text and span; empty if unchanged": [
        "The span must be in the text, word for word.",
    ],
}

LABELLING = f"""<View>
  <Header value="PIE: $pie"/>
  <Header size="5" value="Domain: $domain"/>
  <Header size="5" value="Kind: $usage"/>
  <Text name="sentence" value="$sentence"/>
  <Text name="span" value="Span: $span"/>
{headers(line for name, lines in _GUIDELINES.items() for line in (name, *lines))}
  <Choices name="action" toName="sentence" choice="single" required="true">
{choices(ACTIONS)}
  </Choices>
  <Header size="6" value="Why is the text not valid?"/>
  <Choices name="cause" toName="sentence" choice="single">
{choices(CAUSES)}
  </Choices>
  <TextArea name="new_sentence" toName="sentence" maxSubmissions="1"
            placeholder="new_sentence, if it changes"/>
  <TextArea name="new_span" toName="sentence" maxSubmissions="1"
            placeholder="new_span, if it changes"/>
</View>
"""
"""Label Studio labeling configuration for the tasks."""


class Correction(Record):
    """A reviewer's decision on one text.

    Attributes:
        id: Id of the text.
        sentence, span: Sentence and span as reviewed; the decision applies only to this version.
        action: What changes (`ACTIONS`).
        cause: Reason for the change, if stated (`CAUSES`).
        new_sentence, new_span: Replacements; empty keeps the original.
    """

    id: Id
    sentence: str
    span: str
    action: Action
    cause: Cause = ""
    new_sentence: str = ""
    new_span: str = ""

    @model_validator(mode="after")
    def _action_says_what_changed(self) -> Self:
        sentence_changed = self.sentence_after != self.sentence
        span_changed = self.span_after != self.span
        if self.action == "valid" and (sentence_changed or span_changed):
            raise ValueError("action 'valid' does not allow a new sentence or span")
        if self.action == "span_corrected" and (sentence_changed or not span_changed):
            raise ValueError("action 'span_corrected' needs a new span and the same sentence")
        if self.action in ("text_revised", "replaced") and not sentence_changed:
            raise ValueError(f"action {self.action!r} needs a new sentence")
        if self.span_after not in self.sentence_after:
            raise ValueError(f"span {self.span_after!r} is not in the corrected sentence")
        return self

    @property
    def sentence_after(self) -> str:
        """The corrected sentence, or the original one if unchanged."""
        return self.new_sentence or self.sentence

    @property
    def span_after(self) -> str:
        """The corrected span, or the original one if unchanged."""
        return self.new_span or self.span

    @property
    def judged_invalid(self) -> bool:
        """Whether the reviewer judged the original text invalid."""
        return self.action != "valid"


def to_review(
    texts: Iterable[GeneratedText], verdicts: Iterable[TextVerdict], gold: Iterable[str]
) -> list[GeneratedText]:
    """Return the texts to review, sorted by id: all texts of gold PIEs, flagged texts of others."""
    flagged = {verdict.id: verdict.flagged for verdict in verdicts}
    gold_pies = set(gold)
    selected = [text for text in texts if text.pie in gold_pies or flagged[text.id]]
    return sorted(selected, key=lambda text: text.id)


def write_review(
    texts: Iterable[GeneratedText], *, sheet: Path, guidelines: Path, tasks: Path, labelling: Path
) -> None:
    """Write the forms for reviewers, without votes and decisions, which would bias them.

    Args:
        texts: Texts to review.
        sheet: Path of the sheet (CSV); reviewers fill in a copy.
        guidelines: Path of the sheet's guidelines (text), with the allowed values.
        tasks: Path of the texts as Label Studio tasks (JSON).
        labelling: Path of the Label Studio labeling configuration (XML).
    """
    rows = []
    for text in texts:
        fields = text.model_dump() | {"domain": text.subject}
        rows.append({name: str(fields[name]) for name in _SHOWN})
    write_sheet(sheet, [*_SHOWN, *_DECISION], rows)
    write_guidelines(guidelines, _DECISION, _SHEET_GUIDELINES)
    write_tasks(tasks, rows)
    write_text(labelling, LABELLING)


def read_corrections(path: str | Path) -> dict[str, Correction]:
    """Read decisions from a review sheet (.csv) or a Label Studio export (.json), by text id.

    Rows and tasks without any decision are skipped.

    Raises:
        UserError: The file is invalid, a decision is inconsistent or has no action, or a text has
            two decisions.
    """
    controls = {name: name for name in _DECISION}
    corrections = []
    for where, _, fields in reviewed_rows(
        path, ("id", "sentence", "span"), controls, last_only=True
    ):
        cells = dict.fromkeys(_DECISION, "") | fields
        if not any(cells[name] for name in _DECISION):
            continue
        try:
            corrections.append(Correction.model_validate(cells))
        except ValidationError as error:
            raise UserError(explain(error), where=where, hint="correct this decision") from None
    check_unique_ids([correction.id for correction in corrections], where=path)
    return {correction.id: correction for correction in corrections}


def apply_corrections(
    texts: Iterable[GeneratedText], corrections: Mapping[str, Correction], *, where: str | Path
) -> list[GeneratedText]:
    """Return all texts with the corrections applied and reviewed texts marked gold.

    Raises:
        UserError: A decision refers to an unknown text or to another version of the text.
    """
    texts = list(texts)
    if unknown := sorted(corrections.keys() - {text.id for text in texts}):
        raise UserError(
            f"decision about unknown text {unknown[0]!r}",
            where=where,
            hint="remove it, or use the corrections for these texts",
        )
    return [_corrected(text, corrections.get(text.id), where) for text in texts]


def _corrected(
    text: GeneratedText, correction: Correction | None, where: str | Path
) -> GeneratedText:
    """Return a text with its correction, if there is one."""
    if correction is None:
        return text
    is_same_sentence = nfc(correction.sentence) == nfc(text.sentence)
    if not is_same_sentence or nfc(correction.span) != nfc(text.span):
        raise UserError(
            f"text {text.id!r} has changed since the decision",
            where=where,
            hint="review it again",
        )
    changes = {
        "sentence": correction.sentence_after,
        "span": correction.span_after,
        "is_gold": True,
    }
    return text.model_copy(update=changes)


class CorrectionCounts(Record):
    """Counts of reviewers' decisions; only `reviewed` includes decisions with action `valid`."""

    reviewed: int
    corrected: int
    by_action: dict[str, int]
    by_cause: dict[str, int]
    by_usage: dict[str, int]
    by_collection: dict[str, int]


def count_corrections(corrections: Iterable[Correction]) -> CorrectionCounts:
    """Count reviewed texts, and corrected ones by action, cause, usage and collection."""
    decisions = list(corrections)
    changed = [decision for decision in decisions if decision.judged_invalid]
    return CorrectionCounts(
        reviewed=len(decisions),
        corrected=len(changed),
        by_action=dict(Counter(decision.action for decision in changed)),
        by_cause=dict(Counter(decision.cause or "not stated" for decision in changed)),
        by_usage=dict(Counter(parse_id(decision.id).usage for decision in changed)),
        by_collection=dict(Counter(parse_id(decision.id).collection for decision in changed)),
    )
