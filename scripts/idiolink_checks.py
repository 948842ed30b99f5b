"""Count and check IdioLink's texts, constructed or public; report problems without failing."""

from pathlib import Path

from pieline.core.jobs import job, optional
from pieline.core.upstream import is_released, load_upstream
from pieline.studies.idiolink.datasets.composition import check_dataset
from pieline.studies.idiolink.datasets.reading import read_loosely
from pieline.studies.idiolink.originals.pairs import read_candidates

with job(snakemake) as j:
    data = Path(snakemake.params.folder)
    texts, files = read_loosely([(split, data / split) for split in snakemake.params.splits])
    candidates = optional(snakemake.input.candidates)
    if candidates:
        files.append(Path(candidates))
    files_by_name = {f"idiolink/{path.relative_to(data)}": path for path in files}
    report = check_dataset(
        texts,
        origin=snakemake.wildcards.origin,
        sample=snakemake.params.sample,
        released=is_released(files_by_name, load_upstream(snakemake.input.upstream)),
        computed_from=j.digests(files),
        candidates=read_candidates(candidates) if candidates else None,
        conditions=j.conditions,
    )
    j.write(report)
