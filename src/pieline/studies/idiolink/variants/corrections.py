"""Export of texts for human review, and import of corrections (sections 3.2.3 and 3.2.4).

The CSV review sheet and the Label Studio tasks have the same columns.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import ValidationError, model_validator

from pieline.core.errors import UserError
from pieline.core.records import Id, Record, check_unique_ids, explain
from pieline.core.review import reviewed_rows, write_sheet, write_tasks
from pieline.core.texts import nfc
from pieline.studies.idiolink.originals.domains import parse_id
from pieline.studies.idiolink.variants.generation import GeneratedText
from pieline.studies.idiolink.variants.votes import TextVerdict

Action = Literal["valid", "span_corrected", "text_revised", "replaced"]
Cause = Literal[
    "", "wrong_span", "usage_mismatch", "ambiguous", "unclear", "other_idiom", "off_domain"
]

_DECISION = ("action", "cause", "new_sentence", "new_span")
COLUMNS = [
    *("id", "pie", "domain", "usage", "sentence", "span"),
    *("why", "votes", "failed", "comments", *_DECISION),
]
"""Columns of the review sheet; reviewers fill in the last four."""

LABELLING = """<View>
  <Header value="PIE: $pie, domain: $domain, kind: $usage"/>
  <Text name="sentence" value="$sentence"/>
  <Text name="span" value="Span: $span"/>
  <Text name="why" value="$why: $failed $comments"/>
  <Choices name="action" toName="sentence" choice="single" required="true">
    <Choice value="valid"/><Choice value="span_corrected"/>
    <Choice value="text_revised"/><Choice value="replaced"/>
  </Choices>
  <Choices name="cause" toName="sentence" choice="single">
    <Choice value="wrong_span"/><Choice value="usage_mismatch"/><Choice value="ambiguous"/>
    <Choice value="unclear"/><Choice value="other_idiom"/><Choice value="off_domain"/>
  </Choices>
  <TextArea name="new_sentence" toName="sentence" maxSubmissions="1"/>
  <TextArea name="new_span" toName="sentence" maxSubmissions="1"/>
</View>
"""
"""Label Studio labeling configuration for the tasks."""


class Correction(Record):
    """A reviewer's decision on one text.

    Attributes:
        id: Id of the text.
        sentence, span: Sentence and span as reviewed; the decision applies only to this version.
        action: `valid`: no change; `span_corrected`: different span in the same sentence;
            `text_revised`: edited sentence; `replaced`: different sentence.
        cause: Reason for the change, if stated.
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


class ReviewRow(NamedTuple):
    """A text to review with its verdict; `why` is `gold` or `flagged`."""

    text: GeneratedText
    verdict: TextVerdict
    why: str


def to_review(
    texts: Iterable[GeneratedText], verdicts: Iterable[TextVerdict], gold: Iterable[str]
) -> list[ReviewRow]:
    """Return the texts to review, sorted by id: all texts of gold PIEs, flagged texts of others."""
    by_id = {verdict.id: verdict for verdict in verdicts}
    checked = set(gold)
    return [
        ReviewRow(text, by_id[text.id], "gold" if text.pie in checked else "flagged")
        for text in sorted(texts, key=lambda text: text.id)
        if text.pie in checked or by_id[text.id].flagged
    ]


def write_review(
    rows: Sequence[ReviewRow], corrections: Mapping[str, Correction], *, sheet: Path, tasks: Path
) -> None:
    """Write the review sheet (CSV) and Label Studio tasks (JSON), including existing decisions."""
    values = [_cells(row, corrections.get(row.text.id)) for row in rows]
    write_sheet(sheet, COLUMNS, values)
    controls = {
        name: "choices" if name in ("action", "cause") else "textarea" for name in _DECISION
    }
    write_tasks(tasks, values, controls, about="sentence")


def _cells(row: ReviewRow, correction: Correction | None) -> dict[str, str]:
    text, verdict = row.text, row.verdict
    failed = (f"{name} ({count})" for name, count in sorted(verdict.failed.items()))
    decided = correction.model_dump() if correction else {}
    return {
        **{name: getattr(text, name) for name in ("id", "pie", "usage", "sentence", "span")},
        "domain": text.subject,
        "why": row.why,
        "votes": " ".join(verdict.votes),
        "failed": ", ".join(failed),
        "comments": " | ".join(verdict.comments),
        **{name: decided.get(name, "") for name in _DECISION},
    }


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
    corrected = []
    for text in texts:
        changes: dict[str, Any] = {}
        if correction := corrections.get(text.id):
            decided = (correction.sentence, correction.span)
            if [*map(nfc, decided)] != [nfc(text.sentence), nfc(text.span)]:
                raise UserError(
                    f"text {text.id!r} has changed since the decision",
                    where=where,
                    hint="review it again",
                )
            changes = {"sentence": correction.sentence_after, "span": correction.span_after}
            changes["is_gold"] = True
        corrected.append(text.model_copy(update=changes))
    return corrected


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
