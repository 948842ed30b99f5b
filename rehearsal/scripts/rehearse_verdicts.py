"""Judge the cases of Llama 2 on IdioTS, so that the printed numbers of section 5.2.1 come back."""

from pathlib import Path

from pieline.core.jobs import start_log
from pieline.core.records import save_jsonl
from pieline.studies.idiots.verdicts import read_cases
from rehearsal.answers.people import printed_verdicts

start_log(snakemake.log[0])
save_jsonl(
    snakemake.output[0],
    printed_verdicts(read_cases(snakemake.input.cases), Path(snakemake.input.printed[0]).parent),
)
