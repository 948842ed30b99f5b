"""Write Label Studio tasks for reviewing texts, and read the reviews.

Each task shows an original text with its gold label and a text derived from it; the annotator marks
it as valid, corrects it, or marks it as invalid (ID10M-JAM, section 3.4 and appendix E).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import quoteattr

from pydantic import Field, model_validator

from pieline.core.errors import UserError
from pieline.core.records import Id, Record, check_unique_ids, validated
from pieline.core.review import choices, headers, reviewed_rows, write_sheet

HumanVerdict = Literal["valid", "corrected", "invalid"]
VERDICTS = {
    "valid": "it can stay as it is",
    "corrected": "it is valid as rewritten below",
    "invalid": "it breaks the guidelines and cannot be repaired",
}
_CONTROLS = ("verdict", "correction", "note")
"""Control names in the labeling configuration."""
_ADJUDICATION_COLUMNS = ["item_id", "reviewed", "verdict", "text", "note"]


class Review(Record):
    """Review of one item by one annotator.

    Attributes:
        item_id: Id of the reviewed item.
        verdict: Verdict of the annotator.
        text: Corrected text; null unless the verdict is `corrected`.
        note: Remark of the annotator.
        annotator: Name of the annotator; `adjudication` for a joint decision.
        reviewed: Text that was reviewed; null if not recorded.
    """

    item_id: Id
    verdict: HumanVerdict
    text: str | None = Field(default=None, min_length=1)
    note: str = ""
    annotator: str = ""
    reviewed: str | None = None

    @model_validator(mode="after")
    def _has_its_text(self) -> "Review":
        if (self.text is None) != (self.verdict != "corrected"):
            raise ValueError("text is required for corrected items, and not allowed for others")
        return self


def labelling_config(*, text_name: str, criteria: Sequence[str]) -> str:
    """Return the labeling configuration in Label Studio's XML format.

    `text_name` is the heading of the reviewed text ("Hard variant"); `criteria` are the validity
    criteria shown to the annotator.
    """
    return f"""<View>
  <Header value="Original sentence"/>
  <Text name="original" value="$original"/>
  <Header size="5" value="Expression: $expression"/>
  <Header size="5" value="Gold label: $gold_label"/>
  <Header value={quoteattr(text_name)}/>
  <Text name="text" value="$text"/>
{headers(f"{number}. {text}" for number, text in enumerate(criteria, start=1))}
  <Choices name="verdict" toName="text" choice="single" required="true">
{choices(VERDICTS)}
  </Choices>
  <TextArea name="correction" toName="text" rows="4" maxSubmissions="1" value="$text"
            placeholder="The corrected text, changed as little as possible"
            visibleWhen="choice-selected" whenTagName="verdict" whenChoiceValue="corrected"/>
  <TextArea name="note" toName="text" rows="2" maxSubmissions="1"
            placeholder="Describe the problem (optional)"/>
</View>
"""


def read_export(path: str | Path) -> list[Review]:
    """Read Label Studio's JSON export, ignoring unanswered and skipped tasks.

    Raises:
        UserError: The file is not a Label Studio export of these tasks, has no answers, or has an
            unknown verdict, several verdicts in one annotation or a correction without text; the
            message states the file and, if known, the task.
    """
    rows = reviewed_rows(path, ("item_id", "text"), {name: name for name in _CONTROLS})
    reviews = [
        _review(
            {
                **{name: fields.get(name, "") for name in ("item_id", "verdict", "note")},
                # The text area may contain its unchanged initial text.
                "text": fields.get("correction", "")
                if fields.get("verdict") == "corrected"
                else "",
                "annotator": annotator,
                "reviewed": fields["text"],
            },
            where,
        )
        for where, annotator, fields in rows
    ]
    if not reviews:
        hint = "submit the annotations, and export them again"
        raise UserError("no task has been answered", where=path, hint=hint)
    return reviews


def read_adjudications(path: str | Path) -> list[Review]:
    """Read decisions on disputed items from a filled-in form written by `write_adjudications`.

    Raises:
        UserError: The header or a row is invalid, a reviewed text is missing, or an item occurs
            twice; the message states the file and, if known, the line.
    """
    hint = "fill in the table of disputed variants written by the workflow"
    reviews = []
    answers = {name: name for name in ("verdict", "text", "note")}
    for where, _, fields in reviewed_rows(path, ("item_id", "reviewed"), answers, hint=hint):
        if not fields["reviewed"]:
            raise UserError("the cell `reviewed` is empty", where=where, hint=hint)
        reviews.append(_review({**fields, "annotator": "adjudication"}, where))
    check_unique_ids([review.item_id for review in reviews], where=path)
    return reviews


def write_adjudications(path: str | Path, texts: Mapping[str, str]) -> None:
    """Write a tab-separated adjudication form with one row for each text; keys are item ids."""
    rows = ({"item_id": name, "reviewed": text} for name, text in texts.items())
    write_sheet(path, _ADJUDICATION_COLUMNS, rows)


def settle(
    reviews: Iterable[Review], adjudications: Iterable[Review] = ()
) -> tuple[dict[str, Review], list[str]]:
    """Return the final review of each item, and the ids of disputed items.

    An adjudication takes precedence. Otherwise, all reviews of an item must have the same verdict
    and correction; if they differ, the item is disputed and has no final review.
    """
    decided = {review.item_id: review for review in adjudications}
    by_item: dict[str, list[Review]] = defaultdict(list)
    for review in reviews:
        if review.item_id not in decided:
            by_item[review.item_id].append(review)
    disputed = []
    for item_id, several in by_item.items():
        if len({(review.verdict, review.text) for review in several}) > 1:
            disputed.append(item_id)
        else:
            decided[item_id] = several[0]
    return decided, disputed


def _review(fields: Mapping[str, str], where: str) -> Review:
    filled = {key: value for key, value in fields.items() if value}
    return validated(Review, filled, where=where, hint="correct this answer")
