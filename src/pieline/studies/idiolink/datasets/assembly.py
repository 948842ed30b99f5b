"""Final steps of the construction: check the review, count the outcomes and save the texts."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter
from pathlib import Path

from pieline.core.conditions import Evidence, MetricRecord
from pieline.core.errors import UserError
from pieline.core.files import write_text
from pieline.core.measures import Measure, share
from pieline.core.records import Record
from pieline.studies.idiolink.datasets.reading import FILE_NAMES
from pieline.studies.idiolink.originals.splits import SPLITS, Splits
from pieline.studies.idiolink.records import Collection, PieText, parse_id
from pieline.studies.idiolink.variants.generation import GeneratedText, GenerationReport
from pieline.studies.idiolink.variants.validation import (
    Correction,
    CorrectionCounts,
    TextVerdict,
    count_corrections,
    to_review,
)


class Agreement(Record):
    """Agreement of the model and the reviewers on which texts are valid (section 3.2.4).

    Attributes:
        texts: Number of texts that both the model and the reviewers judged.
        invalid: Number of texts that reviewers judged invalid.
        valid_judged_invalid: Number of texts that reviewers judged valid, but the model judged
            invalid or left undecided.
        invalid_judged_valid: Number of texts that reviewers judged invalid, but the model judged
            valid.
        accuracy: Fraction of texts with equal judgments.
        macro_f1: Mean of `valid_f1` and `invalid_f1`.
        valid_f1, invalid_f1: F1 score of the class, as a fraction; 0 if the score is undefined.
        missed: `invalid_judged_valid` as a fraction of all texts.
    """

    texts: int
    invalid: int
    valid_judged_invalid: int
    invalid_judged_valid: int
    accuracy: float
    macro_f1: float
    valid_f1: float
    invalid_f1: float
    missed: float


def agreement(flagged: Mapping[str, bool], judged_invalid: Mapping[str, bool]) -> Agreement | None:
    """Return the agreement of the model and the reviewers on the texts that both judged.

    The result is None if no text was judged by both.

    Args:
        flagged: Whether the model's votes gave a label other than `valid`, by text id.
        judged_invalid: Whether a reviewer judged the text invalid, by text id.
    """
    from sklearn.metrics import accuracy_score, f1_score

    text_ids = sorted(flagged.keys() & judged_invalid.keys())
    if not text_ids:
        return None
    human_labels = ["invalid" if judged_invalid[text_id] else "valid" for text_id in text_ids]
    model_labels = ["invalid" if flagged[text_id] else "valid" for text_id in text_ids]
    confusion = Counter(zip(human_labels, model_labels, strict=True))
    invalid_judged_valid = confusion["invalid", "valid"]
    valid_f1 = f1_score(human_labels, model_labels, pos_label="valid", zero_division=0.0)
    invalid_f1 = f1_score(human_labels, model_labels, pos_label="invalid", zero_division=0.0)
    return Agreement(
        texts=len(text_ids),
        invalid=human_labels.count("invalid"),
        valid_judged_invalid=confusion["valid", "invalid"],
        invalid_judged_valid=invalid_judged_valid,
        accuracy=float(accuracy_score(human_labels, model_labels)),
        macro_f1=float(valid_f1 + invalid_f1) / 2,
        valid_f1=float(valid_f1),
        invalid_f1=float(invalid_f1),
        missed=invalid_judged_valid / len(text_ids),
    )


@dataclass(frozen=True)
class ReviewedTexts:
    """Generated texts before correction, with the outcomes of validation and review.

    Attributes:
        texts: The generated texts.
        verdicts: The model's verdict on each text.
        corrections: The reviewers' decisions, by text id.
        splits: Splits of the PIEs.
    """

    texts: Sequence[GeneratedText]
    verdicts: Sequence[TextVerdict]
    corrections: Mapping[str, Correction]
    splits: Splits


class SilverReview(Record):
    """Results of automatic validation and human review for the texts of silver PIEs.

    Silver PIEs are all PIEs that are not gold.

    Attributes:
        texts: Number of documents and queries of silver PIEs.
        flagged: Number of texts that automatic validation judged invalid or left undecided.
        flagged_share: `flagged` as a fraction of `texts`; null if there are no texts.
        reviewed: Number of flagged texts that were reviewed.
        awaiting: Number of flagged texts that were not reviewed yet.
        confirmed: Number of flagged texts that reviewers also judged invalid.
        confirmed_share: `confirmed` as a fraction of `flagged`; null if no text is flagged or if
            some flagged texts were not reviewed yet.
    """

    texts: int
    flagged: int
    flagged_share: float | None
    reviewed: int
    awaiting: int
    confirmed: int
    confirmed_share: float | None


class ConstructionMetrics(MetricRecord):
    """Outcomes of generation, validation and review (sections 3.2.2 to 3.2.4).

    Attributes:
        sample: Whether the texts are this repository's sample data.
        texts: Number of documents and queries.
        labels: Number of texts by label from automatic validation.
        votes: Number of votes by value (see `TextVerdict.votes`).
        agreement: Agreement of automatic validation and reviewers on the documents of gold PIEs;
            null if reviewers judged none of the documents.
        gold_corrections: Counts of the reviewers' decisions about texts of gold PIEs.
        silver_corrections: Counts of the reviewers' decisions about texts of other PIEs.
        silver: Results of validation and review for the texts of PIEs that are not gold.
        gold_texts: Number of reviewed texts; a dataset marks these texts as gold.
        generation: Report on the generation of each collection, by collection.
        validator: Name of the validating model in models.yaml.
    """

    sample: bool
    texts: int
    labels: dict[str, int]
    votes: dict[str, int]
    agreement: Agreement | None
    gold_corrections: CorrectionCounts
    silver_corrections: CorrectionCounts
    silver: SilverReview
    gold_texts: int
    generation: dict[str, GenerationReport]
    validator: str


UNJUDGED = "not yet reviewed by humans"
"""Reason that is shown if a measure in `CONSTRUCTION` has no value."""
Getter = Callable[[ConstructionMetrics], float | None]


def _count(name: str, value: Getter) -> Measure[ConstructionMetrics]:
    return Measure(name, value, decimals=0, unknown=UNJUDGED)


def _share(name: str, value: Getter) -> Measure[ConstructionMetrics]:
    return share(name, value, unknown=UNJUDGED)


def _agreement(field: str) -> Getter:
    """Return a function that reads a field of `metrics.agreement`, or None if that is null."""
    return lambda metrics: getattr(metrics.agreement, field, None)


def _corrected(field: str, key: str) -> Getter:
    """Return a function that reads `gold_corrections.<field>[key]`, or 0 without this key."""
    return lambda metrics: getattr(metrics.gold_corrections, field).get(key, 0)


CONSTRUCTION = (
    _count("corrections", attrgetter("gold_corrections.corrected")),
    _count("span_corrections", _corrected("by_action", "span_corrected")),
    _count("usage_mismatches", _corrected("by_cause", "usage_mismatch")),
    _count("ambiguous_texts", _corrected("by_cause", "ambiguous")),
    _count("rewritten_texts", _corrected("by_cause", "unclear")),
    _count("corrected_sense", _corrected("by_usage", "sense")),
    _count("corrected_literal", _corrected("by_usage", "literal")),
    _share("validation_accuracy", _agreement("accuracy")),
    _share("validation_macro_f1", _agreement("macro_f1")),
    _share("validation_valid_f1", _agreement("valid_f1")),
    _count("missed_invalid", _agreement("invalid_judged_valid")),
    _share("missed_invalid_share", _agreement("missed")),
    _count("silver_texts", attrgetter("silver.texts")),
    _count("flagged", attrgetter("silver.flagged")),
    _share("flagged_share", attrgetter("silver.flagged_share")),
    _count(
        "confirmed",
        lambda metrics: None if metrics.silver.awaiting else metrics.silver.confirmed,
    ),
    _share("confirmed_share", attrgetter("silver.confirmed_share")),
    _count("gold_texts", attrgetter("gold_texts")),
)
"""Measures that sections 3.2.3 and 3.2.4 report."""


def construction_metrics(
    reviewed: ReviewedTexts,
    evidence: Evidence,
    *,
    reports: Iterable[GenerationReport],
    validator: str,
    sample: bool,
) -> ConstructionMetrics:
    """Count the outcomes of generation, validation and review.

    Args:
        reviewed: Texts with their verdicts and the reviewers' decisions.
        evidence: Digests of the input files, and the conditions of the run.
        reports: Reports on the generation, one per collection.
        validator: Name of the validating model in models.yaml.
        sample: Whether the texts are this repository's sample data.
    """
    texts, corrections = reviewed.texts, reviewed.corrections
    flagged = {verdict.id: verdict.flagged for verdict in reviewed.verdicts}
    gold_ids = {text.id for text in texts if text.pie in reviewed.splits.gold}
    silver_ids = [text.id for text in texts if text.id not in gold_ids]
    gold_document_ids = {
        text_id for text_id in gold_ids if parse_id(text_id).collection == "documents"
    }
    votes = Counter(vote for verdict in reviewed.verdicts for vote in verdict.votes)
    return ConstructionMetrics(
        sample=sample,
        texts=len(texts),
        labels=dict(Counter(verdict.label for verdict in reviewed.verdicts)),
        votes=dict(votes),
        agreement=agreement(
            {text_id: flagged[text_id] for text_id in gold_document_ids},
            {text_id: correction.judged_invalid for text_id, correction in corrections.items()},
        ),
        gold_corrections=count_corrections(
            correction for text_id, correction in corrections.items() if text_id in gold_ids
        ),
        silver_corrections=count_corrections(
            correction for text_id, correction in corrections.items() if text_id not in gold_ids
        ),
        silver=_silver_review(silver_ids, flagged, corrections),
        gold_texts=len(corrections),
        generation={report.collection: report for report in reports},
        validator=validator,
        **evidence.of_record,
    )


def _silver_review(
    silver_ids: Sequence[str], flagged: Mapping[str, bool], corrections: Mapping[str, Correction]
) -> SilverReview:
    """Count the outcomes of validation and review for the texts of PIEs that are not gold.

    Args:
        silver_ids: Ids of these texts.
        flagged: Whether automatic validation flagged the text, by text id.
        corrections: Reviewers' decisions, by text id.
    """
    flagged_ids = [text_id for text_id in silver_ids if flagged[text_id]]
    decisions = [corrections[text_id] for text_id in flagged_ids if text_id in corrections]
    awaiting = len(flagged_ids) - len(decisions)
    confirmed = sum(decision.judged_invalid for decision in decisions)
    flagged_share = len(flagged_ids) / len(silver_ids) if silver_ids else None
    confirmed_share = None
    if flagged_ids and not awaiting:
        confirmed_share = confirmed / len(flagged_ids)
    return SilverReview(
        texts=len(silver_ids),
        flagged=len(flagged_ids),
        flagged_share=flagged_share,
        reviewed=len(decisions),
        awaiting=awaiting,
        confirmed=confirmed,
        confirmed_share=confirmed_share,
    )


def require_review(reviewed: ReviewedTexts, *, sheet: str | Path) -> None:
    """Check that reviewers decided on every text that `to_review` returns.

    Args:
        reviewed: Texts with their verdicts and the reviewers' decisions.
        sheet: Path of the review sheet, for the error message.

    Raises:
        UserError: Reviewers did not decide on some of these texts.
    """
    texts_to_review = to_review(reviewed.texts, reviewed.verdicts, reviewed.splits.gold)
    awaiting_ids = [text.id for text in texts_to_review if text.id not in reviewed.corrections]
    if awaiting_ids:
        raise UserError(
            f"{len(awaiting_ids)} texts await human review (first: {awaiting_ids[0]})",
            where=sheet,
            hint="fill in the sheet and set idiolink.construction.corrections to its path, or set"
            " idiolink.construction.unreviewed: keep",
        )


def save_released_format(texts: Iterable[PieText], splits: Splits, folder: str | Path) -> None:
    """Save texts in the format of the public data, as two JSON files per split.

    The documents are in `<split>/indexes.json` and the queries in `<split>/queries.json`, below
    `folder`. Each file is sorted by text id.

    Raises:
        UserError: A PIE is in no split, or an id does not have the form of the public ids.
    """
    records: dict[tuple[str, Collection], list[dict[str, object]]] = defaultdict(list)
    for text in sorted(texts, key=lambda text: text.id):
        split, collection = splits.split_of(text.pie), parse_id(text.id).collection
        records[split, collection].append(_to_public_record(text))
    for split, collection in product(SPLITS, FILE_NAMES):
        content = json.dumps(records[split, collection], ensure_ascii=False, indent=2)
        write_text(Path(folder, split, FILE_NAMES[collection]), content + "\n")


def _to_public_record(text: PieText) -> dict[str, object]:
    """Return a text as a record with the keys and the key order of the public data."""
    return {
        "id": text.id,
        "sentence": text.sentence,
        "idiom": text.pie,
        "span": text.span,
        "subject": text.subject,
        "usage": text.usage,
        "is_gold": text.is_gold,
    }
