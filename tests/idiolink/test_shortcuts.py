"""Word overlap and nDCG@10: rule-based rankers, and the script, tables and figure."""

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_script import run_script
from scipy.stats import pearsonr, rankdata
from table_files import table_rows

from pieline.beyond.idiolink import figure as figures
from pieline.beyond.idiolink.metrics import (
    ALL,
    MEASURES,
    Shortcuts,
    content_words,
    overlaps,
    partial_correlation,
    shortcuts,
)
from pieline.beyond.idiolink.tables import OVERLAP_TABLE, SHORTCUTS_TABLE
from pieline.core.sidecars import write_sidecar
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.tables import make_table
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset, meaning_qrels
from pieline.studies.idiolink.metrics.scores import score_queries
from pieline.studies.idiolink.paths import dataset as dataset_paths
from pieline.studies.idiolink.predictions.rankings import rank, write_run
from pieline.studies.idiolink.records import Document, Query


def text(kind: Any, name: str, pie: str, usage: str, words: Sequence[str], span: str) -> Any:
    return kind(
        id=name, pie=pie, subject="Food", usage=usage, span=span,
        sentence=" ".join(["The", span, "of", *words]), is_gold=True,
    )  # fmt: skip


def dataset(pies: int = 8) -> IdiolinkDataset:
    """Return ten queries per PIE and usage; the n-th contains n of ten words of the meaning.

    A document contains five words of its meaning. All other words come from a pool of twenty.
    """
    random, documents, queries = np.random.default_rng(2), [], []
    for number, usage in product(range(pies), ("literal", "idiomatic")):
        pie, name = f"pie {number}", f"{usage}-{number:02}"
        own = [f"{usage}{number}x{place}" for place in range(10)]
        for kind, place in product((Document, Query), range(10)):
            others = [f"other{word}" for word in random.permutation(20)]
            words = [*own[:place], *others[: 10 - place]]
            if kind is Document:
                words = [*random.permutation(own)[:5].tolist(), *others[:6]]
            item = text(kind, f"{name}-{place}", pie, usage, words, "it")
            (documents if kind is Document else queries).append(item)
    return IdiolinkDataset("test", "full", False, documents, queries)


def measured(
    data: IdiolinkDataset, score: Callable[[Query, Document], float], resamples: int = 60
) -> Shortcuts:
    """Return the shortcut metrics of a rule-based ranker."""
    qrels = meaning_qrels(data.queries, data.documents)
    rows = (np.array([score(query, each) for each in data.documents]) for query in data.queries)
    names = [[each.id for each in texts] for texts in (data.queries, data.documents)]
    scores = score_queries(rank(names[0], rows, names[1], top_k=100), qrels)
    overlap = overlaps(data.queries, data.documents, qrels)
    return shortcuts(data.queries, overlap, scores, resamples=resamples)


class TestOverlap:
    def test_by_hand(self) -> None:
        query = text(Query, "q", "cold feet", "idiomatic", ("nervous", "chefs"), "cold feet")
        one = text(Document, "a", "cold feet", "idiomatic", ("all", "chefs", "soup"), "cold feet")
        other = text(Document, "b", "cold feet", "sense", ("it's", "fear"), "chefs")
        overlap = overlaps([query], [one, other], {"q": {"a": 1, "b": 1}})["q"]
        # Query: cold, feet, nervous, chefs. Documents: cold, feet, chefs, soup; and chefs, fear.
        assert overlap["idiomatic"] == dict(
            zip(MEASURES, (3 / 5, 3 / 4, 1 / 3, 1 / 2), strict=True)
        )
        assert overlap["sense"] == dict(zip(MEASURES, (1 / 5, 1 / 4, 0, 0), strict=True))
        assert overlap[ALL] == pytest.approx(
            dict(zip(MEASURES, (2 / 5, 1 / 2, 1 / 6, 1 / 4), strict=True))
        )

    def test_content_words(self) -> None:
        assert content_words("They'd put ALL the cats’ hats on, or off?") == {"put", "cats", "hats"}
        assert content_words("It is not.") == set()


class TestRankersByRule:
    def test_a_ranker_based_only_on_words(self) -> None:
        def jaccard(query: Query, document: Document) -> float:
            one, other = content_words(query.sentence), content_words(document.sentence)
            return len(one & other) / len(one | other)

        metrics = measured(dataset(), jaccard)
        for measure in MEASURES:
            correlation = metrics.correlations[measure]
            assert correlation.value and correlation.interval
            assert correlation.value > 0.8
            assert correlation.interval.low > 0.7
            of_tenths = [each.overlap for each in metrics.tenths[measure] if each.usage == ALL]
            means = [metrics.overlap[usage][ALL][measure] for usage in ("literal", "idiomatic")]
            assert np.mean(of_tenths) == pytest.approx(np.mean(means))
        rising = [tenth.value for tenth in metrics.tenths["recall"] if tenth.usage == ALL]
        assert len(rising) == 10
        assert rising[0] < 0.3 < 0.8 < rising[-1]
        # Each tenth has one query per PIE and usage, so PIEs do not affect the comparison.
        assert {tenth.queries for tenth in metrics.tenths["recall"]} == {16, 8}

    def test_a_ranker_that_ignores_words(self) -> None:
        draws = np.random.default_rng(3)

        def by_meaning(query: Query, document: Document) -> float:
            same = (query.pie, query.usage) == (document.pie, document.usage)
            return 2.0 * same + draws.normal()

        metrics = measured(dataset(), by_meaning)
        for measure in MEASURES:
            interval = metrics.correlations[measure].interval
            assert interval
            assert interval.low < 0 < interval.high

    def test_the_correlation_uses_residual_ranks(self) -> None:
        random = np.random.default_rng(6)
        pies = np.repeat(np.arange(6), 8)
        cells = 2 * pies + np.tile([0, 1], 24)
        first = random.integers(0, 5, size=48).astype(float) + pies
        second = first + random.normal(size=48)

        def by_regression(members: Any, cells: Any) -> float:
            dummies = (cells[:, None] == np.unique(cells)).astype(float)
            rests = []
            for values in (first[members], second[members]):
                ranks = rankdata(values)
                rests.append(ranks - dummies @ np.linalg.lstsq(dummies, ranks, rcond=None)[0])
            return float(pearsonr(*rests).statistic)

        drawn = np.array([[1, 0, 2, 1, 0, 2]])
        correlation = partial_correlation(first, second, cells, drawn[:, pies])
        assert correlation.value == pytest.approx(by_regression(np.arange(48), cells))
        # If a PIE is drawn twice, each of its queries counts twice.
        members = np.repeat(np.arange(48), drawn[0][pies])
        assert correlation.interval
        assert correlation.interval.low == pytest.approx(by_regression(members, cells[members]))

    def test_constant_and_unknown_values(self) -> None:
        data = dataset(1)
        alike = measured(data, lambda *_: 0.0)
        assert {(each.value, each.interval) for each in alike.correlations.values()} == {
            (None, None)
        }
        assert {tenth.interval for tenth in alike.tenths["jaccard"]} == {None}
        unknown = {query.id: {"ndcg_at_10": None} for query in data.queries}
        overlap = overlaps(
            data.queries, data.documents, meaning_qrels(data.queries, data.documents)
        )
        without = shortcuts(data.queries, overlap, unknown, resamples=10)
        assert (without.correlations, without.tenths) == ({}, {})
        assert without.overlap == alike.overlap

    def test_a_pie_may_have_no_documents_of_a_usage(self) -> None:
        data = dataset(2)
        data.documents.append(text(Document, "more", "pie 1", "sense", ("other1",), "it"))
        overlap = measured(data, lambda *_: 0.0).overlap["idiomatic"]
        assert set(overlap) == {"idiomatic", "sense", ALL}
        assert 0 < overlap["sense"]["recall"] < 0.1


def test_script_tables_and_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data, files = dataset(3), dataset_paths("test")
    data.save(Path(files["documents"]).parent)
    for path in files.values():
        write_sidecar(path, made_from={})
    rows = np.random.default_rng(1).normal(size=(len(data.queries), len(data.documents)))
    names = [[each.id for each in texts] for texts in (data.queries, data.documents)]
    paths = []
    for mode in ("sentence", "span"):
        write_run(f"{mode}.run.gz", rank(names[0], rows, names[1], top_k=20), tag="m")
        paths.append(f"{mode}.json")
        run_script(
            "idiolink_shortcuts", output=paths[-1:],
            input={"dataset": [*files.values()], "run": f"{mode}.run.gz"},
            params={"top_k": 20, "resamples": 20, "conditions": "{}"},
            wildcards={"model": "m", "query_mode": mode, "seed": 0},
        )  # fmt: skip
    models = (ModelDescription(name="m", kind="embedder", label="M"),)
    inputs = DisplayInputs(metrics=tuple(paths), models=models)
    alone = inputs.model_copy(update={"metrics": inputs.metrics[:1]})
    for table, given, lines in ((SHORTCUTS_TABLE, inputs, 24), (OVERLAP_TABLE, alone, 16)):
        rows = table_rows(table, given, tmp_path)
        assert len(rows) == lines
        assert len({row["measure"] for row in rows}) == (12 if given is inputs else 4)
        assert SAMPLE_NOTE in make_table(table.make, table.numbers, given)[0].notes
    axes = figures.shortcuts(inputs).axes
    assert [len(axis.lines) for axis in axes] == [1] * 4
    assert {len(line.get_xdata()) for axis in axes for line in axis.lines} == {10}
