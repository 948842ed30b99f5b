"""Read validated hard variants (the sample or the release) and check them automatically."""

import sys
from pathlib import Path

from pieline.core.files import write_json
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.jam.records import Original
from pieline.studies.jam.variants.released import edited_originals, read_variants
from pieline.studies.jam.variants.settings import VariantChecks
from pieline.studies.jam.variants.validation import check_variants


@program(
    originals=Path, variants=(Path, "JSON in the released format"),
    source=(["sample", "released"], "where they are from"),
    checks=(VariantChecks, "jam.variants.checks, as JSON"), output=Path,
    report=(Path, "edited originals, JSON to write"),
)  # fmt: skip
def main(it: Options) -> None:
    originals = load_jsonl(it.originals, Original)
    variants = read_variants(it.variants, originals, source=it.source)
    save_jsonl(it.output, check_variants(originals, variants, limits=it.checks))
    edited = edited_originals(originals, variants)
    for name, edits in edited.items():
        print(f"{name}: its original was edited: {', '.join(edits)}", file=sys.stderr)
    write_json(it.report, {"variants": len(variants), "edited_originals": edited})
