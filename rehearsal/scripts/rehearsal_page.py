"""Write the page of a rehearsal; fail if the bill and the ledger disagree."""

from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import read_json, read_text
from pieline.core.jobs import job
from pieline.models.registry import load_registry
from pieline.reporting.latex import render_html
from pieline.results.claims.judgement import JudgedClaim
from pieline.results.comparison import read_cells
from rehearsal.bill import BILL
from rehearsal.reconcile import bill_matches, verdict
from rehearsal.report import NOT_COVERED, count_cells, differently_judged, summary

with job(snakemake):
    state = Path(snakemake.params.state)
    counts = count_cells(read_cells(snakemake.input.tables))
    claims = [
        JudgedClaim.model_validate(claim) for claim in read_json(snakemake.input.claims)["claims"]
    ]
    claims = [claim for claim in claims if not claim.restates]
    bill = bill_matches(
        state / BILL, Path(snakemake.params.recordings), load_registry(snakemake.input.models)
    )
    line = verdict(bill)
    render_html(
        snakemake.input.template,
        snakemake.output[0],
        style=read_text(snakemake.input.style),
        mark=snakemake.params.mark,
        size=snakemake.params.size,
        counts=counts,
        claims=claims,
        differently_judged=differently_judged(claims),
        bill=[item for item in bill if item.recorded],
        verdict=line,
        summary=summary(counts, claims),
        not_covered=NOT_COVERED,
    )
    print(summary(counts, claims))
    print(line)
    if any(item.faults for item in bill):
        raise UserError(line, where=state / BILL, hint="report this as a bug in pieline")
