"""Take the sample's neutral variant for each hard one that confused a model."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.program import Options, program
from pieline.core.records import save_jsonl
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.variants.generation import confusing_variants, sample_neutral_variants


@program(
    dataset=(Path, "the dataset, JSONL"), metrics=(Path, "of the confused model"),
    sample=(Path, "neutral texts by original"), output=Path, report=(Path, "counts to write, JSON"),
)  # fmt: skip
def main(it: Options) -> None:
    confusing = confusing_variants(it.metrics)
    variants = sample_neutral_variants(load_sentences(it.dataset), confusing, it.sample)
    save_jsonl(it.output, variants)
    write_json(it.report, {"asked": len(confusing), "variants": len(variants)})
