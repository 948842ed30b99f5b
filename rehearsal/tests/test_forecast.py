"""What the real run will take: a dry run and the formulas, against cases by hand."""

from pathlib import Path

import pytest
from support import ROOT

from pieline.core.errors import UserError
from pieline.llm.costs import Estimate
from pieline.llm.estimates import TaskEstimate
from pieline.models.llm import LLMEntry
from pieline.models.registry import Registry, load_registry
from pieline.reporting.latex import render_html
from rehearsal.forecast import (
    ASSUMED,
    Assumptions,
    Forecaster,
    PlannedJob,
    Texts,
    dimension,
    downloads_of,
    read_plan,
)

DRY_RUN = """\
Building DAG of jobs...
[Sun Nov 22 12:29:30 2026]
localrule raw_file:
    output: results/raw/texts.json
    jobid: 7
    wildcards: name=texts.json
    resources: tmpdir=/tmp, mem_mb=8000
[Sun Nov 22 12:29:30 2026] Group job data (jobs in lexicogr. order):

    [Sun Nov 22 12:29:30 2026]
    rule idiolink_dataset:
        input: results/raw/texts.json
        output: results/datasets/a.jsonl, results/datasets/b.jsonl
        jobid: 3
        wildcards: split=test
        resources: mem_mb=8000
[Sun Nov 22 12:29:31 2026]
rule embed:
    input: results/datasets/a.jsonl, results/datasets/b.jsonl, results/raw/texts.json
    output: vectors.npy
    jobid: 1
    wildcards: split=test, model=e5-mistral, seed=0
    resources: mem_mb=8000, gpu=2, gpu_mem_mb=3000
[Sun Nov 22 12:29:31 2026]
rule all:
    input: vectors.npy
    jobid: 0
"""


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(ROOT / "models.yaml")


def planned(rule: str, *, gpus: int = 0, **wildcards: str) -> PlannedJob:
    return PlannedJob(rule, wildcards, gpus)


def forecaster(registry: Registry, **changes: object) -> Forecaster:
    """Ten documents of 20 tokens and two queries of 30 in each split; assumptions in round numbers.

    A model begins at once and is loaded in no time.
    """
    sizes = dict.fromkeys(("train", "val", "test"), (10, 200.0))
    fields: dict[str, object] = {
        "registry": registry,
        "texts": Texts(sizes, dict.fromkeys(sizes, (2, 60.0)), {"english": (1000, 100, 40)}),
        "estimates": [],
        "kinds": {"idiots_detect": "Detection"},
        "epochs": (10, 20),
        "top_k": 100,
        "assumptions": Assumptions(
            float32_flops=1e12, bfloat16_flops=1e13, memory_bandwidth=1e12, efficiency=0.5,
            load_bandwidth=1e30, start_seconds=0, tokens_per_word=2,
        ),
    }  # fmt: skip
    return Forecaster(**(fields | changes))  # type: ignore[arg-type]


def asked(registry: Registry, model: str, **counts: int) -> TaskEstimate:
    entry = registry[model]
    assert isinstance(entry, LLMEntry)
    return TaskEstimate("Detection", model, entry, Estimate(entry, **counts), ("later",), ())


class TestPlan:
    def test_the_jobs_of_a_dry_run(self) -> None:
        assert read_plan(DRY_RUN.splitlines(keepends=True)) == [
            PlannedJob("embed", {"split": "test", "model": "e5-mistral", "seed": "0"}, 2),
            PlannedJob("idiolink_dataset", {"split": "test"}, 0),
            PlannedJob("raw_file", {"name": "texts.json"}, 0),
        ]

    def test_the_order_of_a_dry_run_does_not_matter(self) -> None:
        head, *parts = DRY_RUN.split("[Sun")
        other = "[Sun".join([head, *reversed(parts)])
        assert read_plan(other.splitlines()) == read_plan(DRY_RUN.splitlines())

    def test_a_run_with_nothing_to_do_is_no_plan(self) -> None:
        with pytest.raises(UserError, match="no job in it"):
            read_plan(["Nothing to be done."])


class TestFormulas:
    def test_vectors_are_as_long_as_those_of_models_of_that_size(self) -> None:
        counts = [22_700_000, 109_000_000, 568_000_000, 4_020_000_000, 7_110_000_000]
        assert [*map(dimension, counts)] == [384, 768, 1024, 2560, 4096]

    def test_embedding_and_training(self, registry: Registry) -> None:
        of, count = forecaster(registry), 109e6
        embed = planned("embed", gpus=1, split="test", model="e5-base-v2")
        instruction = of.seconds(embed) * 0.5e12 / 2 / count - 200 - 4 * 60
        assert 0 < instruction < 4 * 100  # twice two queries have it
        trained = planned("fine_tune", model="e5-base-v2", train_mode="sentence", loss="paper")
        # Two tuples, each a query of 30 tokens and six documents of 20; 260 tokens to validate.
        learnt, checked = 10 * 2 * (30 + 6 * 20), 10 * 260
        assert of.seconds(trained) == pytest.approx(count * (6 * learnt + 2 * checked) / 0.5e12)
        tagger = planned("fine_tune_tagger", language="english", model="bert")
        # 1,000 words to learn from, 100 to validate, two tokens each, twenty times.
        assert of.seconds(tagger) == pytest.approx(110e6 * 40 * (6 * 1000 + 2 * 100) / 0.5e12)

    def test_a_served_model_reads_its_weights_for_each_token(self, registry: Registry) -> None:
        model = "llama-2-7b-chat"
        found = asked(
            registry, model, questions=100, recorded=20, input_tokens=1000, output_tokens=9000,
            likely_output_tokens=4800,
        )  # fmt: skip
        of = forecaster(registry, estimates=[found])
        serve = planned("serve", gpus=1, asking="idiots_detect", model=model)
        # 14 GB read for each token of the sixteen answers under way.
        expected = 2 * 7e9 * 1000 / 0.5e13 + 14e9 * 4800 / 0.5e12 / 16
        assert of.seconds(serve) == pytest.approx(expected)
        (hours,) = of.gpu_hours([serve, planned("idiots_detect_served", model=model)])
        assert (hours["model"], hours["jobs"]) == (model, 1)
        assert hours["hours"] == pytest.approx(expected / 3600)

    def test_a_model_is_loaded_first(self, registry: Registry) -> None:
        of = forecaster(registry, assumptions=Assumptions(start_seconds=60, load_bandwidth=1e9))
        job = planned("tag_idioms", gpus=1, language="english", model="bert")
        (hours,) = of.gpu_hours([job])
        assert hours["hours"] * 3600 == pytest.approx(60 + 4 * 110e6 / 1e9, rel=0.01)


def test_a_checkpoint_is_downloaded_once(registry: Registry) -> None:
    names = ["sbert", "e5-mistral", "qwen3-embedding-0.6b"]
    found = {
        each["repository"]: each["size"] for each in downloads_of({n: registry[n] for n in names})
    }
    # SBERT comes with a package; two bytes a parameter, as its entry says.
    assert found["intfloat/e5-mistral-7b-instruct"] == 2 * 7_100_000_000
    assert len(found) == 2


def test_the_page_shows_it_all(registry: Registry, tmp_path: Path) -> None:
    found = asked(
        registry, "gpt-4o-mini", questions=12_000, input_tokens=10**6, output_tokens=10**7,
        likely_output_tokens=10**6,
    )  # fmt: skip
    plan = [
        planned("fine_tune", gpus=1, model="bge-m3", train_mode="span", loss="paper"),
        planned("embed", gpus=1, split="test", model="bge-m3+span+paper"),
        planned("rank_by_embedding", index="test-lit_idiom", model="bge-m3+span+paper"),
        planned("idiots_detect", model="gpt-4o-mini"),
    ]
    of = forecaster(registry, estimates=[found])
    forecast = of.forecast(plan, {"bge-m3": registry["bge-m3"]})
    assert forecast["likely_usd"] == pytest.approx(found.estimate.likely_usd)
    assert forecast["usd"] == pytest.approx(found.estimate.usd)
    assert [(each["model"], each["jobs"]) for each in forecast["gpu"]] == [("bge-m3", 2)]
    assert forecast["disk"] == {
        "weights of the hub": 4 * 568_000_000,
        "trained weights": 4 * 568_000_000,
        "vectors": (4 * 2 + 10) * 1024 * 4,
        "runs": 4 * 2 * 100 * 6,
    }
    page = tmp_path / "forecast.html"
    template = ROOT / "rehearsal/templates/forecast.html.jinja"
    render_html(
        template, page, style="", forecast=forecast, formulas=ASSUMED, submissions="group data 7"
    )
    text = page.read_text("utf-8")
    assert "12,000 + ?" in text
    assert "nothing here is measured" in text
    assert "NVIDIA A100" in text
    assert "group data 7" in text
