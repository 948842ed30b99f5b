"""The tiled sample data is valid for the library's readers."""

from pathlib import Path

import pytest
from support import ROOT

from pieline.core.files import read_json
from pieline.studies.idiolink.originals.splits import SPLITS
from pieline.studies.idiolink.raw import read_texts
from pieline.studies.idiolink.records import Document, Query
from pieline.studies.idiots.datasets import read_sentences
from pieline.studies.jam.originals import apply_decisions, derive_decisions, read_released_originals
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.variants.released import read_variants
from rehearsal.corpora import write_corpora

SAMPLE = ROOT / "data/sample"
COPIES = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    write_corpora(SAMPLE, folder, COPIES)
    return folder


@pytest.mark.parametrize("language", ["english", "german"])
def test_every_copy_has_the_originals_and_variants(language: str, folder: Path) -> None:
    for split in ("train", "dev", "test"):
        name = f"id10m/{split}_{language}.tsv"
        sentences = read_id10m(folder / name, split=split)
        assert len(sentences) == COPIES * len(read_id10m(SAMPLE / name, split=split))
        assert len({item.text for item in sentences}) == len(sentences)
    where = folder / f"id10m-jam/{language}.json"
    released = read_released_originals(where)
    decisions = derive_decisions(sentences, released, where=where)
    originals = apply_decisions(sentences, decisions, language=language, where=where)
    assert [item.sentence for item in originals] == [item.sentence for item in released]
    assert originals[-1].sentence.endswith(f" ({COPIES})")
    variants = folder / f"id10m-jam/variants/{language}.json"
    rows = read_json(SAMPLE / f"id10m/variants/{language}.json")
    assert len(read_variants(variants, originals, source="released")) == COPIES * len(rows)


def test_every_copy_has_the_sentences_of_idiots(folder: Path) -> None:
    sentences = read_sentences(folder / "idiots/idiots.json")
    assert len(sentences) == COPIES * len(read_json(SAMPLE / "idiots/idiots.json"))


@pytest.mark.parametrize("split", SPLITS)
def test_every_copy_has_the_texts_of_idiolink(split: str, folder: Path) -> None:
    for name, record in (("indexes.json", Document), ("queries.json", Query)):
        texts = read_texts(folder / "idiolink" / split / name, record)
        assert len(texts) == COPIES * len(read_json(SAMPLE / "idiolink" / split / name))
        assert len({text.sentence for text in texts}) == len(texts)
