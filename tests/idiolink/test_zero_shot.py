"""Embedding, BM25, ranking and scoring compared with independent computations."""

import gzip
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
import torch
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi
from run_script import run_script
from sentence_transformers import SentenceTransformer
from support import MIRROR, ROOT, needs_mirror

from pieline.core.conditions import Evidence, RunIdentity
from pieline.core.errors import UserError
from pieline.core.records import iterate_jsonl, load_jsonl, save_jsonl
from pieline.models.embedder import EmbedderEntry
from pieline.models.registry import load_registry
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset, meaning_qrels, subject_qrels
from pieline.studies.idiolink.metrics.scores import (
    IdiolinkMetrics,
    QueryScores,
    idiolink_metrics,
    save_query_scores,
    score_queries,
)
from pieline.studies.idiolink.metrics.validation import Scores, ndcg_at_10
from pieline.studies.idiolink.predictions import rankings
from pieline.studies.idiolink.predictions.bm25 import Bm25Index, build_index, search, tokenize, tune
from pieline.studies.idiolink.predictions.embedding import embed_documents, embed_queries, span_mask
from pieline.studies.idiolink.predictions.encoders import load_encoder
from pieline.studies.idiolink.predictions.query_texts import QueryText
from pieline.studies.idiolink.predictions.rankings import (
    cosine_scores,
    rank,
    rank_by_cosine,
    read_run,
    write_run,
)
from pieline.studies.idiolink.raw import compose_index, read_texts
from pieline.studies.idiolink.records import Bm25Parameters, Document, Query

SAMPLE = ROOT / "data/sample/idiolink/test"
BM25_TOLERANCE = 0.15
"""As in published/tables.yaml, in points."""


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return read_texts(SAMPLE / "indexes.json", Document)


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    return read_texts(SAMPLE / "queries.json", Query)


@pytest.fixture(scope="module")
def dataset(documents: list[Document], queries: list[Query]) -> IdiolinkDataset:
    return IdiolinkDataset("test", "full", False, documents, queries)


@pytest.fixture(scope="module")
def sbert() -> SentenceTransformer:
    entry = load_registry(ROOT / "models.yaml")["sbert"]
    assert isinstance(entry, EmbedderEntry)
    return load_encoder(entry, device="cpu")


def score(
    run: Scores, dataset: IdiolinkDataset, *, depth: int
) -> tuple[IdiolinkMetrics, QueryScores]:
    return idiolink_metrics(
        run,
        dataset,
        RunIdentity(model="m", setting="sentence", seed=0),
        Evidence(computed_from={}),
        depth=depth,
        tuning=None,
        resamples=200,
    )


class TestEmbedding:
    def test_sentence_vectors_are_the_models_own(
        self, sbert: SentenceTransformer, queries: list[Query], documents: list[Document]
    ) -> None:
        texts = [document.sentence for document in documents[:30]]
        ours = embed_documents(sbert, texts, batch_size=8, progress=False)
        theirs = sbert.encode(texts, batch_size=30, show_progress_bar=False)
        np.testing.assert_allclose(ours, theirs, atol=2e-6)

    def test_a_span_beyond_the_limit_is_an_error(self, sbert: SentenceTransformer) -> None:
        text = "word " * 400 + "ends"
        far = QueryText(text, (len(text) - 4, len(text)))
        with pytest.raises(UserError, match=r"limit of 256 tokens.*increase `max_length`"):
            embed_queries(sbert, [far], batch_size=1, progress=False)

    def test_mask_includes_partly_covered_tokens_but_no_special_ones(self) -> None:
        offsets = torch.tensor([[[0, 0], [0, 4], [5, 8], [8, 12], [13, 15], [0, 0]]])
        mask = span_mask(offsets, [(6, 9)])
        assert mask.tolist() == [[False, False, True, True, False, False]]


class TestBm25:
    def test_scores_equal_rank_bm25_to_the_bit(
        self, documents: list[Document], queries: list[Query]
    ) -> None:
        parameters = Bm25Parameters(k1=1.2, b=0.6)
        theirs = BM25Okapi([tokenize(text.sentence) for text in documents], k1=1.2, b=0.6)
        ours = build_index(documents, Bm25Parameters(k1=2.0, b=0.2)).with_parameters(parameters)
        assert isinstance(ours, Bm25Index)
        for text in queries:
            words = [*tokenize(text.sentence), "word-that-no-document-has"]
            assert np.array_equal(ours.get_scores(words), theirs.get_scores(words))

    def test_the_papers_tokens(self) -> None:
        assert tokenize("Don't BREAK the ice-cream, 2 days' rest!") == [
            "don't", "break", "the", "ice", "cream", "2", "days", "rest",
        ]  # fmt: skip

    def test_tuning_keeps_the_grid_and_chooses_its_best_point(
        self, documents: list[Document], queries: list[Query]
    ) -> None:
        qrels = meaning_qrels(queries, documents)

        def mean_ndcg(run: dict[str, dict[str, float]]) -> float:
            evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
            values = [row["ndcg_cut_10"] for row in evaluator.evaluate(run).values()]
            return sum(values) / len(values)

        tuning = tune(
            documents, queries, query_mode="sentence", composition="full", k1=[0.6, 2.0],
            b=[0.2, 0.9], ndcg_at_10=mean_ndcg,
        )  # fmt: skip
        assert [(point.k1, point.b) for point in tuning.grid] == [
            (0.6, 0.2), (0.6, 0.9), (2.0, 0.2), (2.0, 0.9),
        ]  # fmt: skip
        assert len({point.ndcg_at_10 for point in tuning.grid}) > 1
        best = max(tuning.grid, key=lambda point: point.ndcg_at_10)
        assert (tuning.chosen.k1, tuning.chosen.b) == (best.k1, best.b)
        run = search(
            build_index(documents, tuning.chosen), documents, queries,
            query_mode="sentence", top_k=100, progress=False,
        )  # fmt: skip
        assert mean_ndcg(run) == best.ndcg_at_10


class TestRuns:
    @given(
        scores=st.lists(st.sampled_from([-0.5, 0.0, 0.25, 0.5]), min_size=1, max_size=30),
        top_k=st.integers(1, 35),
        shuffled=st.randoms(use_true_random=False),
    )
    def test_ranking_equals_a_full_sort(
        self, scores: list[float], top_k: int, shuffled: Random
    ) -> None:
        names = [f"d{number}" for number in range(len(scores))]
        shuffled.shuffle(names)
        run = rank(["q"], [np.array(scores, dtype=np.float32)], names, top_k=top_k)
        everything = sorted(zip(scores, names, strict=True), reverse=True)
        assert [(score, name) for name, score in run["q"].items()] == everything[:top_k]

    def test_cosine_ignores_length_and_accepts_zero_vectors(self) -> None:
        rows = np.array([[2.0, 0.0], [0.0, 0.0]], dtype=np.float32)
        columns = np.array([[3.0, 3.0], [0.0, 5.0]], dtype=np.float32)
        scores = np.array(list(cosine_scores(rows, columns)))
        np.testing.assert_allclose(scores, [[math.sqrt(0.5), 0.0], [0.0, 0.0]], atol=1e-7)

    @pytest.mark.parametrize("top_k", [1, 6, 40])
    def test_rankings_are_identical_for_a_file_read_in_blocks(
        self, top_k: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        drawn = np.random.default_rng(0).integers(-1, 2, size=(80, 3)).astype(np.float32)
        np.save(tmp_path / "documents.npy", drawn)
        rows = list(range(79, -1, -2))
        names = [f"d{number}" for number in rows]
        expected = rank(names, cosine_scores(drawn[rows], drawn[rows]), names, top_k=top_k)
        # Equal vectors of different blocks are tied at the last place.
        ties = [len(set(list(ranked.values())[-2:])) for ranked in expected.values()]
        assert top_k == 1 or 1 in ties
        sizes = []
        monkeypatch.setattr(rankings, "_ROWS_AT_ONCE", 3)
        for block_rows in (3, 12, 21, 60):
            monkeypatch.setattr(rankings, "_BLOCK_BYTES", block_rows * 3 * 4)
            blocks = rankings._unit_blocks(tmp_path / "documents.npy", rows)
            sizes.append([len(unit) for _, unit in blocks])
            found = rank_by_cosine(
                names, [drawn[rows], drawn[rows][::-1]], names, tmp_path / "documents.npy", rows,
                top_k=top_k,
            )  # fmt: skip
            assert [[*ranked.items()] for ranked in found[0].values()] == [
                [*ranked.items()] for ranked in expected.values()
            ]
            reverse = zip(found[1].values(), reversed(expected.values()), strict=True)
            assert all([*ranked.items()] == [*other.items()] for ranked, other in reverse)
        assert sizes == [[3] * 12 + [4], [12, 12, 16], [40], [40]]

    @pytest.mark.parametrize("damage", ["none", "blank line", "no UTF-8", "no file", "no last end"])
    def test_records_are_read_one_at_a_time(
        self, documents: list[Document], tmp_path: Path, damage: str
    ) -> None:
        path = tmp_path / "documents.jsonl"
        save_jsonl(path, documents[:3])
        first, *others = path.read_bytes().splitlines(keepends=True)
        lines = {
            "blank line": [first, b"\n", *others],
            "no UTF-8": [first, b"\xff\n"],
            "no last end": [first, others[0].strip()],
        }
        path.write_bytes(b"".join(lines.get(damage, [first, *others])))
        if damage == "no file":
            path.unlink()

        def outcome(read: Callable[..., Iterable[Document]]) -> object:
            try:
                return list(read(path, Document))
            except UserError as error:
                return str(error)

        whole = outcome(load_jsonl)
        assert outcome(iterate_jsonl) == whole
        assert isinstance(whole, str) == (damage not in {"none", "no last end"})

    def test_a_job_ranks_the_documents_of_its_index(
        self, documents: list[Document], queries: list[Query], tmp_path: Path
    ) -> None:
        index = documents[5:0:-2]
        texts = {"all_documents": documents[:6], "documents": index, "queries": queries[:2]}
        files = {name: tmp_path / f"{name}.jsonl" for name in texts}
        for name, path in files.items():
            save_jsonl(path, texts[name])
        drawn = np.random.default_rng(1).normal(size=(8, 3)).astype(np.float32)
        np.save(tmp_path / "documents.npy", drawn[:6])
        np.save(tmp_path / "queries.npy", drawn[6:])
        files["document_vectors"] = tmp_path / "documents.npy"
        run_script(
            "rank_by_embedding",
            input={**files, "query_vectors": [tmp_path / "queries.npy"]},
            output=[tmp_path / "run.gz"],
            params={"top_k": 2},
            wildcards={"model": "m"},
        )
        units = drawn / np.linalg.norm(drawn, axis=1)[:, None]
        for query, scores in zip(queries, units[6:] @ units[5:0:-2].T, strict=False):
            best = np.argsort(-scores)[:2]
            expected = {index[place].id: scores[place] for place in best}
            assert read_run(tmp_path / "run.gz")[query.id] == pytest.approx(expected, abs=1e-6)

    def test_a_saved_run_round_trips_and_is_deterministic(self, tmp_path: Path) -> None:
        run = {"q1": {"b": 1 / 3, "a": 0.1}, "q2": {"a": 1e-17}}
        write_run(tmp_path / "one.run.gz", run, tag="test")
        write_run(tmp_path / "two.run.gz", run, tag="test")
        assert read_run(tmp_path / "one.run.gz") == run
        first = {"q1": {"b": 1 / 3}, "q2": {"a": 1e-17}}
        assert read_run(tmp_path / "one.run.gz", top_k=1) == first
        assert (tmp_path / "one.run.gz").read_bytes() == (tmp_path / "two.run.gz").read_bytes()
        with gzip.open(tmp_path / "one.run.gz", "rt") as stream:
            assert stream.readline() == "q1 Q0 b 1 0.3333333333333333 test\n"


class TestMetrics:
    def test_the_papers_example_of_r_precision(self) -> None:
        """Appendix D: relevant documents at 1, 2, 4, 7 and 8 with R = 5 give 3/5."""
        places = {1, 2, 4, 7, 8}
        run = {"q": {f"d{place}": 1.0 / place for place in range(1, 21)}}
        qrels = {"q": {f"d{place}": 1 for place in places}}
        scores = score_queries(run, qrels)["q"]
        assert scores["r_precision"] == pytest.approx(3 / 5)
        gain = sum(1 / math.log2(place + 1) for place in places)
        ideal = sum(1 / math.log2(place + 1) for place in range(1, 6))
        assert scores["ndcg_at_10"] == pytest.approx(gain / ideal)

    def test_the_papers_example_of_ndcg(self) -> None:
        """Appendix D: relevant documents at 1, 2 and 3 score higher than at 3, 7 and 9."""
        ranking = {f"d{place}": 1.0 / place for place in range(1, 21)}
        qrels = {
            name: {f"d{place}": 1 for place in places}
            for name, places in {"first": (1, 2, 3), "second": (3, 7, 9)}.items()
        }
        scores = score_queries(dict.fromkeys(qrels, ranking), qrels)
        assert scores["first"]["ndcg_at_10"] == 1
        ideal = 1 + 1 / math.log2(3) + 1 / 2
        gain = 1 / 2 + 1 / 3 + 1 / math.log2(10)
        assert scores["second"]["ndcg_at_10"] == pytest.approx(gain / ideal)

    def test_close_scores_are_no_ties(self) -> None:
        """As 32-bit floats, which trec_eval uses, all of these sigmoids are 1."""
        names = [f"d{place:03d}" for place in range(50)]
        logits = {name: 21 - place / 20 for place, name in enumerate(names)}
        sigmoids = {name: 1 / (1 + math.exp(-logit)) for name, logit in logits.items()}
        assert len({np.float32(score) for score in sigmoids.values()}) < 5
        assert len({*sigmoids.values()}) == 50
        qrels = {"q": dict.fromkeys(names[:20], 1)}
        perfect = {"q": {"r_precision": 1.0, "ndcg_at_10": 1.0}}
        assert score_queries({"q": logits}, qrels) == perfect
        assert score_queries({"q": sigmoids}, qrels) == perfect
        assert ndcg_at_10({"q": sigmoids}, qrels) == 1

    def test_ties_are_ordered_by_descending_id(self) -> None:
        run = {"q": {"d1": 0.5, "d3": 0.5, "d2": 0.5, "d0": 0.7}}
        assert rankings.in_order(run["q"]) == ["d0", "d3", "d2", "d1"]
        ranked = rank(["q"], [np.array([0.5, 0.5, 0.5, 0.7])], ["d1", "d3", "d2", "d0"], top_k=4)
        assert [*ranked["q"]] == rankings.in_order(run["q"])
        for place, name in enumerate(rankings.in_order(run["q"])):
            scores = score_queries(run, {"q": {name: 1}})["q"]
            assert scores["ndcg_at_10"] == pytest.approx(1 / math.log2(place + 2))
            assert scores["r_precision"] == (place == 0)

    def test_a_query_missing_from_the_run_scores_zero(self) -> None:
        scores = score_queries({"a": {"d": 1.0}}, {"a": {"d": 1}, "b": {"d": 1}})
        assert scores["b"] == {"r_precision": 0.0, "ndcg_at_10": 0.0}
        assert scores["a"]["r_precision"] == 1.0

    @pytest.mark.parametrize(
        ("relevant", "depth", "known"),
        [
            (10, 10, (True, True)),
            (11, 10, (False, True)),
            (9, 9, (True, False)),
            (3, 2, (False,) * 2),
        ],
    )
    def test_a_score_is_known_if_all_required_ranks_are_kept(
        self, relevant: int, depth: int, known: tuple[bool, bool]
    ) -> None:
        run = {"q": {f"d{place}": 1 / place for place in range(1, depth + 1)}}
        qrels = {"q": {f"d{place}": 1 for place in range(1, relevant + 1)}}
        scores = score_queries(run, qrels, depth=depth)["q"]
        assert tuple(scores[name] is not None for name in ("r_precision", "ndcg_at_10")) == known

    def test_compositions_leave_out_the_right_usages(
        self, documents: list[Document], queries: list[Query]
    ) -> None:
        left = compose_index(documents, "lit_idiom")
        assert {text.usage for text in left} == {"literal", "idiomatic"}
        qrels = meaning_qrels(queries, left)
        assert {len(relevant) for relevant in qrels.values()} == {16, 8}
        without = compose_index(documents, "lit_sim_sense")
        assert {text.usage for text in without} == {"literal", "simplification", "sense"}
        assert len(subject_qrels(queries, without)[queries[0].id]) == 40

    def test_qrels_of_both_usages(self, documents: list[Document], queries: list[Query]) -> None:
        usage = {text.id: text.usage for text in documents}
        pie = {text.id: text.pie for text in documents}
        qrels = meaning_qrels(queries, documents)
        for text in queries:
            relevant = qrels[text.id]
            assert {pie[name] for name in relevant} == {text.pie}
            expected = (
                {"literal"} if text.usage == "literal" else {"idiomatic", "simplification", "sense"}
            )
            assert {usage[name] for name in relevant} == expected
            # 4 domains with 4 literal or 2 + 2 + 2 other documents each.
            assert len(relevant) == (16 if text.usage == "literal" else 24)

    def test_groups_average_to_the_total_and_topicality_is_separate(
        self, dataset: IdiolinkDataset, documents: list[Document], queries: list[Query]
    ) -> None:
        # A run ranked by subject is perfect for the subject and poor for the meaning.
        subject = {text.id: text.subject for text in documents}
        run = {
            text.id: {
                name: float(subject[name] == text.subject) + index / 1e6
                for index, name in enumerate(subject)
            }
            for text in queries
        }
        metrics, _ = score(run, dataset, depth=200)
        assert metrics.same_subject.ndcg_at_10 == 1.0
        assert metrics.same_subject.r_precision == 1.0
        assert metrics.overall.ndcg_at_10 is not None
        assert metrics.overall.ndcg_at_10 < 0.9
        for metric, interval in metrics.intervals.items():
            by_pie = [getattr(scores, metric) for scores in metrics.by_pie.values()]
            assert min(by_pie) <= interval.low < getattr(metrics.overall, metric) < interval.high
            assert interval.high <= max(by_pie)
        assert len(metrics.intervals) == 2
        for groups in (metrics.by_usage, metrics.by_subject, metrics.by_pie):
            assert sum(group.queries for group in groups.values()) == len(queries)
            mean = sum((group.ndcg_at_10 or 0) * group.queries for group in groups.values())
            assert mean / len(queries) == pytest.approx(metrics.overall.ndcg_at_10)

    def test_scores_below_the_cutoff_are_unknown(
        self, dataset: IdiolinkDataset, documents: list[Document], queries: list[Query]
    ) -> None:
        run = {text.id: {documents[0].id: 1.0} for text in queries}
        metrics, _ = score(run, dataset, depth=20)
        assert metrics.by_usage["idiomatic"].r_precision is None
        assert set(metrics.intervals) == {"ndcg_at_10"}
        assert metrics.by_usage["literal"].r_precision is not None
        assert metrics.overall.ndcg_at_10 is not None
        metrics, scores = score({}, dataset, depth=9)
        for group in (metrics.overall, metrics.same_subject, *metrics.by_pie.values()):
            assert (group.r_precision, group.ndcg_at_10) == (None, None)
        assert {value for of_query in scores.values() for value in of_query.values()} == {None}
        # A small index is ranked entirely, so no document is below the cutoff.
        small = IdiolinkDataset("test", "full", False, documents[:9], queries)
        assert score({}, small, depth=9)[0].overall.ndcg_at_10 == 0.0

    def test_query_scores_average_to_the_metric_file(
        self,
        dataset: IdiolinkDataset,
        documents: list[Document],
        queries: list[Query],
        tmp_path: Path,
    ) -> None:
        index = build_index(documents, Bm25Parameters(k1=0.9, b=0.4))
        run = search(index, documents, queries, query_mode="span", top_k=20, progress=False)
        metrics, scores = score(run, dataset, depth=20)
        own = tmp_path / "own.csv"
        save_query_scores(own, metrics, scores, queries)
        rows = pd.read_csv(own, dtype={"r_precision": float})
        assert list(rows["query"]) == [text.id for text in queries]
        # An idiomatic query has 24 relevant documents, a literal one 16.
        assert list(rows["r_precision"].isna()) == [text.usage == "idiomatic" for text in queries]
        for field in ("usage", "subject", "pie"):
            groups = getattr(metrics, f"by_{field}")
            means = rows.groupby(field)["ndcg_at_10"].mean()
            assert dict(means) == pytest.approx({n: of.ndcg_at_10 for n, of in groups.items()})
        assert rows["ndcg_at_10"].mean() == pytest.approx(metrics.overall.ndcg_at_10)
        literal = rows.loc[rows["usage"] == "literal", "r_precision"].mean()
        assert literal == pytest.approx(metrics.by_usage["literal"].r_precision)


@needs_mirror
@pytest.mark.parametrize(
    ("composition", "r_precision", "ndcg"),
    [("lit_sim_sense", 32.63, 43.00), ("lit_idiom", 42.67, 58.52)],
)
def test_bm25_tuned_on_the_same_composition_gives_the_released_ablation(
    composition: str, r_precision: float, ndcg: float
) -> None:
    def data(split: str) -> IdiolinkDataset:
        folder = MIRROR / "idiolink" / split
        documents = read_texts(folder / "indexes.json", Document)
        queries = read_texts(folder / "queries.json", Query)
        return IdiolinkDataset(split, "full", True, documents, queries).composed(composition)

    val, test = data("val"), data("test")
    qrels = meaning_qrels(val.queries, val.documents)
    # The full grid takes a minute; these points are its best and that of the full index.
    tuning = tune(
        val.documents, val.queries, query_mode="sentence", composition=composition,
        k1=[0.6, 0.9], b=[0.4, 0.9], ndcg_at_10=lambda run: ndcg_at_10(run, qrels),
    )  # fmt: skip
    assert (tuning.chosen.k1, tuning.chosen.b) == (0.6, 0.9)
    run = search(
        build_index(test.documents, tuning.chosen), test.documents, test.queries,
        query_mode="sentence", top_k=100, progress=False,
    )  # fmt: skip
    overall = score(run, test, depth=100)[0].overall
    assert 100 * (overall.r_precision or 0) == pytest.approx(r_precision, abs=BM25_TOLERANCE)
    assert 100 * (overall.ndcg_at_10 or 0) == pytest.approx(ndcg, abs=BM25_TOLERANCE)
