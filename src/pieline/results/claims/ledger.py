"""The claims ledger: every claim judged on the printed numbers and on ours."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pieline.core.errors import UserError, nearest
from pieline.core.files import write_json, write_text
from pieline.core.records import explain
from pieline.core.yamls import read_yaml
from pieline.reporting.latex import render_latex
from pieline.results.claims.formulas import SINGLE, FormulaError, Values
from pieline.results.claims.predicates import Predicate
from pieline.results.claims.tables import (
    OurCell,
    OurNumbers,
    PrintedNumbers,
    PrintedTable,
    Selection,
    printed_values,
    select,
)

TEXT_NUMBERS = "text_numbers"
Verdict = Literal["holds", "fails", "not run", "not comparable"]


class TextNumber(BaseModel):
    """A number that the paper's running text prints, by its id in published/text_numbers.csv.

    `measured` says that our number takes its place where the claim is judged on ours; else it is
    what the paper says, and stays.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    measured: bool = False

    @property
    def selection(self) -> Selection:
        """Its cell in the table of text numbers."""
        return Selection(table=TEXT_NUMBERS, column="value", where={"id": self.text})


class Claim(BaseModel):
    """A claim of a paper, in our words, with the numbers it rests on and what it says of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    paper: str
    section: str
    says: str
    numbers: dict[str, Selection | TextNumber] = Field(min_length=1)
    predicate: Predicate
    remark: str = ""

    @property
    def tables(self) -> list[str]:
        """The printed tables that it rests on."""
        return sorted(
            {
                number.table if isinstance(number, Selection) else TEXT_NUMBERS
                for number in self.numbers.values()
            }
        )


class Finding(BaseModel):
    """A verdict, what the numbers came to, and why it could not be judged."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    verdict: Verdict
    found: str = ""
    reason: str = ""


class JudgedClaim(BaseModel):
    """A claim with its two verdicts.

    `tables` are printed ones, `our_files` the CSVs of paper_tables/ with our numbers of them, and
    `models` those whose numbers it uses, as printed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    paper: str
    section: str
    says: str
    predicate: str
    tables: list[str]
    our_files: list[str]
    models: list[str]
    remark: str
    printed: Finding
    ours: Finding


def load_claims(path: str | Path) -> list[Claim]:
    """Read published/claims.yaml.

    Raises:
        UserError: a field is wrong, an id stands twice, or a predicate names unknown numbers;
            names the file and the claim.
    """
    claims = []
    for number, fields in enumerate(read_yaml(path) or [], start=1):
        name = fields.get("id", number) if isinstance(fields, Mapping) else number
        where = f"{path}: claim {name}"
        try:
            claim = TypeAdapter(Claim).validate_python(fields)
            used = claim.predicate.names()
        except ValidationError as error:
            raise UserError(explain(error), where=where, mend="see the other claims") from None
        except FormulaError as error:
            raise UserError(str(error), where=where, mend="correct the formula") from None
        if different := used ^ set(claim.numbers):
            word = "unused" if min(different) in claim.numbers else "unknown"
            raise UserError(
                f"{word} number {min(different)!r}",
                where=where,
                mend="name each number once and use it",
            )
        claims.append(claim)
    repeated = [name for name, times in Counter(claim.id for claim in claims).items() if times > 1]
    if repeated:
        raise UserError(f"id {repeated[0]!r} stands twice", where=path, mend="rename one")
    return claims


def judge_claims(
    claims: Sequence[Claim],
    catalogue: Mapping[str, PrintedTable],
    printed: PrintedNumbers,
    ours: OurNumbers,
) -> list[JudgedClaim]:
    """Judge every claim on the printed numbers and on ours."""
    return [
        JudgedClaim(
            id=claim.id,
            paper=claim.paper,
            section=claim.section,
            says=claim.says,
            predicate=claim.predicate.in_words(),
            tables=claim.tables,
            our_files=our_files(claim, catalogue),
            models=models_of(claim, catalogue, printed),
            remark=claim.remark,
            printed=judge_on_printed(claim, catalogue, printed),
            ours=judge_on_ours(claim, catalogue, printed, ours),
        )
        for claim in claims
    ]


def our_files(claim: Claim, catalogue: Mapping[str, PrintedTable]) -> list[str]:
    """Names of the CSVs that hold our numbers of a claim's cells."""
    tables = {
        number.table if isinstance(number, Selection) else TEXT_NUMBERS
        for number in claim.numbers.values()
        if isinstance(number, Selection) or number.measured
    }
    sources = [catalogue[table].ours for table in tables]
    return sorted({file for source in sources if source for file in source.files})


def models_of(
    claim: Claim, catalogue: Mapping[str, PrintedTable], printed: PrintedNumbers
) -> list[str]:
    """The models whose numbers a claim uses, as the printed tables call them."""
    names = set()
    for number in claim.numbers.values():
        if isinstance(number, Selection) and "model" in catalogue[number.table].keys:
            place = catalogue[number.table].keys.index("model")
            names |= {row[place] for row, _ in select(number, catalogue, printed).values()}
    return sorted(names)


def judge_on_printed(
    claim: Claim, catalogue: Mapping[str, PrintedTable], printed: PrintedNumbers
) -> Finding:
    """Does the paper support itself?

    Raises:
        UserError: the claim's numbers do not fit together.
    """
    columns = {name: _printed(number, catalogue, printed) for name, number in claim.numbers.items()}
    return _judge(claim, columns)


def judge_on_ours(
    claim: Claim,
    catalogue: Mapping[str, PrintedTable],
    printed: PrintedNumbers,
    ours: OurNumbers,
) -> Finding:
    """Does the claim hold in our run? Numbers of the running text stay as the paper says them.

    A claim with a missing number is "not run". One whose numbers are all there but were computed
    from other data or another checkpoint is "not comparable"; what they came to is told anyway.
    """
    columns: dict[str, Values] = {}
    missing: list[tuple[str, str]] = []
    obstacles: list[str] = []
    total = 0
    for name, number in claim.numbers.items():
        if isinstance(number, TextNumber) and not number.measured:
            columns[name] = _printed(number, catalogue, printed)
            continue
        selection = number.selection if isinstance(number, TextNumber) else number
        columns[name] = {}
        for named, (row, _) in select(selection, catalogue, printed).items():
            total += 1
            cell = _our_cell(selection, row, catalogue, ours)
            if cell.value is None:
                missing.append((" / ".join(row), cell.reason))
                continue
            columns[name][named or SINGLE] = cell.value
            if not cell.comparable:
                obstacles.append(cell.reason)
    if total == 0:
        return Finding(
            verdict="not run", reason="it rests on the running text, which nothing here computes"
        )
    if missing:
        return Finding(verdict="not run", reason=_why_missing(missing, total))
    finding = _judge(claim, columns)
    if obstacles:
        return Finding(
            verdict="not comparable",
            found=f"{finding.verdict}: {finding.found}",
            reason="; ".join(dict.fromkeys(obstacles)),
        )
    return finding


def write_ledger(
    judged: Sequence[JudgedClaim],
    *,
    papers: Mapping[str, str],
    json: str | Path,
    csv: str | Path,
    tex: str | Path,
    template: str | Path,
) -> None:
    """Write the ledger as JSON, as CSV (one claim a line) and as a LaTeX table.

    Raises:
        UserError: a claim names a paper that is not among `papers` (titles by study).
    """
    for claim in judged:
        if claim.paper not in papers:
            mend = nearest(claim.paper, list(papers))
            raise UserError(f"unknown paper {claim.paper!r}", where=f"claim {claim.id}", mend=mend)
    counts = {
        side: dict(sorted(Counter(getattr(claim, side).verdict for claim in judged).items()))
        for side in ("printed", "ours")
    }
    write_json(
        json, {"counts": counts, "claims": [claim.model_dump(mode="json") for claim in judged]}
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
                "reason": claim.ours.reason,
                "remark": claim.remark,
            }
            for claim in judged
        ]
    )
    write_text(csv, table.to_csv(index=False, lineterminator="\n"))
    render_latex(template, tex, claims=judged, counts=counts, papers=papers)


def _printed(
    number: Selection | TextNumber,
    catalogue: Mapping[str, PrintedTable],
    printed: PrintedNumbers,
) -> Values:
    selection = number.selection if isinstance(number, TextNumber) else number
    return printed_values(selection, catalogue, printed)


def _judge(claim: Claim, columns: Mapping[str, Values]) -> Finding:
    try:
        judgement = claim.predicate.judge(columns)
    except FormulaError as error:
        raise UserError(
            str(error), where=f"claim {claim.id}", mend="correct its numbers or its predicate"
        ) from None
    return Finding(verdict="holds" if judgement.holds else "fails", found=judgement.found)


def _our_cell(
    number: Selection,
    row: tuple[str, ...],
    catalogue: Mapping[str, PrintedTable],
    ours: OurNumbers,
) -> OurCell:
    source = catalogue[number.table].ours
    if source is None:
        return OurCell(None, False, "nothing here computes this table")
    if number.table not in ours:
        return OurCell(None, False, f"this run made no {' or '.join(source.files)}.csv")
    cell = ours[number.table].get((row, number.column))
    return cell or OurCell(None, False, f"{' or '.join(source.files)}.csv has no such row")


def _why_missing(missing: Sequence[tuple[str, str]], total: int) -> str:
    """Which numbers are missing and why, in one line: the commonest reason with some rows."""
    reasons = Counter(reason for _, reason in missing)
    parts = []
    for reason, times in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        rows = list(dict.fromkeys(row for row, why in missing if why == reason))
        more = f" and {len(rows) - 2} more" if len(rows) > 2 else ""
        parts.append(f"{reason} ({times}: {', '.join(rows[:2])}{more})")
    return f"{len(missing)} of {total} numbers missing: {'; '.join(parts)}"
