"""The filter that selects PIEs from MAGPIE (section 3.2.1)."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
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
Criterion = Literal["occurrences", "balance", "confidence", "manual", "selection"]


class FilterThresholds(Frozen):
    """Thresholds of the three criteria of section 3.2.1; both bounds of the share are inclusive.

    Attributes:
        min_occurrences: Minimum number of MAGPIE's sentences with the PIE.
        min_share, max_share: Bounds of the share of a usage.
        min_confidence: Minimum confidence of MAGPIE's annotation (0 to 1).
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
        description="Number of PIEs to keep of those that pass the filter; null: all.",
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
        reasons: Explanation of each item in `failed`.
        kept: Whether the study uses the PIE.
        released: Status on the released list, if available: `used`, `valid` (but in no released
            split), `invalid` or `absent`.
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
    """Label counts of one PIE: of all occurrences, and of those with enough confidence."""

    labels: Counter[str] = field(default_factory=Counter)
    confident_labels: Counter[str] = field(default_factory=Counter)
    least_confidence: float = 1.0

    @property
    def occurrences(self) -> int:
        """Number of all occurrences."""
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
        """Return the counts of only the occurrences with enough confidence."""
        return LabelCounts(self.confident_labels, self.confident_labels)


def count_labels(
    occurrences: Iterable[Occurrence], thresholds: FilterThresholds
) -> dict[str, LabelCounts]:
    """Count each PIE's labels, in total and among occurrences with enough confidence."""
    counts: dict[str, LabelCounts] = {}
    for occurrence in occurrences:
        pie_counts = counts.setdefault(occurrence.idiom, LabelCounts())
        pie_counts.labels[occurrence.label] += 1
        pie_counts.least_confidence = min(pie_counts.least_confidence, occurrence.confidence)
        pie_counts.confident_labels[occurrence.label] += (
            occurrence.confidence >= thresholds.min_confidence
        )
    return counts


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

    `paper` follows section 3.2.1: a PIE needs enough occurrences, an idiomatic share among its
    idiomatic and literal occurrences within the bounds, and enough confidence in all of its
    annotations.

    `released` follows the code that produced the released list: a PIE needs enough occurrences,
    and an idiomatic or literal share among all of its occurrences within the bounds. Occurrences
    with low confidence are removed after counting; a PIE fails the confidence criterion only if
    no idiomatic or literal occurrence remains.

    Args:
        counts: Label counts by PIE.
        thresholds: Thresholds of the three criteria.
        semantics: Reading of the criteria.
        exclusions: Reasons for manual exclusions, by PIE. PIEs that fail the criteria may be
            included, because they may pass with other thresholds.
        only: PIEs to keep among those that pass; None keeps all.
        where: Path of the exclusions, for error messages.

    Raises:
        UserError: An excluded PIE is not in MAGPIE, or a PIE in `only` does not pass.
    """
    if unknown := sorted(exclusions.keys() - counts.keys()):
        raise UserError(
            f"excluded PIE {unknown[0]!r} is not in MAGPIE",
            where=where,
            hint="use MAGPIE's spelling, or remove it",
        )
    verdicts: list[PieVerdict] = []
    numbers = count(1)
    for pie in sorted(counts):
        shares = _shares(counts[pie], semantics)
        reasons = _failures(counts[pie], shares, thresholds, semantics)
        number = None if reasons else next(numbers)
        if pie in exclusions:
            reasons["manual"] = f"excluded manually: {exclusions[pie]}"
        if only is not None and not reasons and pie not in only:
            reasons["selection"] = "not among the configured PIEs"
        verdicts.append(_verdict(pie, number, counts[pie], shares, reasons))
    if missing := sorted(set(only or ()) - {verdict.pie for verdict in verdicts if verdict.kept}):
        raise UserError(
            f"PIE {missing[0]!r} does not pass the filter",
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
    """Return the verdict on a PIE; `reasons` are those of the criteria that it fails."""
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


def readings_of(
    counts: Mapping[str, LabelCounts],
    thresholds: FilterThresholds,
    exclusions: Mapping[str, str],
) -> dict[str, list[PieVerdict]]:
    """Return the verdicts of the filter, by reading of section 3.2.1.

    "We retain only PIEs annotated with maximal annotator confidence" allows more readings than
    `paper` and `released`: `confident_annotations` applies the criteria of `paper` to only the
    annotations with enough confidence; `any_confidence` is `paper` without the confidence
    criterion, and therefore an upper bound for all readings with the other two criteria.
    """
    confident = {pie: pie_counts.of_confident() for pie, pie_counts in counts.items()}
    anyhow = thresholds.model_copy(update={"min_confidence": 0.0})
    return {
        "paper": filter_pies(counts, thresholds, "paper", exclusions),
        "released": filter_pies(counts, thresholds, "released", exclusions),
        "confident_annotations": filter_pies(confident, thresholds, "paper", exclusions),
        "any_confidence": filter_pies(counts, anyhow, "paper", exclusions),
    }


class _Shares(NamedTuple):
    """Idiomatic and literal shares of a PIE's occurrences; None without occurrences."""

    idiomatic: float | None
    literal: float | None


def _shares(counts: LabelCounts, semantics: Semantics) -> _Shares:
    """Return a PIE's shares among its idiomatic and literal (`paper`) or all occurrences."""
    as_paper = semantics == "paper"
    total = counts.idiomatic + counts.literal if as_paper else counts.occurrences
    if not total:
        return _Shares(None, None)
    return _Shares(counts.idiomatic / total, counts.literal / total)


def _failures(
    counts: LabelCounts, shares: _Shares, thresholds: FilterThresholds, semantics: Semantics
) -> dict[Criterion, str]:
    """Return the reason for each criterion that a PIE fails."""
    as_paper = semantics == "paper"
    reasons: dict[Criterion, str] = {}
    if counts.occurrences < thresholds.min_occurrences:
        few = f"{counts.occurrences} occurrences, fewer than {thresholds.min_occurrences}"
        reasons["occurrences"] = few
    lowest, highest = thresholds.min_share, thresholds.max_share
    relevant_shares = shares[:1] if as_paper else shares
    if not any(share is not None and lowest <= share <= highest for share in relevant_shares):
        idiomatic, literal = _percent(shares.idiomatic), _percent(shares.literal)
        bounds = f"{100 * lowest:g}-{100 * highest:g}%"
        if as_paper:
            reasons["balance"] = (
                f"idiomatic in {idiomatic} of its idiomatic and literal occurrences, not in"
                f" {bounds}"
            )
        else:
            reasons["balance"] = (
                f"idiomatic in {idiomatic} and literal in {literal} of all occurrences, neither in"
                f" {bounds}"
            )
    least = f"{thresholds.min_confidence:g}"
    if as_paper and counts.least_confidence < thresholds.min_confidence:
        confidence = f"{counts.least_confidence:g}"
        reasons["confidence"] = f"an annotation with confidence {confidence}, below {least}"
    if not as_paper and not counts.confident:
        reasons["confidence"] = (
            f"no idiomatic or literal occurrence with a confidence of at least {least}"
        )
    return reasons


def _percent(share: float | None) -> str:
    return "no share" if share is None else f"{100 * share:.1f}%"


def read_exclusions(path: str | Path) -> dict[str, str]:
    """Read the reasons for manual exclusions, by PIE, from a TSV with columns `pie` and `reason`.

    Raises:
        UserError: The columns are wrong, a field is empty, a PIE is repeated, or the final newline
            is missing.
    """
    hint = "the header is 'pie<TAB>reason', followed by one PIE and reason per line"
    rows = read_table(path, ["pie", "reason"], more=[], delimiter="\t", quoted=False, hint=hint)
    if not read_text(path).endswith("\n"):
        raise UserError(
            "no newline at the end of the file", where=path, hint="check for truncation"
        )
    exclusions: dict[str, str] = {}
    for number, row in rows:
        where = f"{path}:{number}"
        pie, reason = row["pie"].strip(), row["reason"].strip()
        if not (pie and reason):
            raise UserError("empty PIE or reason", where=where, hint=hint)
        if pie in exclusions:
            raise UserError(f"{pie!r} occurs twice", where=where, hint="remove one of the lines")
        exclusions[pie] = reason
    return exclusions
