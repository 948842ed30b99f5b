"""Generated stand-ins for the corpora, in the upstream formats and sizes."""

from pathlib import Path
from random import Random

import yaml

from pieline.core.files import sha256, write_text
from rehearsal.corpora.id10m import FILTERING, write_language
from rehearsal.corpora.idiolink import write_texts, write_tuples
from rehearsal.corpora.idiots import write_suite
from rehearsal.corpora.sizes import Size


def write_corpora(folder: Path, *, size: Size, seed: int) -> None:
    """Write `mirror/` with every public file that the papers' grid reads, and `upstream.yaml`.

    Args:
        folder: Output folder.
        size: `full` for the papers' sizes, `small` for about a tenth of the sentences.
        seed: Seed of all random draws.
    """
    mirror = folder / "mirror"

    def draw(name: str) -> Random:
        return Random(f"{seed}/{name}")  # noqa: S311 - a reproducible draw, no secret

    for language in FILTERING:
        write_language(mirror, language, size, draw(language))
    write_suite(mirror / "idiots/idioms_sentences.tsv", size, draw("idiots"))
    write_texts(mirror / "idiolink", size, draw("idiolink"))
    write_tuples(mirror / "idiolink/train", draw("tuples"))
    entries = {
        path.relative_to(mirror).as_posix(): {"url": None, "sha256": sha256(path)}
        for path in sorted(mirror.rglob("*.*"))
    }
    write_text(folder / "upstream.yaml", yaml.safe_dump(entries))
