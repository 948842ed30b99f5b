"""Runs constructed from printed scores reproduce their digits in metrics and tables."""

from itertools import product
from pathlib import Path

import pytest
from run_script import run_script
from support import ROOT

from pieline.config import load_config, load_studies
from pieline.core.files import write_json
from pieline.core.imports import import_object
from pieline.core.yamls import read_yaml
from pieline.models.registry import load_registry
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import read_comparisons
from pieline.reporting.tables import write_table
from pieline.studies.idiolink import runs as idiolink_runs
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.datasets.relevance import meaning_qrels
from pieline.studies.idiolink.metrics.ranking import mean_scores, score_queries
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.originals.domains import DOMAINS
from pieline.studies.idiolink.predictions.bm25_tuning import Tuning
from pieline.studies.idiolink.predictions.runs import read_run
from pieline.studies.idiolink.records import Document, Query
from pieline.studies.idiolink.study import IdiolinkStudy
from rehearsal.ranks import BM25, printed_run, printed_tuning, target

PUBLISHED = ROOT / "published"
TOP_K = 60
"""Number of relevant documents of an idiomatic query, the depth of all scores."""
USAGES = {"literal": 4, "idiomatic": 2, "simplification": 2, "sense": 2}
SBERT = "sentence-transformers/all-MiniLM-L6-v2"


def dataset_of(pies: int, per_usage: dict[str, int]) -> IdiolinkDataset:
    """Return a test split with two queries and some documents per PIE and domain, as released."""
    documents, queries = [], []
    for pie, domain in product([f"pie {number}" for number in range(pies)], DOMAINS):
        text = {"sentence": pie, "pie": pie, "span": pie, "subject": domain, "is_gold": False}
        name = f"{pie}_{domain}".replace(" ", "_")
        for usage, count in per_usage.items():
            documents += [
                Document(id=f"{name}_{usage}_{number}", usage=usage, **text)  # type: ignore[arg-type]
                for number in range(count)
            ]
        queries += [
            Query(id=f"q_{name}_{usage}", usage=usage, **text)  # type: ignore[arg-type]
            for usage in ("literal", "idiomatic")
        ]
    return IdiolinkDataset("test", "full", True, documents, queries)


@pytest.fixture(scope="module")
def dataset() -> IdiolinkDataset:
    # With fewer than about 250 queries, a single document changes the second decimal.
    return dataset_of(16, USAGES)


@pytest.fixture(scope="module")
def study() -> IdiolinkStudy:
    config = load_config(read_yaml(ROOT / "config/paper.yaml"))
    idiolink = load_studies(config, load_registry(ROOT / "models.yaml"), ROOT)["idiolink"]
    assert isinstance(idiolink, IdiolinkStudy)
    return idiolink


def measure(
    study: IdiolinkStudy, dataset: IdiolinkDataset, metrics: str, *, top_k: int, folder: Path
) -> str:
    """Write the metric file of a constructed run, with the arguments that the rule would pass."""
    _, _, _, index, name, query_mode, file = metrics.split("/")
    composition, seed = index.partition("-")[2] or "full", int(file[5:-5])
    base, *training = name.split("+")
    composed = dataset.composed(composition)
    run = printed_run(
        composed.queries, composed.documents, model=study.project.entry(name).published_as or base,
        query_mode=query_mode, composition=composition,
        train_mode=training[0] if training else None, seed=seed,
        seeds=study.settings.finetuning.seeds if training else [0],
        published=PUBLISHED, top_k=top_k,
    )  # fmt: skip
    qrels = meaning_qrels(composed.queries, composed.documents)
    overall = mean_scores(score_queries(run, qrels, depth=top_k), qrels)
    record = IdiolinkMetrics(
        split="test", composition=composition, model=name, query_mode=query_mode, seed=seed,
        dataset_is_released=True, overall=overall, by_usage={}, by_subject={}, by_pie={},
        same_meaning_and_subject=overall, same_subject=overall, depth=top_k,
        tuning=tuning(study, composition, query_mode) if name == BM25 else None, computed_from={},
        conditions=idiolink_runs.conditions(study, name),
    )  # fmt: skip
    path = folder / metrics
    write_json(path, record.model_dump())
    return str(path)


def tuning(study: IdiolinkStudy, composition: str, query_mode: str) -> Tuning:
    full = composition == "full"
    settings = study.settings.bm25
    return printed_tuning(
        query_mode="sentence" if full else query_mode, composition=composition, k1=settings.k1,
        b=settings.b, published=PUBLISHED,
    )  # fmt: skip


def comparisons(
    study: IdiolinkStudy, name: str, inputs: DisplayInputs, folder: Path
) -> list[dict[str, str]]:
    """Write a table and return the lines of its CSV."""
    table = next(table for table in study.tables() if table.name == name)
    files = {end: folder / f"{name}.{end}" for end in ("tex", "csv", "html")}
    write_table(name, import_object(table.maker)(inputs), templates=ROOT / "templates", **files)
    return read_comparisons(files["csv"])


def measured(
    study: IdiolinkStudy, dataset: IdiolinkDataset, name: str, folder: Path, *, top_k: int = TOP_K
) -> list[dict[str, str]]:
    """Return the CSV lines of a table whose metric files are all from constructed runs."""
    inputs = next(table.display_inputs for table in study.tables() if table.name == name)
    # Both losses have the same numbers, so one suffices.
    files = [each for each in inputs.metrics if "+released/" not in each]
    paths = [measure(study, dataset, each, top_k=top_k, folder=folder) for each in files]
    return comparisons(study, name, inputs.model_copy(update={"metrics": tuple(paths)}), folder)


@pytest.mark.parametrize(
    ("table", "cells"),
    [
        ("idiolink_zero_shot", 24 * 4 * 2),
        ("idiolink_bm25", 2 * 4),
        # Means and deviations of 30 rows.
        ("idiolink_finetuned", 30 * 2 * 2),
    ],
)
def test_every_printed_cell_is_reproduced(
    study: IdiolinkStudy, dataset: IdiolinkDataset, table: str, cells: int, tmp_path: Path
) -> None:
    printed = [line for line in measured(study, dataset, table, tmp_path) if line["printed"]]
    assert len(printed) == cells
    assert all(line["comparable"] == "yes" for line in printed)
    assert [line for line in printed if float(line["ours"]) != float(line["printed"])] == []


def test_runs_are_reproducible_and_differ_between_models(dataset: IdiolinkDataset) -> None:
    def run(model: str) -> dict[str, dict[str, float]]:
        return printed_run(
            dataset.queries, dataset.documents, model=model, query_mode="span", composition="full",
            published=PUBLISHED, top_k=TOP_K,
        )  # fmt: skip

    first = run(SBERT)
    assert list(map(list, run(SBERT).values())) == list(map(list, first.values()))
    assert list(map(list, run(BM25).values())) != list(map(list, first.values()))


@pytest.mark.parametrize("per_usage", [{"literal": 1, "idiomatic": 1}, USAGES])
def test_few_queries_give_the_nearest_possible_scores(per_usage: dict[str, int]) -> None:
    # With at most ten documents per usage, R is at most the ten ranks of nDCG@10.
    small = dataset_of(2, per_usage)
    few = [text for text in small.documents if text.subject in DOMAINS[:6]]
    run = printed_run(
        small.queries, few, model=SBERT, query_mode="span", composition="full",
        published=PUBLISHED, top_k=40,
    )  # fmt: skip
    qrels = meaning_qrels(small.queries, few)
    scores = mean_scores(score_queries(run, qrels), qrels)
    step = 1 / min(map(len, qrels.values())) / len(qrels)
    assert scores.r_precision == pytest.approx(0.4088, abs=step)
    assert scores.ndcg_at_10 == pytest.approx(0.5886, abs=0.01)


def test_unprinted_targets_are_approximated() -> None:
    def aim(model: str, mode: str, composition: str = "full", **more: str) -> tuple[float, float]:
        return target(PUBLISHED, model=model, query_mode=mode, composition=composition, **more)  # type: ignore[arg-type]

    # The mean of the column over 24 models.
    assert 100 * aim("unknown", "sentence")[0] == pytest.approx(20.53, abs=0.01)
    # BM25's scores with sentence queries without idiomatic documents: 32.63 / 36.04 and 43 / 59.07.
    assert 100 * aim(SBERT, "span", "lit_sim_sense")[0] == pytest.approx(40.88 * 32.63 / 36.04)
    assert 100 * aim(BM25, "span", "lit_sim_sense")[1] == pytest.approx(49.87 * 43 / 59.07)
    assert 100 * aim(SBERT, "span", train_mode="span")[1] == pytest.approx(69.36)


def test_the_scripts_write_what_the_jobs_would(dataset: IdiolinkDataset, tmp_path: Path) -> None:
    composed = dataset.composed("lit_idiom")
    composed.save(tmp_path)
    documents, queries = tmp_path / "documents.jsonl", tmp_path / "queries.jsonl"
    printed = [PUBLISHED / "tables.yaml"]
    ranks, tuned = tmp_path / "made.run.gz", tmp_path / "tuning.json"
    run_script(
        "rehearse_ranks",
        input={"printed": printed, "documents": documents, "queries": queries},
        output=[ranks],
        params={"top_k": TOP_K, "printed_as": "", "seeds": [0]},
        wildcards={
            "index": "test-lit_idiom", "model": BM25, "query_mode": "sentence", "seed": 0
        },
    )  # fmt: skip
    run_script(
        "rehearse_tuning",
        input={"printed": printed},
        output=[tuned],
        params={"k1": [0.6, 0.9], "b": [0.4, 0.9]},
        wildcards={"index": "val-lit_sim_sense", "model": BM25, "query_mode": "sentence"},
    )
    qrels = meaning_qrels(composed.queries, composed.documents)
    scores = mean_scores(score_queries(read_run(ranks), qrels), qrels)
    assert scores.r_precision == pytest.approx(0.4267, abs=5e-5)
    tuning = Tuning.model_validate_json(tuned.read_text("utf-8"))
    assert (tuning.chosen.k1, tuning.chosen.b) == (0.9, 0.4)
    assert max(tuning.grid, key=lambda point: point.ndcg_at_10).k1 == 0.9
