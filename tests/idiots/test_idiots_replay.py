"""The shipped recordings are complete, in canonical order, and sufficient without a model."""

import json
from pathlib import Path

import pytest
from idiots_cases import ROOT, SAMPLE
from run_script import start_script

from pieline.config import layered, load_config, load_studies
from pieline.core.records import load_jsonl
from pieline.core.yamls import read_yaml
from pieline.llm.archive import verify
from pieline.llm.recordings import raw_lines, read_answers
from pieline.models.registry import load_registry
from pieline.studies.idiots.datasets import read_sentences, save_dataset
from pieline.studies.idiots.records import DetectionPrediction

MODEL = "smollm2-135m-instruct"
RECORDINGS = ROOT / "recordings" / "idiots" / MODEL

REFUSE = """
import sys
from importlib.abc import MetaPathFinder

class Refuse(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in {"litellm", "agno", "xllamacpp", "openai", "torch"}:
            raise AssertionError(f"{name} is imported")

sys.meta_path.insert(0, Refuse())
"""


@pytest.mark.full
def test_the_default_run_replays_without_model_or_provider_library(tmp_path: Path) -> None:
    save_dataset(tmp_path / "dataset", read_sentences(SAMPLE / "idiots.json"), origin="sample")
    config = load_config(layered(read_yaml(ROOT / "config.yaml"), ROOT / "config" / "sample.yaml"))
    study = load_studies(config, load_registry(ROOT / "models.yaml"), ROOT)["idiots"]
    task = next(task for task in study.tasks() if task.setting == "zero_shot_schema")
    sentences, output = tmp_path / "dataset/sentences.jsonl", tmp_path / "predictions.jsonl"
    moved = task.model_copy(
        update={
            "inputs": {**task.inputs, "sentences": str(sentences)},
            "outputs": {"predictions": str(output)},
        }
    )
    settings = {"mode": "replay", "recordings_folder": str(ROOT / "recordings")}
    result = start_script(
        "ask",
        before=REFUSE,
        environment={"PIELINE_LLM_SETTINGS": json.dumps(settings)},
        input={"files": [*moved.inputs.values()], "served": []},
        output=moved.outputs,
        params={"kind": moved.path(), "task": moved.canonical(), "answers": ""},
        log=str(tmp_path / "log"),
    )
    assert result.returncode == 0, result.stderr
    predictions = load_jsonl(output, DetectionPrediction)
    assert len(predictions) == 82
    answers = read_answers(RECORDINGS / "zero_shot_schema-seed-0.jsonl")
    assert all(answers[prediction.answer_key].origin == "asked" for prediction in predictions)


@pytest.mark.parametrize("recordings", sorted(RECORDINGS.iterdir()), ids=lambda path: path.stem)
def test_recordings_are_sorted_and_match_the_questions(recordings: Path) -> None:
    assert verify(recordings) == []
    lines = raw_lines(recordings)
    assert b"".join(lines[key][0] for key in sorted(lines)) == recordings.read_bytes()
