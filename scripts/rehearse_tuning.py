"""Write what tuning BM25 leaves, with the printed k1 and b: a rehearsal's stand-in, no result."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.program import Options, program
from pieline.rehearsal.ranks import printed_tuning


@program(
    query_mode=str, index=(str, "val, or val-composition"), k1=(list[float], "values tried"),
    b=(list[float], "values tried"), published=(Path, "folder of printed numbers"), output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    tuning = printed_tuning(
        query_mode=it.query_mode,
        composition=it.index.partition("-")[2] or "full",
        k1=it.k1,
        b=it.b,
        published=it.published,
    )
    write_json(it.output, tuning.model_dump())
