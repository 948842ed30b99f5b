"""Filter ID10M's test split by recorded decisions; write the originals and a report."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.program import Options, program
from pieline.core.records import save_jsonl
from pieline.core.upstream import is_released, load_upstream
from pieline.languages.registry import known
from pieline.studies.jam.originals import apply_decisions, filtering_report, load_decisions
from pieline.studies.jam.raw.id10m import read_id10m


@program(
    language=(known(), "of the sentences"), raw=Path, decisions=(Path, "one a sentence (TSV)"),
    derived=(bool, "they derive from the release"), upstream=Path,
    originals=(Path, "JSONL to write"), report=(Path, "JSON to write"),
)  # fmt: skip
def main(it: Options) -> None:
    sentences = read_id10m(it.raw, split="test")
    decisions = load_decisions(it.decisions)
    originals = apply_decisions(sentences, decisions, language=it.language, where=it.decisions)
    name = f"id10m/test_{it.language}.tsv"
    released = it.derived and is_released({name: it.raw}, load_upstream(it.upstream))
    report = filtering_report(sentences, decisions, originals)
    save_jsonl(it.originals, originals)
    write_json(it.report, report | {"originals_are_released": released})
