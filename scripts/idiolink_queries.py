"""Join the scores by query of all IdioLink runs."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.studies.idiolink.metrics.scores import join_query_scores


@program(
    tables=(list[Path] | None, "scores by query of each run, CSV"),
    output=(Path, "gzipped CSV to write"),
)
def main(it: Options) -> None:
    join_query_scores(it.output, it.tables)
