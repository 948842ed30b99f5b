"""The filter that selects PIEs from MAGPIE (section 3.2.1)."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import PositiveInt

from pieline.core.errors import UserError
from pieline.core.files import read_text
from pieline.core.records import Frozen, Record
from pieline.core.settings import Field, Settings
from pieline.core.tables import read_table
from pieline.studies.idiolink.raw import Occurrence
from pieline.studies.idiolink.records import DOMAINS, Domain

Semantics = Literal["paper", "released"]
"""Interpretation of the three criteria.

`paper` follows section 3.2.1: a PIE needs enough occurrences, an idiomatic share among its
idiomatic and literal occurrences within the bounds, and enough confidence in all of its
annotations.

`released` follows the authors' code, which produced the public list of PIEs: a PIE needs enough
occurrences, and an idiomatic or literal share among all of its occurrences within the bounds.
Occurrences with low confidence are removed after counting, so a PIE fails the confidence criterion
only if no idiomatic or literal occurrence remains.
"""
Criterion = Literal["occurrences", "balance", "confidence", "manual", "selection"]
"""The three criteria of section 3.2.1, manual exclusion, and selection by the configuration."""


class FilterThresholds(Frozen):
    """Thresholds of the three criteria of section 3.2.1.

    Attributes:
        min_occurrences: Minimum number of sentences in MAGPIE with the PIE.
        min_share, max_share: Inclusive bounds of the share of a usage, as fractions.
        min_confidence: Minimum confidence of an annotation in MAGPIE (0 to 1).
    """

    min_occurrences: int = 30
    min_share: float = 0.25
    max_share: float = 0.75
    min_confidence: float = 1.0


class FilterOptions(Settings):
    """Settings that decide which (PIE, domain) pairs are kept."""

    semantics: Semantics = Field(
        default="released",
        affects="predictions",
        deviates=False,
        description="Interpretation of the three criteria. 'released': as in the authors' code,"
        " which yields the public list of PIEs; 'paper': as in the paper's text, which keeps almost"
        " none of MAGPIE's PIEs.",
    )
    min_occurrences: PositiveInt = Field(
        default=FilterThresholds().min_occurrences,
        affects="predictions",
        description="Minimum number of sentences in MAGPIE with the PIE.",
    )
    pies: list[str] | None = Field(
        default=None,
        min_length=1,
        affects="predictions",
        description="Names of the PIEs to keep, of those that pass the filter; null: all.",
    )
    domains: list[Domain] = Field(
        default=list(DOMAINS),
        min_length=1,
        affects="predictions",
        description="Domains of the texts to write.",
    )

    @property
    def thresholds(self) -> FilterThresholds:
        """Thresholds of the three criteria."""
        return FilterThresholds(min_occurrences=self.min_occurrences)


class PieVerdict(Record):
    """The filter's verdict on one PIE.

    Attributes:
        number: Position (from 1) in alphabetical order among the PIEs that meet the three criteria;
            null for other PIEs. Text ids contain this number.
        occurrences: Number of MAGPIE lines with this PIE.
        idiomatic, literal, other: Number of occurrences with an idiomatic, literal or other label.
        confident: Number of idiomatic and literal occurrences with enough confidence.
        least_confidence: Lowest confidence of any occurrence.
        idiomatic_share, literal_share: Fractions of idiomatic and literal occurrences; the
            denominator depends on the semantics. Null if the denominator is zero.
        failed: Criteria that the PIE does not meet, including manual exclusion and selection.
        reasons: Explanation of each criterion in `failed`, in the same order.
        kept: Whether the PIE meets all criteria and is neither excluded nor deselected.
        released: Status of the PIE in the public data: `used` (in a split), `valid` or `invalid`
            (in no split, but on the authors' list of candidates, with this mark) or `absent` (in
            neither). Null if the list is not available.
    """

    pie: str
    number: int | None
    occurrences: int
    idiomatic: int
    literal: int
    other: int
    confident: int
    least_confidence: float
    idiomatic_share: float | None
    literal_share: float | None
    failed: list[Criterion]
    reasons: list[str]
    kept: bool
    released: Literal["used", "valid", "invalid", "absent"] | None = None


@dataclass
class LabelCounts:
    """Number of occurrences of one PIE by MAGPIE's label.

    Attributes:
        labels: Counts of all occurrences.
        confident_labels: Counts of the occurrences with enough confidence.
        least_confidence: Lowest confidence of any occurrence (0 to 1).
    """

    labels: Counter[str] = field(default_factory=Counter)
    confident_labels: Counter[str] = field(default_factory=Counter)
    least_confidence: float = 1.0

    @property
    def occurrences(self) -> int:
        """Number of occurrences with any label."""
        return self.labels.total()

    @property
    def idiomatic(self) -> int:
        """Number of occurrences with label `i`."""
        return self.labels["i"]

    @property
    def literal(self) -> int:
        """Number of occurrences with label `l`."""
        return self.labels["l"]

    @property
    def confident(self) -> int:
        """Number of idiomatic and literal occurrences with enough confidence."""
        return self.confident_labels["i"] + self.confident_labels["l"]

    def of_confident(self) -> "LabelCounts":
        """Return counts that ignore the occurrences without enough confidence."""
        # `least_confidence` keeps its default of 1, so the PIE meets the confidence criterion.
        return LabelCounts(self.confident_labels, self.confident_labels)


def count_labels(
    occurrences: Iterable[Occurrence], thresholds: FilterThresholds
) -> dict[str, LabelCounts]:
    """Count the occurrences of each PIE by label; return the counts by PIE."""
    counts_by_pie: dict[str, LabelCounts] = {}
    for occurrence in occurrences:
        counts = counts_by_pie.setdefault(occurrence.idiom, LabelCounts())
        counts.labels[occurrence.label] += 1
        if occurrence.confidence >= thresholds.min_confidence:
            counts.confident_labels[occurrence.label] += 1
        counts.least_confidence = min(counts.least_confidence, occurrence.confidence)
    return counts_by_pie


def filter_pies(
    counts: Mapping[str, LabelCounts],
    thresholds: FilterThresholds,
    semantics: Semantics,
    exclusions: Mapping[str, str],
    *,
    only: Collection[str] | None = None,
    where: str | Path = "exclusions",
) -> list[PieVerdict]:
    """Return the verdict on every PIE, in alphabetical order.

    Args:
        counts: Label counts by PIE.
        thresholds: Thresholds of the three criteria.
        semantics: Interpretation of the criteria (see `Semantics`).
        exclusions: Reasons for manual exclusions, by PIE. Excluded PIEs may fail the
            criteria, too, because the list serves all thresholds.
        only: PIEs to keep; None keeps all PIEs that meet the criteria and are not excluded.
        where: Path of the exclusions, for error messages.

    Raises:
        UserError: An excluded PIE is not in MAGPIE, or a PIE in `only` fails the criteria or is
            excluded.
    """
    if unknown := sorted(exclusions.keys() - counts.keys()):
        raise UserError(
            f"excluded PIE {unknown[0]!r} is not in MAGPIE",
            where=where,
            hint="use MAGPIE's spelling, or remove it",
        )
    verdicts: list[PieVerdict] = []
    pies_meeting_criteria = 0
    for pie in sorted(counts):
        shares = _shares(counts[pie], semantics)
        reasons = _failures(counts[pie], shares, thresholds, semantics)
        # Exclusions and selection leave gaps in the numbers, so that text ids do not change.
        number = None
        if not reasons:
            pies_meeting_criteria += 1
            number = pies_meeting_criteria
        if pie in exclusions:
            reasons["manual"] = f"excluded manually: {exclusions[pie]}"
        is_selected = only is None or pie in only
        if not reasons and not is_selected:
            reasons["selection"] = "not among the configured PIEs"
        verdicts.append(_verdict(pie, number, counts[pie], shares, reasons))
    kept = {verdict.pie for verdict in verdicts if verdict.kept}
    rejected_pies = set(only or ()) - kept
    if rejected_pies:
        raise UserError(
            f"PIE {min(rejected_pies)!r} does not pass the filter",
            where="idiolink.construction.pies",
            hint="remove it, or change min_occurrences",
        )
    return verdicts


def _verdict(
    pie: str,
    number: int | None,
    counts: LabelCounts,
    shares: "_Shares",
    reasons: Mapping[Criterion, str],
) -> PieVerdict:
    """Return the verdict on a PIE; `reasons` has a reason for each criterion that the PIE fails."""
    return PieVerdict(
        pie=pie,
        number=number,
        occurrences=counts.occurrences,
        idiomatic=counts.idiomatic,
        literal=counts.literal,
        other=counts.occurrences - counts.idiomatic - counts.literal,
        confident=counts.confident,
        least_confidence=counts.least_confidence,
        idiomatic_share=shares.idiomatic,
        literal_share=shares.literal,
        failed=list(reasons),
        reasons=list(reasons.values()),
        kept=not reasons,
    )


def verdicts_by_interpretation(
    counts: Mapping[str, LabelCounts],
    thresholds: FilterThresholds,
    exclusions: Mapping[str, str],
) -> dict[str, list[PieVerdict]]:
    """Return the filter's verdicts under each of four interpretations of section 3.2.1.

    The paper's sentence "We retain only PIEs annotated with maximal annotator confidence" allows
    two interpretations more than `Semantics` has. `confident_annotations` applies the criteria of
    `paper` to the annotations with enough confidence only. `any_confidence` is `paper` without the
    confidence criterion: an upper bound for all interpretations with the other two criteria.
    """
    confident_counts = {pie: pie_counts.of_confident() for pie, pie_counts in counts.items()}
    any_confidence = thresholds.model_copy(update={"min_confidence": 0.0})
    return {
        "paper": filter_pies(counts, thresholds, "paper", exclusions),
        "released": filter_pies(counts, thresholds, "released", exclusions),
        "confident_annotations": filter_pies(confident_counts, thresholds, "paper", exclusions),
        "any_confidence": filter_pies(counts, any_confidence, "paper", exclusions),
    }


class _Shares(NamedTuple):
    """A PIE's idiomatic and literal shares, as fractions; None if the denominator is zero."""

    idiomatic: float | None
    literal: float | None


def _shares(counts: LabelCounts, semantics: Semantics) -> _Shares:
    """Return a PIE's idiomatic and literal shares.

    The denominator is the number of idiomatic and literal occurrences under the semantics `paper`,
    and the number of all occurrences under `released`.
    """
    idiomatic_and_literal = counts.idiomatic + counts.literal
    denominator = idiomatic_and_literal if semantics == "paper" else counts.occurrences
    if not denominator:
        return _Shares(None, None)
    return _Shares(counts.idiomatic / denominator, counts.literal / denominator)


def _failures(
    counts: LabelCounts, shares: _Shares, thresholds: FilterThresholds, semantics: Semantics
) -> dict[Criterion, str]:
    """Map each criterion of section 3.2.1 that a PIE fails to the reason for the failure."""
    reasons: dict[Criterion, str] = {
        "occurrences": _occurrences_failure(counts, thresholds),
        "balance": _balance_failure(shares, thresholds, semantics),
        "confidence": _confidence_failure(counts, thresholds, semantics),
    }
    return {criterion: reason for criterion, reason in reasons.items() if reason}


def _occurrences_failure(counts: LabelCounts, thresholds: FilterThresholds) -> str:
    """Return why a PIE has too few occurrences; empty if the PIE has enough."""
    if counts.occurrences >= thresholds.min_occurrences:
        return ""
    return f"{counts.occurrences} occurrences, fewer than {thresholds.min_occurrences}"


def _balance_failure(shares: _Shares, thresholds: FilterThresholds, semantics: Semantics) -> str:
    """Return the reason why a PIE fails the balance criterion; empty if the PIE meets it.

    A PIE meets the criterion if the idiomatic share or, under the semantics `released`, the literal
    share is within the bounds.
    """
    relevant_shares = [shares.idiomatic]
    if semantics == "released":
        relevant_shares.append(shares.literal)
    lowest, highest = thresholds.min_share, thresholds.max_share
    for share in relevant_shares:
        if share is not None and lowest <= share <= highest:
            return ""
    idiomatic, literal = _percent(shares.idiomatic), _percent(shares.literal)
    bounds = f"{100 * lowest:g}-{100 * highest:g}%"
    if semantics == "paper":
        return f"idiomatic in {idiomatic} of its idiomatic and literal occurrences, not in {bounds}"
    return (
        f"idiomatic in {idiomatic} and literal in {literal} of all occurrences, neither in {bounds}"
    )


def _confidence_failure(
    counts: LabelCounts, thresholds: FilterThresholds, semantics: Semantics
) -> str:
    """Return the reason why a PIE fails the confidence criterion; empty if the PIE meets it."""
    minimum = f"{thresholds.min_confidence:g}"
    if semantics == "paper" and counts.least_confidence < thresholds.min_confidence:
        return f"an annotation with confidence {counts.least_confidence:g}, below {minimum}"
    if semantics == "released" and not counts.confident:
        return f"no idiomatic or literal occurrence with a confidence of at least {minimum}"
    return ""


def _percent(share: float | None) -> str:
    return "no share" if share is None else f"{100 * share:.1f}%"


def read_exclusions(path: str | Path) -> dict[str, str]:
    """Read the manual exclusions: the reason for each excluded PIE, by PIE.

    The file is a TSV with the columns `pie` and `reason`.

    Raises:
        UserError: The columns are wrong, a cell is empty, a PIE is repeated, or the final newline
            is missing.
    """
    hint = "the header is 'pie<TAB>reason', followed by one PIE and reason per line"
    rows = read_table(path, ["pie", "reason"], more=[], delimiter="\t", quoted=False, hint=hint)
    if not read_text(path).endswith("\n"):
        raise UserError(
            "no newline at the end of the file", where=path, hint="check for truncation"
        )
    exclusions: dict[str, str] = {}
    for line_number, row in rows:
        where = f"{path}:{line_number}"
        pie, reason = row["pie"].strip(), row["reason"].strip()
        if not (pie and reason):
            raise UserError("empty PIE or reason", where=where, hint=hint)
        if pie in exclusions:
            raise UserError(f"{pie!r} occurs twice", where=where, hint="remove one of the lines")
        exclusions[pie] = reason
    return exclusions
