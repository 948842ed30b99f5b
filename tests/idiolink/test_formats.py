"""Instruction formats: the exact text, and the exact tokens of span and instruction."""

import pytest
import torch
from support import ROOT

from pieline.core.errors import UserError
from pieline.models.embedder import RELEASED_INPUTS, EmbedderEntry
from pieline.models.registry import load_registry
from pieline.studies.idiolink.predictions.embedding import instruction_mask
from pieline.studies.idiolink.predictions.query_texts import (
    INSTRUCTION_FORMATS,
    document_text,
    query_text,
)
from pieline.studies.idiolink.records import Document, Query

SENTENCE = "To break the ice, they did break the ice today."
INSTRUCTION = (
    "Based on the literal/idiomatic usage of the span 'break the ice' in the query, retrieve "
    "documents that contain a span conveying the same conceptual meaning."
)
TEXTS = {
    "instruction_newline_query": f"{INSTRUCTION}\nQuery: {SENTENCE}",
    "instruct_query": f"Instruct: {INSTRUCTION}\nQuery: {SENTENCE}",
    "instruct_query_unspaced": f"Instruct: {INSTRUCTION}\nQuery:{SENTENCE}",
    "instruction_space_query": f"{INSTRUCTION} {SENTENCE}",
    "instruction_sep_query": f"{INSTRUCTION} [SEP] {SENTENCE}",
    "instruction_query_pair": f"{INSTRUCTION}{SENTENCE}",
    "nomic_search_query": f"search_query: {INSTRUCTION}\nQuery: {SENTENCE}",
    "gemma_instruct_query": f"<instruct>{INSTRUCTION}\n<query>{SENTENCE}",
    "gritlm_user_embed": f"<|user|>\n{INSTRUCTION}\n<|embed|>\n{SENTENCE}",
    "represent_sentence_query": "Represent this sentence for searching relevant passages: "
    + SENTENCE,
    "search_query": f"search_query: {SENTENCE}",
}
# Format, prefix of a plain query, prefix of a document.
ENTRIES = {
    "sbert": ("instruction_newline_query", "", ""),
    "contriever": ("instruction_newline_query", "", ""),
    "e5-base-v2": ("instruction_newline_query", "", ""),
    "drama-1b": ("instruction_newline_query", "", ""),
    "stella-1.5b-v5": ("instruct_query", "", ""),
    "tart-contriever": ("instruction_sep_query", "", ""),
    "bge-base-en-v1.5": ("instruction_space_query", "", ""),
    "instructor-base": ("instruction_query_pair", "", ""),
    "nomic-v2-moe": ("nomic_search_query", "search_document: ", "search_document: "),
    "bge-m3": ("instruction_newline_query", "", ""),
    "multilingual-e5-large-instruct": ("instruct_query", "", ""),
    "qwen3-embedding-0.6b": ("instruct_query_unspaced", "", ""),
    "instructor-xl": ("instruction_query_pair", "", ""),
    "lychee-embed": ("instruct_query_unspaced", "", ""),
    "gte-qwen2-1.5b": ("instruct_query", "", ""),
    "qwen3-embedding-4b": ("instruct_query_unspaced", "", ""),
    "linq-embed-mistral": ("instruct_query", "", ""),
    "sfr-embedding-mistral": ("instruct_query", "", ""),
    "e5-mistral": ("instruct_query", "", ""),
    "gritlm-7b": ("gritlm_user_embed", "<|embed|>\n", "<|embed|>\n"),
    "gte-qwen2-7b": ("instruct_query", "", ""),
    "qwen3-embedding-8b": ("instruct_query_unspaced", "", ""),
    "llama-embed-nemotron-8b": ("instruct_query", "", ""),
    "bge-multilingual-gemma2": ("gemma_instruct_query", "", ""),
}
# The authors' code: formats for sentences and spans, query prefixes, document prefix.
SPACED, UNSPACED = (
    (("instruct_query",) * 2, ("", ""), ""),
    (("instruct_query_unspaced",) * 2, ("", ""), ""),
)
PAIR = (("instruction_query_pair", "instruction_newline_query"), ("", ""), "")
RELEASED = {
    **dict.fromkeys(["sbert", "contriever", "drama-1b", "stella-1.5b-v5", "bge-m3"], SPACED),
    **dict.fromkeys(["e5-base-v2", "gte-qwen2-1.5b", "gte-qwen2-7b", "e5-mistral"], SPACED),
    **dict.fromkeys(["sfr-embedding-mistral", "multilingual-e5-large-instruct"], SPACED),
    **dict.fromkeys([f"qwen3-embedding-{size}" for size in ("0.6b", "4b", "8b")], UNSPACED),
    **dict.fromkeys(["lychee-embed", "linq-embed-mistral", "llama-embed-nemotron-8b"], UNSPACED),
    **dict.fromkeys(["instructor-base", "instructor-xl"], PAIR),
    "bge-base-en-v1.5": (("represent_sentence_query",) * 2, ("", ""), ""),
    "tart-contriever": (("instruction_sep_query",) * 2, ("", ""), ""),
    "nomic-v2-moe": (("search_query",) * 2, ("search_document: ", ""), "search_document: "),
    "bge-multilingual-gemma2": (("gemma_instruct_query",) * 2, ("", ""), ""),
    "gritlm-7b": (("gritlm_user_embed",) * 2, ("<|embed|>\n",) * 2, "<|embed|>\n"),
}
LEFT_OUT_OF_POOLING = {
    "instruction_query_pair": INSTRUCTION,
    "gritlm_user_embed": f"<|user|>\n{INSTRUCTION}\n<|embed|>\n",
}
REMOTE_CODE = {"nomic-v2-moe", "llama-embed-nemotron-8b"}


@pytest.fixture(scope="module")
def embedders() -> dict[str, EmbedderEntry]:
    registry = load_registry(ROOT / "models.yaml")
    return {name: entry for name, entry in registry.items() if isinstance(entry, EmbedderEntry)}


def query() -> Query:
    return Query(
        id="q", sentence=SENTENCE, pie="break the ice", span="break the ice", subject="Food",
        is_gold=False, usage="idiomatic",
    )  # fmt: skip


def test_every_embedder_of_the_paper_has_its_format(embedders: dict[str, EmbedderEntry]) -> None:
    published = {name for name, entry in embedders.items() if entry.published_as}
    assert published == set(ENTRIES)
    assert len(published) == 24
    assert set(TEXTS) == set(INSTRUCTION_FORMATS)


@pytest.mark.parametrize("name", ENTRIES)
def test_exact_texts(embedders: dict[str, EmbedderEntry], name: str) -> None:
    format_name, query_prefix, passage_prefix = ENTRIES[name]
    entry = embedders[name].with_inputs("paper")
    assert query_text(query(), entry, instructed=True).text == TEXTS[format_name]
    assert query_text(query(), entry, instructed=False).text == query_prefix + SENTENCE
    document = Document(**query().model_dump())
    assert document_text(document, entry).text == passage_prefix + SENTENCE


@pytest.mark.parametrize("name", ENTRIES)
def test_exact_texts_of_the_released_code(embedders: dict[str, EmbedderEntry], name: str) -> None:
    entry = embedders[name].with_inputs("released")
    formats, prefixes, passage_prefix = RELEASED[name]
    for by_span, (form, prefix) in enumerate(zip(formats, prefixes, strict=True)):
        instructed = query_text(query(), entry, instructed=True, by_span=bool(by_span))
        assert instructed.text == TEXTS[form]
        plain = query_text(query(), entry, instructed=False, by_span=bool(by_span))
        assert plain.text == prefix + SENTENCE
        for text in (instructed, plain):
            assert text.text[slice(*text.span)] == "break the ice"
    document = Document(**query().model_dump())
    assert document_text(document, entry).text == passage_prefix + SENTENCE
    changed = entry.execution_spec() != embedders[name].with_inputs("paper").execution_spec()
    assert changed is (embedders[name].published_as in RELEASED_INPUTS)


def test_an_instruction_that_fills_the_input_is_an_error() -> None:
    offsets = torch.tensor([[[0, 0], [0, 4], [5, 9]]])
    with pytest.raises(UserError, match="instruction fills the model's input"):
        instruction_mask(offsets, [20])


def test_remote_code_runs_only_without_a_library_class(
    embedders: dict[str, EmbedderEntry],
) -> None:
    assert {name for name, entry in embedders.items() if entry.trust_remote_code} == REMOTE_CODE
    bidirectional = {name for name, entry in embedders.items() if entry.bidirectional}
    assert bidirectional == {
        "drama-1b", "stella-1.5b-v5", "gte-qwen2-1.5b", "gte-qwen2-7b", "gritlm-7b",
        "llama-embed-nemotron-8b",
    }  # fmt: skip
