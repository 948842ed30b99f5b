"""Test that edited inputs are reported before the first request of a job is sent."""

from pathlib import Path

import pytest
import yaml
from fault_server import FaultServer, answer
from llm_cases import spec_for
from support import run_snakemake

DATASET = "results/datasets/idiots/sentences.jsonl"
PREDICTIONS = "results/predictions/idiots/served/zero_shot/seed-0.jsonl"


def test_an_edited_data_set_causes_no_request(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", "sk-testing-testing")
    with FaultServer(lambda _: answer('{"hasIdiom": false}')) as server:
        entry = spec_for(server.api_base).model_dump(mode="json", exclude_none=True)
        with (project / "models.yaml").open("a", encoding="utf-8") as stream:
            yaml.safe_dump({"served": entry}, stream)
        config = yaml.safe_load((project / "config.yaml").read_text(encoding="utf-8"))
        config["studies"] = ["idiots"]
        config["idiots"] |= {"models": ["served"], "settings": ["zero_shot"]}
        (project / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

        made = run_snakemake(project, "--cores", "1", DATASET)
        assert made.returncode == 0, made.stderr
        path = project / DATASET
        original = path.read_text(encoding="utf-8")
        path.write_text(original.replace(" the ", " a ", 1), encoding="utf-8")
        for _ in range(2):
            failed = run_snakemake(project, "--cores", "1", PREDICTIONS)
            assert failed.returncode != 0
            (line,) = {line for line in failed.stderr.splitlines() if line.startswith("error: ")}
            assert line.startswith(f"error: {DATASET}: was changed after it was written"), line
            assert server.requests == []
        path.write_text(original, encoding="utf-8")
        made = run_snakemake(project, "--cores", "1", PREDICTIONS)
        assert made.returncode == 0, made.stderr
        count = len(original.splitlines())
        assert len(server.requests) == count
        # The number of unreadable answers is printed at the end of the job.
        counted = f"served: {count} answers: {count} readable, 0 cut off, 0 filtered, 0 refused"
        assert counted in made.stderr
