"""Validate hard variants with automatic checks and human reviews in Label Studio.

A task in Label Studio shows an original, its gold label, and a text derived from the original. The
annotator marks the derived text as valid, corrects it, or marks it as invalid (section 3.4,
appendix E).
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
from pieline.studies.jam.bio import OUTSIDE
from pieline.studies.jam.records import Flag, JamSentence, Original, Variant
from pieline.studies.jam.variants.projection import (
    count_words,
    find_context,
    find_original,
    project_tags,
    tokenize,
)

HumanVerdict = Literal["valid", "corrected", "invalid"]
VERDICTS = {
    "valid": "it can stay as it is",
    "corrected": "it is valid as rewritten below",
    "invalid": "it breaks the guidelines and cannot be repaired",
}
"""Explanations of the verdicts for annotators."""
_CONTROLS = ("verdict", "correction", "note")
"""Names of the input fields in the labeling configuration."""
_ADJUDICATION_COLUMNS = ["item_id", "reviewed", "verdict", "text", "note"]


class Review(Record):
    """Review of one item by one annotator.

    Attributes:
        item_id: Id of the reviewed item.
        verdict: Verdict of the annotator.
        text: Corrected text; null unless the verdict is `corrected`.
        note: Remark of the annotator.
        annotator: Name of the annotator; `adjudication` for a joint decision.
        reviewed: Text that was reviewed; null if this text was not recorded.
    """

    item_id: Id
    verdict: HumanVerdict
    text: str | None = Field(default=None, min_length=1)
    note: str = ""
    annotator: str = ""
    reviewed: str | None = None

    @model_validator(mode="after")
    def _only_corrections_have_text(self) -> "Review":
        has_text = self.text is not None
        if has_text != (self.verdict == "corrected"):
            raise ValueError("text is required for corrected items, and not allowed for others")
        return self


def labelling_config(*, text_name: str, criteria: Sequence[str]) -> str:
    """Return the labeling configuration in Label Studio's XML format.

    Args:
        text_name: Heading of the text to review, such as "Hard variant".
        criteria: Criteria of a valid text, which are shown to annotators.
    """
    return f"""<View>
  <Header value="Original sentence"/>
  <Text name="original" value="$original"/>
  <Header size="5" value="Expression: $expression"/>
  <Header size="5" value="Gold label: $gold_label"/>
  <Header value={quoteattr(text_name)}/>
  <Text name="text" value="$text"/>
{headers(f"{number}. {criterion}" for number, criterion in enumerate(criteria, start=1))}
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
            unknown verdict, several verdicts in one annotation, or a correction without text. The
            message states the file and, if known, the task.
    """
    rows = reviewed_rows(path, ("item_id", "text"), {name: name for name in _CONTROLS})
    reviews = []
    for where, annotator, answer in rows:
        verdict = answer.get("verdict", "")
        # Without a correction, the input field may contain the unchanged text of the variant.
        corrected_text = answer.get("correction", "") if verdict == "corrected" else ""
        review_fields = {
            "item_id": answer.get("item_id", ""),
            "verdict": verdict,
            "text": corrected_text,
            "note": answer.get("note", ""),
            "annotator": annotator,
            "reviewed": answer["text"],
        }
        reviews.append(_make_review(review_fields, where))
    if not reviews:
        hint = "submit the annotations, and export them again"
        raise UserError("no task has been answered", where=path, hint=hint)
    return reviews


def read_adjudications(path: str | Path) -> list[Review]:
    """Read decisions on disputed items from a filled-in form written by `write_adjudications`.

    Raises:
        UserError: The header or a row is invalid, a reviewed text is missing, or an item occurs
            twice. The message states the file and, if known, the line.
    """
    hint = "fill in the table of disputed variants written by the workflow"
    answer_columns = {name: name for name in ("verdict", "text", "note")}
    rows = reviewed_rows(path, ("item_id", "reviewed"), answer_columns, hint=hint)
    reviews = []
    for where, _, fields in rows:
        if not fields["reviewed"]:
            raise UserError("the cell `reviewed` is empty", where=where, hint=hint)
        reviews.append(_make_review({**fields, "annotator": "adjudication"}, where))
    check_unique_ids([review.item_id for review in reviews], where=path)
    return reviews


def write_adjudications(path: str | Path, texts: Mapping[str, str]) -> None:
    """Write a tab-separated form for decisions on disputed items.

    `texts` maps the id of each disputed item to its text.
    """
    rows = [{"item_id": item_id, "reviewed": text} for item_id, text in texts.items()]
    write_sheet(path, _ADJUDICATION_COLUMNS, rows)


def settle_reviews(
    reviews: Iterable[Review], adjudications: Iterable[Review] = ()
) -> tuple[dict[str, Review], list[str]]:
    """Return the final review of each item, and the ids of disputed items.

    An adjudication is final. Without an adjudication, all reviews of an item must have the same
    verdict and correction. If these reviews differ, the item is disputed and has no final review.
    """
    final_reviews = {review.item_id: review for review in adjudications}
    open_reviews: dict[str, list[Review]] = defaultdict(list)
    for review in reviews:
        if review.item_id not in final_reviews:
            open_reviews[review.item_id].append(review)
    disputed_ids = []
    for item_id, reviews_of_item in open_reviews.items():
        different_decisions = {(review.verdict, review.text) for review in reviews_of_item}
        if len(different_decisions) > 1:
            disputed_ids.append(item_id)
        else:
            final_reviews[item_id] = reviews_of_item[0]
    return final_reviews, disputed_ids


def _make_review(fields: Mapping[str, str], where: str) -> Review:
    """Return a review; empty fields count as missing, and get the default if there is one.

    Raises:
        UserError: A required field is missing, or a field is invalid.
    """
    nonempty_fields = {name: text for name, text in fields.items() if text}
    return validated(Review, nonempty_fields, where=where, hint="correct this answer")


MIN_CONTEXT_WORDS = 3
MAX_CONTEXT_WORDS = 120
DUPLICATE_SIMILARITY = 0.9
"""Limits of the automatic checks, which we chose because the paper states no limits."""
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

    - `original_missing`: The text does not contain the original, even with minor punctuation
      differences. No other check is applied.
    - `original_not_last`: Text follows the original.
    - `context_empty`, `context_too_short`, `context_too_long`: The context has too few or too many
      words.
    - `pie_repeated`: The context also contains the PIE, in any inflection.
    - `other_pie`: The context contains another known PIE. A human reviewer decides, because the
      other PIE may be used literally.
    - `wrong_language`: The context is not in the language of the original.
    - `duplicate`: The context is nearly identical to the context of an earlier variant.

    Args:
        original: Original of the variant.
        text: Text of the variant.
        siblings: Texts of the earlier variants of the same original.
        known_pies: PIEs of all originals.
    """
    span = find_original(original.sentence, text)
    if span is None:
        return ("original_missing",)
    context, text_after = text[: span.start].strip(), text[span.end :]
    language = original.language
    word_count = count_words(context)
    other_pies = [pie for pie in known_pies if pie not in original.pies]
    sibling_similarities = [_similarity(context, original, sibling) for sibling in siblings]
    language_code = get_language(language).code
    is_present: Mapping[Flag, bool] = {
        "original_not_last": any(character.isalnum() for character in text_after),
        "context_empty": word_count == 0,
        "context_too_short": 0 < word_count < MIN_CONTEXT_WORDS,
        "context_too_long": word_count > MAX_CONTEXT_WORDS,
        "pie_repeated": _contains_any(context, original.pies, language),
        "other_pie": _contains_any(context, other_pies, language),
        "wrong_language": not is_in_language(context, language_code, language_codes()),
        "duplicate": max(sibling_similarities, default=0.0) >= DUPLICATE_SIMILARITY,
    }
    return tuple(flag for flag in is_present if is_present[flag])


def _contains_any(text: str, pies: Iterable[str], language: str) -> bool:
    """Return whether a text contains any of several PIEs, in any inflection."""
    return any(contains_pie(text, pie, language=language) for pie in pies)


def make_variant(original: Original | JamSentence, text: str, **fields: Any) -> Variant:
    """Return a variant of an original, with the original's tags in the variant's text.

    If the text does not contain the original, all tags are O. Such a variant is not used, because
    the automatic checks flag it.

    Args:
        original: The original.
        text: Text of the variant.
        **fields: Fields of the variant that the original does not determine. `true_idioms` is
            optional, and defaults to the original's `true_idioms`.
    """
    elides = get_language(original.language).elides
    projected = project_tags(original.tokens, original.tags, text, elides=elides)
    if projected:
        tokens, tags = projected
    else:
        tokens = tokenize(text, elides=elides)
        tags = [OUTSIDE for _ in tokens]
    fields.setdefault("true_idioms", original.true_idioms)
    return Variant(
        language=original.language,
        sentence=text,
        tokens=tuple(tokens),
        tags=tuple(tags),
        pies=original.pies,
        is_figurative=original.is_figurative,
        original_id=original.id,
        **fields,
    )


def check_variants(
    originals: Iterable[Original],
    variants: Iterable[Variant],
) -> list[Variant]:
    """Return the variants with the flags of all automatic checks, sorted by original and number.

    The flag `not_reviewed_by_model` is kept; other earlier flags are replaced.
    """
    original_by_id = {original.id: original for original in originals}
    known_pies = sorted({pie for original in original_by_id.values() for pie in original.pies})
    earlier_texts: dict[str, list[str]] = defaultdict(list)
    checked_variants = []
    for variant in sorted(variants, key=lambda variant: (variant.original_id, variant.number)):
        siblings = earlier_texts[variant.original_id]
        flags = check_text(
            original_by_id[variant.original_id],
            variant.sentence,
            siblings=siblings,
            known_pies=known_pies,
        )
        if "not_reviewed_by_model" in variant.flags:
            flags = ("not_reviewed_by_model", *flags)
        checked_variants.append(variant.model_copy(update={"flags": flags}))
        siblings.append(variant.sentence)
    return checked_variants


def review_items(
    originals: Iterable[Original], variants: Iterable[Variant]
) -> list[dict[str, str]]:
    """Return the fields of each variant's review task in Label Studio, by name (appendix E)."""
    original_texts = {original.id: original.sentence for original in originals}
    return [
        {
            "item_id": variant.id,
            "original": original_texts[variant.original_id],
            "expression": ", ".join(variant.pies),
            "gold_label": "figurative" if variant.is_figurative else "literal",
            "text": variant.sentence,
        }
        for variant in variants
    ]


def check_reviews(variants: Iterable[Variant], reviews: Iterable[Review], *, where: str) -> None:
    """Raise a `UserError` if a reviewed variant does not exist, or if its text has changed.

    `where` names the review files in error messages.
    """
    texts = {variant.id: variant.sentence for variant in variants}
    for review in reviews:
        if review.item_id not in texts:
            hint = "export the tasks of these variants again"
            raise UserError(f"unknown variant {review.item_id!r}", where=where, hint=hint)
        if review.reviewed is None:
            continue
        if nfc(review.reviewed) != nfc(texts[review.item_id]):
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
    """Return the variants with human verdicts and corrections, after all automatic checks.

    Args:
        originals: Originals of the variants.
        variants: Variants before the reviews.
        reviews: Final reviews (see `settle_reviews`), by variant id.
        where: Names of the review files, for error messages.

    Raises:
        UserError: An accepted variant lacks its original, so that its gold tags are unknown; or a
            correction has no context, a context in another language, or the text of another
            variant.
    """
    original_by_id = {original.id: original for original in originals}
    updated_variants = []
    for variant in variants:
        review = reviews.get(variant.id)
        if review is None:
            updated_variants.append(variant)
        else:
            original = original_by_id[variant.original_id]
            updated_variants.append(_apply_review(variant, review, original))
    checked_variants = check_variants(originals, updated_variants)
    _check_accepted(checked_variants, reviews, where)
    return checked_variants


def _apply_review(variant: Variant, review: Review, original: Original) -> Variant:
    """Return a variant of an original with the verdict, note and correction of a review."""
    fields = variant.model_dump(include={"number", "source", "flags", "model_verdict"})
    return make_variant(
        original,
        review.text or variant.sentence,
        verdict=review.verdict,
        note=review.note or variant.note,
        **fields,
    )


def _check_accepted(variants: Sequence[Variant], reviews: Collection[str], where: str) -> None:
    """Raise a `UserError` if a variant that a reviewer accepted or corrected is unusable.

    `reviews` are the ids of reviewed variants; `where` names the review files in error messages.
    """
    # Invalid variants are not used, so they are not checked.
    possible_variants = [variant for variant in variants if variant.verdict != "invalid"]
    accepted = [variant for variant in possible_variants if variant.id in reviews]
    for variant in accepted:
        if "original_missing" in variant.flags:
            raise UserError(
                "the variant does not contain its original",
                where=f"{where}: {variant.id}",
                hint="correct it to contain the original, or mark it as invalid",
            )
    text_counts = Counter(variant.sentence for variant in possible_variants)
    for variant in accepted:
        if variant.verdict == "corrected":
            copies = text_counts[variant.sentence]
            _check_correction(variant, copies=copies, where=f"{where}: {variant.id}")


def _check_correction(corrected: Variant, *, copies: int, where: str) -> None:
    """Raise a `UserError` if a corrected variant is unusable.

    `copies` is the number of variants with the same text, including the corrected variant.
    """
    if "context_empty" in corrected.flags:
        problem = "no context before the original"
    elif "wrong_language" in corrected.flags:
        problem = "a context in another language"
    elif copies > 1:
        problem = "the text of another variant"
    else:
        return
    raise UserError(problem, where=where, hint="correct it again, or mark it as invalid")


def _similarity(context: str, original: Original | JamSentence, sibling: str) -> float:
    """Return the similarity (0-1) of a context and the context of another variant of an original.

    `sibling` is the text of the other variant. If it lacks the original, all of it is compared.
    """
    sibling_context = find_context(original.sentence, sibling)
    if sibling_context is None:
        sibling_context = sibling
    return float(fuzz.ratio(context.casefold(), sibling_context.casefold())) / 100
