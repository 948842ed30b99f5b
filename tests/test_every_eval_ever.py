"""The export in the format of Every Eval Ever: a record per run, and one per item."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from frame_cases import our_number

from pieline.cli import command
from pieline.core.errors import UserError
from pieline.core.files import sha256, write_json, write_text
from pieline.core.sidecars import Digests, write_sidecar
from pieline.every_eval_ever import export_records
from pieline.llm.answers import Answer
from pieline.llm.questions import Message, Question
from pieline.llm.recordings import record
from pieline.reporting.numbers import frame_of, write_numbers
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.predictions.rankings import write_run
from pieline.studies.idiolink.records import Document, Query

SENTENCES = "results/datasets/idiots/sentences.jsonl"
ANSWERED = "idiots/talker/zero_shot/seed-1"
RANKED = "idiolink/test/sbert/span/seed-0"
TUNED = "idiolink/test/sbert+span+paper/span/seed-0"
TALKER = {"kind": "llm", "source": "api", "litellm_id": "openai/talker-1"}
SBERT = {"kind": "embedder", "source": "hub", "checkpoint": "sentence-transformers/sbert"}
QUESTION = Question("openai/talker-1", (Message("user", "An idiom?"),), {}, 0)
RECORDING = "recordings/idiots/talker/zero_shot-seed-1.jsonl"


def add_run(name: str, predictions: str, data: str, weights: dict[str, Any]) -> None:
    *_, model, _, seed = name.split("/")
    conditions = {"settings": {"top_k": 3}, "weights": weights, "deviations": []}
    inputs = Digests().of(f"results/predictions/{predictions}", data)
    fields = {"model": model, "seed": int(seed.removeprefix("seed-")), "conditions": conditions}
    write_json(f"results/metrics/{name}.json", fields | {"computed_from": inputs})


def score(name: str, measure: str, ours: float, **fields: Any) -> Any:
    study, *_, model, _, _ = name.split("/")
    files = (f"results/metrics/{name}.json",)
    values = {"scope": "", "against": "", "unit": "", "better": ""} | fields
    return our_number(ours, study=study, model=model, measure=measure, files=files, **values)


def write_items(study: str, name: str, *rows: dict[str, Any]) -> None:
    path = Path("results", "items", f"{study}.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    shared = {"usage": "idiomatic", "pie": "break the ice"}
    more = {"metrics": f"results/metrics/{name}.json"}
    pd.DataFrame([shared | row | more for row in rows]).to_parquet(path)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a finished run with answers of a chat model and rankings of two embedders."""
    monkeypatch.chdir(tmp_path)
    write_json("results/provenance.json", {"data": "own"})
    write_text(SENTENCES, "".join(f'{{"id":"s{n}","sentence":"Ice {n}."}}\n' for n in (1, 2)))
    answer = Answer(key=QUESTION.key, text="Yes, one.")
    record(RECORDING, [(QUESTION, answer)])
    predictions = f"results/predictions/{ANSWERED}.jsonl"
    keys = {"s1": QUESTION.key, "s2": "other"}
    lines = [json.dumps({"id": name, "answer_key": key}) + "\n" for name, key in keys.items()]
    write_text(predictions, "".join(lines))
    write_sidecar(predictions, made_from={}, recordings=Digests().of(RECORDING))
    add_run(ANSWERED, f"{ANSWERED}.jsonl", SENTENCES, TALKER)
    write_items(
        "idiots", ANSWERED,
        {"id": "s1", "gold": "idiom", "answer": "idiom", "outcome": "ok", "correct": True},
        {"id": "s2", "gold": "idiom", "answer": None, "outcome": "refused", "correct": False},
    )  # fmt: skip

    text = {"pie": "break the ice", "subject": "Music", "is_gold": True, "span": "broke the ice"}
    sentence = "They broke the ice."
    texts = [
        Document(id=f"d{n}", sentence=sentence, usage=usage, **text)
        for n, usage in enumerate(("idiomatic", "literal", "sense"))
    ]
    query = Query(id="q1", sentence="She broke the ice.", usage="idiomatic", **text)
    folder = "results/datasets/idiolink/test"
    IdiolinkDataset("test", "full", True, texts, [query]).save(folder)
    for name in (RANKED, TUNED):
        ranking = f"results/predictions/{name}.run.gz"
        write_run(ranking, {"q1": {"d2": 0.9, "d1": 0.8, "d0": 0.1}}, tag="sbert")
        add_run(name, f"{name}.run.gz", f"{folder}/manifest.json", SBERT)
    scores = {"r_precision": 0.5, "ndcg_at_10": 0.92, "first_relevant": 1}
    write_items("idiolink", RANKED, {"query": "q1", **scores})
    accuracy = {"better": "high", "low": 0.1, "high": 0.9}
    numbers = [
        score(ANSWERED, "accuracy", 0.5, **accuracy),
        score(ANSWERED, "answers_ok", 1),
        score(RANKED, "r_precision", 50.0, unit="%", better="high", seed="0"),
        score(RANKED, "r_precision", 50.0, unit="%", better="high"),
        score(RANKED, "r_precision", 40.0, unit="%", better="high", scope="literal"),
        score(RANKED, "r_precision_difference", 3.0, unit="%", better="high", against="bm25"),
        score(TUNED, "r_precision", 60.0, unit="%", better="high"),
        our_number(1.0, study="idiots", measure="x", better="high", files=("a.json", "b.json")),
    ]
    write_numbers("paper_tables/numbers.csv", frame_of(numbers))
    return tmp_path


def exported(folder: Path) -> dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return each record and its items, by evaluation name and model."""
    records = {}
    for path in folder.glob("data/*/*/*/*.json"):
        one = json.loads(path.read_text())
        samples, rows = path.with_name(f"{path.stem}_samples.jsonl"), []
        if detail := one.get("detailed_evaluation_results"):
            assert folder / detail["file_path"] == samples
            assert detail["checksum"] == sha256(samples)
            rows = [json.loads(line) for line in samples.read_text().splitlines()]
            assert {row["evaluation_id"] for row in rows} == {one["evaluation_id"]}
        assert samples.exists() == bool(rows)
        assert path.parts[-3:-1] == tuple(one["model_info"]["id"].split("/"))
        name = one["evaluation_results"][0]["evaluation_name"]
        records[f"{name} {one['model_info']['id']}"] = one, rows
    return records


def test_a_record_has_the_scores_and_items_of_one_run(run: Path) -> None:
    assert export_records(run / "out", time=1_800_000_000) == 3
    records = exported(run / "out")
    assert set(records) == {
        "idiots/zero_shot openai/talker-1",
        "idiolink/test/span sentence-transformers/sbert",
        "idiolink/test/span pieline/sbert+span+paper",
    }
    answered, sentences = records["idiots/zero_shot openai/talker-1"]
    assert answered["retrieved_timestamp"] == "1800000000"
    (accuracy,) = answered["evaluation_results"]
    assert accuracy["score_details"] == {
        "score": 0.5,
        "uncertainty": {
            "confidence_interval": {"lower": 0.1, "upper": 0.9, "confidence_level": 0.95}
        },
    }
    details = answered["model_info"]["additional_details"]
    assert details["deployment_type"] == "externally_managed"
    assert [row["output"]["raw"] for row in sentences] == [["Yes, one."], [""]]
    assert [row["evaluation"]["is_correct"] for row in sentences] == [True, False]
    assert [row.get("error") for row in sentences] == [None, "refused"]
    assert {row["evaluation_result_id"] for row in sentences} == {"accuracy"}

    ranked, (query,) = records["idiolink/test/span sentence-transformers/sbert"]
    scores = {
        one["evaluation_result_id"]: one["score_details"]["score"]
        for one in ranked["evaluation_results"]
    }
    assert scores == {"r_precision": 0.5, "r_precision/literal": 0.4}
    assert query["input"] == {"raw": "She broke the ice.", "reference": ["d0", "d2"]}
    assert query["output"]["raw"] == ["d2 d1 d0"]
    assert query["evaluation"] == {"score": 0.5, "is_correct": True}
    # An item file may have no rows for a run.
    assert records["idiolink/test/span pieline/sbert+span+paper"][1] == []


def test_the_files_depend_only_on_the_runs_and_the_time(run: Path) -> None:
    for folder in ("one", "two"):
        export_records(run / folder, time=1)
    files = sorted(path for path in (run / "one").rglob("*") if path.is_file())
    assert len(files) == 5
    for path in files:
        other = run / "two" / path.relative_to(run / "one")
        assert other.read_bytes() == path.read_bytes()


def test_runs_are_selected_on_the_command_line(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--format", "every-eval-ever", "--study"]
    command(["runs", "export", "out", *options, "idiots"])
    assert capsys.readouterr().out == "out: 1 run\n"
    assert {path.name for path in Path("out/data").iterdir()} == {"idiots"}
    with pytest.raises(SystemExit):
        command(["runs", "export", "none", *options, "jam"])
    assert "paper_tables/numbers.csv: no finished run" in capsys.readouterr().err


def test_an_unfinished_run_is_refused(run: Path) -> None:
    Path("results/items/idiots.parquet").unlink()
    with pytest.raises(UserError, match=r"idiots\.parquet: is missing; finish the run"):
        export_records(run / "out", time=1)


def test_the_validator_accepts_the_export(run: Path) -> None:
    validator = shutil.which("every_eval_ever")
    if validator is None:
        pytest.skip("needs every_eval_ever (of every-eval-ever 0.3.0, in its own environment)")
    export_records(run / "out", time=1_800_000_000)
    files = [str(path.relative_to("out")) for path in Path("out").rglob("*.json*")]
    result = subprocess.run(
        [validator, "validate", *files], cwd="out", capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
