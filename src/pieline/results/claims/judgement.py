"""Judge all claims on the printed numbers and on ours."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from pieline.core.errors import UserError, nearest
from pieline.core.files import read_json, write_json, write_text
from pieline.core.records import Frozen
from pieline.reporting.latex import render_latex
from pieline.reporting.numbers import COMPARED, Number
from pieline.reporting.published import Place, PrintedTable
from pieline.results.claims.claim import Claim
from pieline.results.claims.formulas import ClaimError
from pieline.results.claims.tables import PrintedNumbers, select, values_of

_NO_NUMBER = "this run has no such number"
Verdict = Literal["holds", "fails", "not run", "not comparable", "restates the print"]


class Finding(Frozen):
    """Verdict on a claim, with a summary of the values and the reason for a missing judgment."""

    verdict: Verdict
    found: str = ""
    reason: str = ""


class JudgedClaim(Frozen):
    """A claim with its two verdicts.

    `tables` lists the printed tables that the claim uses, `our_files` the CSVs in paper_tables/
    with our numbers for these tables, and `models` the printed names of the models in the claim.
    """

    id: str
    paper: str
    section: str
    says: str
    predicate: str
    tables: list[str]
    our_files: list[str]
    models: list[str]
    remark: str
    reading: Literal["ours"] | None
    printed: Finding
    ours: Finding

    @property
    def restates(self) -> bool:
        """Whether the claim has no measured number (see `Claim.restates`)."""
        return self.ours.verdict == "restates the print"


def judge_claims(
    claims: Sequence[Claim],
    catalogue: Mapping[str, PrintedTable],
    printed: PrintedNumbers,
    numbers: Iterable[Number],
) -> list[JudgedClaim]:
    """Judge all claims on the printed numbers and on ours.

    Args:
        claims: Claims of the papers.
        catalogue: Printed tables by name.
        printed: Printed numbers.
        numbers: Numbers of a run.

    Raises:
        UserError: The numbers or the formula of a claim are invalid; the message names the claim.
    """
    # Of several numbers for one printed number, one counts.
    ours = {
        place: number
        for number in sorted(numbers, key=lambda number: number.counts)
        for place in number.printed_at
    }
    judged = []
    for claim in claims:
        try:
            judged.append(_judge(claim, catalogue, printed, ours))
        except ClaimError as error:
            raise UserError(
                str(error), where=f"claim {claim.id}", hint="correct its numbers or its formula"
            ) from None
    return judged


def _judge(
    claim: Claim,
    catalogue: Mapping[str, PrintedTable],
    printed: PrintedNumbers,
    ours: Mapping[Place, Number],
) -> JudgedClaim:
    """Judge a claim, and collect the tables and models that it is about.

    Raises:
        ClaimError: The numbers or the formula of the claim are invalid.
    """
    # This comes first, since it rejects unknown tables.
    on_printed = judge_on_printed(claim, catalogue, printed)
    our_files: set[str] = set()
    models: set[str] = set()
    for number in claim.numbers.values():
        keys = catalogue[number.table].keys
        for row, _ in select(number, catalogue, printed).values():
            if "model" in keys:
                models.add(row[keys.index("model")])
            our_number = ours.get(Place(number.table, row, number.column))
            if number.measured and our_number:
                our_files.update(our_number.tables)
    return JudgedClaim(
        **claim.model_dump(include={"id", "paper", "section", "says", "remark", "reading"}),
        predicate=claim.in_words(),
        tables=sorted({number.table for number in claim.numbers.values()}),
        our_files=sorted(our_files),
        models=sorted(models),
        printed=on_printed,
        ours=judge_on_ours(claim, catalogue, printed, ours),
    )


def judge_on_printed(
    claim: Claim, catalogue: Mapping[str, PrintedTable], printed: PrintedNumbers
) -> Finding:
    """Judge a claim on the numbers printed in the paper.

    Raises:
        ClaimError: The claim's numbers or formula are invalid.
    """
    return _finding(
        claim,
        {
            name: {label: value for label, (_, value) in select(number, catalogue, printed).items()}
            for name, number in claim.numbers.items()
        },
    )


def judge_on_ours(
    claim: Claim,
    catalogue: Mapping[str, PrintedTable],
    printed: PrintedNumbers,
    ours: Mapping[Place, Number],
) -> Finding:
    """Judge a claim on our numbers; numbers that are not measured keep the printed value.

    The verdict is "restates the print" if no number is measured, "not run" if a number of ours is
    missing, and "not comparable" if one is not comparable with the printed number; the outcome is
    then part of `found`. If our numbers make the formula undefined (such as a division by zero),
    the claim fails.

    Raises:
        ClaimError: A selection of numbers is invalid.
    """
    if claim.restates:
        return Finding(verdict="restates the print", reason="no number in this claim is measured")
    columns: dict[str, dict[str, float]] = {}
    lacking: list[tuple[str, str]] = []
    obstacles: list[str] = []
    total = 0
    for name, number in claim.numbers.items():
        columns[name] = {}
        for label, (row, value) in select(number, catalogue, printed).items():
            if not number.measured:
                columns[name][label] = value
                continue
            total += 1
            found = ours.get(Place(number.table, row, number.column))
            if found is None or not found.shown:
                lacking.append((" / ".join(row), found.reason if found else _NO_NUMBER))
                continue
            columns[name][label] = float(found.shown)
            if found.verdict not in COMPARED:
                obstacles.append(found.reason)
    if lacking:
        return Finding(verdict="not run", reason=_why_missing(lacking, total))
    try:
        finding = _finding(claim, columns)
    except ClaimError as error:
        finding = Finding(verdict="fails", found=str(error))
    if obstacles:
        return Finding(
            verdict="not comparable",
            found=f"{finding.verdict}: {finding.found}",
            reason="; ".join(dict.fromkeys(obstacles)),
        )
    return finding


def write_claims(
    judged: Sequence[JudgedClaim],
    *,
    papers: Mapping[str, str],
    json: str | Path,
    csv: str | Path,
    tex: str | Path,
    template: str | Path,
    mark: str = "",
) -> None:
    """Write the judged claims as JSON, CSV (one row per claim) and a LaTeX table.

    The mark is shown above the table and precedes the reason for each verdict on our numbers.

    Raises:
        UserError: A claim names a paper that is not in `papers` (titles by study).
    """
    for claim in judged:
        if claim.paper not in papers:
            hint = nearest(claim.paper, list(papers))
            raise UserError(f"unknown paper {claim.paper!r}", where=f"claim {claim.id}", hint=hint)
    counts = _counts(judged, reading=None)
    readings = _counts(judged, reading="ours")
    write_json(
        json,
        {
            "counts": counts,
            "our_readings": readings,
            "claims": [claim.model_dump(mode="json") for claim in judged],
        },
    )
    table = pd.DataFrame(
        [
            {
                "id": claim.id,
                "paper": claim.paper,
                "section": claim.section,
                "claim": claim.says,
                "predicate": claim.predicate,
                "tables": " ".join(claim.tables),
                "on_printed": claim.printed.verdict,
                "printed_found": claim.printed.found,
                "on_ours": claim.ours.verdict,
                "ours_found": claim.ours.found,
                "reason": " ".join(filter(None, (mark, claim.ours.reason))),
                "remark": claim.remark,
                "reading": claim.reading or "",
            }
            for claim in judged
        ]
    )
    write_text(csv, table.to_csv(index=False, lineterminator="\n"))
    render_latex(
        template, tex, claims=judged, counts=counts, readings=readings, papers=papers, mark=mark
    )


def _counts(
    judged: Sequence[JudgedClaim], *, reading: Literal["ours"] | None
) -> dict[str, dict[str, int]]:
    """Count verdicts on the papers' claims or on our readings, without those that restate."""
    counted = [claim for claim in judged if not claim.restates and claim.reading == reading]
    on_printed = Counter(claim.printed.verdict for claim in counted)
    on_ours = Counter(claim.ours.verdict for claim in counted)
    return {"printed": dict(sorted(on_printed.items())), "ours": dict(sorted(on_ours.items()))}


def _finding(claim: Claim, columns: Mapping[str, Mapping[str, float]]) -> Finding:
    holds, summary = claim.judge({name: values_of(numbers) for name, numbers in columns.items()})
    return Finding(verdict="holds" if holds else "fails", found=summary)


def _why_missing(lacking: Sequence[tuple[str, str]], total: int) -> str:
    """Summarize the missing numbers in one line, by reason and with examples."""
    reasons = Counter(reason for _, reason in lacking)
    parts = []
    for reason, times in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        rows = list(dict.fromkeys(row for row, why in lacking if why == reason))
        more = f" and {len(rows) - 2} more" if len(rows) > 2 else ""
        parts.append(f"{reason} ({times}: {', '.join(rows[:2])}{more})")
    return f"{len(lacking)} of {total} numbers missing: {'; '.join(parts)}"


def load_judged(path: str | Path) -> list[JudgedClaim]:
    """Read the claims that `write_claims` wrote as JSON."""
    return [JudgedClaim.model_validate(claim) for claim in read_json(path)["claims"]]
