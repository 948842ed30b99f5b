"""The stand-ins for weights are complete, and their tokenizers know the studies' letters.

A rehearsal loads all of them; `tests/idiolink/test_standins.py` tests the embedders' architectures.
"""

import json
from pathlib import Path

import pytest
from support import ROOT

from pieline.core.files import digests
from pieline.models.fetching import required_checkpoints
from pieline.models.registry import load_registry
from pieline.studies.idiolink.predictions.encoders import load_encoder
from pieline.studies.jam.training.tagger import load_tagger
from rehearsal.weights.standins import common_words, write_weights

REGISTRY = load_registry(ROOT / "models.yaml")
# No pinned commit, several files with a head, pickles with a Dense module, code in another
# repository, its own code, only a vocabulary, a served model.
EMBEDDERS = [
    "drama-1b", "gritlm-7b", "instructor-base", "nomic-v2-moe", "llama-embed-nemotron-8b",
    "tart-contriever",
]  # fmt: skip
TAGGERS = ["mbert", "gbert"]
ENTRIES = {name: REGISTRY[name] for name in [*EMBEDDERS, *TAGGERS, "llama-2-7b-chat"]}
WITHOUT = {name: REGISTRY[name] for name in ["bm25", "gpt-4o", "sbert"]}
TEXTS = [
    "They said — “quietly” — that the cat's out of the bag: 50% of it.",
    "Die Bäuerin größte Sorge: „Jetzt haben wir den Salat!“",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("standins")
    write_weights(place, ENTRIES | WITHOUT)
    return place


@pytest.fixture
def hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use the stand-ins as the cache of the Hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    modules = str(folder / "modules")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
    return folder / "hub"


def test_all_files_are_in_the_cache(hub: Path) -> None:
    files = required_checkpoints(ENTRIES)
    # Nomic's code is in another repository.
    assert len(files) == len(ENTRIES) + 1
    assert {(item.state, item.missing) for item in files} == {("in the cache", 0)}
    assert len(list(hub.glob("*/trees/*.json"))) == len(files)


@pytest.mark.parametrize("name", ["drama-1b", "gritlm-7b", *TAGGERS])
def test_no_letter_of_the_studies_languages_is_unknown(name: str, hub: Path) -> None:
    load = load_tagger if name in TAGGERS else load_encoder
    tokenizer = load(REGISTRY[name]).tokenizer
    pieces = tokenizer(TEXTS, add_special_tokens=False)["input_ids"]
    assert tokenizer.unk_token_id not in {piece for row in pieces for piece in row}


def test_stand_ins_are_reproducible_and_know_the_passed_words(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "one.txt").write_text("zebra Xylophon zebra 7 zebra Xylophon once", encoding="utf-8")
    words = common_words(texts, 2)
    assert words == ["zebra", "Xylophon"]
    written = []
    for place in (tmp_path / "one", tmp_path / "other"):
        (place / "hub/stray").mkdir(parents=True)
        write_weights(place, {name: REGISTRY[name] for name in ("bert", "gritlm-7b")}, words)
        files = digests(path for path in place.rglob("*") if path.is_file())
        written.append({str(Path(path).relative_to(place)): each for path, each in files.items()})
    assert written[0] == written[1]
    [file] = (tmp_path / "one/hub").glob("*bert*/snapshots/*/tokenizer.json")
    assert {"zebra", "xylophon"} <= json.loads(file.read_text())["model"]["vocab"].keys()
