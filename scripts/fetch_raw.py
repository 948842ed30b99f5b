"""Fetch one raw file: a local one as it is; from a mirror or by URL if its digest is right."""

import shutil
from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import atomic_path
from pieline.core.program import Options, program
from pieline.core.upstream import copy_file, download, load_upstream


@program(
    name=(str, "upstream name, e.g. idiolink/val/queries.json"), upstream=Path,
    local=(Path | None, "the sample's or the user's own file, to take instead"),
    mirror=(str | None, "folder with the real files; none: download"), output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    if it.local:
        with atomic_path(it.output) as temporary:
            shutil.copyfile(it.local, temporary)
        return
    upstream = load_upstream(it.upstream).get(it.name)
    if upstream is None:
        mend = f"add it to {it.upstream}"
        raise UserError("no such upstream file", where=it.name, mend=mend)
    if it.mirror:
        source = Path(it.mirror) / it.name
        wanted = upstream.identity or "digest unknown"
        mend = f"put the file there ({wanted}), or unset mirror to download"
        copy_file(source, it.output, upstream=upstream, mend=mend, name=it.name)
    else:
        download(upstream, it.output, name=it.name, digests=it.upstream.with_name("digests"))
