"""Loading and embedding: end tokens, checkpoints, pooling, precision, memory and resuming."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tiny_models import SENTENCES, save_tiny, tiny_entry
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from pieline.core.errors import UserError
from pieline.studies.idiolink.predictions import embedding
from pieline.studies.idiolink.predictions.embedding import (
    Encoded,
    TokenizedTexts,
    embed_documents,
)
from pieline.studies.idiolink.predictions.encoders import (
    LATENT_PREFIX,
    LatentAttentionPooling,
    load_encoder,
    require_bidirectional,
    save_folder,
    weights_digests,
)
from pieline.studies.idiolink.predictions.unpacking import unpack_weights
from pieline.studies.idiolink.predictions.vectors import Shards


def hidden_states(folder: Path, text: str) -> torch.Tensor:
    """Return last-layer vectors, computed without our code and without padding."""
    encoded = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    model = AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        hidden: torch.Tensor = model(**encoded).last_hidden_state[0]
    return hidden


def test_an_apple_gpu_is_used_only_if_requested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an explicit device, the library would select the Apple GPU."""
    entry = tiny_entry(save_tiny("bert", tmp_path / "tiny"), pooling="mean")
    with pytest.raises(UserError, match="device: mps: no Apple GPU available; set device: null"):
        load_encoder(entry, device="mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert load_encoder(entry).device.type == "cpu"
    places = []
    monkeypatch.setattr(torch.nn.Module, "to", lambda _, device: places.append(device))
    load_encoder(entry, device="mps")
    assert places[-1] == "mps"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision(dtype: str, tmp_path: Path) -> None:
    folder = save_tiny("bert", tmp_path / "bert")
    exact = load_encoder(tiny_entry(folder, pooling="mean"), device="cpu")
    half = load_encoder(tiny_entry(folder, pooling="mean", dtype=dtype), device="cpu")
    assert next(half.parameters()).dtype == getattr(torch, dtype)
    one = embed_documents(exact, SENTENCES, batch_size=2, progress=False)
    other = embed_documents(half, SENTENCES, batch_size=2, progress=False)
    assert other.dtype == np.float32
    assert not np.array_equal(one, other)
    assert (one * other).sum(axis=1).min() > 0.995


class TestEndOfInputs:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        # The model's tokenizer adds a token only at the start of inputs.
        return save_tiny("mistral", tmp_path / "mistral")

    def test_a_saved_end_token_is_not_added_twice(self, folder: Path, tmp_path: Path) -> None:
        entry = tiny_entry(folder, pooling="lasttoken", end_token="</s>")
        save_folder(load_encoder(entry, device="cpu"), tmp_path / "saved")
        again = load_encoder(entry, weights=tmp_path / "saved", device="cpu")
        ids = again.tokenizer("ice")["input_ids"]
        assert ids[-2] != ids[-1] == again.tokenizer.eos_token_id

    def test_an_undefined_end_token_may_be_stated_or_not_pooled(self, folder: Path) -> None:
        load_encoder(tiny_entry(folder, pooling="lasttoken", end_token=""), device="cpu")
        load_encoder(tiny_entry(folder, pooling="mean"), device="cpu")

    @pytest.mark.parametrize(
        ("family", "fields", "problem"),
        [
            ("mistral", {"pooling": "lasttoken"}, r"end token is undefined.*end_token"),
            ("mistral", {"end_token": "<|end|>"}, r"'<\|end\|>' is not in the vocabulary"),
            ("bert", {"end_token": "[MASK]"}, r"ends inputs with '\[SEP\]', not with '\[MASK\]'"),
        ],
    )
    def test_an_end_token_that_does_not_fit(
        self, family: str, fields: dict[str, str], problem: str, tmp_path: Path
    ) -> None:
        folder = save_tiny(family, tmp_path / "tiny")
        with pytest.raises(UserError, match=problem):
            load_encoder(tiny_entry(folder, **{"pooling": "mean"} | fields), device="cpu")


class TestCheckpoints:
    @pytest.mark.parametrize("shape", [None, (16, 32)])
    def test_missing_weights_are_rejected(
        self, shape: tuple[int, int] | None, tmp_path: Path
    ) -> None:
        folder = save_tiny("bert", tmp_path / "bert", pooling="cls")
        place = folder / "model.safetensors"
        weights = load_file(place)
        changed = next(name for name in sorted(weights) if name.endswith("query.weight"))
        weights |= {changed: torch.zeros(shape)} if shape else {}
        if not shape:
            del weights[changed]
        save_file(weights, place, metadata={"format": "pt"})
        problem = r"1 of the model's weights are missing or have a different shape: .*query"
        with pytest.raises(UserError, match=problem):
            load_encoder(tiny_entry(folder), device="cpu")
        # After conversion, randomly initialized weights could no longer be detected.
        torch.save(weights, folder / "pytorch_model.bin")
        place.unlink()
        with pytest.raises(UserError, match=problem):
            unpack_weights(tiny_entry(folder), tmp_path / "converted")
        assert not (tmp_path / "converted").exists()

    def test_broken_weights_are_rejected(self, tmp_path: Path) -> None:
        place = save_tiny("bert", tmp_path / "bert") / "model.safetensors"
        place.write_bytes(place.read_bytes()[:2000])
        with pytest.raises(UserError, match=r"cannot load the weights: .*download them again"):
            load_encoder(tiny_entry(place.parent, pooling="mean"), device="cpu")

    def test_no_pooling_is_guessed(self, tmp_path: Path) -> None:
        folder = save_tiny("bert", tmp_path / "bert")
        with pytest.raises(UserError, match=r"modules\.json is missing.*pooling"):
            load_encoder(tiny_entry(folder), device="cpu")
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        with pytest.raises(UserError, match=r"modules\.json is missing.*pooling"):
            unpack_weights(tiny_entry(folder), tmp_path / "converted")

    def test_an_unused_pooler_may_be_missing(self, tmp_path: Path) -> None:
        folder = save_tiny("bert", tmp_path / "bert")
        place = folder / "model.safetensors"
        kept = {name: item for name, item in load_file(place).items() if "pooler" not in name}
        save_file(kept, place, metadata={"format": "pt"})
        load_encoder(tiny_entry(folder, pooling="mean"), device="cpu")

    def test_a_pickle_is_rejected_but_can_be_converted(self, tmp_path: Path) -> None:
        folder = save_tiny("bert", tmp_path / "bert", pooling="cls")
        entry = tiny_entry(folder)
        before = embed_documents(
            load_encoder(entry, device="cpu"), SENTENCES, batch_size=3, progress=False
        )
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
        with pytest.raises(UserError, match=r"no safetensors weights at this commit; .*pickled"):
            load_encoder(entry, device="cpu")
        unpack_weights(entry, tmp_path / "converted")
        assert not list((tmp_path / "converted").rglob("*.bin"))
        model = load_encoder(entry, weights=tmp_path / "converted", device="cpu")
        after = embed_documents(model, SENTENCES, batch_size=3, progress=False)
        np.testing.assert_array_equal(before, after)
        unpack_weights(entry, tmp_path / "again")
        first, again = (weights_digests(entry, tmp_path / name) for name in ("converted", "again"))
        assert first == again

    def test_pinned_code_needs_a_pooling_in_the_entry(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="'code_revision' needs a 'pooling'"):
            tiny_entry(tmp_path, code_revision="0" * 40)


class TestLatentPooling:
    def weights(self, dimensions: int = 32, inner: int = 16) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(3)
        shapes = {
            "latents": (5, dimensions),
            "cross_attend_blocks.0.fn.to_q.weight": (inner, dimensions),
            "cross_attend_blocks.0.fn.to_kv.weight": (2 * inner, dimensions),
            "cross_attend_blocks.0.fn.to_out.weight": (dimensions, inner),
            "cross_attend_blocks.1.fn.net.0.weight": (8 * dimensions, dimensions),
            "cross_attend_blocks.1.fn.net.0.bias": (8 * dimensions,),
            "cross_attend_blocks.1.fn.net.2.weight": (dimensions, 4 * dimensions),
            "cross_attend_blocks.1.fn.net.2.bias": (dimensions,),
        }
        for block, norm in ((0, "norm"), (0, "norm_context"), (1, "norm")):
            for kind in ("weight", "bias"):
                shapes[f"cross_attend_blocks.{block}.{norm}.{kind}"] = (dimensions,)
        return {
            name: 0.3 * torch.randn(*shape, generator=generator) for name, shape in shapes.items()
        }

    def by_hand(self, weights: dict[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
        """Return one text's vector, computed head by head and token by token."""

        def norm(vectors: torch.Tensor, name: str) -> torch.Tensor:
            centred = vectors - vectors.mean(dim=-1, keepdim=True)
            scaled = centred / (centred.pow(2).mean(dim=-1, keepdim=True) + 1e-5).sqrt()
            name = f"cross_attend_blocks.{name}"
            return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

        first, second = "cross_attend_blocks.0.fn", "cross_attend_blocks.1.fn.net"
        queries = norm(tokens, "0.norm") @ weights[f"{first}.to_q.weight"].T
        both = norm(weights["latents"], "0.norm_context") @ weights[f"{first}.to_kv.weight"].T
        keys, values = both[:, :16], both[:, 16:]
        attended = torch.zeros_like(queries)
        for head in range(8):
            part = slice(2 * head, 2 * head + 2)
            for token in range(len(tokens)):
                scores = keys[:, part] @ queries[token, part] / 2**0.5
                attended[token, part] = scores.softmax(dim=0) @ values[:, part]
        tokens = tokens + attended @ weights[f"{first}.to_out.weight"].T
        wide = (
            norm(tokens, "1.norm") @ weights[f"{second}.0.weight"].T + weights[f"{second}.0.bias"]
        )
        gated = wide[:, :128] * functional.gelu(wide[:, 128:])
        tokens = tokens + gated @ weights[f"{second}.2.weight"].T + weights[f"{second}.2.bias"]
        return tokens.mean(dim=0)

    def test_a_model_with_latent_pooling(self, tmp_path: Path) -> None:
        folder = save_tiny("mistral", tmp_path / "mistral")
        weights = self.weights()
        save_file(
            {LATENT_PREFIX + name: tensor for name, tensor in weights.items()},
            folder / "pool.safetensors",
        )
        model = load_encoder(tiny_entry(folder, pooling="latent"), device="cpu")
        vectors = embed_documents(model, SENTENCES, batch_size=3, progress=False)
        for vector, text in zip(vectors, SENTENCES, strict=True):
            expected = self.by_hand(weights, hidden_states(folder, text))
            np.testing.assert_allclose(vector, functional.normalize(expected, dim=0), atol=2e-5)

    def test_latent_pooling_survives_saving(self, tmp_path: Path) -> None:
        layer = LatentAttentionPooling.from_weights(self.weights())
        layer.save(str(tmp_path))
        again = LatentAttentionPooling.from_folder(tmp_path).state_dict()
        assert all(torch.equal(again[name], tensor) for name, tensor in layer.state_dict().items())

    def test_weights_without_latent_pooling(self, tmp_path: Path) -> None:
        folder = save_tiny("mistral", tmp_path / "mistral")
        with pytest.raises(UserError, match=r"no weights named latent_attention_model"):
            load_encoder(tiny_entry(folder, pooling="latent"), device="cpu")


@pytest.fixture
def bert(tmp_path: Path) -> SentenceTransformer:
    return load_encoder(
        tiny_entry(save_tiny("bert", tmp_path / "bert"), pooling="mean"), device="cpu"
    )


def texts(count: int) -> list[str]:
    return [f"{SENTENCES[index % 3]} {'it melted ' * (index % 7)}" for index in range(count)]


def limited(monkeypatch: pytest.MonkeyPatch, *, largest: int, words: str) -> list[int]:
    """Make forward passes over more than `largest` texts fail; return all attempted sizes."""
    tried = []
    encode = TokenizedTexts.encode

    def fails(self: TokenizedTexts, indices: Sequence[int], *, spans: bool) -> Encoded:
        tried.append(len(indices))
        if len(indices) > largest:
            raise RuntimeError(words)
        return encode(self, indices, spans=spans)

    monkeypatch.setattr(TokenizedTexts, "encode", fails)
    return tried


@pytest.mark.parametrize(
    "words",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes",
    ],
)
def test_batches_are_halved_when_memory_runs_out(
    bert: SentenceTransformer, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    expected = embed_documents(bert, texts(11), batch_size=8, progress=False)
    tried = limited(monkeypatch, largest=3, words=words)
    for at_once in (1, 2):
        monkeypatch.setattr(embedding, "_parallel_batches", lambda _, number=at_once: number)
        vectors = embed_documents(bert, texts(11), batch_size=8, progress=False)
        np.testing.assert_allclose(vectors, expected, atol=2e-6)
        if at_once == 1:
            assert tried == [8, 4, 2, 2, 2, 2, 2, 1]


def test_output_does_not_depend_on_the_number_of_threads(bert: SentenceTransformer) -> None:
    before = torch.get_num_threads()
    try:
        vectors = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            vectors.append(embed_documents(bert, texts(21), batch_size=4, progress=False))
    finally:
        torch.set_num_threads(before)
    assert {each.tobytes() for each in vectors} == {vectors[0].tobytes()}


@pytest.mark.parametrize(
    ("words", "error", "smallest"),
    [("out of memory", UserError, 1), ("index out of range", RuntimeError, 2)],
)
def test_errors_that_a_smaller_batch_does_not_solve(
    bert: SentenceTransformer,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    error: type[Exception],
    smallest: int,
) -> None:
    tried = limited(monkeypatch, largest=0, words=words)
    with pytest.raises(error, match=words):
        embed_documents(bert, texts(3), batch_size=2, progress=False)
    assert min(tried) == smallest


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_vectors_that_are_not_finite(
    bert: SentenceTransformer, monkeypatch: pytest.MonkeyPatch, number: float
) -> None:
    """Half precision yields infinite values if the activations of a model are too large."""
    encode = TokenizedTexts.encode

    def overflows(self: TokenizedTexts, indices: Sequence[int], *, spans: bool) -> Encoded:
        vectors = encode(self, indices, spans=spans).sentence.clone()
        vectors[0, 0] = number
        return Encoded(vectors, None)

    monkeypatch.setattr(TokenizedTexts, "encode", overflows)
    with pytest.raises(UserError, match="not finite; set dtype: bfloat16"):
        embed_documents(bert, texts(3), batch_size=2, progress=False)


class TestResuming:
    def test_finished_parts_are_reused(
        self, bert: SentenceTransformer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(embedding, "_SHARD_ROWS", 4)
        expected = embed_documents(bert, texts(14), batch_size=2, progress=False)
        encode = TokenizedTexts.encode
        done = []

        def stops(self: TokenizedTexts, indices: Sequence[int], *, spans: bool) -> Encoded:
            if len(done) == 5:
                raise KeyboardInterrupt
            done.append(len(indices))
            return encode(self, indices, spans=spans)

        shards = Shards(tmp_path / "shards", "key")
        with monkeypatch.context() as patch:
            patch.setattr(TokenizedTexts, "encode", stops)
            with pytest.raises(KeyboardInterrupt):
                embed_documents(bert, texts(14), batch_size=2, progress=False, shards=shards)
        tried = limited(monkeypatch, largest=9, words="")
        vectors = embed_documents(bert, texts(14), batch_size=2, progress=False, shards=shards)
        assert np.array_equal(vectors, expected)
        # Two shards of four texts were finished; the fifth batch was in the third shard.
        assert sum(tried) == 14 - 8

        again = embed_documents(bert, texts(14), batch_size=2, progress=False, shards=shards)
        assert np.array_equal(again, expected)
        assert sum(tried) == 14 - 8
        other = Shards(tmp_path / "shards", "another key")
        embed_documents(bert, texts(14), batch_size=2, progress=False, shards=other)
        assert sum(tried) == 14 - 8 + 14
        shards.remove()
        assert not (tmp_path / "shards").exists()

    def test_key_depends_on_model_weights_and_texts(self, tmp_path: Path) -> None:
        folder = save_tiny("bert", tmp_path / "bert")
        entry = tiny_entry(folder, pooling="mean")
        arrays = (np.ones((2, 3), dtype=np.float32),)
        same = {"weights": {"model": "a"}, "texts": "b"}
        Shards.beside(tmp_path / "seed-0.npy", entry, **same).save(0, arrays)
        loaded = Shards.beside(tmp_path / "seed-0.npy", entry, **same).load(0)
        assert loaded is not None
        assert np.array_equal(loaded[0], arrays[0])
        for changed in ({"weights": {"model": "c"}}, {"texts": "c"}):
            assert Shards.beside(tmp_path / "seed-0.npy", entry, **(same | changed)).load(0) is None
        half = entry.model_copy(update={"dtype": "bfloat16"})
        assert Shards.beside(tmp_path / "seed-0.npy", half, **same).load(0) is None


def test_digests_of_weights(tmp_path: Path) -> None:
    folder = save_tiny("bert", tmp_path / "bert")
    entry = tiny_entry(folder, pooling="mean")
    digests = weights_digests(entry)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(digests)
    (folder / "model.safetensors").write_bytes(b"other")
    changed = {name for name, digest in weights_digests(entry).items() if digest != digests[name]}
    assert changed == {"model.safetensors"}


def test_a_missing_folder_gives_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^tiny \(folder\): cannot load the weights"):
        load_encoder(tiny_entry(tmp_path / "nowhere", pooling="mean"), device="cpu")


def test_causal_attention_is_detected(tmp_path: Path) -> None:
    model = load_encoder(tiny_entry(save_tiny("llama", tmp_path / "llama"), pooling="mean"))
    with pytest.raises(UserError, match="attention is causal"):
        require_bidirectional(model, "llama")
