"""Write BM25's tuning with the printed k1 and b; it is a stand-in, not a result."""

from pathlib import Path

from pieline.core.files import write_json
from pieline.core.jobs import finish_job, start_log
from rehearsal.ranks import printed_tuning

start_log(snakemake.log[0])
tuning = printed_tuning(
    query_mode=snakemake.wildcards.query_mode,
    composition=snakemake.wildcards.index.partition("-")[2] or "full",
    k1=snakemake.params.k1,
    b=snakemake.params.b,
    published=Path(snakemake.input.printed[0]).parent,
)
write_json(snakemake.output[0], tuning.model_dump())
finish_job(snakemake)
