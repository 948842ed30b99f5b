"""What the real run will take: the plan's schedule and the formulas, against cases by hand."""

from pathlib import Path

import pytest
from support import ROOT

from pieline.core.errors import UserError
from pieline.llm.costs import Estimate
from pieline.llm.estimates import TaskEstimate
from pieline.llm.settings import LLMSettings
from pieline.models.llm import LLMEntry
from pieline.models.registry import Registry, load_registry
from pieline.rehearsal.forecast import (
    ASSUMED,
    Assumptions,
    Estimator,
    Submissions,
    Texts,
    dimension,
    downloads_of,
    forecast,
    read_submissions,
)
from pieline.rehearsal.plan import Job, PlannedJob, read_plan, schedule
from pieline.reporting.latex import render_html

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
rule embed_documents:
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


def planned(name: str, rule: str, *needs: str, gpus: int = 0, **wildcards: str) -> PlannedJob:
    return PlannedJob(name, rule, wildcards, gpus, needs)


def estimator(registry: Registry, **changes: object) -> Estimator:
    """Ten documents of 20 tokens and two queries of 30 in each split; assumptions in round numbers.

    A model begins at once and is loaded in no time.
    """
    sizes = dict.fromkeys(("train", "val", "test"), (10, 200.0))
    fields: dict[str, object] = {
        "registry": registry,
        "texts": Texts(sizes, dict.fromkeys(sizes, (2, 60.0)), {"english": (1000, 100, 40)}),
        "estimates": [],
        "kinds": {},
        "settings": LLMSettings(),
        "epochs": (10, 20),
        "assumptions": Assumptions(
            float32_flops=1e12, bfloat16_flops=1e13, memory_bandwidth=1e12, efficiency=0.5,
            cpu_flops=1e10, load_bandwidth=1e30, start_seconds=0, tokens_per_word=2,
        ),
    }  # fmt: skip
    return Estimator(**(fields | changes))  # type: ignore[arg-type]


class TestPlan:
    def test_a_dry_run_says_who_makes_whose_inputs(self) -> None:
        assert read_plan(DRY_RUN.splitlines(keepends=True)) == [
            PlannedJob(
                "1", "embed_documents", {"split": "test", "model": "e5-mistral", "seed": "0"}, 2,
                ("3", "7"),
            ),
            PlannedJob("3", "idiolink_dataset", {"split": "test"}, 0, ("7",)),
            PlannedJob("7", "raw_file", {"name": "texts.json"}, 0, ()),
        ]  # fmt: skip

    def test_the_order_of_a_dry_run_does_not_matter(self) -> None:
        head, *told = DRY_RUN.split("[Sun")
        other = "[Sun".join([head, *reversed(told)])
        assert read_plan(other.splitlines()) == read_plan(DRY_RUN.splitlines())

    def test_a_run_with_nothing_to_do_is_no_plan(self) -> None:
        with pytest.raises(UserError, match="no job in it"):
            read_plan(["Nothing to be done."])


class TestSchedule:
    JOBS = (
        Job("short", 1, "gpu"),
        Job("first", 2, "gpu"),
        Job("second", 4, "gpu", needs=("first",)),
        Job("table", 1, "cpu", needs=("second", "short")),
    )

    @pytest.mark.parametrize(("gpus", "seconds"), [(1, 8), (2, 7), (16, 7)])
    def test_what_the_longest_chain_hangs_on_goes_first(self, gpus: int, seconds: int) -> None:
        found = schedule(self.JOBS, {"gpu": gpus})
        assert found == (seconds, 7, ("first", "second", "table"))

    def test_a_provider_answers_one_job_at_a_time_beside_the_others(self) -> None:
        jobs = [Job("a", 3, "openai"), Job("b", 4, "openai"), Job("c", 5, "gemini")]
        assert schedule(jobs, {"cpu": 16}).seconds == 7

    def test_a_job_of_several_gpus_waits_for_them_and_takes_what_there_is(self) -> None:
        jobs = [Job("wide", 5, "gpu", units=2), Job("a", 1, "gpu"), Job("b", 1, "gpu")]
        assert schedule(jobs, {"gpu": 2}).seconds == 6
        assert schedule(jobs, {"gpu": 3}).seconds == 5
        assert schedule(jobs, {"gpu": 1}).seconds == 7

    @pytest.mark.parametrize(
        "jobs",
        [
            [Job("a", 1, needs=("b",))],
            [Job("a", 1, needs=("b",)), Job("b", 1, needs=("a",))],
        ],
    )
    def test_jobs_that_never_start_are_one_line(self, jobs: list[Job]) -> None:
        with pytest.raises(UserError, match="job a waits for b"):
            schedule(jobs, {})


class TestFormulas:
    def test_reading_and_learning(self) -> None:
        assumed = Assumptions(float32_flops=1e12, bfloat16_flops=4e12, efficiency=0.5)
        # 2 * 1e9 * 1e3 operations by 0.5e12 a second.
        assert assumed.compute_seconds(10**9, 1e3, dtype="float32") == 4
        assert assumed.compute_seconds(10**9, 1e3, dtype="bfloat16") == 1
        assert assumed.compute_seconds(10**9, 1e3, dtype="float32", training=True) == 12

    def test_writing_reads_all_weights_for_each_token(self) -> None:
        assumed = Assumptions(memory_bandwidth=2e12, efficiency=0.5)
        assert assumed.writing_seconds(14 * 10**9, 1000, at_once=1) == 14
        assert assumed.writing_seconds(14 * 10**9, 1000, at_once=7) == 2

    def test_a_model_is_loaded_first(self) -> None:
        assumed = Assumptions(start_seconds=60, load_bandwidth=1e9)
        assert assumed.loading_seconds(14 * 10**9) == 74

    def test_vectors_are_as_long_as_those_of_models_of_that_size(self) -> None:
        sizes = {"sbert": 384, "e5-base-v2": 768, "bge-m3": 1024, "qwen3-embedding-4b": 2560}
        counts = {22_700_000: 384, 109_000_000: 768, 568_000_000: 1024, 4_020_000_000: 2560}
        assert [dimension(count) for count in counts] == list(sizes.values())
        assert dimension(7_110_000_000) == 4096

    def test_embedding_and_training(self, registry: Registry) -> None:
        count = 109e6
        trained = {"model": "e5-base-v2", "train_mode": "sentence", "loss": "paper", "seed": "42"}
        jobs = estimator(registry).jobs(
            [
                planned("1", "embed_documents", gpus=1, split="test", model="e5-base-v2"),
                planned("2", "embed_documents", split="test", model="e5-base-v2+span+paper"),
                planned("3", "fine_tune", gpus=1, **trained),
                planned("4", "fine_tune_tagger", gpus=1, language="english", model="bert"),
                planned("5", "table", "4", table="x"),
            ]
        )
        assert jobs[0].seconds == pytest.approx(2 * count * 200 / 0.5e12)
        assert (jobs[1].pool, jobs[1].seconds) == ("cpu", pytest.approx(2 * count * 200 / 1e10))
        # Two tuples, each a query of 30 tokens and six documents of 20; 260 tokens to validate.
        learnt, checked = 10 * 2 * (30 + 6 * 20), 10 * 260
        assert jobs[2].seconds == pytest.approx(count * (6 * learnt + 2 * checked) / 0.5e12)
        # 1,000 words to learn from, 100 to validate, two tokens each, twenty times.
        assert jobs[3].seconds == pytest.approx(110e6 * 40 * (6 * 1000 + 2 * 100) / 0.5e12)
        assert jobs[4] == Job("5", 10, "cpu", needs=("4",))

    def test_providers_and_servers(self, registry: Registry) -> None:
        found = []
        for model in ("gpt-4o-mini", "llama-2-7b-chat"):
            entry = registry[model]
            assert isinstance(entry, LLMEntry)
            cost = Estimate(
                entry, questions=100, recorded=20, input_tokens=1000, output_tokens=9000,
                likely_output_tokens=4800,
            )  # fmt: skip
            found.append(TaskEstimate("Detection", model, entry, cost, (), ()))
        of = estimator(registry, estimates=found, kinds={"idiots_detect": "Detection"})
        jobs = of.jobs(
            [
                planned("1", "idiots_detect", model="gpt-4o-mini", seed="42"),
                planned("2", "idiots_detect", model="gpt-4o-mini", seed="43"),
                planned("3", "serve", gpus=1, asking="idiots_detect", model="llama-2-7b-chat"),
                planned("4", "idiots_detect_served", "3", model="llama-2-7b-chat"),
            ]
        )
        # 80 answers begin after a second each, 60 tokens a second, eight at once; half to each job.
        assert jobs[0] == Job("1", (80 + 4800 / 60) / 8 / 2, "openai")
        reading = 2 * 7e9 * 1000 / 0.5e13
        assert jobs[2].pool == "gpu"
        # 14 GB read for each token of the sixteen answers under way.
        assert jobs[2].seconds == pytest.approx(reading + 14e9 * 4800 / 0.5e12 / 16)
        assert jobs[3] == Job("4", 10, "cpu", needs=("3",))


def test_a_checkpoint_is_downloaded_once(registry: Registry) -> None:
    names = ["sbert", "e5-mistral", "qwen3-embedding-0.6b"]
    found = {each.repository: each.size for each in downloads_of({n: registry[n] for n in names})}
    # SBERT comes with a package; two bytes a parameter, as its entry says.
    assert found["intfloat/e5-mistral-7b-instruct"] == 2 * 7_100_000_000
    assert len(found) == 2


def test_what_was_counted_for_a_cluster_is_read() -> None:
    text = f"{'':28}{'jobs':>8}{'submissions':>13}\n{'group scores':28}{'1,004':>8}{6:13,}\n"
    assert read_submissions(text) == [Submissions(place="group scores", jobs=1004, submissions=6)]


def test_the_page_says_it_all(registry: Registry, tmp_path: Path) -> None:
    entry = registry["gpt-4o-mini"]
    assert isinstance(entry, LLMEntry)
    cost = Estimate(
        entry, questions=12_000, input_tokens=10**6, output_tokens=10**7, likely_output_tokens=10**6
    )
    asked = TaskEstimate("Detection", "gpt-4o-mini", entry, cost, ("later.jsonl",), ())
    of = estimator(registry, estimates=[asked], kinds={"idiots_detect": "Detection"})
    plan = [
        planned("1", "fine_tune", gpus=1, model="bge-m3", train_mode="span", loss="paper"),
        planned("2", "embed_queries", "1", gpus=1, split="test", model="bge-m3+span+paper"),
        planned("3", "rank_by_embedding", "2", index="test-lit_idiom", model="bge-m3+span+paper"),
        planned("4", "idiots_detect", model="gpt-4o-mini"),
    ]
    models = {"bge-m3": registry["bge-m3"]}
    found = forecast(plan, of, models=models, top_k=100)
    assert found.likely_usd == pytest.approx(cost.likely_usd)
    assert found.usd == pytest.approx(cost.usd)
    assert [(each.model, each.jobs) for each in found.gpu] == [("bge-m3", 2)]
    assert found.gpu_hours() == pytest.approx(found.busy["gpu"])
    assert found.disk == {
        "weights of the hub": 4 * 568_000_000,
        "trained weights": 4 * 568_000_000,
        "vectors": 4 * 2 * 1024 * 4,
        "runs": 2 * 100 * 6,
    }
    assert found.wall[0].hours == pytest.approx(found.busy["openai"])
    assert found.critical == ["idiots_detect gpt-4o-mini"]
    page = tmp_path / "forecast.html"
    render_html(ROOT / "templates/forecast.html.jinja", page, forecast=found, formulas=ASSUMED)
    text = page.read_text("utf-8")
    assert "12,000 + ?" in text
    assert "nothing here is measured" in text
    assert "NVIDIA A100" in text
    assert "idiots_detect gpt-4o-mini</code>." in text
