"""Write BM25's tuning with the printed k1 and b; it is a stand-in, not a result."""

from pathlib import Path

from pieline.core.jobs import job
from rehearsal.ranks import printed_tuning

with job(snakemake) as j:
    tuning = printed_tuning(
        query_mode=snakemake.wildcards.query_mode,
        composition=snakemake.wildcards.index.partition("-")[2] or "full",
        k1=snakemake.params.k1,
        b=snakemake.params.b,
        published=Path(snakemake.input.printed[0]).parent,
    )
    j.write(tuning)
