"""Apply human verdicts to hard variants and select: the dataset, its manifest, what is disputed."""

import json
from pathlib import Path

from pieline.core.files import read_json, write_json
from pieline.core.program import Options, program
from pieline.core.records import load_jsonl, save_jsonl
from pieline.core.upstream import NOT_VERIFIED, load_upstream, verify
from pieline.studies.jam.datasets.dataset import build_dataset
from pieline.studies.jam.records import Original, Variant
from pieline.studies.jam.variants.label_studio import (
    read_adjudications,
    read_export,
    write_adjudications,
)
from pieline.studies.jam.variants.released import count_problem


@program(
    originals=Path, report=Path, variants=Path,
    released=(Path | None, "the released file that the variants are from"), upstream=Path,
    annotations=(list[str] | None, "Label Studio exports"),
    adjudications=(str | None, "decisions on disputed variants"),
    selection=(json.loads, "how to select, as JSON"), dataset=(Path, "JSONL to write"),
    manifest=(Path, "JSON to write"), disputed=(Path, "TSV to be filled in"),
)  # fmt: skip
def main(it: Options) -> None:
    originals = load_jsonl(it.originals, Original)
    variants = load_jsonl(it.variants, Variant)
    originals_are_released = read_json(it.report)["originals_are_released"]
    verification = NOT_VERIFIED
    if it.released and originals_are_released:
        verification = verify(
            f"id10m-jam/variants/{originals[0].language}.json",
            it.released,
            load_upstream(it.upstream),
            problem=count_problem(originals, variants),
        )
    dataset = build_dataset(
        originals,
        variants,
        reviews=[review for path in it.annotations for review in read_export(path)],
        adjudications=read_adjudications(it.adjudications) if it.adjudications else [],
        where=", ".join([*it.annotations, it.adjudications or ""]).strip(", "),
        originals_are_released=originals_are_released,
        verification=verification,
        **it.selection,
    )
    save_jsonl(it.dataset, dataset.sentences)
    write_json(it.manifest, dataset.manifest.model_dump())
    write_adjudications(it.disputed, dataset.manifest.disputed)
