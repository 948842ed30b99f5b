"""Derive decisions on ID10M's test split: those behind the released originals, or by its tags."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.languages.registry import known
from pieline.studies.jam.originals import decisions_by_tags, derive_decisions, save_decisions
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.raw.released import read_released_originals


@program(
    language=(known(), "of the sentences"), raw=Path,
    released=(Path | None, "id10m_fixed/<language>.json, where the language has one"),
    dev=(Path | None, "ID10M's dev split, where it has none and there is one"), output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    sentences = read_id10m(it.raw, split="test")
    if it.released:
        released = read_released_originals(it.released)
        decisions = derive_decisions(sentences, released, where=it.released)
    else:
        others = read_id10m(it.dev, split="dev") if it.dev else []
        decisions = decisions_by_tags(sentences, others, language=it.language)
    save_decisions(it.output, decisions)
