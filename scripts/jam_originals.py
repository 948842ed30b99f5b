"""Filter ID10M's test split by recorded decisions; write the originals and a report."""

from pathlib import Path
from typing import get_args

from pieline.core.files import write_json
from pieline.core.program import Options, program
from pieline.core.records import save_jsonl
from pieline.core.upstream import is_released, load_upstream
from pieline.languages.registry import known
from pieline.studies.jam.originals import apply_decisions, filtering_report, load_decisions
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.records import DecidedBy


@program(
    language=(known(), "of the sentences"), raw=Path, decisions=(Path, "one a sentence (TSV)"),
    decided_by=([*get_args(DecidedBy)], "where they come from"), upstream=Path,
    originals=(Path, "JSONL to write"), report=(Path, "JSON to write"),
)  # fmt: skip
def main(it: Options) -> None:
    sentences = read_id10m(it.raw, split="test")
    decisions = load_decisions(it.decisions)
    originals = apply_decisions(
        sentences, decisions, language=it.language, raw=it.raw, where=it.decisions
    )
    name = f"id10m/test_{it.language}.tsv"
    released = it.decided_by == "release" and is_released(
        {name: it.raw}, load_upstream(it.upstream)
    )
    report = filtering_report(sentences, decisions, originals)
    report |= {"decided_by": it.decided_by, "originals_are_released": released}
    save_jsonl(it.originals, originals)
    write_json(it.report, report)
