"""Collect the public files that `make verify` uses, and print which are unavailable.

A file comes from the mirror folder if it is there, else from its URL. The program also writes
FOLDER.yaml, a configuration that reads the files in FOLDER and, if ID10M-JAM's variants are among
them, counts them.

    python tools/fetch_public.py runs/public --mirror MIRROR
"""

import argparse
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from pieline.config import load_config, load_studies
from pieline.core.errors import UserError, run_command
from pieline.core.files import write_text
from pieline.core.upstream import UpstreamFile, download, load_upstream
from pieline.core.yamls import merge, read_yaml
from pieline.models.registry import load_registry
from pieline.project import raw_name
from pieline.results.run_files import raw_files

ROOT = Path(__file__).parents[1]
UPSTREAM = ROOT / "data/upstream.yaml"
VARIANTS = tuple(f"id10m-jam/variants/{language}.json" for language in ("english", "german"))


def names() -> list[str]:
    """Return the names of the public files that config/released.yaml and the variants need."""
    released = read_yaml(ROOT / "config/released.yaml")
    counted = {"jam": {"variants": {"source": "released"}}}
    config = load_config(merge(merge(read_yaml(ROOT / "config.yaml"), released), counted))
    studies = load_studies(config, load_registry(ROOT / "models.yaml"), ROOT)
    return [raw_name(path) for path in raw_files(studies[name] for name in config.studies)]


@cache
def is_reachable(address: str) -> bool:
    """Return whether a server answers, so that retries are not spent on each of its files."""
    try:
        request = urllib.request.Request(address, method="HEAD")  # noqa: S310
        urllib.request.urlopen(request, timeout=10).close()  # noqa: S310
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def collect(
    wanted: Iterable[str],
    known: Mapping[str, UpstreamFile],
    folder: Path,
    *,
    mirror: Path | None,
    digests: Path | None = None,
) -> list[str]:
    """Put files into a folder; return the names of those that are unavailable.

    Args:
        wanted: Names of public files.
        known: Public files by name.
        folder: Target folder; downloaded files in it are kept.
        mirror: Folder whose files are linked, if any.
        digests: Folder with the digests of first downloads (see `download`).
    """
    lacking = []
    for name in wanted:
        target, local = folder / name, mirror and mirror / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            target.unlink()
        if local and local.exists():
            target.unlink(missing_ok=True)
            target.symlink_to(local.resolve())
        elif not target.exists():
            url = str(known[name].url)
            parts = urlsplit(url)
            if not is_reachable(f"{parts.scheme}://{parts.netloc}"):
                lacking.append(name)
                continue
            try:
                download(known[name], target, name=name, digests=digests)
            except UserError as error:
                print(error, file=sys.stderr)
                lacking.append(name)
    return lacking


def configuration(folder: Path) -> str:
    """Return the configuration that reads the files of the folder, as YAML."""
    has_variants = all((folder / name).exists() for name in VARIANTS)
    source = "released" if has_variants else "none"
    return yaml.safe_dump(
        {"mirror": str(folder.resolve()), "jam": {"variants": {"source": source}}}
    )


def main() -> None:
    """Collect the files, and print in one line which are missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--mirror", type=Path, default=os.environ.get("PIELINE_MIRROR") or None, metavar="MIRROR"
    )
    arguments = parser.parse_args()
    lacking = collect(
        names(),
        load_upstream(UPSTREAM),
        arguments.folder,
        mirror=arguments.mirror,
        digests=UPSTREAM.with_name("digests"),
    )
    write_text(arguments.folder.with_suffix(".yaml"), configuration(arguments.folder))
    if lacking:
        print(f"not reachable, so what they decide is not counted: {', '.join(lacking)}")


if __name__ == "__main__":
    run_command(main)
