"""Final steps of the construction: checking the review, statistics, and saving the texts."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
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
    """Agreement of the automatic validation with human reviewers, as a binary task (section 3.2.4).

    Attributes:
        texts: Number of texts judged by both the model and reviewers.
        invalid: Number of texts that reviewers judged invalid.
        valid_judged_invalid, invalid_judged_valid: Number of errors of the model on texts that
            reviewers judged valid and invalid; undecided texts count as judged invalid.
        accuracy: Share of texts with equal judgments.
        macro_f1: Mean of the F1 scores of both classes.
        valid_f1, invalid_f1: F1 score of each class; 0 if undefined.
        missed: `invalid_judged_valid` as a share of all texts.
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
    """Return the agreement of model and reviewers on texts that both judged; None without any.

    Args:
        flagged: Whether the votes resulted in a label other than `valid`, by text id.
        judged_invalid: Whether a reviewer judged the text invalid, by text id.
    """
    from sklearn.metrics import accuracy_score, f1_score

    names = sorted(flagged.keys() & judged_invalid.keys())
    if not names:
        return None
    people = [not judged_invalid[name] for name in names]
    model = [not flagged[name] for name in names]
    cells = Counter(zip(people, model, strict=True))
    valid_f1 = float(f1_score(people, model, pos_label=True, zero_division=0.0))
    invalid_f1 = float(f1_score(people, model, pos_label=False, zero_division=0.0))
    return Agreement(
        texts=len(names),
        invalid=people.count(False),
        valid_judged_invalid=cells[True, False],
        invalid_judged_valid=cells[False, True],
        accuracy=float(accuracy_score(people, model)),
        macro_f1=(valid_f1 + invalid_f1) / 2,
        valid_f1=valid_f1,
        invalid_f1=invalid_f1,
        missed=cells[False, True] / len(names),
    )


@dataclass(frozen=True)
class ReviewedTexts:
    """Generated texts before correction, with verdicts and corrections of texts, and the splits."""

    texts: Sequence[GeneratedText]
    verdicts: Sequence[TextVerdict]
    corrections: Mapping[str, Correction]
    splits: Splits


class SilverReview(Record):
    """Results of automatic validation and human review for the texts outside the gold PIEs.

    Attributes:
        texts: Number of documents and queries.
        flagged: Number of texts judged invalid or undecided.
        flagged_share: Fraction of texts that were flagged; null if there are no texts.
        reviewed: Number of flagged texts that were reviewed.
        awaiting: Number of flagged texts not yet reviewed.
        confirmed: Number of flagged texts that reviewers also judged invalid and changed.
        confirmed_share: Fraction of flagged texts that were confirmed; null if no text is flagged
            or some await review.
    """

    texts: int
    flagged: int
    flagged_share: float | None
    reviewed: int
    awaiting: int
    confirmed: int
    confirmed_share: float | None


class ConstructionMetrics(MetricRecord):
    """Statistics of the construction (sections 3.2.3 and 3.2.4); shares are fractions.

    Attributes:
        sample: Whether the texts are this repository's sample data.
        texts: Number of documents and queries.
        labels: Number of texts by label of the automatic validation.
        votes: Number of votes by value.
        agreement: Agreement of the automatic validation with reviewers, on documents of gold PIEs
            that both judged; null if there are no such documents.
        gold_corrections, silver_corrections: Corrections of texts with gold PIEs, and of the other
            texts.
        silver: Review of the flagged texts outside the gold PIEs.
        gold_texts: Number of reviewed texts, which are marked gold.
        generation: Generation statistics by collection.
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
"""Why a number of the construction is missing."""
Getter = Callable[[ConstructionMetrics], float | None]


def _count(name: str, value: Getter) -> Measure[ConstructionMetrics]:
    return Measure(name, value, decimals=0, unknown=UNJUDGED)


def _share(name: str, value: Getter) -> Measure[ConstructionMetrics]:
    return share(name, value, unknown=UNJUDGED)


def _agreement(field: str) -> Getter:
    """Return a getter of an agreement statistic: None if the agreement was not measured."""
    return lambda metrics: getattr(metrics.agreement, field, None)


def _corrected(field: str, key: str) -> Getter:
    """Return a getter of a number of corrected texts with gold PIEs."""
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
"""Measures of sections 3.2.3 and 3.2.4."""


def construction_metrics(
    reviewed: ReviewedTexts,
    evidence: Evidence,
    *,
    reports: Iterable[GenerationReport],
    validator: str,
    sample: bool,
) -> ConstructionMetrics:
    """Count the outcomes of validation and review."""
    texts, corrections = reviewed.texts, reviewed.corrections
    verdict_by_id = {verdict.id: verdict for verdict in reviewed.verdicts}
    flagged = {name: verdict.flagged for name, verdict in verdict_by_id.items()}
    gold = {text.id for text in texts if text.pie in reviewed.splits.gold}
    silver = [text.id for text in texts if text.id not in gold]
    gold_documents = {name for name in gold if parse_id(name).collection == "documents"}
    votes = chain.from_iterable(verdict.votes for verdict in verdict_by_id.values())
    return ConstructionMetrics(
        sample=sample,
        texts=len(texts),
        labels=dict(Counter(verdict.label for verdict in verdict_by_id.values())),
        votes=dict(Counter(votes)),
        agreement=agreement(
            {name: flagged[name] for name in gold_documents},
            {name: corrections[name].judged_invalid for name in gold_documents & set(corrections)},
        ),
        gold_corrections=count_corrections(
            item for name, item in corrections.items() if name in gold
        ),
        silver_corrections=count_corrections(
            item for name, item in corrections.items() if name not in gold
        ),
        silver=_silver_review(silver, flagged, corrections),
        gold_texts=len(corrections),
        generation={report.collection: report for report in reports},
        validator=validator,
        **evidence.of_record,
    )


def _silver_review(
    silver: Sequence[str], flagged: Mapping[str, bool], corrections: Mapping[str, Correction]
) -> SilverReview:
    """Count the outcomes of validation and review for the texts with the ids `silver`."""
    flagged_silver = [name for name in silver if flagged[name]]
    reviewed = [corrections[name] for name in flagged_silver if name in corrections]
    awaiting = len(flagged_silver) - len(reviewed)
    confirmed = sum(correction.judged_invalid for correction in reviewed)
    is_complete = bool(flagged_silver) and not awaiting
    return SilverReview(
        texts=len(silver),
        flagged=len(flagged_silver),
        flagged_share=len(flagged_silver) / len(silver) if silver else None,
        reviewed=len(reviewed),
        awaiting=awaiting,
        confirmed=confirmed,
        confirmed_share=confirmed / len(flagged_silver) if is_complete else None,
    )


def require_review(reviewed: ReviewedTexts, *, sheet: str | Path) -> None:
    """Check that all texts that need review (see `to_review`) were reviewed.

    Raises:
        UserError: Some texts await review.
    """
    texts = to_review(reviewed.texts, reviewed.verdicts, reviewed.splits.gold)
    awaiting = [text.id for text in texts if text.id not in reviewed.corrections]
    if awaiting:
        raise UserError(
            f"{len(awaiting)} texts await human review (first: {awaiting[0]})",
            where=sheet,
            hint="fill in the sheet and set idiolink.construction.corrections to its path, or set"
            " idiolink.construction.unreviewed: keep",
        )


def save_released_format(texts: Iterable[PieText], splits: Splits, folder: str | Path) -> None:
    """Save `<split>/indexes.json` and `<split>/queries.json` in the released format, sorted by id.

    Raises:
        UserError: A PIE is in no split, or an id is not in the released format.
    """
    rows: dict[tuple[str, Collection], list[dict[str, object]]] = defaultdict(list)
    for text in sorted(texts, key=lambda text: text.id):
        rows[splits.split_of(text.pie), parse_id(text.id).collection].append(_released(text))
    for split, collection in product(SPLITS, FILE_NAMES):
        content = json.dumps(rows[split, collection], ensure_ascii=False, indent=2)
        write_text(Path(folder, split, FILE_NAMES[collection]), content + "\n")


def _released(text: PieText) -> dict[str, object]:
    """Return a record with the keys of the released format, in their original order."""
    return {
        "id": text.id,
        "sentence": text.sentence,
        "idiom": text.pie,
        "span": text.span,
        "subject": text.subject,
        "usage": text.usage,
        "is_gold": text.is_gold,
    }
