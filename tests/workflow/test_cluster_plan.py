"""Plans with the cluster profile, the tools that count them, and the sizes of jobs."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import ROOT, succeed

from pieline.core.errors import UserError
from pieline.models.registry import load_registry
from pieline.models.sizing import (
    gpu_memory_mb,
    host_memory_mb,
    parameter_count,
    server_gpu_memory_mb,
    server_gpus,
    server_host_memory_mb,
    uses_gpu,
)
from pieline.patches import patch_snakemake

REGISTRY = load_registry(ROOT / "models.yaml")


def run_script(name: str, *arguments: str, text: str = "") -> str:
    """Run a program of tools/ and return its output."""
    result = subprocess.run(
        [sys.executable, str(ROOT / "tools" / f"{name}.py"), *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


def table(text: str) -> dict[str, list[str]]:
    """Return the rows of a printed table by their first column."""
    rows = [(line[:28].strip(), line[28:].split()) for line in text.splitlines()]
    return {name: cells for name, cells in rows if name}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the dry run of the default configuration for a cluster."""
    folder = tmp_path_factory.mktemp("plan")
    cluster = ("--profile", str(ROOT / "profiles/slurm"))
    arguments = (*cluster, "--directory", str(folder), "-np", "all")
    result = succeed(ROOT, *arguments)
    return result.stdout


def test_job_arrays_are_refused() -> None:
    workflow = SimpleNamespace(executor_settings=SimpleNamespace(array_jobs="all"))
    with pytest.raises(UserError, match=r"^--slurm-array-jobs is not supported; leave it out"):
        patch_snakemake(workflow)


def test_default_run_is_few_submissions(plan: str) -> None:
    rows = table(run_script("count_submissions", text=plan))
    jobs, submissions = (int(cell.replace(",", "")) for cell in rows["all"])
    assert f"total{jobs:>10}".split() in [line.split() for line in plan.splitlines()]
    with_gpu = {"embed", "fine_tune", "fine_tune_tagger"}
    with_gpu |= {"jam_attention", "tag_idioms", "tag_neutral"}
    alone = {name.removeprefix("rule ") for name in rows if name.startswith("rule ")}
    assert alone <= with_gpu
    assert submissions < jobs / 5
    assert all(rows[name][1] == "1" for name in rows if name.startswith("group "))
    assert rows["(local)"][1] == "0"


def test_large_group_is_several_submissions() -> None:
    text = (
        "[Mon Jan  1 00:00:00 2029] Group job scores (jobs in lexicogr. order):\n"
        "    rule idiolink_metrics:\n        output: a\n    rule rank_by_embedding:\n"
        "Group job scores (jobs in lexicogr. order):\n    rule idiolink_metrics:\n"
        "rule embed:\n    output: b\nrule raw_file:\n    output: c\n"
    )
    rows = table(run_script("count_submissions", text=text))
    assert rows["group scores"] == ["3", "2"]
    assert rows["rule embed"] == ["1", "1"]
    assert rows["(local)"] == ["1", "0"]
    assert rows["all"] == ["5", "3"]


def test_hours_of_jobs_that_ran(tmp_path: Path) -> None:
    for seed, duration in (("1", 3600), ("2", 1800)):
        path = tmp_path / "idiolink" / "training" / "sbert" / f"seed-{seed}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"s\th:m:s\n{duration}\t-\n", encoding="utf-8")
    lines = run_script("job_hours", str(tmp_path), "--depth", "2").splitlines()
    assert lines[1].split() == ["idiolink/training", "2", "1.50", "1.00"]


def test_numbers_of_parameters() -> None:
    assert parameter_count("22.7M") == 22_700_000
    assert parameter_count("1.5B") == 1_500_000_000
    with pytest.raises(UserError, match="'big' is not a number of parameters"):
        parameter_count("big")


def test_memory_fits_the_weights() -> None:
    small, large = REGISTRY["sbert"], REGISTRY["e5-mistral"]
    assert small.kind == large.kind == "embedder"
    assert not uses_gpu(small)
    assert uses_gpu(large)
    # 7.1 billion weights of two bytes, plus working memory.
    assert 15_000 <= gpu_memory_mb(large) <= 24_000
    assert gpu_memory_mb(large, training=True) > 7_000 * 16
    assert host_memory_mb(small) == 8000
    assert host_memory_mb(large) > gpu_memory_mb(large)


def test_a_served_model_gets_gpus_by_its_size() -> None:
    qwen, scout = REGISTRY["qwen2.5-72b-weights"], REGISTRY["llama-4-scout-weights"]
    llama, small = REGISTRY["llama-2-7b-chat"], REGISTRY["smollm2-135m-instruct"]
    assert qwen.kind == scout.kind == llama.kind == small.kind == "llm"
    assert [server_gpus(entry) for entry in (qwen, scout, llama, small)] == [4, 4, 1, 0]
    # 72 billion weights of two bytes, plus working memory; in a mixture, all experts count.
    assert 160_000 <= server_gpu_memory_mb(qwen) <= 200_000
    assert server_gpu_memory_mb(scout) > 109_000 * 2
    assert server_gpu_memory_mb(small) == 0
    assert server_host_memory_mb(qwen) > 144_000
    assert server_host_memory_mb(small) == 8000
    of_file = {"source": "folder", "path": Path("m.Q4_K_M.gguf"), "dtype": None}
    quarter = llama.model_copy(update={**of_file, "server": "own {checkpoint} {port}"})
    assert server_gpus(quarter) == 1
    assert server_gpu_memory_mb(quarter) < server_gpu_memory_mb(llama) / 2
    assert server_gpus(quarter.model_copy(update={"server": None})) == 0


def test_a_model_of_unknown_size_is_planned_as_one_that_fills_a_gpu() -> None:
    entry, llama = REGISTRY["sbert"], REGISTRY["llama-2-7b-chat"]
    assert entry.kind == "embedder"
    assert llama.kind == "llm"
    unknown = entry.model_copy(update={"parameters": None})
    assert uses_gpu(unknown)
    assert 30_000 <= gpu_memory_mb(unknown) <= 40_000
    assert host_memory_mb(unknown) > 30_000
    served = llama.model_copy(update={"parameters": None})
    assert server_gpus(served) == 1
    assert server_gpu_memory_mb(served) > server_gpu_memory_mb(llama)


def test_every_embedder_has_a_size() -> None:
    sizes = [gpu_memory_mb(entry) for entry in REGISTRY.values() if entry.kind == "embedder"]
    assert len(sizes) >= 24
    assert min(sizes) >= 2000
