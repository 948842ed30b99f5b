"""Write what a rehearsal showed; fail where the bill and the ledger do not agree."""

from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import read_json
from pieline.core.program import Options, program
from pieline.models.registry import load_registry
from pieline.rehearsal.providers import BILL
from pieline.rehearsal.reconcile import bill_matches, verdict
from pieline.rehearsal.report import count_cells, judged_otherwise, said
from pieline.reporting.latex import render_html
from pieline.results.claims.judgement import JudgedClaim
from pieline.results.comparison import read_cells


@program(
    models=(Path, "models.yaml"), tables=list[Path], claims=(Path, "claims.json"),
    recordings=(Path, "folder of recordings"), state=(Path, "folder of the stand-ins' bill"),
    size=(str, "of the corpora"), mark=(str, "what stands over it"), template=Path, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    counts = count_cells(read_cells(it.tables))
    claims = [JudgedClaim.model_validate(claim) for claim in read_json(it.claims)["claims"]]
    claims = [claim for claim in claims if not claim.restates]
    bill = bill_matches(it.state / BILL, it.recordings, load_registry(it.models))
    found = verdict(bill)
    render_html(
        it.template,
        it.output,
        mark=it.mark,
        size=it.size,
        counts=counts,
        claims=claims,
        otherwise=judged_otherwise(claims),
        bill=[item for item in bill if item.recorded],
        verdict=found,
    )
    for line in said(counts, claims):
        print(line)
    print(found)
    if any(item.faults for item in bill):
        raise UserError(found, where=it.state / BILL, mend="report it as a fault of pieline")
