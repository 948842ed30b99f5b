"""PIE selection from MAGPIE: criteria, exclusions and the released list (section 3.2.1)."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pieline.core.records import Record
from pieline.studies.idiolink.originals.pie_filter import (
    FilterOptions,
    PieVerdict,
    count_labels,
    filter_pies,
    read_exclusions,
    readings_of,
)
from pieline.studies.idiolink.originals.released_list import (
    FilterReport,
    compare_released,
    filter_report,
    mark_released,
    read_candidates,
    used_pies,
)
from pieline.studies.idiolink.raw.magpie import read_magpie


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
    return [
        Pair(pie=verdict.pie, pie_number=verdict.number, domain=domain)
        for verdict in verdicts
        if verdict.kept and verdict.number is not None
        for domain in domains
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
        listed, used = read_candidates(candidates), used_pies(documents)
        comparison = compare_released(readings[options.semantics], listed, used)
        verdicts = mark_released(verdicts, listed, used)
    report = filter_report(
        verdicts,
        readings,
        semantics=options.semantics,
        thresholds=options.thresholds,
        released=comparison,
        computed_from=computed_from,
    )
    return verdicts, pairs_of(verdicts, options.domains), report
