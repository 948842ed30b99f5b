"""Copy one raw file from a local path, or fetch and check the file from a mirror or URL."""

import shutil
from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import atomic_path
from pieline.core.jobs import job, optional
from pieline.core.upstream import copy_file, download, load_upstream

with job(snakemake) as j:
    name, output = snakemake.wildcards.name, snakemake.output[0]
    public_files = Path(snakemake.input.upstream)
    if source := optional(snakemake.input.local):
        with atomic_path(output) as temporary:
            shutil.copyfile(source, temporary)
    elif (upstream := load_upstream(public_files).get(name)) is None:
        raise UserError("unknown upstream file", where=name, hint=f"add it to {public_files}")
    elif snakemake.params.mirror:
        source = f"{snakemake.params.mirror}/{name}"
        expected = upstream.identity or "digest unknown"
        hint = f"put the file there ({expected}), or unset mirror to download"
        copy_file(source, output, upstream=upstream, hint=hint, name=name)
    else:
        source = upstream.url
        download(upstream, output, name=name, digests=public_files.with_name("digests"))
    j.facts = {"source": source}
