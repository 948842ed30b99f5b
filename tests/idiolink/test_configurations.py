"""Tables and figures of unusual configurations, each made from its declaration."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from idiolink_cases import study
from support import ROOT

from pieline.core.conditions import Evidence, RunIdentity
from pieline.core.files import write_json
from pieline.reporting.tables import make_table, write_table
from pieline.studies.idiolink import runs as idiolink_runs
from pieline.studies.idiolink.datasets.composition import check_dataset
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.datasets.reading import read_loosely
from pieline.studies.idiolink.metrics.scores import (
    UNKNOWN,
    IdiolinkMetrics,
    QueryScores,
    idiolink_metrics,
)
from pieline.studies.idiolink.metrics.significance import ModeSignificance, compare_modes
from pieline.studies.idiolink.predictions.bm25 import build_index, search
from pieline.studies.idiolink.raw import read_texts
from pieline.studies.idiolink.records import Bm25Parameters, Document, Query
from pieline.studies.idiolink.study import IdiolinkStudy
from pieline.studies.idiolink.tables.zero_shot import METRICS, UNKNOWN_NOTE
from pieline.study import NOT_CONFIGURED

SAMPLE = ROOT / "data/sample/idiolink"
SCORES = ("r_precision", "ndcg_at_10", "instruction_gain", "span_gain", "combined_gain")
REASONS = (
    NOT_CONFIGURED,
    "idiolink.finetuning.train_modes does not name it",
    "a score of some model is missing",
)
"""Why scores may be missing that no ranking has."""
TUNED = {"models": ["sbert"], "train_modes": ["sentence"], "seeds": [1, 2]}


@cache
def data(composition: str) -> IdiolinkDataset:
    documents = read_texts(SAMPLE / "test/indexes.json", Document)
    queries = read_texts(SAMPLE / "test/queries.json", Query)
    return IdiolinkDataset("test", "full", False, documents, queries).composed(composition)


@cache
def ranked(
    composition: str, model: str, mode: str, seed: int, top_k: int
) -> tuple[IdiolinkMetrics, QueryScores]:
    """Return metrics and query scores; the ranker is BM25 regardless of the model name."""
    dataset = data(composition)
    index = build_index(dataset.documents, Bm25Parameters(k1=0.9, b=0.4))
    run = search(
        index, dataset.documents, dataset.queries,
        query_mode="span" if mode.endswith("span") else "sentence", top_k=top_k, progress=False,
    )  # fmt: skip
    return idiolink_metrics(
        run,
        dataset,
        RunIdentity(model=model, setting=mode, seed=seed),
        Evidence(computed_from={}),
        depth=top_k,
        tuning=None,
        resamples=20,
    )


def measured(idiolink: IdiolinkStudy, path: str) -> Any:
    """Return the record of a metric file."""
    *_, index, model, mode, seed = Path(path).with_suffix("").parts
    if index == "metrics":
        texts, _ = read_loosely([(split, SAMPLE / split) for split in ("train", "val", "test")])
        return check_dataset(
            texts, origin="released_format", sample=True, released=False, computed_from={}
        )
    number, top_k = int(seed.removeprefix("seed-")), idiolink.settings.top_k
    composition = index.partition("-")[2] or "full"
    if mode != "significance":
        return ranked(composition, model, mode, number, top_k)[0]
    scores = {
        name: ranked(composition, model, name, number, top_k)[1]
        for name in idiolink_runs.modes_of(idiolink, model)
    }
    pies = {query.id: query.pie for query in data("full").queries}
    comparisons = compare_modes(scores, pies, permutations=9, resamples=20, seed=number)
    return ModeSignificance(
        split="test", model=model, seed=number, queries=len(pies), pies=len(set(pies.values())),
        patterns=9, resamples=20, dataset_is_released=False, comparisons=comparisons,
        computed_from={},
    )  # fmt: skip


def shown(idiolink: IdiolinkStudy) -> Iterator[tuple[str, list[Any], str]]:
    """Yield every table with its rows and LaTeX, and every figure with its notes."""
    data("full").save("results/datasets/idiolink/test")
    for item in (*idiolink.tables(), *idiolink.figures()):
        for path in idiolink.shown[item].metrics:
            write_json(path, measured(idiolink, path).model_dump())
        if item.kind == "figure":
            figure = item.make(idiolink.shown[item])
            yield item.name, [], figure.get_supxlabel().replace("\n", " ")
            plt.close(figure)
        else:
            content, numbers = make_table(item.make, item.numbers, idiolink.shown[item])
            files = {kind: Path(name) for kind, name in item.files.items()}
            write_table(item.name, content, numbers, templates=ROOT / "templates", **files)
            rows = [] if numbers is None else numbers.to_dict("records")
            yield item.name, rows, files["tex"].read_text("utf-8")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"models": []},
        {"models": [], "finetuning": TUNED},
        {"models": ["bm25"]},
        {"models": ["bm25"], "finetuning": TUNED},
        {"models": ["bm25"], "query_modes": ["instruction_span"]},
    ],
    ids=str,
)
def test_a_few_models_produce_every_table_and_figure(settings: dict[str, Any]) -> None:
    idiolink = study(**settings)
    names = {name for name, _, text in shown(idiolink) if text}
    assert names == {item.name for item in (*idiolink.tables(), *idiolink.figures())}
    assert {"idiolink_dataset", "idiolink_zero_shot", "idiolink_domains"} <= names
    assert "idiolink_modes" in names or not idiolink.plan.made(
        index="test", model=idiolink.settings.models
    )


def test_scores_below_the_cutoff_are_unknown_with_a_reason() -> None:
    noted = []
    for name, rows, text in shown(study(models=["bm25", "sbert"], top_k=9, finetuning=TUNED)):
        scores = [row for row in rows if row["measure"].startswith(SCORES)]
        for row in scores:
            assert pd.isna(row["ours"]), (name, row)
            is_unknown = UNKNOWN in row["reason"] or row["measure"].endswith("_std")
            assert is_unknown or row["missing"] in {*REASONS}, (name, row)
        if UNKNOWN_NOTE in text:
            noted.append((name.removeprefix("idiolink_"), bool(scores)))
    tables = [
        "zero_shot",
        "gains",
        "bm25",
        "finetuned",
        "ablation",
        "significance",
        "pairs",
        "by_pie",
    ]
    figures = ["modes", "finetuning", "by_pie"]
    assert noted == [*((name, True) for name in tables), *((name, False) for name in figures)]


def test_enough_documents_make_all_scores_known() -> None:
    for name, rows, text in shown(study(models=["bm25", "sbert"], finetuning=TUNED)):
        assert UNKNOWN not in text, name
        assert not any(UNKNOWN in row["reason"] for row in rows), name


@pytest.mark.parametrize("name", ["idiolink_modes", "idiolink_finetuning"])
def test_a_third_metric_has_its_own_axes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of docs/adding/code.md adds a metric to the tables."""
    monkeypatch.setitem(METRICS, "reciprocal_rank", "MRR")
    idiolink = study(models=["bm25", "sbert"], finetuning=TUNED)
    [figure] = [item for item in idiolink.figures() if item.name == name]
    for path in idiolink.shown[figure].metrics:
        write_json(path, measured(idiolink, path).model_dump())
    axes = figure.make(idiolink.shown[figure]).axes
    labels = {label for axis in axes for label in (axis.get_xlabel(), axis.get_ylabel())}
    assert {f"{metric} (%)" for metric in METRICS.values()} <= labels
