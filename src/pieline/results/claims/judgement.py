"""Judge all claims on the printed numbers and on our numbers."""

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
    """Verdict on a claim.

    Attributes:
        verdict: The verdict.
        found: Summary of the values that decide the claim.
        reason: Why the claim was not judged; otherwise empty.
    """

    verdict: Verdict
    found: str = ""
    reason: str = ""


class JudgedClaim(Frozen):
    """A claim with the verdicts on the printed numbers and on our numbers.

    Attributes:
        predicate: The statement that tests the claim, in words.
        tables: Names of the printed tables that the claim uses.
        our_files: Names of our tables with our numbers for the claim.
        models: Printed names of the models in the claim.
        reading: "ours" for a statement that no paper makes in this form; otherwise None.
        printed: Verdict on the printed numbers.
        ours: Verdict on our numbers.
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
        """Whether none of the claim's numbers is measured (see `Claim.restates`)."""
        return self.ours.verdict == "restates the print"


def judge_claims(
    claims: Sequence[Claim],
    catalogue: Mapping[str, PrintedTable],
    printed: PrintedNumbers,
    numbers: Iterable[Number],
) -> list[JudgedClaim]:
    """Judge all claims on the printed numbers and on our numbers.

    Args:
        claims: Claims of the papers.
        catalogue: Printed tables by name.
        printed: Printed numbers of all tables.
        numbers: Numbers of a run.

    Raises:
        UserError: The numbers or the formula of a claim are invalid; the message names the claim.
    """
    # If several of our numbers belong to a printed number, the number that counts comes last here.
    ours: dict[Place, Number] = {}
    for number in sorted(numbers, key=lambda number: number.counts):
        for place in number.printed_at:
            ours[place] = number
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
    """Judge a claim, and collect the tables and models of its numbers.

    Raises:
        ClaimError: The numbers or the formula of the claim are invalid.
    """
    # This call must be the first, because it rejects unknown tables.
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
    """Judge a claim on the numbers that the paper prints.

    Raises:
        ClaimError: The numbers or the formula of the claim are invalid.
    """
    columns = {}
    for name, selection in claim.numbers.items():
        selected = select(selection, catalogue, printed)
        columns[name] = {label: value for label, (_, value) in selected.items()}
    return _judge_values(claim, columns)


def judge_on_ours(
    claim: Claim,
    catalogue: Mapping[str, PrintedTable],
    printed: PrintedNumbers,
    ours: Mapping[Place, Number],
) -> Finding:
    """Judge a claim on our numbers; numbers that are not measured keep the printed value.

    The verdict is

    - "restates the print" if no number is measured,
    - "not run" if one of our numbers is missing,
    - "not comparable" if one of our numbers cannot be compared with the printed number; `found`
      then states whether the claim holds for our numbers,
    - "fails" if our numbers make the formula undefined, for example by a division by zero.

    Raises:
        ClaimError: A selection of numbers is invalid.
    """
    if claim.restates:
        return Finding(verdict="restates the print", reason="no number in this claim is measured")
    columns: dict[str, dict[str, float]] = {}
    missing: list[tuple[str, str]] = []
    obstacles: list[str] = []
    measured_count = 0
    for name, selection in claim.numbers.items():
        columns[name] = {}
        for label, (row, printed_value) in select(selection, catalogue, printed).items():
            if not selection.measured:
                columns[name][label] = printed_value
                continue
            measured_count += 1
            number = ours.get(Place(selection.table, row, selection.column))
            if number is None or not number.shown:
                missing.append((" / ".join(row), number.reason if number else _NO_NUMBER))
                continue
            columns[name][label] = float(number.shown)
            if number.verdict not in COMPARED:
                obstacles.append(number.reason)
    if missing:
        return Finding(verdict="not run", reason=_summarize_missing(missing, measured_count))
    try:
        finding = _judge_values(claim, columns)
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
    """Write the judged claims as JSON, as CSV with one row per claim, and as a LaTeX table.

    Args:
        judged: The judged claims.
        papers: Titles of the papers by study.
        json: Path of the JSON file.
        csv: Path of the CSV file.
        tex: Path of the LaTeX file.
        template: LaTeX template.
        mark: Notice to show above the table, and before the reason for each verdict on our numbers.

    Raises:
        UserError: A claim is about a paper that is not in `papers`.
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
    """Count the verdicts on the printed numbers and on our numbers.

    Claims without measured numbers are not counted.

    Args:
        judged: The judged claims.
        reading: "ours" to count our readings, or None to count the papers' claims.
    """
    counted_claims = [claim for claim in judged if not claim.restates and claim.reading == reading]
    on_printed = Counter(claim.printed.verdict for claim in counted_claims)
    on_ours = Counter(claim.ours.verdict for claim in counted_claims)
    return {"printed": dict(sorted(on_printed.items())), "ours": dict(sorted(on_ours.items()))}


def _judge_values(claim: Claim, columns: Mapping[str, Mapping[str, float]]) -> Finding:
    """Judge a claim on the values of its numbers, by name of the number and label of the row."""
    holds, summary = claim.judge({name: values_of(values) for name, values in columns.items()})
    return Finding(verdict="holds" if holds else "fails", found=summary)


def _summarize_missing(missing: Sequence[tuple[str, str]], measured_count: int) -> str:
    """Return a line with the reasons why numbers are missing, and up to two examples for each.

    Args:
        missing: Row and reason of each missing number.
        measured_count: Count of all measured numbers of the claim.
    """
    rows_by_reason: dict[str, list[str]] = {}
    for row, reason in missing:
        rows_by_reason.setdefault(reason, []).append(row)
    phrases = []
    # The most frequent reason comes first, and ties are in alphabetical order.
    for reason, rows in sorted(rows_by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        examples = list(dict.fromkeys(rows))
        more = f" and {len(examples) - 2} more" if len(examples) > 2 else ""
        phrases.append(f"{reason} ({len(rows)}: {', '.join(examples[:2])}{more})")
    return f"{len(missing)} of {measured_count} numbers missing: {'; '.join(phrases)}"


def load_judged(path: str | Path) -> list[JudgedClaim]:
    """Read the judged claims from the JSON file that `write_claims` wrote."""
    return [JudgedClaim.model_validate(claim) for claim in read_json(path)["claims"]]
