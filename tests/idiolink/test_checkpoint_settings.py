"""Settings in the files of sentence-transformers: followed as the library does, or reported."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Dense, Dropout, LayerNorm
from support import ROOT
from tiny_models import SENTENCES, save_tiny, tiny_entry

from pieline.core.errors import UserError
from pieline.core.files import write_json
from pieline.llm.settings import LLMSettings
from pieline.models.checkpoint_settings import FIELDS, check_ranker_files
from pieline.models.rankers import LateInteractionEntry, RerankerEntry
from pieline.models.weights import weights_location
from pieline.project import Project
from pieline.studies.idiolink.predictions.embedding import (
    embed_documents,
    embed_index,
    embed_query_modes,
)
from pieline.studies.idiolink.predictions.encoders import load_encoder
from pieline.studies.idiolink.records import Document, Query

MODEL, TRANSFORMER = "config_sentence_transformers.json", "sentence_bert_config.json"
POOLING = "1_Pooling/config.json"
QUERIES = [
    Query(
        id=f"q{place}", sentence=sentence, span=sentence[:4], pie="break the ice", subject="Food",
        is_gold=False, usage="idiomatic",
    )
    for place, sentence in enumerate(SENTENCES)
]  # fmt: skip
DOCUMENTS = [
    Document(
        **query.model_dump()
        | {"id": f"d{place}", "sentence": f"{query.sentence} A JOKE melted.", "span": "JOKE"}
    )
    for place, query in enumerate(QUERIES)
]

Change = Callable[[Path], None]


def amended(name: str, **fields: Any) -> Change:
    """Return a function that changes fields of a JSON file in a checkpoint."""

    def change(folder: Path) -> None:
        path = folder / name
        present = json.loads(path.read_text()) if path.exists() else {}
        write_json(path, present | fields)

    return change


def behind(module: torch.nn.Module) -> Change:
    """Return a function that inserts a module between pooling and normalization."""

    def change(folder: Path) -> None:
        rows = json.loads((folder / "modules.json").read_text())
        name = type(module).__name__
        path = folder / f"5_{name}"
        path.mkdir()
        module.save(str(path))  # type: ignore[operator]
        row = {
            "idx": 5,
            "name": "5",
            "path": path.name,
            "type": f"sentence_transformers.models.{name}",
        }
        write_json(folder / "modules.json", [*rows[:2], row, *rows[2:]])

    return change


def listed(*names: str) -> Change:
    """Return a function that replaces the types in modules.json."""

    def change(folder: Path) -> None:
        rows = json.loads((folder / "modules.json").read_text())
        for row, name in zip(rows, names, strict=False):
            row["type"] = name if "." in name else f"sentence_transformers.models.{name}"
        write_json(folder / "modules.json", rows[: len(names)])

    return change


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_tiny("bert", tmp_path / "tiny", pooling="mean")


def layer_norm() -> LayerNorm:
    torch.manual_seed(2)
    module = LayerNorm(32)
    torch.nn.init.normal_(module.norm.weight)
    return module


def dense(**options: Any) -> Dense:
    torch.manual_seed(2)
    return Dense(32, 24, **options)


def test_the_document_lists_all_fields() -> None:
    text = (ROOT / "docs/studies/embedders.md").read_text(encoding="utf-8")
    for file, fields in FIELDS.items():
        for field, treatment in fields.items():
            if field.startswith("pooling_mode_"):
                continue
            [row] = [
                line
                for line in text.splitlines()
                if line.startswith(f"| `{file}`") and f"`{field}`" in line.split("|")[2]
            ]
            assert row.split("|")[3].strip().startswith(treatment), (file, field)


FOLLOWED: dict[str, tuple[Change, dict[str, Any]]] = {
    "truncate_dim": (amended(MODEL, truncate_dim=7), {}),
    "prompts": (amended(MODEL, prompts={"query": "They ", "document": "It "}), {}),
    "dense": (behind(dense()), {}),
    "dense with another activation": (behind(dense(activation_function=torch.nn.ReLU())), {}),
    "dense with a residual": (behind(dense(use_residual=True)), {}),
    "layer norm": (behind(layer_norm()), {}),
    "dropout": (behind(Dropout(0.5)), {}),
    "pooling": (amended(POOLING, pooling_mode="max"), {}),
    "old pooling": (
        amended(POOLING, pooling_mode_mean_tokens=False, pooling_mode_weightedmean_tokens=True),
        {},
    ),
    "config_args": (amended(TRANSFORMER, config_args={"hidden_act": "relu"}), {}),
    "tokenizer_args": (amended(TRANSFORMER, tokenizer_args={"padding_side": "left"}), {}),
    "prompt left out": (
        lambda folder: [
            amended(MODEL, prompts={"query": "They ", "document": "It "})(folder),
            amended(POOLING, include_prompt=False)(folder),
        ][0],
        {},
    ),
    "dot product of unit vectors": (amended(MODEL, similarity_fn_name="dot"), {}),
    "same pooling": (lambda folder: None, {"pooling": "mean"}),
    "all with pooling": (
        lambda folder: [
            amended(MODEL, prompts={"query": "They ", "document": "It "}, truncate_dim=9)(folder),
            amended(POOLING, include_prompt=False)(folder),
            amended(TRANSFORMER, config_args={"hidden_act": "relu"})(folder),
        ][0],
        {"pooling": "mean"},
    ),
}
"""Changes of a checkpoint, and fields of its entry, for which the library is the reference."""
WITHOUT_EFFECT = {"dropout", "dot product of unit vectors", "same pooling"}


@pytest.mark.parametrize("name", FOLLOWED)
def test_settings_are_followed_as_by_the_library(name: str, folder: Path, tmp_path: Path) -> None:
    plain = embed_index(
        load_encoder(tiny_entry(folder), device="cpu"), DOCUMENTS, tiny_entry(folder)
    )
    change, fields = FOLLOWED[name]
    change(folder)
    entry = tiny_entry(folder, **fields)
    model = load_encoder(entry, device="cpu")
    reference = SentenceTransformer(str(folder), device="cpu")
    for each in (model, reload(model, entry, tmp_path / "saved")):
        documents = embed_index(each, DOCUMENTS, entry, progress=False)
        expected = reference.encode_document([text.sentence for text in DOCUMENTS])
        np.testing.assert_allclose(documents, expected, atol=1e-5)
        queries = embed_query_modes(each, QUERIES, entry)
        expected = reference.encode_query([text.sentence for text in QUERIES])
        np.testing.assert_allclose(queries["sentence"], expected, atol=1e-5)
        assert {len(vectors[0]) for vectors in queries.values()} == {len(expected[0])}
    if name not in WITHOUT_EFFECT:
        assert documents.shape != plain.shape or abs(documents - plain).max() > 1e-3


@pytest.mark.parametrize("fields", [{}, {"pooling": "mean"}])
def test_texts_are_lowercased(fields: dict[str, Any], tmp_path: Path) -> None:
    folder = save_tiny("llama", tmp_path / "tiny", pooling="mean")
    entry = tiny_entry(folder, end_token="", **fields)
    plain = embed_index(load_encoder(entry, device="cpu"), DOCUMENTS, entry, progress=False)
    amended(TRANSFORMER, do_lower_case=True)(folder)
    vectors = embed_index(load_encoder(entry, device="cpu"), DOCUMENTS, entry, progress=False)
    reference = SentenceTransformer(str(folder), device="cpu")
    reference.tokenizer.pad_token = reference.tokenizer.eos_token
    expected = reference.encode([text.sentence for text in DOCUMENTS])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert abs(vectors - plain).max() > 1e-3


def reload(model: SentenceTransformer, entry: Any, saved: Path) -> SentenceTransformer:
    """Save a model as training does, and load it again."""
    model.save(str(saved), create_model_card=False)
    return load_encoder(entry, weights=saved, device="cpu")


CONTRADICTIONS: dict[str, tuple[Change, dict[str, Any], str, str]] = {
    "pooling": (
        lambda folder: None,
        {"pooling": "cls"},
        "pooling",
        f"{POOLING}: pooling_mode is 'mean', but the entry has pooling 'cls'",
    ),
    "dense": (
        behind(dense()),
        {"pooling": "mean"},
        "pooling",
        "modules.json: type is 'Dense', but the entry has pooling 'mean' without it",
    ),
    "latent": (lambda folder: None, {"pooling": "latent"}, "", "entry has pooling 'latent'"),
    "query prompt": (
        amended(MODEL, prompts={"query": "q: "}),
        {"query_prefix": "other: "},
        "prompts",
        f"{MODEL}: prompts.query is 'q: ', but the entry has query_prefix 'other: '",
    ),
    "document prompt": (
        amended(MODEL, prompts={"document": "d: "}),
        {"passage_prefix": "other: "},
        "prompts",
        "prompts.document is 'd: ', but the entry has passage_prefix 'other: '",
    ),
    "prompt that the library ignores": (
        amended(MODEL, prompts={"passage": "d: "}),
        {},
        "prompts",
        "prompts.passage is 'd: ', but the entry has passage_prefix ''",
    ),
    "default prompt": (
        amended(MODEL, prompts={"any": "a: "}, default_prompt_name="any"),
        {},
        "default_prompt_name",
        "default_prompt_name is 'any', but the entry has no prompts for queries and documents",
    ),
    "dot": (
        lambda folder: [
            amended(MODEL, similarity_fn_name="dot")(folder),
            listed("Transformer", "Pooling")(folder),
        ][0],
        {},
        "similarity_fn_name",
        f"{MODEL}: similarity_fn_name is 'dot', but the entry has ranking by cosine",
    ),
    "dot of parts": (
        amended(MODEL, similarity_fn_name="dot", truncate_dim=8),
        {},
        "similarity_fn_name",
        "similarity_fn_name is 'dot'",
    ),
    "manhattan": (
        amended(MODEL, similarity_fn_name="manhattan"),
        {},
        "similarity_fn_name",
        "similarity_fn_name is 'manhattan'",
    ),
    "length": (
        amended(TRANSFORMER, max_seq_length=100),
        {},
        "max_seq_length",
        f"{TRANSFORMER}: max_seq_length is 100, but the entry has max_length 128",
    ),
    "length of the tokenizer": (
        lambda folder: [
            amended(TRANSFORMER, max_seq_length=None)(folder),
            amended("tokenizer_config.json", model_max_length=64)(folder),
        ][0],
        {},
        "max_seq_length",
        "tokenizer_config.json: model_max_length is 64",
    ),
    "length in the tokenizer's options": (
        amended(TRANSFORMER, processor_kwargs={"model_max_length": 8}),
        {},
        "max_seq_length",
        f"{TRANSFORMER}: model_max_length is 8, but the entry has max_length 128",
    ),
    "dtype of the configuration": (
        amended(TRANSFORMER, config_args={"torch_dtype": "float16"}),
        {},
        "dtype",
        f"{TRANSFORMER}: torch_dtype is 'float16', but the entry has dtype 'float32'",
    ),
    "dtype": (
        amended(TRANSFORMER, model_args={"torch_dtype": "bfloat16"}),
        {},
        "dtype",
        f"{TRANSFORMER}: torch_dtype is 'bfloat16', but the entry has dtype 'float32'",
    ),
}
"""Change, fields of the entry, name in `overrides`, and message."""


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_reported_before_anything_runs(name: str, folder: Path) -> None:
    change, fields, setting, message = CONTRADICTIONS[name]
    change(folder)
    entry = tiny_entry(folder, **fields)
    hint = rf"add overrides: \[{setting or 'pooling'}\] to it$"
    for check in (
        Project({"own": entry}, LLMSettings()).check_folder,
        lambda _: load_encoder(entry),
    ):
        with pytest.raises(UserError, match=re.escape(message)) as caught:
            check("own")
        assert re.search(hint, str(caught.value))
    if setting:
        model = load_encoder(tiny_entry(folder, overrides=[setting], **fields), device="cpu")
        embed_documents(model, SENTENCES, batch_size=3, progress=False)


def test_overridden_settings_have_no_effect(folder: Path) -> None:
    def vectors(**fields: Any) -> Any:
        entry = tiny_entry(folder, **fields)
        model = load_encoder(entry, device="cpu")
        queries = embed_query_modes(model, QUERIES, entry)["sentence"]
        return np.concatenate([embed_index(model, DOCUMENTS, entry, progress=False), queries])

    before = vectors()
    prompts = {"query": "They ", "document": "It "}
    amended(MODEL, truncate_dim=7, prompts=prompts, default_prompt_name="query")(folder)
    amended(POOLING, include_prompt=False)(folder)
    names = ["truncate_dim", "prompts", "include_prompt"]
    assert np.array_equal(vectors(overrides=names), before)
    assert np.array_equal(vectors(overrides=names, pooling="mean"), before)
    assert vectors(overrides=names[1:]).shape != before.shape


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (amended(MODEL, scale=20), f"{MODEL}: scale 20 is not supported"),
        (amended(MODEL, truncate_dim=0), "truncate_dim 0 is not supported"),
        (amended(MODEL, truncate_dim="64"), "truncate_dim '64' is not supported"),
        (amended(MODEL, model_type="SparseEncoder"), "model_type 'SparseEncoder' is not"),
        (amended(MODEL, prompts={"query": 1}), "prompts.query 1 is not supported"),
        (amended(MODEL, prompts=["a"]), "prompts ['a'] is not supported"),
        (amended(TRANSFORMER, other=1), f"{TRANSFORMER}: other 1 is not supported"),
        (
            amended(TRANSFORMER, processing_kwargs={"text": {"max_length": 4}}),
            "processing_kwargs {'text': {'max_length': 4}} is not supported",
        ),
        (amended(TRANSFORMER, transformer_task="fill-mask"), "transformer_task 'fill-mask'"),
        (amended(TRANSFORMER, query_length=9), "query_length 9 is not supported"),
        (
            amended(
                TRANSFORMER,
                modality_config={
                    "text": {"method": "forward", "method_output_name": "last_hidden_state"},
                    "message": {"method": "forward", "method_output_name": "last_hidden_state"},
                },
                module_output_name="token_embeddings",
            ),
            "modality_config {",
        ),
        (amended(POOLING, weights=1), f"{POOLING}: weights 1 is not supported"),
        (amended(POOLING, pooling_mode=["mean", "max"]), "pooling_mode 'mean+max' is not"),
        (amended(POOLING, pooling_mode=7), f"{POOLING}: pooling_mode 7 is not supported"),
        (
            amended(POOLING, pooling_mode_max_tokens=True),
            "pooling_mode 'max+mean' is not supported",
        ),
        (
            behind(dense(module_input_name="token_embeddings")),
            "module_input_name 'token_embeddings' is not supported",
        ),
        (
            lambda folder: [
                behind(dense())(folder),
                amended("5_Dense/config.json", activation_function="own.Activation")(folder),
            ][0],
            "activation_function 'own.Activation' is not supported",
        ),
        (listed("Transformer", "Pooling", "CNN"), "modules.json: type 'CNN' is not supported"),
        (listed("Transformer", "Pooling", "own.Head"), "type 'own.Head' is not supported"),
        (listed("StaticEmbedding", "Pooling"), "type 'StaticEmbedding' is not supported"),
        (
            lambda folder: write_json(
                folder / "modules.json",
                [{"type": "sentence_transformers.models.StaticEmbedding", "path": "0_Static"}],
            ),
            "modules.json: type 'StaticEmbedding' is not supported",
        ),
        (
            lambda folder: write_json(
                folder / "modules.json",
                [
                    {"type": "sentence_transformers.models.Transformer", "path": ""},
                    {"type": "sentence_transformers.models.Pooling", "path": 1},
                ],
            ),
            "not a list of modules",
        ),
        (listed("Transformer", "Normalize"), "the second module is not a pooling module"),
        (listed("Transformer", "WeightedLayerPooling", "Pooling"), "second module is not a pool"),
        (
            lambda folder: write_json(
                folder / "modules.json",
                [{"type": "sentence_transformers.Transformer", "path": "0"}],
            ),
            "modules.json: path '0' is not supported",
        ),
        (lambda folder: (folder / MODEL).write_text("[]"), "not a JSON object"),
        (lambda folder: (folder / "modules.json").write_text("{}"), "not a list of modules"),
    ],
)
def test_an_unsupported_setting_is_reported(change: Change, message: str, folder: Path) -> None:
    change(folder)
    entry = tiny_entry(folder)
    with pytest.raises(UserError, match=re.escape(message)):
        Project({"own": entry}, LLMSettings()).check_folder("own")
    with pytest.raises(UserError, match=re.escape(message)):
        load_encoder(entry, device="cpu")


def test_unmet_requirements_are_reported_with_a_pooling_too(folder: Path) -> None:
    amended(MODEL, requirements={"transformers": "<1"})(folder)
    for fields in ({}, {"pooling": "mean"}):
        with pytest.raises(UserError, match="transformers"):
            load_encoder(tiny_entry(folder, **fields), device="cpu")


def test_rankers_do_not_repeat_prompts(folder: Path) -> None:
    fields: dict[str, Any] = {
        "label": "x", "licence": "x", "checkpoint": "x", "source": "folder", "path": str(folder),
        "max_length": 128, "query_prefix": "q: ",
    }  # fmt: skip
    late = LateInteractionEntry(kind="late_interaction", **fields)
    reranker = RerankerEntry(kind="reranker", first_stage="bm25", **fields)
    amended(MODEL, prompts={"query": "query: "}, default_prompt_name="query")(folder)
    for entry in (late, reranker):
        with pytest.raises(UserError, match="prompts is 'query: ', but the entry has query_prefix"):
            Project({"own": entry}, LLMSettings()).check_folder("own")
        check_ranker_files(entry.model_copy(update={"query_prefix": ""}), folder, "x")
        check_ranker_files(entry.model_copy(update={"overrides": ("prompts",)}), folder, "x")
    amended(MODEL, default_prompt_name=None)(folder)
    check_ranker_files(reranker, folder, "x")
    longer = reranker.model_copy(update={"max_length": 9999})
    with pytest.raises(UserError, match="but the entry has max_length 9999"):
        check_ranker_files(longer, folder, "x")


def test_truncated_texts_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = tiny_entry(folder, max_length=8)
    embed_index(load_encoder(entry, device="cpu"), DOCUMENTS, entry)
    text = "3 of 3 texts exceed `max_length` (8 tokens) and are truncated"
    assert text in capsys.readouterr().err
    entry = tiny_entry(folder)
    embed_index(load_encoder(entry, device="cpu"), DOCUMENTS, entry)
    assert "truncated" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", POOLING, "vocab.txt"])
def test_a_git_lfs_pointer_is_named(name: str, folder: Path) -> None:
    (folder / name).write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 90868376\n"
    )
    entry = tiny_entry(folder)
    message = rf"{name}: a Git LFS pointer instead of the file; run `git lfs pull`"
    for check in (
        Project({"own": entry}, LLMSettings()).check_folder,
        lambda _: load_encoder(entry),
    ):
        with pytest.raises(UserError, match=message):
            check("own")
    assert weights_location(tiny_entry(folder.parent / "absent"))


def half_zero(folder: Path) -> None:
    path = folder / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))


def rows(name: str, first: int, last: int, values: Callable[[torch.Tensor], Any]) -> Change:
    """Return a function that replaces rows of a matrix."""

    def change(folder: Path) -> None:
        path = folder / "model.safetensors"
        tensors = load_file(path)
        matrix = tensors[name]
        matrix[first : last or len(matrix)] = values(matrix)
        save_file(tensors, path, metadata={"format": "pt"})

    return change


WORDS, QUERY = "embeddings.word_embeddings.weight", "encoder.layer.1.attention.self.query.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (half_zero, r"rows of .* are constant or repeated; download"),
        (rows(WORDS, 20, 0, lambda matrix: 0), r"rows of .*word_embeddings.weight are constant"),
        (rows(WORDS, 20, 0, lambda matrix: matrix[0]), "rows of .*word_embeddings.weight"),
        (rows(QUERY, 0, 0, lambda matrix: 0), f"32 of the 32 rows of .*{QUERY}"),
        (rows(QUERY, 30, 0, lambda matrix: 0), f"2 of the 32 rows of .*{QUERY}"),
        (rows(QUERY, 30, 0, lambda matrix: 0.5), f"2 of the 32 rows of .*{QUERY}"),
        (rows(QUERY, 3, 4, lambda matrix: torch.nan), "not finite"),
        (
            rows(QUERY, 0, 0, lambda matrix: torch.cat([matrix[:, :16], 0 * matrix[:, 16:]], 1)),
            f"16 of the 32 columns of .*{QUERY}",
        ),
    ],
)
def test_weights_that_training_does_not_leave(change: Change, message: str, folder: Path) -> None:
    change(folder)
    with pytest.raises(UserError, match=message):
        load_encoder(tiny_entry(folder), device="cpu")


def test_unused_words_may_have_no_weights(folder: Path) -> None:
    rows(WORDS, 0, 2, lambda matrix: 0)(folder)
    load_encoder(tiny_entry(folder), device="cpu")


def test_a_copied_checkpoint_equals_its_original(folder: Path, tmp_path: Path) -> None:
    """The files that the library itself writes are accepted."""
    saved = tmp_path / "saved"
    SentenceTransformer(str(folder), device="cpu").save(str(saved))
    shutil.rmtree(folder)
    load_encoder(tiny_entry(saved), device="cpu")
