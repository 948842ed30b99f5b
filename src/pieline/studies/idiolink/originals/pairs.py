"""PIE selection from MAGPIE (section 3.2.1), and its comparison with the released list."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Annotated

from pydantic import Field

from pieline.core.errors import UserError
from pieline.core.measures import Measure
from pieline.core.records import Record, validated
from pieline.core.tables import read_table
from pieline.studies.idiolink.originals.pie_filter import (
    FilterOptions,
    FilterThresholds,
    PieVerdict,
    count_labels,
    filter_pies,
    read_exclusions,
    readings_of,
)
from pieline.studies.idiolink.raw import read_magpie, read_texts
from pieline.studies.idiolink.records import Document

_COLUMNS = ["id", "idiom", "valid"]


class Candidate(Record):
    """A row of `MAGPIE_SOURCE_IDIOMS.csv`; `valid` is the annotators' verdict."""

    number: Annotated[int, Field(strict=False)]
    pie: str
    valid: bool


class ReleasedComparison(Record):
    """Comparison of our selection with the released one; lists contain PIEs.

    Attributes:
        candidates: Number of PIEs on the released list (118 in the paper).
        valid: Number of PIEs marked valid on the list (109 in the released file).
        used: Number of PIEs in a released split (107 in the paper).
        valid_but_unused: PIEs marked valid but in no released split.
        only_ours, only_released: PIEs that we keep but the released splits lack, and the reverse.
        candidates_we_add, candidates_we_drop: PIEs that meet our criteria but are not on the
            released list, and the reverse.
        same_number: Whether all candidates in both selections have the same number.
    """

    candidates: int
    valid: int
    used: int
    valid_but_unused: list[str]
    only_ours: list[str]
    only_released: list[str]
    candidates_we_add: list[str]
    candidates_we_drop: list[str]
    same_number: bool


class FilterReport(Record):
    """Summary of the filter.

    Attributes:
        semantics: Reading of the criteria, `paper` or `released`.
        pies, occurrences: Number of PIEs and of their occurrences in MAGPIE.
        candidates: Number of PIEs that meet the three criteria, before manual exclusion.
        kept: Number of PIEs that the study uses.
        failed: Number of PIEs that fail each criterion; a PIE may fail several.
        kept_by_reading: Number of PIEs kept under each reading of the criteria (see
            `readings_of`), after manual exclusion and before selection by the configuration.
        differs: Name of the only reading, `paper` or `released`, under which a PIE is kept, by PIE.
        released: Comparison with the released list; null without that list.
        computed_from: Digests of the input files.
    """

    semantics: str
    thresholds: dict[str, float]
    pies: int
    occurrences: int
    candidates: int
    kept: int
    failed: dict[str, int]
    kept_by_reading: dict[str, int]
    differs: dict[str, str]
    released: ReleasedComparison | None
    computed_from: dict[str, str]


READINGS = ("any_confidence", "confident_annotations", "paper", "released")
"""Readings of the criteria in `FilterReport.kept_by_reading` (see `readings_of`)."""


def _kept(reading: str) -> Measure[FilterReport]:
    return Measure(f"kept_by_{reading}", lambda report: report.kept_by_reading[reading], decimals=0)


FILTER = (
    Measure[FilterReport]("candidate_pies", attrgetter("candidates"), decimals=0),
    *map(_kept, READINGS),
    Measure[FilterReport](
        "removed_pies", lambda report: report.failed.get("manual", 0), decimals=0
    ),
)
"""Measures of the filter (section 3.2.1); the paper does not report the readings."""


def read_candidates(path: str | Path) -> list[Candidate]:
    """Read the released list of candidates.

    Raises:
        UserError: The columns are wrong, a line is invalid, or a PIE is repeated.
    """
    hint = f"the columns are {', '.join(_COLUMNS)}: a number, a PIE and 0 or 1"
    candidates: dict[str, Candidate] = {}
    for line, row in read_table(path, _COLUMNS, more=[], hint=hint):
        where, pie = f"{path}:{line}", row["idiom"]
        if row["valid"] not in ("0", "1") or not pie.strip() or pie in candidates:
            raise UserError("invalid or repeated candidate", where=where, hint=hint)
        fields = {"number": row["id"], "pie": pie, "valid": row["valid"] == "1"}
        candidates[pie] = validated(Candidate, fields, where=where, hint=hint)
    return list(candidates.values())


def used_pies(documents: Iterable[str | Path]) -> set[str]:
    """Return the PIEs of the documents in released files.

    Raises:
        UserError: A file is not in the released format.
    """
    return {text.pie for path in documents for text in read_texts(path, Document)}


def released_exclusions(candidates: Iterable[Candidate], used: Set[str]) -> dict[str, str]:
    """Return the reasons for the manual exclusions that the released files imply, by PIE."""
    reasons = {}
    for candidate in candidates:
        if candidate.pie in used:
            continue
        if candidate.valid:
            reasons[candidate.pie] = "valid on the released list, but in no released split"
        else:
            reasons[candidate.pie] = "marked invalid on the released list"
    return reasons


def mark_released(
    verdicts: Iterable[PieVerdict], candidates: Iterable[Candidate], used: Set[str]
) -> list[PieVerdict]:
    """Return the verdicts with each PIE's status on the released list in `released`."""
    is_valid = {candidate.pie: candidate.valid for candidate in candidates}
    marked = []
    for verdict in verdicts:
        if verdict.pie in used:
            status = "used"
        elif verdict.pie not in is_valid:
            status = "absent"
        else:
            status = "valid" if is_valid[verdict.pie] else "invalid"
        marked.append(verdict.model_copy(update={"released": status}))
    return marked


def compare_released(
    verdicts: Sequence[PieVerdict], candidates: Sequence[Candidate], used: Set[str]
) -> ReleasedComparison:
    """Compare our selection with the released list and the PIEs used in the released splits."""
    released = {candidate.pie: candidate.number for candidate in candidates}
    ours = {verdict.pie: verdict.number for verdict in verdicts if verdict.number is not None}
    kept = {verdict.pie for verdict in verdicts if verdict.kept}
    valid = {candidate.pie for candidate in candidates if candidate.valid}
    return ReleasedComparison(
        candidates=len(released),
        valid=len(valid),
        used=len(used),
        valid_but_unused=sorted(valid - used),
        only_ours=sorted(kept - used),
        only_released=sorted(used - kept),
        candidates_we_add=sorted(ours.keys() - released.keys()),
        candidates_we_drop=sorted(released.keys() - ours.keys()),
        same_number=all(ours[pie] == released[pie] for pie in ours.keys() & released.keys()),
    )


def filter_report(
    verdicts: Sequence[PieVerdict],
    readings: Mapping[str, Sequence[PieVerdict]],
    *,
    semantics: str,
    thresholds: FilterThresholds,
    released: ReleasedComparison | None,
    computed_from: dict[str, str],
) -> FilterReport:
    """Summarize the filter.

    Args:
        verdicts: Verdicts of the filter as configured.
        readings: Verdicts under each reading, without selection by the configuration.
        semantics: Configured reading.
        thresholds: Configured thresholds.
        released: Comparison with the released list, if available.
        computed_from: Digests of the input files.
    """
    kept = {name: {item.pie for item in items if item.kept} for name, items in readings.items()}
    differing = kept["paper"] ^ kept["released"]
    return FilterReport(
        semantics=semantics,
        thresholds=thresholds.model_dump(),
        pies=len(verdicts),
        occurrences=sum(verdict.occurrences for verdict in verdicts),
        candidates=sum(verdict.number is not None for verdict in verdicts),
        kept=sum(verdict.kept for verdict in verdicts),
        failed=dict(Counter(name for verdict in verdicts for name in verdict.failed)),
        kept_by_reading={name: len(pies) for name, pies in kept.items()},
        differs={pie: "paper" if pie in kept["paper"] else "released" for pie in sorted(differing)},
        released=released,
        computed_from=computed_from,
    )


class Pair(Record):
    """A (PIE, domain) pair; one request generates all its documents or all its queries."""

    pie: str
    pie_number: int
    domain: str

    @property
    def name(self) -> str:
        """Display name, in the form `PIE / domain`."""
        return f"{self.pie} / {self.domain}"


def pairs_of(verdicts: Iterable[PieVerdict], domains: Sequence[str]) -> list[Pair]:
    """Return the (PIE, domain) pairs of the kept PIEs, in id order."""
    numbers = {
        verdict.pie: verdict.number
        for verdict in verdicts
        if verdict.kept and verdict.number is not None
    }
    return [
        Pair(pie=pie, pie_number=numbers[pie], domain=domain)
        for pie, domain in product(numbers, domains)
    ]


def filter_magpie(
    magpie: str | Path,
    exclusions: str | Path,
    options: FilterOptions,
    *,
    candidates: str | Path | None,
    documents: Sequence[str | Path],
    computed_from: dict[str, str],
) -> tuple[list[PieVerdict], list[Pair], FilterReport]:
    """Filter the PIEs of MAGPIE; return all verdicts, the kept (PIE, domain) pairs and a report.

    Args:
        magpie: Path of the MAGPIE corpus.
        exclusions: Path of the TSV of manual exclusions.
        options: Criteria, PIEs and domains.
        candidates: Path of the released list; None skips the comparison.
        documents: Paths of the released documents, whose PIEs count as used.
        computed_from: Digests of the input files, for the report.

    Raises:
        UserError: A file is invalid, an excluded PIE is not in MAGPIE, or a PIE named in the
            configuration does not pass the filter.
    """
    removed = read_exclusions(exclusions)
    counts = count_labels(read_magpie(magpie), options.thresholds)
    verdicts = filter_pies(
        counts,
        options.thresholds,
        options.semantics,
        removed,
        only=options.pies,
        where=exclusions,
    )
    readings = readings_of(counts, options.thresholds, removed)
    comparison = None
    if candidates is not None:
        released_list, used = read_candidates(candidates), used_pies(documents)
        comparison = compare_released(readings[options.semantics], released_list, used)
        verdicts = mark_released(verdicts, released_list, used)
    report = filter_report(
        verdicts,
        readings,
        semantics=options.semantics,
        thresholds=options.thresholds,
        released=comparison,
        computed_from=computed_from,
    )
    return verdicts, pairs_of(verdicts, options.domains), report
