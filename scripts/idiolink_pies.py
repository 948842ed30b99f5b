"""Filter MAGPIE's PIEs; write a verdict on each PIE, the (PIE, domain) pairs and a report."""

from pieline.core.files import write_json
from pieline.core.jobs import job, optional
from pieline.core.records import save_jsonl
from pieline.studies.idiolink.originals.pairs import filter_magpie
from pieline.studies.idiolink.originals.pie_filter import FilterOptions

with job(snakemake) as j:
    verdicts, pairs, report = filter_magpie(
        snakemake.input.magpie,
        snakemake.input.exclusions,
        FilterOptions.model_validate_json(snakemake.params.options),
        candidates=optional(snakemake.input.candidates),
        documents=snakemake.input.documents,
        computed_from=j.digests(
            snakemake.input.magpie,
            snakemake.input.exclusions,
            snakemake.input.candidates,
            snakemake.input.documents,
        ),
    )
    save_jsonl(snakemake.output.pies, verdicts)
    save_jsonl(snakemake.output.pairs, pairs)
    write_json(snakemake.output.report, report.model_dump())
