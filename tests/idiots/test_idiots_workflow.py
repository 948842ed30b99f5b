"""IdioTS in the workflow: identical bytes, no repeated questions, errors before any question."""

import hashlib
import os
from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml
from llm.fault_server import FaultServer, Reply, Request, answer
from llm.llm_cases import spec_for
from support import run_snakemake

from pieline.core.records import load_jsonl
from pieline.llm.answers import Answer
from pieline.llm.questions import make_question
from pieline.llm.recordings import read_answers, record
from pieline.studies.idiots.records import DetectionPrediction

RUN = "results/predictions/idiots/smollm2-135m-instruct"
TARGETS = (
    "paper_tables/idiots_detection.tex",
    "paper_tables/idiots_consistency.tex",
    "paper_tables/idiots_distractors.tex",
    "paper_tables/figures/idiots_recall_specificity.pdf",
    f"{RUN}/zero_shot/seed-0.cases.jsonl",
    f"{RUN}/zero_shot_schema/seed-0.cases.jsonl",
)


BILLED = {
    "ok": answer('{"hasIdiom": false, "idiom": "", "meaning": "", "explanation": ""}'),
    "unparseable": answer("I could not say."),
    "empty": answer(""),
    "refused": answer("", message={"role": "assistant", "content": None, "refusal": "No."}),
    "filtered": answer("", finish_reason="content_filter"),
    "truncated": answer('{"hasIdiom": tr', finish_reason="length"),
    "tool_call": answer(
        "",
        finish_reason="tool_calls",
        message={
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
            ],
        },
    ),
}
"""Billed replies, by outcome."""


def digests(folder: Path, *names: str) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for name in names
        for path in sorted((folder / name).rglob("*"))
        if path.is_file() and ".locks" not in path.parts
    }


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def make(folder: Path, *arguments: str) -> str:
    result = run_snakemake(folder, *arguments)
    output = result.stdout + result.stderr
    assert result.returncode == 0, output[-4000:]
    return output


def test_one_core_gives_the_same_bytes_and_no_reruns(project: Path, default_run: Path) -> None:
    recordings = digests(project, "recordings")
    assert "to ask" not in make(project, "--cores", "1", *TARGETS)
    outputs = digests(project, "results", "paper_tables")
    assert {*TARGETS} <= outputs.keys()
    expected = digests(default_run, "results", "paper_tables")
    assert outputs == {name: expected[name] for name in outputs}
    assert digests(project, "recordings") == recordings
    assert "Nothing to be done" in make(project, "--cores", "1", *TARGETS)

    # A mode that reads the same answers, or a changed limit, does not cause reruns.
    edit(project / "config.yaml", "mode: record", "mode: replay")
    edit(project / "config.yaml", "max_cost_usd: 0", "max_cost_usd: 0\n  timeout_s: 60")
    assert "Nothing to be done" in make(project, "-n", *TARGETS)
    # Another seed is another run, which replay cannot make, so its rows are empty with a reason.
    edit(project / "config.yaml", "idiots:\n", "idiots:\n  seeds: [1]\n")
    output = make(project, "--cores", "1", *TARGETS[:1])
    reason = "nothing is recorded, and llm.mode is replay"
    assert f"left out of idiots ({reason}): smollm2-135m-instruct, 2 runs" in output
    assert reason in (project / TARGETS[0]).read_text(encoding="utf-8")
    assert not list((project / RUN).rglob("seed-1*"))


def use(project: Path, *models: str, settings: str = "[zero_shot]") -> None:
    """Configure the study with these models."""
    old = "idiots:\n  models: [smollm2-135m-instruct]\n  settings: [zero_shot_schema, zero_shot]"
    new = f"idiots:\n  models: [{', '.join(models)}]\n  settings: {settings}"
    edit(project / "config.yaml", old, new)


def serve(project: Path, server: FaultServer, **fields: object) -> None:
    """Add a model that is served by a test server."""
    entry = spec_for(server.api_base, **fields).model_dump(mode="json", exclude_none=True)
    with (project / "models.yaml").open("a", encoding="utf-8") as stream:
        yaml.safe_dump({"served": entry}, stream)


def test_unavailable_models_have_empty_rows_with_a_reason(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*os.environ]:
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TOGETHER_API_KEY", "not-a-key-but-set")
    names = ("gpt-4o-mini", "claude-4-sonnet", "llama-2-7b-chat", "deepseek-r1")
    use(project, *names, settings="[zero_shot, zero_shot_schema]")
    only = "idiots:\n  by_model: {deepseek-r1: {settings: [zero_shot_schema]}}\n"
    edit(project / "config.yaml", "idiots:\n", only)
    output = make(project, "--cores", "2", *TARGETS[:4])
    reasons = (
        "nothing is recorded, and the environment variable OPENAI_API_KEY is not set",
        "nothing is recorded, and the checkpoint is retired",
        "nothing is recorded, and its weights are not here (meta-llama/Llama-2-7b-chat-hf:",
        "the provider enforces no form of the answer",
    )
    for table in TARGETS[:3]:
        shown = (
            project / table.replace("tables/", "tables/html/").replace("tex", "html")
        ).read_text()
        for name, reason in zip(names, reasons, strict=True):
            assert f"left out of idiots ({reason}" in output, name
            assert reason in shown
    csv = (project / "paper_tables/idiots_detection.csv").read_text(encoding="utf-8")
    assert "llama-2-7b-chat" in csv

    check = run_snakemake(project, "--cores", "1", "check")
    assert "left out of" not in check.stderr
    assert "error: 2 language models cannot be asked" in check.stderr


def test_a_run_with_unanswered_questions_fails_and_resumes(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", "sk-testing-testing")

    def faulty(request: Request) -> Reply:
        if len(request.text) % 4 == 0:
            return Reply(status=400, body=b'{"error": {"message": "bad request"}}')
        return BILLED[list(BILLED)[len(server.requests) % len(BILLED)]]

    targets = TARGETS[:1]
    with FaultServer(faulty) as server:
        ends = date.today() + timedelta(20)
        serve(project, server, prices=None, ends=ends)
        use(project, "served")
        edit(project / "config.yaml", "max_cost_usd: 0", "max_cost_usd: 9")
        reason = "it has no prices, so its cost is unknown"
        assert reason in make(project, "--cores", "2", *targets)
        assert reason in (project / targets[0]).read_text(encoding="utf-8")
        assert not server.requests
        with (project / "models.yaml").open("a", encoding="utf-8") as stream:
            stream.write("  prices: {input: 1, output: 2}\n")

        failed = run_snakemake(project, "--cores", "2", "--keep-going", *targets)
        assert failed.returncode != 0
        (line,) = {line for line in failed.stderr.splitlines() if line.startswith("error: ")}
        assert len(server.requests) == 82
        bad = sum(len(request.text) % 4 == 0 for request in server.requests)
        assert 0 < bad < 82
        assert f"served: {bad} of 82 questions got no answer ({bad} × BadRequest" in line
        soon = f"record now: served ends on {ends}, in 20 days; Detection: "
        assert f"{soon}its data does not exist yet" in failed.stderr
        written = [*(project / "results").rglob("*"), *(project / "paper_tables").rglob("*")]
        assert not any(
            str(ends).encode() in path.read_bytes() for path in written if path.is_file()
        )
        assert reason in (project / targets[0]).read_text(encoding="utf-8")

        # If another model answers, few answers are billed, each once; none becomes a prediction.
        server.requests.clear()
        server.behave = lambda request: answer('{"hasIdiom": true}', model="successor")
        recorded = digests(project, "recordings/idiots/served")
        kept = "recordings/idiots/served/zero_shot-seed-0.jsonl.foreign"
        for _ in range(2):
            failed = run_snakemake(project, "--cores", "2", *targets)
            (line,) = {line for line in failed.stderr.splitlines() if line.startswith("error: ")}
            assert line.startswith(
                f"error: {kept}: requested test-model, answered by successor; if it"
            )
            assert 1 <= len(server.requests) <= 8
            assert f"{soon}{bad} questions missing, likely $" in failed.stderr
        paid = digests(project, "recordings/idiots/served")
        assert {name: paid[name] for name in recorded} == recorded
        assert len(read_answers(project / kept)) == len(server.requests)
        (project / kept).unlink()

        server.requests.clear()
        server.behave = lambda request: answer('{"hasIdiom": false}')
        make(project, "--cores", "2", *targets)
        assert len(server.requests) == bad
        assert all(len(request.text) % 4 == 0 for request in server.requests)
        assert "Nothing to be done" in make(project, "--cores", "2", *targets)
        # Every billed reply is an answer with its own outcome, and is not requested again.
        server.requests.clear()
        predictions = project / "results/predictions/idiots/served/zero_shot/seed-0.jsonl"
        answers = load_jsonl(predictions, DetectionPrediction)
        assert {prediction.outcome for prediction in answers} == BILLED.keys()
        predictions.unlink()
        make(project, "--cores", "2", str(predictions.relative_to(project)))
        assert load_jsonl(predictions, DetectionPrediction) == answers
        assert not server.requests


def test_partial_recordings_of_an_unavailable_model_stop_the_run(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("TEST_LLM_KEY", "sk-testing-testing")
    models = ("gpt-4o-mini", "served")
    use(project, *models)
    for model in models:
        recordings = project / f"recordings/idiots/{model}/zero_shot-seed-0.jsonl"
        recordings.parent.mkdir()
        question = make_question(spec_for(), [("user", "something else")], {})
        record(recordings, [(question, Answer(key=question.key, text="{}"))])
    with FaultServer() as server:
        serve(project, server, ends="past")
        make(project, "--cores", "1", "results/datasets/idiots/sentences.jsonl")
        for more in ((), ("--keep-going",)):
            statistics = project / "paper_tables/jam_statistics.tex"
            targets = (*TARGETS[:1], "paper_tables/jam_statistics.tex")
            result = run_snakemake(project, "--cores", "2", *more, *targets)
            assert result.returncode != 0
            assert "\ngpt-4o-mini (82 answers not recorded): the environment" in result.stderr
            assert "\nserved (82 answers not recorded): the checkpoint is ret" in result.stderr
            # Targets that need no answers can still be built.
            assert statistics.exists() == bool(more)
        assert not server.requests
    assert not list((project / "results/predictions/idiots").rglob("*.jsonl"))
