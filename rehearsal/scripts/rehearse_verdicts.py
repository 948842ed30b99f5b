"""Write verdicts on Llama 2's cases that reproduce the numbers of IdioTS, section 5.2.1."""

from pathlib import Path

from pieline.core.jobs import job
from pieline.core.records import save_jsonl
from pieline.studies.idiots.verdicts import read_cases
from rehearsal.answers.people import printed_verdicts

with job(snakemake):
    save_jsonl(
        snakemake.output[0],
        printed_verdicts(
            read_cases(snakemake.input.cases), Path(snakemake.input.printed[0]).parent
        ),
    )
