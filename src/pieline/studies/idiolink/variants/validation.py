"""Validation of generated texts: votes of a model, human review and corrections (section 3.2.4)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
"""Number of votes per text (section 3.2.3)."""
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
    """A model's judgment of one text: whether the text meets each criterion in `CRITERIA`.

    `number` is the text's number in the question, from 1.
    """

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
    """A model's answer: judgments of all texts of one (PIE, domain) pair."""

    judgements: list[TextJudgment]


class TextVerdict(Record):
    """The outcome of the votes on one text.

    Attributes:
        id: Id of the text.
        votes: The votes: `valid` or `invalid`. If an answer has no vote on the text, the vote is
            the answer's outcome, or `missing` if the answer can be parsed but omits the text.
        label: Label with the majority of votes, or `undecided`.
        failed: For each criterion, the number of votes by which the text failed it.
        comments: Comments of the votes by which the text failed a criterion.
        answer_keys: For each vote, the key of the recorded answer.
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
    """Return the label with more than half of all votes, or `undecided`.

    Missing votes are votes for neither label: of three votes, one `valid`, one `invalid` and one
    unparseable vote give `undecided`, and the text goes to human review.
    """
    if 2 * votes.count("valid") > len(votes):
        return "valid"
    if 2 * votes.count("invalid") > len(votes):
        return "invalid"
    return "undecided"


def validation_questions(
    texts: Sequence[GeneratedText], judge: Role
) -> list[tuple[Question, list[GeneratedText]]]:
    """Return the questions about the texts of one collection, with the texts of each question.

    Each question contains all texts of a (PIE, domain) pair (section 3.2.4), and is asked once per
    vote.
    """
    texts_by_pair: dict[tuple[str, str], list[GeneratedText]] = defaultdict(list)
    for text in sorted(texts, key=lambda text: text.id):
        texts_by_pair[text.pie, text.subject].append(text)
    questions = []
    for (pie, domain), pair_texts in texts_by_pair.items():
        for vote_index in range(judge.times):
            name = f"{pie} / {domain}, run {vote_index + 1}"
            question = judge.question(name, vote_index, pie=pie, domain=domain, texts=pair_texts)
            questions.append((question, pair_texts))
    return questions


def validate(texts: Sequence[GeneratedText], judge: Role, ask: Ask) -> list[TextVerdict]:
    """Judge the texts of one collection by majority vote; return the verdicts sorted by id."""
    questions = validation_questions(texts, judge)
    answers = ask([question for question, _ in questions])
    votes_by_text: dict[str, list[_Vote]] = defaultdict(list)
    for question, texts_in_question in questions:
        votes = _read_votes(answers[question.key], len(texts_in_question))
        for text, vote in zip(texts_in_question, votes, strict=True):
            votes_by_text[text.id].append(vote)
    return [_to_verdict(text_id, votes) for text_id, votes in sorted(votes_by_text.items())]


class _Vote(NamedTuple):
    """An answer's vote on a text.

    Attributes:
        value: `valid`, `invalid`, or why there is no vote (see `TextVerdict.votes`).
        judgment: The judgment behind the vote; None if there is no vote.
        answer_key: Key of the recorded answer.
    """

    value: str
    judgment: TextJudgment | None
    answer_key: str


def _to_verdict(text_id: str, votes: Sequence[_Vote]) -> TextVerdict:
    """Return the verdict on a text: the outcome of the votes on it."""
    values = [vote.value for vote in votes]
    judgments = [vote.judgment for vote in votes if vote.judgment]
    negative_judgments = [judgment for judgment in judgments if judgment.failed]
    return TextVerdict(
        id=text_id,
        votes=values,
        label=majority(values),
        failed=dict(Counter(criterion for judgment in judgments for criterion in judgment.failed)),
        comments=[judgment.comment for judgment in negative_judgments if judgment.comment],
        answer_keys=[vote.answer_key for vote in votes],
    )


class Validation(RoleTask):
    """Task that validates all texts of a collection by repeated votes.

    `inputs` has `texts` and `prompt`; `outputs` has `verdicts`.
    """

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return all questions about the texts; the file of texts must exist."""
        questions = validation_questions(self._texts(), self.role(entry, VOTES))
        return [question for question, _ in questions]

    def likely_output_tokens(self) -> int:
        """Return the estimated number of output tokens per answer.

        A judgment has about 40 tokens: the text's number, four booleans and a comment. An answer
        has six judgments on average, because pairs have ten documents and two queries.
        """
        tokens_per_judgment = 40
        mean_judgments = (10 + 2) // 2
        return mean_judgments * tokens_per_judgment

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Request all votes and save the verdicts."""
        verdicts = validate(self._texts(), self.role(entry, VOTES), ask)
        save_jsonl(self.outputs["verdicts"], verdicts)

    def reading(self, answer: Answer) -> Parsed[Judgments]:
        """Return the judgments in an answer; their text numbers are not checked."""
        return parse_object(answer, Judgments)

    def _texts(self) -> list[GeneratedText]:
        return load_jsonl(self.inputs["texts"], GeneratedText)


def _read_votes(answer: Answer, number_of_texts: int) -> list[_Vote]:
    """Return an answer's votes on the texts of its question, one vote per text, in order."""
    parsed = parse_object(answer, Judgments)
    if parsed.value is None:
        return [_Vote(parsed.outcome.value, None, answer.key)] * number_of_texts
    judgments = parsed.value.judgements
    judgment_by_number = {judgment.number: judgment for judgment in judgments}
    text_numbers = range(1, number_of_texts + 1)
    are_assignable = len(judgment_by_number) == len(judgments) and all(
        number in text_numbers for number in judgment_by_number
    )
    if not are_assignable:
        return [_Vote("unparseable", None, answer.key)] * number_of_texts
    votes = []
    for number in text_numbers:
        judgment = judgment_by_number.get(number)
        votes.append(_Vote(_vote_value(judgment), judgment, answer.key))
    return votes


def _vote_value(judgment: TextJudgment | None) -> str:
    """Return a judgment's vote, `valid` or `invalid`; `missing` if there is no judgment."""
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
"""Columns of the review sheet that show a text."""
_DECISION = ("action", "cause", "new_sentence", "new_span")
"""Columns of the review sheet that reviewers fill in."""
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
"""Labeling configuration for Label Studio, in XML."""


class Correction(Record):
    """A reviewer's decision on one text.

    Attributes:
        id: Id of the text.
        sentence, span: Sentence and span that were reviewed. The decision does not apply if the
            text has changed since.
        action: What the reviewer changed (a key of `ACTIONS`).
        cause: Why the reviewer changed the text (a key of `CAUSES`); empty if not stated.
        new_sentence, new_span: The new sentence and span; empty if unchanged.
    """

    id: Id
    sentence: str
    span: str
    action: Action
    cause: Cause = ""
    new_sentence: str = ""
    new_span: str = ""

    @model_validator(mode="after")
    def _action_matches_changes(self) -> Self:
        """Raise a `ValueError` if the action does not match the changes of sentence and span.

        The corrected span must be in the corrected sentence.
        """
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
        """The corrected sentence, or the original sentence if it did not change."""
        return self.new_sentence or self.sentence

    @property
    def span_after(self) -> str:
        """The corrected span, or the original span if it did not change."""
        return self.new_span or self.span

    @property
    def judged_invalid(self) -> bool:
        """Whether the reviewer judged the original text invalid."""
        return self.action != "valid"


def to_review(
    texts: Iterable[GeneratedText], verdicts: Iterable[TextVerdict], gold: Iterable[str]
) -> list[GeneratedText]:
    """Return the texts that need human review, sorted by id.

    These are all texts of the gold PIEs in `gold`, and the flagged texts of other PIEs.
    """
    is_flagged = {verdict.id: verdict.flagged for verdict in verdicts}
    gold_pies = set(gold)
    selected = [text for text in texts if text.pie in gold_pies or is_flagged[text.id]]
    return sorted(selected, key=lambda text: text.id)


def write_review(
    texts: Iterable[GeneratedText], *, sheet: Path, guidelines: Path, tasks: Path, labelling: Path
) -> None:
    """Write the forms for reviewers, as a sheet and for Label Studio.

    The forms do not show the model's votes, because the votes would bias the reviewers.

    Args:
        texts: Texts to review.
        sheet: Path of the sheet (CSV); reviewers fill in a copy.
        guidelines: Path of the sheet's guidelines (text), with the allowed values.
        tasks: Path of the texts as Label Studio tasks (JSON).
        labelling: Path of the labeling configuration for Label Studio (XML).
    """
    rows = []
    for text in texts:
        fields = {**text.model_dump(), "domain": text.subject}
        rows.append({column: str(fields[column]) for column in _SHOWN})
    write_sheet(sheet, [*_SHOWN, *_DECISION], rows)
    write_guidelines(guidelines, _DECISION, _SHEET_GUIDELINES)
    write_tasks(tasks, rows)
    write_text(labelling, LABELLING)


def read_corrections(path: str | Path) -> dict[str, Correction]:
    """Read reviewers' decisions, by text id.

    Rows and tasks without a decision are skipped.

    Args:
        path: Path of a review sheet (.csv) or of a Label Studio export (.json).

    Raises:
        UserError: The file is invalid, a decision is inconsistent or has no action, or a text has
            two decisions.
    """
    controls = {column: column for column in _DECISION}
    rows = reviewed_rows(path, ("id", "sentence", "span"), controls, last_only=True)
    corrections = []
    for where, _, fields in rows:
        # A Label Studio export has no fields for empty controls.
        cells = {**dict.fromkeys(_DECISION, ""), **fields}
        if not any(cells[column] for column in _DECISION):
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
    """Return all texts, with corrections applied and with reviewed texts marked gold.

    Args:
        texts: All generated texts.
        corrections: Reviewers' decisions by text id.
        where: Path of the decisions, for error messages.

    Raises:
        UserError: A decision is about an unknown text or about another version of a text.
    """
    texts = list(texts)
    unknown_ids = corrections.keys() - {text.id for text in texts}
    if unknown_ids:
        raise UserError(
            f"decision about unknown text {min(unknown_ids)!r}",
            where=where,
            hint="remove it, or use the corrections for these texts",
        )
    corrected_texts = []
    for text in texts:
        correction = corrections.get(text.id)
        corrected_texts.append(_correct(text, correction, where) if correction else text)
    return corrected_texts


def _correct(text: GeneratedText, correction: Correction, where: str | Path) -> GeneratedText:
    """Return a text with a correction applied, marked gold.

    Raises:
        UserError: The text differs from the text that was reviewed.
    """
    has_reviewed_sentence = nfc(correction.sentence) == nfc(text.sentence)
    has_reviewed_span = nfc(correction.span) == nfc(text.span)
    if not (has_reviewed_sentence and has_reviewed_span):
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
    """Counts of reviewers' decisions.

    Attributes:
        reviewed: Number of all decisions.
        corrected: Number of decisions that changed the text.
        by_action: Number of these decisions by action.
        by_cause: Number of these decisions by cause; `not stated` if there is no cause.
        by_usage: Number of these decisions by usage of the text.
        by_collection: Number of these decisions by collection of the text.
    """

    reviewed: int
    corrected: int
    by_action: dict[str, int]
    by_cause: dict[str, int]
    by_usage: dict[str, int]
    by_collection: dict[str, int]


def count_corrections(corrections: Iterable[Correction]) -> CorrectionCounts:
    """Count all decisions of reviewers, and count by kind the decisions that changed a text."""
    decisions = list(corrections)
    changes = [decision for decision in decisions if decision.judged_invalid]
    return CorrectionCounts(
        reviewed=len(decisions),
        corrected=len(changes),
        by_action=dict(Counter(change.action for change in changes)),
        by_cause=dict(Counter(change.cause or "not stated" for change in changes)),
        by_usage=dict(Counter(parse_id(change.id).usage for change in changes)),
        by_collection=dict(Counter(parse_id(change.id).collection for change in changes)),
    )
