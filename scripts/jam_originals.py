"""Filter ID10M's test split by the recorded decisions; write the originals and a report."""

from pieline.core.files import write_json
from pieline.core.jobs import job
from pieline.core.records import save_jsonl
from pieline.core.upstream import is_released, load_upstream
from pieline.studies.jam.originals import apply_decisions, filtering_report, load_decisions
from pieline.studies.jam.raw.id10m import read_id10m

with job(snakemake):
    raw = snakemake.input.raw
    sentences = read_id10m(raw, split="test")
    decisions = load_decisions(snakemake.input.decisions)
    originals = apply_decisions(
        sentences,
        decisions,
        language=snakemake.wildcards.language,
        raw=raw,
        where=snakemake.input.decisions,
    )
    name = f"id10m/test_{snakemake.wildcards.language}.tsv"
    decided_by = snakemake.params.decided_by
    report = filtering_report(sentences, decisions, originals)
    report["decided_by"] = decided_by
    report["originals_are_released"] = decided_by == "release" and is_released(
        {name: raw}, load_upstream(snakemake.input.upstream)
    )
    save_jsonl(snakemake.output.originals, originals[: snakemake.params.limit])
    write_json(snakemake.output.report, report)
