"""Read validated hard variants (the sample or the release) and check them automatically."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.jam.records import Original
from pieline.studies.jam.variants.released import read_variants
from pieline.studies.jam.variants.settings import VariantChecks
from pieline.studies.jam.variants.validation import check_variants


@program(
    originals=Path, variants=(Path, "JSON in the released format"),
    source=(["sample", "released"], "where they are from"),
    checks=(VariantChecks, "jam.variants.checks, as JSON"), output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    originals = load_jsonl(it.originals, Original)
    variants = read_variants(it.variants, originals, source=it.source)
    save_jsonl(it.output, check_variants(originals, variants, limits=it.checks))
