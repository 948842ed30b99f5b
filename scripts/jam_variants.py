"""Read and check the validated hard variants of the sample or the public data."""

import sys

from pieline.core.files import write_json
from pieline.core.jobs import job
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.jam.records import Original
from pieline.studies.jam.variants.released import check_contexts, edited_originals, read_variants
from pieline.studies.jam.variants.validation import check_variants

with job(snakemake):
    originals = load_jsonl(snakemake.input.originals, Original)
    variants = read_variants(snakemake.input.variants, originals, source=snakemake.params.source)
    checked = check_variants(originals, variants)
    check_contexts(checked, where=snakemake.input.variants)
    save_jsonl(snakemake.output.variants, checked)
    edits_by_original = edited_originals(originals, variants)
    for original_id, edits in edits_by_original.items():
        print(f"{original_id}: the original was edited: {', '.join(edits)}", file=sys.stderr)
    report = {"variants": len(variants), "edited_originals": edits_by_original}
    write_json(snakemake.output.report, report)
