"""Stand-ins for the corpora, in the upstream formats and sizes; no sentence is from a corpus."""

from pathlib import Path
from random import Random

import yaml

from pieline.core.errors import UserError
from pieline.core.files import sha256, write_text
from pieline.core.upstream import copy_file
from pieline.studies.idiolink.originals.released_list import read_candidates
from rehearsal.corpora.id10m import (
    FILTERING,
    LANGUAGES,
    write_split,
    write_test_and_originals,
    write_variants,
)
from rehearsal.corpora.idiolink import write_texts, write_tuples
from rehearsal.corpora.idiots import write_suite
from rehearsal.corpora.magpie import write_magpie
from rehearsal.corpora.sizes import Size

_CANDIDATES = "idiolink/MAGPIE_SOURCE_IDIOMS.csv"
_TEXTS = tuple(
    f"idiolink/{split}/{name}.json"
    for split in ("train", "val", "test")
    for name in ("indexes", "queries")
)
_SUITE = "idiots/idioms_sentences.tsv"
_MAGPIE = "magpie/MAGPIE_unfiltered.jsonl"


def write_corpora(folder: Path, *, size: Size, seed: int, mirror: Path | None = None) -> None:
    """Write `mirror/` with every file that data/upstream.yaml names, and their `upstream.yaml`.

    A file that the mirror has is taken as it is, whatever the size. What is made from it fits it:
    hard variants go with its originals, mined tuples with its texts, MAGPIE with its candidates.

    Args:
        folder: where both go.
        size: of the papers, or a tenth of the sentences.
        seed: of everything that is drawn.
        mirror: folder that holds real files.

    Raises:
        UserError: the mirror has one of several files that belong together, and not all.
    """
    place = folder / "mirror"

    def take(*names: str, made_from: tuple[str, ...] = ()) -> bool:
        """Whether the mirror has these files, which are then copied."""
        had = [name for name in names if mirror and (mirror / name).is_file()]
        if not mirror or not had:
            return False
        for name in (*names, *made_from):
            if not (mirror / name).is_file():
                raise UserError(
                    f"{had[0]} is there without {name}, which belongs to it",
                    where=mirror,
                    mend="put both there, or none",
                )
        for name in names:
            copy_file(mirror / name, place / name, mend="")
        return True

    def draw(name: str) -> Random:
        return Random(f"{seed}/{name}")  # noqa: S311 - a reproducible draw, no secret

    for language in LANGUAGES:
        test, released = f"id10m/test_{language}.tsv", f"id10m-jam/{language}.json"
        variants = f"id10m-jam/variants/{language}.json"
        taken: set[str] = set()
        if language in FILTERING:
            paths = place / test, place / released
            if not take(test, released):
                write_test_and_originals(
                    *paths, language, size=size, random=draw(test), taken=taken
                )
            if not take(variants, made_from=(released,)):
                write_variants(place / variants, *paths, language, draw(variants))
        elif not take(test):
            write_split(place / test, "test", language, size=size, random=draw(test), taken=taken)
        for split in ("dev", "train"):
            name = f"id10m/{split}_{language}.tsv"
            if not take(name):
                write_split(
                    place / name, split, language, size=size, random=draw(name), taken=taken
                )
    if not take(_SUITE):
        write_suite(place / _SUITE, size, draw(_SUITE))
    if not take(*_TEXTS, _CANDIDATES):
        write_texts(place / "idiolink", size, draw("idiolink"))
    for split in ("train", "val"):
        name = f"idiolink/{split}/triplets_{split}_full.jsonl"
        if not take(name, made_from=_TEXTS):
            write_tuples(place / name, place / "idiolink" / split, draw(name))
    if not take(_MAGPIE, made_from=(_CANDIDATES,)):
        candidates = [item.pie for item in read_candidates(place / _CANDIDATES)]
        write_magpie(place / _MAGPIE, candidates, size, draw(_MAGPIE))
    entries = {
        path.relative_to(place).as_posix(): {"url": None, "sha256": sha256(path)}
        for path in sorted(place.rglob("*.*"))
    }
    write_text(folder / "upstream.yaml", yaml.safe_dump(entries))
