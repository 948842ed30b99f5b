"""Small versions of the paper's 24 embedders: the library compared with plain transformers.

A stand-in has the architecture of the public checkpoint (tiny_models.py) and its models.yaml entry.
The reference encodes one unpadded text at a time, with the special tokens, attention and modules
used in training.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from support import ROOT
from test_formats import ENTRIES, LEFT_OUT_OF_POOLING, SENTENCE, TEXTS

from pieline.core.errors import UserError
from pieline.models.embedder import ConfiguredEmbedder
from pieline.models.registry import load_registry
from pieline.studies.idiolink.predictions.embedding import embed_index, embed_query_modes
from pieline.studies.idiolink.predictions.encoders import load_encoder
from pieline.studies.idiolink.predictions.vectors import Vectors
from pieline.studies.idiolink.records import Document, Query
from rehearsal.weights.anatomy import ANATOMY, Anatomy
from rehearsal.weights.checkpoints import save_checkpoint, save_code
from rehearsal.weights.vocabularies import tokenizer_of

QUERIES = [
    Query(
        id=f"q{place}", sentence=sentence, span=span, pie="break the ice", subject="Food",
        is_gold=False, usage="idiomatic",
    )
    for place, (sentence, span) in enumerate([
        ("They broke the ice with a joke.", "broke the ice"),
        ("To break the ice, they did break the ice today.", "break the ice"),
        ("Melted in water — “über-cool” — and then the ice broke: it's 32°.", "the ice broke"),
        ("A joke.", "A joke"),
    ])
]  # fmt: skip
DOCUMENTS = [
    Document(**QUERIES[0].model_dump() | {"id": f"d{place}", "sentence": sentence, "span": "it"})
    for place, sentence in enumerate([
        "In it melted.",
        "And then the warm water broke the ice in it, they joke with a query.",
        "They broke the ice with a joke: it — “melted”.",
        # Exceeds every model's limit: the text is truncated, but not the end token.
        f"So it melted{' in warm water, and then it broke' * 80}.",
    ])
]  # fmt: skip


@dataclass(frozen=True)
class Reference:
    """Embeddings of the texts, computed with plain transformers.

    Attributes:
        name: Name of the entry.
        entry: Entry of the stand-in.
        anatomy: Architecture of the stand-in.
    """

    name: str
    entry: ConfiguredEmbedder
    anatomy: Anatomy

    def vectors(self) -> dict[str, Vectors]:
        """Return the vectors of the documents, and of the queries by mode."""
        form, query_prefix, passage_prefix = ENTRIES[self.name]
        rows = {
            "documents": [
                self._read(passage_prefix, document.sentence)[0] for document in DOCUMENTS
            ]
        }
        for query in QUERIES:
            instruction = TEXTS[form].removesuffix(SENTENCE).replace("break the ice", query.span)
            for mode, head, start in (
                ("", query_prefix, query.sentence.index(query.span)),
                ("instruction_", instruction, query.sentence.rindex(query.span)),
            ):
                of_sentence, part = self._read(head, query.sentence, start, start + len(query.span))
                rows.setdefault(f"{mode}sentence", []).append(of_sentence)
                rows.setdefault(f"{mode}span", []).append(part)
        return {mode: torch.stack(of_mode).numpy() for mode, of_mode in rows.items()}

    def _read(
        self, head: str, text: str, start: int = 0, end: int = 1
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the vectors of a text after its prefix, and of its characters `start` to `end`."""
        encoding = self._tokenizer.encode(head + text, add_special_tokens=False)
        around = self.anatomy.trained or self.anatomy.written
        before, after = (
            [self._tokenizer.token_to_id(token) for token in part.split()]
            for part in around.split("$A")
        )
        room = self.entry.max_length - len(before) - len(after)
        ids = torch.tensor([before + encoding.ids[:room] + after])
        # A bidirectional decoder gets an explicit attention mask rather than a flag.
        mask = torch.zeros(1, 1, ids.shape[1], ids.shape[1]) if self.anatomy.sees_ahead else None
        with torch.inference_mode():
            hidden = self._model(input_ids=ids, attention_mask=mask).last_hidden_state[0]
        places = dict(enumerate(encoding.offsets[:room], start=len(before)))
        first = 0
        if head and ENTRIES[self.name][0] in LEFT_OUT_OF_POOLING:
            first = min(place for place, (_, past) in places.items() if past > len(head))
        poolings = {"mean": hidden[first:].mean(dim=0), "cls": hidden[0], "lasttoken": hidden[-1]}
        start, end = len(head) + start, len(head) + end
        inside = [place for place, (one, past) in places.items() if one < end and past > start]
        part = hidden[inside].mean(dim=0)
        pooled = poolings[self.anatomy.pooling or "mean"]
        return self._finish(pooled), self._finish(part)

    def _finish(self, vector: torch.Tensor) -> torch.Tensor:
        """Apply the modules that follow the pooling."""
        if self.anatomy.dense:
            weights = load_file(Path(str(self.entry.path)) / "2_Dense/model.safetensors")
            vector = weights["linear.weight"] @ vector
            if self.anatomy.dense[1]:
                vector = vector + weights["linear.bias"]
        return vector / vector.norm()

    @cached_property
    def _tokenizer(self) -> Any:
        return tokenizer_of(self.anatomy)

    @cached_property
    def _model(self) -> Any:
        kind = getattr(self.anatomy.kind.code, self.anatomy.kind.model)
        return kind.from_pretrained(
            self.entry.path, attn_implementation="eager", dtype=torch.float32
        ).eval()


class StandIns:
    """Stand-ins in a folder, written on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._registry = load_registry(ROOT / "models.yaml")

    def entry(self, name: str, **fields: Any) -> ConfiguredEmbedder:
        """Return the models.yaml entry, with the folder and precision of the stand-in."""
        folder = self._folder / name
        if not folder.exists():
            anatomy = ANATOMY[name]
            if anatomy.code_in:
                code = folder.with_name(f"{name}-code")
                save_code(code)
                anatomy = replace(anatomy, code_in=str(code))
            save_checkpoint(anatomy, folder)
        place = {"source": "folder", "path": str(folder), "dtype": "float32"}
        stated = self._registry[name].model_dump(exclude_unset=True)
        return ConfiguredEmbedder.model_validate(stated | place | fields)


def embedded(entry: ConfiguredEmbedder) -> dict[str, Vectors]:
    """Return the library's vectors of the texts."""
    model = load_encoder(entry, device="cpu")
    documents = embed_index(model, DOCUMENTS, entry, progress=False)
    vectors = {"documents": documents, **embed_query_modes(model, QUERIES, entry)}
    # Rankings use cosines, so a Normalize module makes no difference.
    return {mode: rows / np.linalg.norm(rows, axis=1)[:, None] for mode, rows in vectors.items()}


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIns]:
    folder, threads = tmp_path_factory.mktemp("stand-ins"), torch.get_num_threads()
    # Tiny models are slower on two threads.
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        # Folder to which transformers copies the code of a checkpoint.
        patch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(folder / "code"))
        yield StandIns(folder)
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", ANATOMY)
def test_every_embedder_equals_its_reference(stand_ins: StandIns, name: str) -> None:
    assert list(ANATOMY) == list(ENTRIES)
    entry = stand_ins.entry(name)
    expected = Reference(name, entry, ANATOMY[name]).vectors()
    vectors = embedded(entry)
    assert vectors.keys() == expected.keys()
    for mode, rows in vectors.items():
        np.testing.assert_allclose(rows, expected[mode], rtol=0, atol=1e-5, err_msg=mode)


def test_only_the_checkpoint_code_has_experts(stand_ins: StandIns) -> None:
    with pytest.raises(UserError, match="weights are missing or have a different shape"):
        load_encoder(stand_ins.entry("nomic-v2-moe", trust_remote_code=False), device="cpu")


def test_causal_attention_gives_a_one_line_error(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This simulates a version of transformers that reads a different flag."""
    deaf = property(lambda config: True, lambda config, value: None)
    monkeypatch.setattr("transformers.MistralConfig.is_causal", deaf, raising=False)
    with pytest.raises(UserError, match="bidirectional"):
        load_encoder(stand_ins.entry("gritlm-7b"), device="cpu")
