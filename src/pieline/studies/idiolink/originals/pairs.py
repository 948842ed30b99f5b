"""PIE selection from MAGPIE (section 3.2.1), and a comparison with the authors' selection."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
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
    verdicts_by_interpretation,
)
from pieline.studies.idiolink.raw import read_magpie, read_texts
from pieline.studies.idiolink.records import Document

_COLUMNS = ["id", "idiom", "valid"]


class Candidate(Record):
    """A row of the authors' list of candidate PIEs, `MAGPIE_SOURCE_IDIOMS.csv`.

    `valid` is the annotators' verdict.
    """

    number: Annotated[int, Field(strict=False)]
    pie: str
    valid: bool


class ReleasedComparison(Record):
    """Comparison of our selection with the public data: the authors' list of candidates and splits.

    Attributes:
        candidates: Number of PIEs on the authors' list (118 in the paper).
        valid: Number of PIEs marked valid on the authors' list (109 in the public file).
        used: Number of PIEs in a public split (107 in the paper).
        valid_but_unused: PIEs marked valid on the authors' list, but in no public split.
        only_ours: PIEs that we keep, but that are in no public split.
        only_released: PIEs in a public split that we do not keep.
        candidates_we_add: PIEs that meet our criteria, but are not on the authors' list.
        candidates_we_drop: PIEs on the authors' list that do not meet our criteria.
        same_number: Whether our numbers and the authors' numbers are equal for all PIEs that meet
            our criteria and are on the authors' list.
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
    """Summary of the selection of PIEs from MAGPIE.

    Attributes:
        semantics: Configured interpretation of the criteria (see `Semantics`).
        thresholds: Configured thresholds of the criteria, by field of `FilterThresholds`.
        pies: Number of PIEs in MAGPIE.
        occurrences: Number of occurrences of PIEs in MAGPIE.
        candidates: Number of PIEs that meet the three criteria, before manual exclusion.
        kept: Number of PIEs that the study uses.
        failed: Number of PIEs that fail each criterion; a PIE may fail several.
        kept_by_reading: Number of PIEs kept under each interpretation of the criteria (see
            `verdicts_by_interpretation`), after manual exclusion and before selection by the
            configuration.
        differs: For each PIE that is kept under only one of the interpretations `paper` and
            `released`, the name of the interpretation.
        released: Comparison with the public data; null if the authors' list is not available.
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
"""Interpretations of the criteria in `FilterReport.kept_by_reading`."""


def _kept(interpretation: str) -> Measure[FilterReport]:
    """Return the measure that counts the PIEs kept under an interpretation of the criteria."""
    return Measure(
        f"kept_by_{interpretation}",
        lambda report: report.kept_by_reading[interpretation],
        decimals=0,
    )


FILTER = (
    Measure[FilterReport]("candidate_pies", attrgetter("candidates"), decimals=0),
    *(_kept(interpretation) for interpretation in READINGS),
    Measure[FilterReport](
        "removed_pies", lambda report: report.failed.get("manual", 0), decimals=0
    ),
)
"""Measures of the filter (section 3.2.1). The paper does not report `kept_by_…`."""


def read_candidates(path: str | Path) -> list[Candidate]:
    """Read the authors' list of candidate PIEs.

    Raises:
        UserError: The columns are wrong, a line is invalid, or a PIE is repeated.
    """
    hint = f"the columns are {', '.join(_COLUMNS)}: a number, a PIE and 0 or 1"
    candidates: dict[str, Candidate] = {}
    for line_number, row in read_table(path, _COLUMNS, more=[], hint=hint):
        where, pie = f"{path}:{line_number}", row["idiom"]
        if row["valid"] not in ("0", "1") or not pie.strip() or pie in candidates:
            raise UserError("invalid or repeated candidate", where=where, hint=hint)
        fields = {"number": row["id"], "pie": pie, "valid": row["valid"] == "1"}
        candidates[pie] = validated(Candidate, fields, where=where, hint=hint)
    return list(candidates.values())


def used_pies(documents: Iterable[str | Path]) -> set[str]:
    """Return the PIEs of all documents in the public files `documents`.

    Raises:
        UserError: A file does not have the format of the public data.
    """
    return {document.pie for path in documents for document in read_texts(path, Document)}


def released_exclusions(candidates: Iterable[Candidate], public_pies: Set[str]) -> dict[str, str]:
    """Map each PIE that the authors excluded to the reason that the public data implies.

    Args:
        candidates: The authors' list of candidates.
        public_pies: PIEs in a split of the public data.
    """
    reasons = {}
    for candidate in candidates:
        if candidate.pie in public_pies:
            continue
        if candidate.valid:
            reasons[candidate.pie] = "valid on the released list, but in no released split"
        else:
            reasons[candidate.pie] = "marked invalid on the released list"
    return reasons


def mark_released(
    verdicts: Iterable[PieVerdict], candidates: Iterable[Candidate], public_pies: Set[str]
) -> list[PieVerdict]:
    """Return copies of the verdicts with `released` set to the PIE's status in the public data.

    Args:
        verdicts: Verdicts of our filter.
        candidates: The authors' list of candidates.
        public_pies: PIEs in a split of the public data.
    """
    valid_by_pie = {candidate.pie: candidate.valid for candidate in candidates}
    verdicts_with_status = []
    for verdict in verdicts:
        if verdict.pie in public_pies:
            status = "used"
        elif verdict.pie not in valid_by_pie:
            status = "absent"
        elif valid_by_pie[verdict.pie]:
            status = "valid"
        else:
            status = "invalid"
        verdicts_with_status.append(verdict.model_copy(update={"released": status}))
    return verdicts_with_status


def compare_released(
    verdicts: Sequence[PieVerdict], candidates: Sequence[Candidate], public_pies: Set[str]
) -> ReleasedComparison:
    """Compare our selection with the public data.

    Args:
        verdicts: Verdicts of our filter.
        candidates: The authors' list of candidates.
        public_pies: PIEs in a split of the public data.
    """
    their_numbers = {candidate.pie: candidate.number for candidate in candidates}
    # Exactly the PIEs that meet the three criteria have a number.
    our_numbers = {
        verdict.pie: verdict.number for verdict in verdicts if verdict.number is not None
    }
    common_pies = our_numbers.keys() & their_numbers.keys()
    kept_pies = {verdict.pie for verdict in verdicts if verdict.kept}
    valid_pies = {candidate.pie for candidate in candidates if candidate.valid}
    return ReleasedComparison(
        candidates=len(their_numbers),
        valid=len(valid_pies),
        used=len(public_pies),
        valid_but_unused=sorted(valid_pies - public_pies),
        only_ours=sorted(kept_pies - public_pies),
        only_released=sorted(public_pies - kept_pies),
        candidates_we_add=sorted(our_numbers.keys() - their_numbers.keys()),
        candidates_we_drop=sorted(their_numbers.keys() - our_numbers.keys()),
        same_number=all(our_numbers[pie] == their_numbers[pie] for pie in common_pies),
    )


def filter_report(
    verdicts: Sequence[PieVerdict],
    by_interpretation: Mapping[str, Sequence[PieVerdict]],
    *,
    semantics: str,
    thresholds: FilterThresholds,
    released: ReleasedComparison | None,
    computed_from: dict[str, str],
) -> FilterReport:
    """Summarize the selection of PIEs from MAGPIE.

    Args:
        verdicts: Verdicts of the filter as configured.
        by_interpretation: Verdicts under each interpretation, before selection by the
            configuration.
        semantics: Configured interpretation.
        thresholds: Configured thresholds.
        released: Comparison with the public data; None if the authors' list is not available.
        computed_from: Digests of the input files.
    """
    kept_pies: dict[str, set[str]] = {}
    for interpretation, interpretation_verdicts in by_interpretation.items():
        kept_pies[interpretation] = {
            verdict.pie for verdict in interpretation_verdicts if verdict.kept
        }
    only_paper = dict.fromkeys(kept_pies["paper"] - kept_pies["released"], "paper")
    only_released = dict.fromkeys(kept_pies["released"] - kept_pies["paper"], "released")
    return FilterReport(
        semantics=semantics,
        thresholds=thresholds.model_dump(),
        pies=len(verdicts),
        occurrences=sum(verdict.occurrences for verdict in verdicts),
        # Exactly the PIEs that meet the three criteria have a number.
        candidates=sum(verdict.number is not None for verdict in verdicts),
        kept=sum(verdict.kept for verdict in verdicts),
        failed=dict(Counter(criterion for verdict in verdicts for criterion in verdict.failed)),
        kept_by_reading={interpretation: len(pies) for interpretation, pies in kept_pies.items()},
        differs=dict(sorted((only_paper | only_released).items())),
        released=released,
        computed_from=computed_from,
    )


class Pair(Record):
    """A (PIE, domain) pair; one request generates all documents or all queries of a pair."""

    pie: str
    pie_number: int
    domain: str

    @property
    def name(self) -> str:
        """Display name, in the form `PIE / domain`."""
        return f"{self.pie} / {self.domain}"


def pairs_of(verdicts: Iterable[PieVerdict], domains: Sequence[str]) -> list[Pair]:
    """Pair each kept PIE with each domain, in the order of the verdicts and domains."""
    pairs: list[Pair] = []
    for verdict in verdicts:
        if verdict.kept and verdict.number is not None:
            pie, number = verdict.pie, verdict.number
            pairs += [Pair(pie=pie, pie_number=number, domain=domain) for domain in domains]
    return pairs


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
        candidates: Path of the authors' list of candidates; None skips the comparison with the
            public data.
        documents: Paths of the public documents.
        computed_from: Digests of the input files, for the report.

    Raises:
        UserError: A file is invalid, an excluded PIE is not in MAGPIE, or a PIE named in the
            configuration does not pass the filter.
    """
    exclusion_reasons = read_exclusions(exclusions)
    counts = count_labels(read_magpie(magpie), options.thresholds)
    verdicts = filter_pies(
        counts,
        options.thresholds,
        options.semantics,
        exclusion_reasons,
        only=options.pies,
        where=exclusions,
    )
    by_interpretation = verdicts_by_interpretation(counts, options.thresholds, exclusion_reasons)
    comparison = None
    if candidates is not None:
        authors_list = read_candidates(candidates)
        public_pies = used_pies(documents)
        comparison = compare_released(
            by_interpretation[options.semantics], authors_list, public_pies
        )
        verdicts = mark_released(verdicts, authors_list, public_pies)
    report = filter_report(
        verdicts,
        by_interpretation,
        semantics=options.semantics,
        thresholds=options.thresholds,
        released=comparison,
        computed_from=computed_from,
    )
    return verdicts, pairs_of(verdicts, options.domains), report
