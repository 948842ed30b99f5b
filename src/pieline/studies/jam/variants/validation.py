"""Validate hard variants with automatic checks and human reviews in Label Studio.

A task in Label Studio shows an original text with its gold label and a text derived from it; the
annotator marks it as valid, corrects it, or marks it as invalid (section 3.4, appendix E).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import quoteattr

from pydantic import Field, model_validator
from rapidfuzz import fuzz

from pieline.core.errors import UserError
from pieline.core.records import Id, Record, check_unique_ids, validated
from pieline.core.review import choices, headers, reviewed_rows, write_sheet
from pieline.core.texts import nfc
from pieline.languages.identification import is_in_language
from pieline.languages.matching import contains_pie
from pieline.languages.registry import get_language, language_codes
from pieline.studies.jam.bio import OUTSIDE, Tag
from pieline.studies.jam.records import Flag, JamSentence, Original, Variant
from pieline.studies.jam.variants.projection import find_original, project_tags, tokenize

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
    reviews = []
    for where, annotator, fields in rows:
        answer = {name: fields.get(name, "") for name in ("item_id", "verdict", "note")}
        answer |= {"annotator": annotator, "reviewed": fields["text"]}
        # With another verdict, the text area may contain its unchanged initial text.
        if answer["verdict"] == "corrected":
            answer["text"] = fields.get("correction", "")
        reviews.append(_review(answer, where))
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


def settle_reviews(
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
    """Return a review from the nonempty fields of an answer."""
    filled = {key: value for key, value in fields.items() if value}
    return validated(Review, filled, where=where, hint="correct this answer")


MIN_CONTEXT_WORDS = 3
MAX_CONTEXT_WORDS = 120
DUPLICATE_SIMILARITY = 0.9
"""Limits of the automatic checks (ours; the paper states none)."""
CRITERIA = (
    "The variant contains the original sentence word for word; only small differences in "
    "punctuation are allowed.",
    "The variant is fluent and coherent, and a reader understands all of it.",
    "The added context contains no other idiom and does not repeat the expression.",
    "A reader cannot understand the expression in a reading other than the gold label.",
    "The added context contains words that belong to the opposite reading and could mislead a "
    "model.",
)
"""Criteria of a valid variant as shown to annotators (section 3.4)."""


def check_text(
    original: Original | JamSentence,
    text: str,
    *,
    siblings: Collection[str] = (),
    known_pies: Collection[str] = (),
) -> tuple[Flag, ...]:
    """Return the problems that automatic checks find in a variant's text.

    - `original_missing`: The original is not in the text, even with minor punctuation differences.
      No other check is applied.
    - `original_not_last`: Text follows the original.
    - `context_empty`, `context_too_short`, `context_too_long`: The context has too few or too many
      words.
    - `pie_repeated`: The context also contains the PIE, in any inflection.
    - `other_pie`: The context contains another known PIE. A human reviewer decides, because the
      other PIE may be used literally.
    - `wrong_language`: The context is not in the language of the original.
    - `duplicate`: The context is nearly identical to that of an earlier variant of the same
      original.
    """
    place = find_original(original.sentence, text)
    if place is None:
        return ("original_missing",)
    language = original.language
    context = text[: place.start].strip()
    words = sum(token[0].isalnum() for token in tokenize(context))
    other_pies = [pie for pie in known_pies if pie not in original.pies]
    findings: Mapping[Flag, bool] = {
        "original_not_last": any(letter.isalnum() for letter in text[place.end :]),
        "context_empty": words == 0,
        "context_too_short": 0 < words < MIN_CONTEXT_WORDS,
        "context_too_long": words > MAX_CONTEXT_WORDS,
        "pie_repeated": any(contains_pie(context, pie, language=language) for pie in original.pies),
        "other_pie": any(contains_pie(context, pie, language=language) for pie in other_pies),
        "wrong_language": not is_in_language(
            context, get_language(language).code, language_codes()
        ),
        "duplicate": any(
            _similarity(context, original, sibling) >= DUPLICATE_SIMILARITY for sibling in siblings
        ),
    }
    return tuple(flag for flag, is_present in findings.items() if is_present)


def make_variant(original: Original | JamSentence, text: str, **fields: Any) -> Variant:
    """Create a variant with the tags of its original; `fields` are its other fields.

    If the text does not contain the original, all tags are O. Such variants are not used, because
    the automatic checks flag them.
    """
    elides = get_language(original.language).elides
    tags: list[Tag]
    if projected := project_tags(original.tokens, original.tags, text, elides=elides):
        tokens, tags = projected
    else:
        tokens = tokenize(text, elides=elides)
        tags = [OUTSIDE] * len(tokens)
    return Variant(
        language=original.language,
        sentence=text,
        tokens=tuple(tokens),
        tags=tuple(tags),
        pies=original.pies,
        is_figurative=original.is_figurative,
        original_id=original.id,
        **({"true_idioms": original.true_idioms} | fields),
    )


def check_variants(
    originals: Iterable[Original],
    variants: Iterable[Variant],
) -> list[Variant]:
    """Return the variants with flags of all automatic checks, sorted by original and number."""
    by_id = {item.id: item for item in originals}
    pies = sorted({pie for item in by_id.values() for pie in item.pies})
    siblings: dict[str, list[str]] = defaultdict(list)
    checked = []
    for item in sorted(variants, key=lambda item: (item.original_id, item.number)):
        earlier = siblings[item.original_id]
        flags = check_text(
            by_id[item.original_id],
            item.sentence,
            siblings=earlier,
            known_pies=pies,
        )
        kept = tuple(flag for flag in item.flags if flag == "not_reviewed_by_model")
        checked.append(item.model_copy(update={"flags": kept + flags}))
        earlier.append(item.sentence)
    return checked


def review_items(
    originals: Iterable[Original], variants: Iterable[Variant]
) -> list[dict[str, str]]:
    """Return the review tasks: each variant with its original and the gold label (appendix E)."""
    by_id = {item.id: item for item in originals}
    return [
        {
            "item_id": item.id,
            "original": by_id[item.original_id].sentence,
            "expression": ", ".join(item.pies),
            "gold_label": "figurative" if item.is_figurative else "literal",
            "text": item.sentence,
        }
        for item in variants
    ]


def check_reviews(variants: Iterable[Variant], reviews: Iterable[Review], *, where: str) -> None:
    """Validate that reviews refer to these variants; `where` names the review files in errors.

    Raises:
        UserError: A reviewed variant does not exist, or its text has changed.
    """
    texts = {item.id: item.sentence for item in variants}
    for review in reviews:
        if review.item_id not in texts:
            hint = "export the tasks of these variants again"
            raise UserError(f"unknown variant {review.item_id!r}", where=where, hint=hint)
        if review.reviewed is not None and nfc(review.reviewed) != nfc(texts[review.item_id]):
            raise UserError(
                f"the review of {review.item_id!r} is for a different text",
                where=where,
                hint="review the current text",
            )


def apply_reviews(
    originals: Sequence[Original],
    variants: Sequence[Variant],
    reviews: Mapping[str, Review],
    *,
    where: str,
) -> list[Variant]:
    """Apply human verdicts and corrections to the variants, and check the results.

    `reviews` are settled and validated reviews by variant id; `where` names their files in error
    messages.

    Raises:
        UserError: An accepted variant lacks its original, so that its gold tags are unknown; or a
            correction has no context, a context in another language, or the text of another
            variant.
    """
    by_id = {item.id: item for item in originals}
    reviewed = []
    for item in variants:
        review = reviews.get(item.id)
        if review is None:
            reviewed.append(item)
            continue
        fields = item.model_dump(include={"number", "source", "flags", "model_verdict"})
        fields |= {"verdict": review.verdict, "note": review.note or item.note}
        text = review.text or item.sentence
        reviewed.append(make_variant(by_id[item.original_id], text, **fields))
    checked = check_variants(originals, reviewed)
    accepted = [item for item in checked if item.verdict != "invalid"]
    for item in accepted:
        if item.id in reviews and "original_missing" in item.flags:
            raise UserError(
                "the variant does not contain its original",
                where=f"{where}: {item.id}",
                hint="correct it to contain the original, or mark it as invalid",
            )
    texts = Counter(item.sentence for item in accepted)
    for item in accepted:
        if item.id in reviews and item.verdict == "corrected":
            _check_correction(item, copies=texts[item.sentence], where=f"{where}: {item.id}")
    return checked


def _check_correction(corrected: Variant, *, copies: int, where: str) -> None:
    """Raise a `UserError` for an unusable correction; `copies` is the number of equal variants."""
    problem = ""
    if "context_empty" in corrected.flags:
        problem = "no context before the original"
    elif "wrong_language" in corrected.flags:
        problem = "a context in another language"
    elif copies > 1:
        problem = "the text of another variant"
    if problem:
        raise UserError(problem, where=where, hint="correct it again, or mark it as invalid")


def _similarity(context: str, original: Original | JamSentence, sibling: str) -> float:
    """Return the similarity (0-1) of a context and the context of the variant `sibling`."""
    place = find_original(original.sentence, sibling)
    other = sibling if place is None else sibling[: place.start].strip()
    return float(fuzz.ratio(context.casefold(), other.casefold())) / 100
