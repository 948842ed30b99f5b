"""Filter MAGPIE's PIEs: a verdict on each, the (PIE, domain) pairs that are left, and a report."""

from pathlib import Path

from pieline.core.files import digests, write_json
from pieline.core.program import Options, program
from pieline.core.records import save_jsonl
from pieline.studies.idiolink.originals.pairs import FilterOptions, filter_magpie


@program(
    magpie=(Path, "MAGPIE's JSONL file"), exclusions=(Path, "TSV of manual exclusions"),
    options=(FilterOptions, "criteria, PIEs and domains, as JSON"),
    candidates=(Path | None, "the released list, to compare"),
    documents=(list[Path] | None, "released indexes.json files"),
    pies=(Path, "verdicts to write, JSONL"), pairs=(Path, "pairs to write, JSONL"),
    report=(Path, "counts to write, JSON"),
)  # fmt: skip
def main(it: Options) -> None:
    inputs = [it.magpie, it.exclusions, *([it.candidates] if it.candidates else []), *it.documents]
    verdicts, pairs, report = filter_magpie(
        it.magpie,
        it.exclusions,
        it.options,
        candidates=it.candidates,
        documents=it.documents,
        computed_from=digests(inputs),
    )
    save_jsonl(it.pies, verdicts)
    save_jsonl(it.pairs, pairs)
    write_json(it.report, report.model_dump())
