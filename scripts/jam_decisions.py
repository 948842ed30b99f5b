"""Derive the decisions that turn ID10M's test split into the released originals of ID10M-JAM."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.studies.jam.originals import derive_decisions, save_decisions
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.raw.released import read_released_originals


@program(raw=Path, released=(Path, "id10m_fixed/<language>.json"), output=Path)
def main(it: Options) -> None:
    released = read_released_originals(it.released)
    decisions = derive_decisions(read_id10m(it.raw, split="test"), released, where=it.released)
    save_decisions(it.output, decisions)
