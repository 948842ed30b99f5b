"""Training tuples, losses, and trainings that give the same result after interruptions."""

import json
import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from run_script import start_script
from support import MIRROR, ROOT, needs_mirror
from tiny_models import SENTENCES, save_tiny, tiny_entry

from pieline.core.errors import UserError
from pieline.core.records import save_jsonl
from pieline.models.embedder import ConfiguredEmbedder
from pieline.studies.idiolink.datasets.dataset import (
    RELEVANT_USAGES,
    IdiolinkDataset,
    meaning_qrels,
)
from pieline.studies.idiolink.datasets.tuples import (
    TrainingTuple,
    read_released_tuples,
    sample_tuples,
)
from pieline.studies.idiolink.metrics.validation import ndcg_at_10
from pieline.studies.idiolink.predictions.embedding import TokenizedTexts, embed_queries
from pieline.studies.idiolink.predictions.encoders import (
    load_encoder,
    save_folder,
    weights_digests,
)
from pieline.studies.idiolink.predictions.query_texts import QueryText
from pieline.studies.idiolink.raw import read_texts
from pieline.studies.idiolink.records import Document, Query
from pieline.studies.idiolink.training import contrastive
from pieline.studies.idiolink.training.contrastive import (
    TrainingData,
    TrainingLog,
    fine_tune,
    paper_loss,
    released_loss,
)
from pieline.studies.idiolink.training.settings import TrainingSettings

SAMPLE = ROOT / "data/sample/idiolink"


def split(folder: Path, name: str) -> IdiolinkDataset:
    documents = read_texts(folder / name / "indexes.json", Document)
    queries = read_texts(folder / name / "queries.json", Query)
    return IdiolinkDataset(name, "full", False, documents, queries)


@pytest.fixture(scope="module")
def train() -> IdiolinkDataset:
    return split(SAMPLE, "train")


@pytest.fixture(scope="module")
def validation() -> IdiolinkDataset:
    return split(SAMPLE, "val")


class TestTuples:
    def check(self, dataset: IdiolinkDataset, tuples: list[TrainingTuple]) -> None:
        documents = {document.id: document for document in dataset.documents}
        assert [row.query for row in tuples] == [query.id for query in dataset.queries]
        for row, query in zip(tuples, dataset.queries, strict=True):
            relevant = RELEVANT_USAGES[query.usage]
            positive = documents[row.positive]
            assert (positive.pie, positive.usage in relevant) == (query.pie, True)
            hard = [documents[name] for name in row.hard]
            soft = [documents[name] for name in row.soft]
            assert (len(hard), len(soft)) == (2, 3)
            assert {document.pie for document in hard} == {query.pie}
            assert not {document.usage for document in hard} & relevant
            assert query.pie not in {document.pie for document in soft}

    def test_each_tuple_matches_the_paper(self, train: IdiolinkDataset) -> None:
        tuples = sample_tuples(train.queries, train.documents, seed=42)
        self.check(train, tuples)
        # Sampling is without replacement; a few released tuples repeat a soft negative.
        assert {len({*row.hard, *row.soft}) for row in tuples} == {5}

    @pytest.mark.parametrize(("hard", "soft"), [(1, 3), (4, 3), (0, 3), (2, 0), (2, 7)])
    def test_the_settings_determine_the_number_of_negatives(
        self, train: IdiolinkDataset, hard: int, soft: int
    ) -> None:
        texts = {text.id: text for text in (*train.documents, *train.queries)}
        tuples = sample_tuples(train.queries, train.documents, seed=42, hard=hard, soft=soft)
        for row in tuples:
            assert (len(set(row.hard)), len(set(row.soft))) == (hard, soft)
            query = texts[row.query]
            assert all(texts[name].pie == query.pie for name in row.hard)
            assert all(texts[name].pie != query.pie for name in row.soft)

    def test_only_the_seed_matters(self, train: IdiolinkDataset) -> None:
        drawn = sample_tuples(train.queries, train.documents, seed=42)
        assert drawn == sample_tuples(train.queries, train.documents, seed=42)
        assert drawn != sample_tuples(train.queries, train.documents, seed=43)
        assert drawn[3:5] == sample_tuples(train.queries[3:5], train.documents, seed=42)

    def test_every_kind_of_document_is_sampled(self, train: IdiolinkDataset) -> None:
        documents = {document.id: document for document in train.documents}
        usages = {
            documents[
                sample_tuples(train.queries[:1], train.documents, seed=seed)[0].positive
            ].usage
            for seed in range(40)
        }
        assert usages == RELEVANT_USAGES[train.queries[0].usage]

    def test_too_few_documents(self, train: IdiolinkDataset) -> None:
        query = train.queries[0]
        own = [document for document in train.documents if document.pie == query.pie]
        with pytest.raises(UserError, match=rf"^{query.id}: only 0 documents of other PIEs, 3"):
            sample_tuples([query], own, seed=1)

    def released(self, train: IdiolinkDataset) -> list[dict[str, object]]:
        """Return the sampled tuples in the released format: texts, hard negatives first."""
        text = {row.id: row.sentence for row in [*train.queries, *train.documents]}
        return [
            {
                "query": text[row.query],
                "positive": text[row.positive],
                "negatives": [text[name] for name in (*row.hard, *row.soft)],
                "query_idiom": "not read",
            }
            for row in sample_tuples(train.queries, train.documents, seed=5)
        ]

    def write(self, path: Path, rows: list[dict[str, object]]) -> Path:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return path

    def test_released_format(self, train: IdiolinkDataset, tmp_path: Path) -> None:
        path = self.write(tmp_path / "t.jsonl", self.released(train))
        tuples = read_released_tuples(path, train.queries, train.documents)
        assert tuples == sample_tuples(train.queries, train.documents, seed=5)
        fewer = read_released_tuples(path, train.queries, train.documents, hard=1, soft=2)
        assert [(row.hard, row.soft) for row in fewer] == [
            (row.hard[:1], row.soft[:2]) for row in tuples
        ]

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            (lambda row: row.update(query="Unknown."), "text 'Unknown.' is not in the split"),
            (lambda row: row["negatives"].reverse(), "expected one positive, two hard and three"),
            (lambda row: row["negatives"].pop(), "expected one positive, two hard and three"),
            (lambda row: row.pop("positive"), "positive: Field required"),
        ],
    )
    def test_released_file_with_an_invalid_line(
        self,
        train: IdiolinkDataset,
        tmp_path: Path,
        change: Callable[[dict[str, object]], object],
        problem: str,
    ) -> None:
        rows = self.released(train)
        change(rows[2])
        path = self.write(tmp_path / "t.jsonl", rows)
        with pytest.raises(UserError, match=rf"t\.jsonl:3: {problem}"):
            read_released_tuples(path, train.queries, train.documents)

    @needs_mirror
    @pytest.mark.parametrize(("name", "count"), [("train", 440), ("val", 200)])
    def test_the_released_file(self, name: str, count: int) -> None:
        dataset = split(MIRROR / "idiolink", name)
        path = MIRROR / f"idiolink/{name}/triplets_{name}_full.jsonl"
        tuples = read_released_tuples(path, dataset.queries, dataset.documents)
        assert len(tuples) == count
        self.check(dataset, tuples)


class TestLosses:
    def vectors(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(1)
        shapes = ((3, 8), (3, 8), (3, 5, 8))
        first, second, third = (
            torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes
        )
        return first, second, third

    @staticmethod
    def cosine(one: torch.Tensor, other: torch.Tensor) -> float:
        return float(one @ other / (one.norm() * other.norm()))

    def test_paper_is_equation_2(self) -> None:
        queries, positives, negatives = self.vectors()
        expected = 0.0
        for i in range(3):
            numerator = math.exp(self.cosine(queries[i], positives[i]))
            denominator = sum(math.exp(self.cosine(queries[i], row)) for row in negatives[i])
            expected -= math.log(numerator / denominator) / 3
        assert float(paper_loss(queries, positives, negatives)) == pytest.approx(expected)

    def test_released_is_info_nce_over_the_batch(self) -> None:
        queries, positives, negatives = self.vectors()
        expected = 0.0
        for i in range(3):
            scores = [self.cosine(queries[i], row) for row in positives]
            scores += [self.cosine(queries[i], row) for row in negatives[i]]
            powers = [math.exp(score / 0.05) for score in scores]
            expected -= math.log(powers[i] / sum(powers)) / 3
        assert float(released_loss(queries, positives, negatives)) == pytest.approx(expected)


def test_span_vectors_have_the_gradients_of_single_texts(tmp_path: Path) -> None:
    entry = tiny_entry(save_tiny("bert", tmp_path / "bert"), pooling="mean")
    model = load_encoder(entry, device="cpu").eval()
    texts = [QueryText(SENTENCES[0], (5, 18)), QueryText(SENTENCES[2], (24, 29))]
    weights = torch.linspace(-1, 1, 32)

    def gradients(batches: list[list[QueryText]]) -> list[torch.Tensor]:
        model.zero_grad()
        for batch in batches:
            encoded = TokenizedTexts(model, batch).encode(range(len(batch)), spans=True)
            assert encoded.span is not None
            (encoded.span * weights).sum().backward()
        return [row.grad.clone() for row in model.parameters() if row.grad is not None]

    together, apart = gradients([texts]), gradients([texts[:1], texts[1:]])
    assert len(together) > 20
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    assert max(float(row.abs().max()) for row in together) > 0.01


def settings(**fields: object) -> TrainingSettings:
    shared = {"loss": "released", "train_mode": "sentence", "seed": 42, "batch_size": 4}
    shared |= {"max_epochs": 3, "warmup_steps": 2, "learning_rate": 1e-3}
    # Not validated, because the configuration rejects learning rates that make the loss infinite.
    return TrainingSettings.model_validate(shared).model_copy(update=fields)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> ConfiguredEmbedder:
    folder = save_tiny("bert", tmp_path_factory.mktemp("tiny") / "bert")
    return tiny_entry(folder, pooling="mean", max_length=256)


class Trainer:
    """Factory of trainings of a tiny model on the sample data."""

    def __init__(
        self, entry: ConfiguredEmbedder, train: IdiolinkDataset, validation: IdiolinkDataset
    ):
        self.entry = entry
        tuples = sample_tuples(train.queries[:8], train.documents, seed=42)
        self.data = TrainingData(tuples, train, validation)
        self.qrels = meaning_qrels(validation.queries, validation.documents)

    def __call__(
        self,
        checkpoint: Path | None = None,
        *,
        score: Callable[[dict[str, dict[str, float]]], float] | None = None,
        **fields: object,
    ) -> tuple[TrainingLog, dict[str, torch.Tensor]]:
        model = load_encoder(self.entry, device="cpu")
        log = fine_tune(
            model,
            self.entry,
            self.data,
            settings(**fields),
            ndcg_at_10=score or (lambda run: ndcg_at_10(run, self.qrels)),
            checkpoint=checkpoint,
            progress=False,
        )
        return log, dict(model.state_dict())

    def interrupt(self, checkpoint: Path, *, after: int, **fields: object) -> None:
        """Train until an interruption after a number of scored epochs."""
        epochs = iter(range(after))

        def score(run: dict[str, dict[str, float]]) -> float:
            if next(epochs, None) is None:
                raise KeyboardInterrupt
            return ndcg_at_10(run, self.qrels)

        with pytest.raises(KeyboardInterrupt):
            self(checkpoint, score=score, **fields)


@pytest.fixture(scope="module")
def trainer(
    tiny: ConfiguredEmbedder, train: IdiolinkDataset, validation: IdiolinkDataset
) -> Trainer:
    few = validation.documents[::4], validation.queries[::4]
    return Trainer(tiny, train, IdiolinkDataset("val", "full", False, *few))


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


class TestTraining:
    @pytest.mark.parametrize(
        ("mode", "loss"), [("sentence", "paper"), ("instruction_span", "released")]
    )
    def test_the_loss_falls(
        self, trainer: Trainer, monkeypatch: pytest.MonkeyPatch, mode: str, loss: str
    ) -> None:
        # Another test covers validation in every mode.
        monkeypatch.setattr(contrastive._Training, "rank_validation_split", lambda training: {})
        fields = {"train_mode": mode, "loss": loss, "learning_rate": 3e-3}
        log, _ = trainer(score=lambda run: 0.0, max_epochs=10, patience=10, **fields)
        losses = [epoch.loss for epoch in log.epochs]
        assert len(losses) == 10
        assert losses[-1] < losses[0]

    def test_modes_and_losses_differ(self, trainer: Trainer) -> None:
        trainings = [trainer(train_mode=mode, loss=loss, max_epochs=1)[1] for mode, loss in (
            ("sentence", "paper"), ("span", "paper"), ("instruction_sentence", "paper"),
            ("instruction_span", "paper"), ("sentence", "released"),
        )]  # fmt: skip
        for place, one in enumerate(trainings):
            assert not any(same(one, other) for other in trainings[:place])

    def test_same_seed_same_weights(self, trainer: Trainer) -> None:
        one, other = trainer(max_epochs=2), trainer(max_epochs=2)
        assert one[0] == other[0]
        assert same(one[1], other[1])
        assert not same(one[1], trainer(max_epochs=2, seed=43)[1])

    @pytest.mark.parametrize("loss", ["paper", "released"])
    def test_recomputation_when_out_of_memory_changes_nothing(
        self, trainer: Trainer, monkeypatch: pytest.MonkeyPatch, loss: str
    ) -> None:
        expected = trainer(max_epochs=1, loss=loss)
        compute, failures = contrastive._Training._loss, [0, 2]

        def fails(training: Any, batch: Any) -> torch.Tensor:
            loss = compute(training, batch)
            if failures and failures.pop(0) == 0:
                raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
            return loss

        monkeypatch.setattr(contrastive._Training, "_loss", fails)
        log, weights = trainer(max_epochs=1, loss=loss)
        assert failures == []
        assert log == expected[0]
        assert same(weights, expected[1])

    def test_parts_are_halved_if_recomputation_is_not_enough(
        self, trainer: Trainer, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str], tmp_path: Path,
    ) -> None:  # fmt: skip
        encode = TokenizedTexts.encode

        def limited(largest: int) -> None:
            def fails(self: TokenizedTexts, indices: Any, *, spans: bool) -> Any:
                if torch.is_grad_enabled() and len(indices) > largest:
                    raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
                return encode(self, indices, spans=spans)

            monkeypatch.setattr(TokenizedTexts, "encode", fails)

        limited(5)
        uninterrupted = trainer(max_epochs=2)
        printed = capsys.readouterr()
        assert "recomputing activations" in printed.out + printed.err
        assert "continuing with 4 texts at once" in printed.out + printed.err

        checkpoint = tmp_path / "checkpoint.pt"
        trainer.interrupt(checkpoint, after=1, max_epochs=2)
        # The parts stay small on a machine with more memory, because dropout is drawn per part.
        limited(1000)
        assert same(trainer(checkpoint, max_epochs=2)[1], uninterrupted[1])
        limited(0)
        with pytest.raises(UserError, match="out of memory with a single text"):
            trainer(max_epochs=1)

    def test_the_best_epoch_is_kept_and_min_delta_stops_training(
        self, trainer: Trainer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def changed(training: Any, epoch: int) -> float:
            with torch.no_grad():
                next(training.model.parameters()).add_(epoch + 1)
            return 0.0

        # The scores are fixed, so training and ranking do not matter.
        monkeypatch.setattr(contrastive._Training, "run_epoch", changed)
        monkeypatch.setattr(contrastive._Training, "rank_validation_split", lambda training: {})

        def trained(*scores: float) -> tuple[TrainingLog, Any]:
            remaining = iter(scores)
            stopping = {"max_epochs": 10, "patience": 3, "min_delta": 0.001}
            return trainer(score=lambda run: next(remaining), **stopping)

        # Epoch 3 is the best, but its improvement is too small to continue training after epoch 5.
        log, weights = trained(0.5, 0.6, 0.6009, 0.55, 0.6005, 0.9)
        assert [epoch.validation_ndcg_at_10 for epoch in log.epochs] == [
            0.5,
            0.6,
            0.6009,
            0.55,
            0.6005,
        ]
        assert log.best_epoch == 3
        assert same(weights, trained(0.1, 0.2, 0.6, 0.1, 0.1, 0.1)[1])
        assert not same(weights, trained(0.1, 0.6, 0.1, 0.1, 0.1)[1])
        # Small improvements accumulate; ties keep the first epoch.
        assert len(trained(*(0.5 + 0.0004 * n for n in range(10)))[0].epochs) == 10
        assert trained(0.5, 0.6, 0.6, 0.5, 0.5)[0].best_epoch == 2

    def test_the_last_batch_can_be_dropped(
        self, trainer: Trainer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sizes: list[int] = []
        step = contrastive._Training._step
        monkeypatch.setattr(
            contrastive._Training, "_step",
            lambda self, batch: sizes.append(len(batch)) or step(self, batch),
        )  # fmt: skip
        trainer(max_epochs=1, batch_size=3)
        kept, sizes[:] = list(sizes), []
        trainer(max_epochs=1, batch_size=3, drop_last=True)
        assert kept[-1] < 3
        assert sizes == kept[:-1]
        with pytest.raises(UserError, match=r"than the batch size 1000; reduce batch_size"):
            trainer(max_epochs=1, batch_size=1000, drop_last=True)

    def test_resuming_from_a_checkpoint_changes_nothing(
        self, trainer: Trainer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        uninterrupted = trainer(max_epochs=4)
        checkpoint = tmp_path / "checkpoint.pt"
        trainer.interrupt(checkpoint, after=2, max_epochs=4)
        scored = []

        def counts(run: dict[str, dict[str, float]]) -> float:
            scored.append(run)
            return ndcg_at_10(run, trainer.qrels)

        assert capsys.readouterr().err == ""
        resumed = trainer(checkpoint, score=counts, max_epochs=4)
        assert capsys.readouterr() == ("", "resuming after epoch 2\n")
        assert len(scored) == 2
        assert resumed[0] == uninterrupted[0]
        assert same(resumed[1], uninterrupted[1])

    def test_checkpoint_of_another_training_is_ignored(
        self, trainer: Trainer, tmp_path: Path
    ) -> None:
        checkpoint = tmp_path / "checkpoint.pt"
        trainer(checkpoint, max_epochs=2)
        assert same(trainer(checkpoint, max_epochs=2, seed=7)[1], trainer(max_epochs=2, seed=7)[1])

    def test_a_loss_that_is_not_finite(self, trainer: Trainer) -> None:
        with pytest.raises(UserError, match=r"the loss is nan.*reduce the learning rate"):
            trainer(learning_rate=1e30, max_norm=1e30, warmup_steps=0)

    def test_saved_weights_give_the_same_vectors(
        self, tiny: ConfiguredEmbedder, tmp_path: Path
    ) -> None:
        model = load_encoder(tiny, device="cpu")
        save_folder(model, tmp_path / "weights")
        again = load_encoder(tiny, weights=tmp_path / "weights", device="cpu")
        queries = [QueryText(SENTENCES[0], (5, 18))]
        one = embed_queries(model, queries, batch_size=1, progress=False)
        other = embed_queries(again, queries, batch_size=1, progress=False)
        # A training that resumes after its last epoch reads no text before it saves.
        save_folder(model, tmp_path / "later")
        first, later = (tmp_path / name / "tokenizer.json" for name in ("weights", "later"))
        assert first.read_bytes() == later.read_bytes()
        assert np.array_equal(one.span, other.span)
        assert np.array_equal(one.sentence, other.sentence)
        for path in (tmp_path / "weights").rglob("*.json"):
            assert not any(str(each) in path.read_text() for each in (tmp_path, tiny.path))


@pytest.mark.full
def test_a_killed_and_resumed_program_writes_the_same_bytes(
    tiny: ConfiguredEmbedder, train: IdiolinkDataset, validation: IdiolinkDataset, tmp_path: Path
) -> None:
    train.save(tmp_path / "train")
    validation.save(tmp_path / "val")
    save_jsonl(tmp_path / "tuples.jsonl", sample_tuples(train.queries, train.documents, seed=42))

    def run(name: str, before: str = "") -> int:
        folder = tmp_path / name
        return start_script(
            "fine_tune",
            trains=True,
            before=before,
            input={
                "tuples": tmp_path / "tuples.jsonl",
                "train": [tmp_path / "train" / "documents.jsonl"],
                "validation": [tmp_path / "val" / "documents.jsonl"],
                "weights": [],
            },
            output={
                "weights": folder / "weights",
                "digests": folder / "weights.sha256",
                "log": folder / "training.json",
            },
            params={
                "spec": tiny.execution_spec(),
                "settings": settings(max_epochs=4, patience=4).model_dump_json(),
            },
            log=str(tmp_path / "log"),
        ).returncode

    # Killed in epoch 3, after training but before the checkpoint is written.
    dies = """
import os, signal
from pieline.studies.idiolink.training.contrastive import _Training
validations = iter([_Training.rank_validation_split] * 2)
def validate(self):
    return next(validations, lambda _: os.kill(os.getpid(), signal.SIGKILL))(self)
_Training.rank_validation_split = validate
"""
    checkpoint = tmp_path / "killed/checkpoint.pt"
    assert run("whole") == 0
    assert run("killed", before=dies) == -signal.SIGKILL
    assert not (tmp_path / "killed/weights").exists()
    assert len(torch.load(checkpoint, weights_only=True)["epochs"]) == 2
    assert run("killed") == 0
    assert not checkpoint.exists()
    log = (tmp_path / "whole/training.json").read_bytes()
    assert len(json.loads(log)["epochs"]) == 4
    assert (tmp_path / "killed/training.json").read_bytes() == log
    digests = weights_digests(tiny, tmp_path / "whole/weights")
    assert "model.safetensors" in digests
    assert weights_digests(tiny, tmp_path / "killed/weights") == digests
