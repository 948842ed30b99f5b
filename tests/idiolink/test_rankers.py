"""Rerankers and late interaction, compared with plain transformers, and in the study."""

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from idiolink_cases import REGISTRY, inputs_of_table, study
from run_script import run_script
from safetensors.torch import load_file, save_file
from test_formats import SENTENCE, TEXTS
from test_standins import DOCUMENTS, QUERIES
from test_wide_tables import made, metrics, written
from tiny_models import WORDS, save_tiny
from tokenizers import Tokenizer, processors
from transformers import AutoConfig, AutoModelForSequenceClassification, BertModel

from pieline.core.conditions import Conditions
from pieline.core.errors import UserError
from pieline.core.files import write_json
from pieline.core.records import save_jsonl, validated
from pieline.models.registry import ENTRY, AnyEntry
from pieline.studies.idiolink import files as idiolink_files
from pieline.studies.idiolink import runs as idiolink_runs
from pieline.studies.idiolink.predictions.query_texts import text_in_mode
from pieline.studies.idiolink.predictions.rankers import (
    load_late_interaction,
    load_reranker,
    query_token_vectors,
)
from pieline.studies.idiolink.predictions.rankings import RankedRun, read_run, write_run
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.study import IdiolinkStudy
from pieline.studies.idiolink.tables.zero_shot import ZERO_SHOT_TABLE
from rehearsal.weights.anatomy import Anatomy
from rehearsal.weights.checkpoints import save_checkpoint

PAIRS = {
    "bert": "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
    "xlm-roberta": "<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0",
}
"""Special tokens and token types that public cross-encoders add to a pair of texts."""
KEPT = DOCUMENTS[:2]
"""Documents kept by the first stage, out of the first three."""
RERANKER = {"kind": "reranker", "first_stage": "bm25"}


def entry(folder: Path | str = ".", **fields: Any) -> Any:
    """Return a models.yaml entry for a folder."""
    defaults = {"label": "Tiny", "licence": "CC0-1.0", "checkpoint": "tiny", "source": "folder"}
    defaults |= {"path": str(folder), "max_length": 512, "batch_size": 3}
    return validated(ENTRY, defaults | fields, where="entry", hint="")


def save_reranker(family: str, folder: Path, *, scores: int = 1) -> Path:
    """Write a tiny cross-encoder with the class and pair format of a public one."""
    save_tiny(family, folder)
    torch.manual_seed(1)
    model = AutoModelForSequenceClassification.from_config(
        AutoConfig.from_pretrained(folder, num_labels=scores)
    )
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    place = str(folder / "tokenizer.json")
    tokenizer = Tokenizer.from_file(place)
    names = {part.partition(":")[0] for part in PAIRS[family].split()} - {"$A", "$B"}
    tokenizer.post_processor = processors.TemplateProcessing(
        pair=PAIRS[family], special_tokens=[(name, tokenizer.token_to_id(name)) for name in names]
    )
    tokenizer.save(place)
    return folder


def logits(family: str, folder: Path) -> Callable[[str, str], float]:
    """Return a function that scores a pair of texts, unpadded, with plain transformers."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()

    def score(query: str, document: str) -> float:
        tokens = []
        for part in PAIRS[family].split():
            name, kind = part.split(":")
            text = {"$A": query, "$B": document}.get(name)
            ids = (
                tokenizer.encode(text, add_special_tokens=False).ids
                if text
                else [tokenizer.token_to_id(name)]
            )
            tokens += [(number, int(kind)) for number in ids]
        ids, types = torch.tensor(tokens).T.unsqueeze(1)
        with torch.inference_mode():
            return float(model(input_ids=ids, token_type_ids=types).logits)

    return score


def run_of(script: str, ranker: Any, mode: str, folder: Path) -> RankedRun:
    """Return the run that a script writes for the queries in a mode."""
    first = {query.id: {text.id: 1.0 for text in KEPT} for query in QUERIES}
    write_run(folder / "first.run.gz", first, tag="first")
    save_jsonl(folder / "documents.jsonl", DOCUMENTS[:3])
    save_jsonl(folder / "queries.jsonl", QUERIES)
    run_script(
        script,
        input={
            "first_stage": folder / "first.run.gz",
            "documents": folder / "documents.jsonl",
            "queries": folder / "queries.jsonl",
        },
        output=[folder / f"{mode}.run.gz"],
        params={"spec": ranker.execution_spec()},
        wildcards={"model": "tiny", "query_mode": mode},
    )
    return read_run(folder / f"{mode}.run.gz")


def run_script_of_all_modes(ranker: Any, folder: Path) -> dict[str, RankedRun]:
    """Return the runs of late interaction by query mode."""
    save_jsonl(folder / "documents.jsonl", DOCUMENTS[:3])
    save_jsonl(folder / "queries.jsonl", QUERIES)
    runs = {mode: folder / mode / "seed-0.run.gz" for mode in QUERY_MODES}
    run_script(
        "late_interaction",
        input={name: folder / f"{name}.jsonl" for name in ("documents", "queries")},
        output=list(runs.values()),
        params={"spec": ranker.execution_spec(), "top_k": 3},
        wildcards={"model": "tiny"},
    )
    return {mode: read_run(path) for mode, path in runs.items()}


@pytest.mark.parametrize("family", PAIRS)
def test_a_reranker_equals_plain_transformers(family: str, tmp_path: Path) -> None:
    folder = save_reranker(family, tmp_path / "weights")
    reference = logits(family, folder)
    ranker = entry(folder, **RERANKER, passage_prefix="It: ")
    instruction = TEXTS["instruction_newline_query"].removesuffix(SENTENCE)
    for mode in ("sentence", "instruction_sentence"):
        scores = run_of("rerank", ranker, mode, tmp_path)
        for query in QUERIES:
            head = instruction.replace("break the ice", query.span) if mode != "sentence" else ""
            expected = {
                text.id: reference(head + query.sentence, f"It: {text.sentence}") for text in KEPT
            }
            assert scores[query.id] == pytest.approx(expected, abs=1e-5)
            assert list(scores[query.id]) == sorted(expected, key=lambda name: -expected[name])


def test_a_model_not_trained_for_ranking_gives_a_one_line_error(tmp_path: Path) -> None:
    save_tiny("bert", tmp_path / "encoder")
    with pytest.raises(UserError, match=r"2 of the model's weights are missing.*classifier"):
        load_reranker(entry(tmp_path / "encoder", **RERANKER))
    save_reranker("bert", tmp_path / "classifier", scores=2)
    with pytest.raises(UserError, match="2 scores per pair of texts"):
        load_reranker(entry(tmp_path / "classifier", **RERANKER))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"pickled": True}, "need safetensors"),
        ({"source": "hub", "path": None}, "source 'hub' needs a 'revision'"),
        ({"code_revision": "abc"}, "models of this kind do not support 'code_revision'"),
    ],
)
def test_weights_are_pinned_safetensors(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        entry(**RERANKER, **fields)


COLBERT = {
    "query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_maxlen": 32,
    "doc_maxlen": 12, "mask_punctuation": True, "attend_to_mask_tokens": False,
}  # fmt: skip
LATE = {"kind": "late_interaction", "instruction_format": "instruction_space_query"}


def save_colbert(folder: Path, *, projects: bool = True) -> Path:
    """Write a tiny ColBERTv2 with its files, markers and query expansion."""
    save_checkpoint(Anatomy("bert", hidden=32), folder, words=("[unused0]", "[unused1]", *WORDS))
    weights = load_file(folder / "model.safetensors")
    tensors = {f"bert.{name}": tensor for name, tensor in weights.items()}
    if projects:
        torch.manual_seed(2)
        tensors["linear.weight"] = torch.randn(8, 32)
        write_json(folder / "artifact.metadata", COLBERT)
        config = json.loads((folder / "config.json").read_text())
        write_json(folder / "config.json", config | {"architectures": ["HF_ColBERT"]})
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


class ColBert:
    """ColBERTv2 in plain transformers, with one unpadded text at a time."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.model = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
        self.weight = load_file(folder / "model.safetensors")["linear.weight"]
        self.skipped = {self.tokenizer.token_to_id(sign) for sign in string.punctuation}

    def vectors(self, marker: str, text: str, length: int = 0) -> tuple[list[int], torch.Tensor]:
        """Return the tokens and unit vectors of a text between its marker and `length`."""
        pieces = self.tokenizer.encode(text, add_special_tokens=False).ids
        named = [self.tokenizer.token_to_id(name) for name in ("[CLS]", marker, "[SEP]", "[MASK]")]
        ids = [*named[:2], *pieces, named[2]]
        mask = [1] * len(ids) + [0] * (length - len(ids))
        ids += [named[3]] * (length - len(ids))
        with torch.inference_mode():
            hidden = self.model(
                input_ids=torch.tensor([ids]), attention_mask=torch.tensor([mask])
            ).last_hidden_state[0]
        return ids, torch.nn.functional.normalize(hidden @ self.weight.T, dim=-1)

    def score(self, query: torch.Tensor, document: str) -> float:
        """Return the MaxSim of a query's vectors with a document, ignoring its punctuation."""
        ids, vectors = self.vectors("[unused1]", document)
        kept = vectors[[number not in self.skipped for number in ids]]
        return float((query @ kept.T).max(dim=1).values.sum())

    def query(self, head: str, text: str, span: tuple[int, int] | None) -> torch.Tensor:
        """Return the vectors of a query, expanded to 32 tokens, or of its span."""
        vectors = self.vectors("[unused0]", head + text, 32)[1]
        if not span:
            return vectors
        encoding = self.tokenizer.encode(head + text, add_special_tokens=False)
        first, last = len(head) + span[0], len(head) + span[1]
        places = [2 + n for n, (a, b) in enumerate(encoding.offsets) if a < last and b > first]
        return vectors[places]


def test_late_interaction_equals_plain_transformers(tmp_path: Path) -> None:
    folder = save_colbert(tmp_path / "weights")
    reference = ColBert(folder)
    ranker = entry(folder, **LATE, query_prefix="Query: ", passage_prefix="It: ")
    instruction = TEXTS["instruction_space_query"].removesuffix(SENTENCE)
    runs = run_script_of_all_modes(ranker, tmp_path)
    assert sorted(runs) == sorted(QUERY_MODES)
    for mode, run in runs.items():
        for query in QUERIES:
            instructed = mode.startswith("instruction")
            head = instruction.replace("break the ice", query.span) if instructed else "Query: "
            find = query.sentence.rindex if instructed else query.sentence.index
            start = find(query.span)
            span = (start, start + len(query.span)) if mode.endswith("span") else None
            vectors = reference.query(head, query.sentence, span)
            expected = {
                text.id: reference.score(vectors, f"It: {text.sentence}") for text in DOCUMENTS[:3]
            }
            assert run[query.id] == pytest.approx(expected, rel=1e-6)


def test_a_checkpoint_without_a_projection_gives_a_one_line_error(tmp_path: Path) -> None:
    folder = save_colbert(tmp_path / "weights", projects=False)
    with pytest.raises(UserError, match="tiny: the checkpoint has no projection of token vectors"):
        load_late_interaction(entry(folder, **LATE))


def test_a_span_beyond_the_input_limit_gives_a_one_line_error(tmp_path: Path) -> None:
    model = load_late_interaction(entry(save_colbert(tmp_path / "weights"), **LATE, max_length=33))
    text = text_in_mode(QUERIES[1], entry(**LATE), "instruction_sentence")
    with pytest.raises(UserError, match="the span is beyond the model's limit of 33 tokens"):
        query_token_vectors(model, [text], batch_size=1)


def ranked(own: dict[str, AnyEntry], **settings: Any) -> IdiolinkStudy:
    """Return the study with these models."""
    return study(own=own, **{"models": list(own)} | settings)


def api_embedder(**fields: Any) -> Any:
    """Return a models.yaml entry of an API embedder."""
    defaults = {"kind": "embedder", "source": "api", "label": "API", "licence": "none"}
    defaults |= {"litellm_id": "openai/embed", "provider": "openai", "api_key_env": "TEST_KEY"}
    defaults |= {"prices": "free", "trained_with_instructions": False}
    return validated(ENTRY, defaults | fields, where="entry", hint="")


class TestStudy:
    @pytest.fixture(autouse=True)
    def in_the_folder_of_a_model(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "config.json").write_text("{}")
        monkeypatch.chdir(tmp_path)

    def test_a_reranker_uses_the_runs_of_its_first_stage(self) -> None:
        over_bm25 = entry(**RERANKER)
        own = {"over-bm25": over_bm25}
        own["over-sbert"] = over_bm25.model_copy(update={"first_stage": "sbert"})
        idiolink = ranked(own)
        place = "results/predictions/idiolink/test-lit_idiom/{}/{}/seed-0.run.gz".format
        asked = ("test-lit_idiom", "instruction_sentence")
        # BM25 ignores instructions.
        assert idiolink_files.first_stage_run(idiolink, "over-bm25", *asked) == place(
            "bm25", "sentence"
        )
        assert idiolink_files.first_stage_run(idiolink, "over-sbert", *asked) == place(
            "sbert", asked[1]
        )
        labels = [model.label for model in idiolink.project.describe_models(own)]
        assert labels == ["Tiny (over BM25)", f"Tiny (over {REGISTRY['sbert'].label})"]

    def test_models_without_token_vectors_have_no_span_modes(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TEST_KEY", "key")
        own = {"api": api_embedder(), "rr": entry(**RERANKER), "late": entry(**LATE)}
        idiolink = ranked(own)
        modes = {model: idiolink_runs.modes_of(idiolink, model) for model in own}
        sentences = ["sentence", "instruction_sentence"]
        assert modes == {"api": sentences, "rr": sentences, "late": list(QUERY_MODES)}
        planned = inputs_of_table(idiolink, "zero_shot").left_out()
        left_out = {(run.keys["model"], run.keys["query_mode"]): run.not_run for run in planned}
        spans = ("span", "instruction_span")
        assert left_out == {
            **{("api", mode): "token vectors are not available" for mode in spans},
            **{("rr", mode): "a reranker scores pairs of whole texts" for mode in spans},
        }

    def test_without_key_and_recordings_a_row_has_a_reason(self, tmp_path: Path) -> None:
        own = {"api": api_embedder(), "rr": entry(**RERANKER | {"first_stage": "api"})}
        idiolink = ranked(own)
        reason = "nothing is recorded, and the environment variable TEST_KEY is not set"
        assert {run.model: run.impossible_because for run in idiolink.plan} == {
            "api": reason,
            "rr": f"api: {reason}",
        }
        assert idiolink.llm_tasks()[-1].tasks() == idiolink.plan.made() == []
        content = made(ZERO_SHOT_TABLE, inputs_of_table(idiolink, "zero_shot"))
        shown = {row.labels[0]: row.reason for row in content.groups[-1].rows}
        assert shown == {"API": reason, "Tiny (over API)": f"api: {reason}"}

    def test_an_api_embedder_cannot_be_fine_tuned(self) -> None:
        with pytest.raises(UserError, match=r"finetuning\.models: 'api' is an API model"):
            ranked({"api": api_embedder()}, finetuning={"models": ["api"]})

    def test_the_first_stage_is_part_of_the_conditions(self) -> None:
        def conditions(first: str, **settings: Any) -> Conditions:
            idiolink = ranked({"rr": entry(**RERANKER | {"first_stage": first})}, **settings)
            return idiolink_runs.conditions(idiolink, "rr")

        changed = conditions("bm25", bm25={"k1": [0.9]})
        assert changed.settings["first_stage"]["k1"] == [0.9]
        assert len(changed.deviations) == 1
        assert conditions("sbert", bm25={"k1": [0.9]}) == conditions("sbert")
        assert conditions("bm25") not in (changed, conditions("sbert"))

    @pytest.mark.parametrize(
        ("first", "settings", "problem"),
        [
            ("bm-25", {}, "rr.first_stage: unknown model 'bm-25'; did you mean 'bm25'"),
            ("gpt-4o-mini", {}, "rr.first_stage: model 'gpt-4o-mini' is of kind 'llm'"),
            (
                "bge-m3",
                {"models": ["rr", "bge-m3"], "leave_out": {"bge-m3": "no GPU"}},
                "'bge-m3' is left out, but 'rr' reranks its results",
            ),
        ],
    )
    def test_an_invalid_first_stage(
        self, first: str, settings: dict[str, Any], problem: str
    ) -> None:
        with pytest.raises(UserError, match=problem):
            ranked({"rr": entry(**RERANKER | {"first_stage": first})}, **settings)

    def test_span_modes_are_empty_with_a_reason(self, tmp_path: Path) -> None:
        idiolink = ranked({"rr": entry(**RERANKER)})
        path = tmp_path / "sentence.json"
        write_json(path, metrics("rr", "sentence", (50, 60)).model_dump())
        shown = inputs_of_table(idiolink, "zero_shot")
        inputs = shown.model_copy(update={"metrics": (str(path),)})
        cells = {
            row["query_mode"]: (row["ours"], row["reason"])
            for row in written(ZERO_SHOT_TABLE, inputs, tmp_path)[1]
            if (row["model"], row["measure"]) == ("rr", "ndcg_at_10")
        }
        assert cells["sentence"][0] == "60.00"
        assert cells["span"][0] == ""
        assert cells["span"][1].startswith("a reranker scores pairs of whole texts")
