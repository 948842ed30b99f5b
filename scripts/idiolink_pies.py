"""Filter MAGPIE's PIEs; write a verdict on each, the remaining (PIE, domain) pairs and a report."""

from pieline.core.files import digests, write_json
from pieline.core.jobs import optional, start_log
from pieline.core.records import save_jsonl
from pieline.studies.idiolink.originals.pairs import filter_magpie
from pieline.studies.idiolink.originals.pie_filter import FilterOptions

start_log(snakemake.log[0])
candidates = optional(snakemake.input.candidates)
inputs = [
    snakemake.input.magpie,
    snakemake.input.exclusions,
    *([candidates] if candidates else []),
    *snakemake.input.documents,
]
verdicts, pairs, report = filter_magpie(
    snakemake.input.magpie,
    snakemake.input.exclusions,
    FilterOptions.model_validate_json(snakemake.params.options),
    candidates=candidates,
    documents=snakemake.input.documents,
    computed_from=digests(inputs),
)
save_jsonl(snakemake.output.pies, verdicts)
save_jsonl(snakemake.output.pairs, pairs)
write_json(snakemake.output.report, report.model_dump())
