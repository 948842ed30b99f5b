"""List the candidate PIEs that the authors' public files exclude, with reasons."""

from pieline.core.files import write_text
from pieline.core.jobs import job
from pieline.studies.idiolink.originals.pairs import (
    read_candidates,
    released_exclusions,
    used_pies,
)

with job(snakemake):
    candidates = read_candidates(snakemake.input.candidates)
    reasons = released_exclusions(candidates, used_pies(snakemake.input.documents))
    lines = [f"{pie}\t{reason}\n" for pie, reason in sorted(reasons.items())]
    write_text(snakemake.output[0], "".join(["pie\treason\n", *lines]))
