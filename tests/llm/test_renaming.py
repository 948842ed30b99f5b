"""Test renaming the recordings of an entry, and asking answers again on request."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer, Reply, Request, answer
from llm_cases import KEY, questions_for, settings_for, spec_for

from pieline.cli import command
from pieline.core.errors import UserError
from pieline.core.sidecars import write_sidecar
from pieline.llm.answers import Answer
from pieline.llm.archive import verify
from pieline.llm.client import ask
from pieline.llm.recordings import answers_token, read_answers, read_lines, record
from pieline.llm.renaming import reask, rename
from pieline.llm.spending import Ledger
from pieline.models.llm import LLMEntry

OLD, NEW = "jam/english/old/zero_shot-seed-42", "jam/english/new/zero_shot-seed-42"
PRICES = {"input": 10.0, "output": 20.0}


def own_ids(request: Request) -> Reply:
    return answer("yes", id=f"chatcmpl-{request.text}-{request.attempt:020}")


def asked(folder: Path, spec: LLMEntry, run: str, **settings: Any) -> Mapping[str, Answer]:
    path = folder / f"{run}.jsonl"
    settings = {"max_cost_usd": 1, **settings}
    return ask(questions_for(spec, 4), spec, settings_for(folder, **settings), path, False)


@pytest.mark.parametrize("how", ["in place", "copied", "moved"])
def test_a_renamed_entry_keeps_its_answers(folder: Path, how: str) -> None:
    with FaultServer(own_ids) as server:
        spec = spec_for(server.api_base, prices=PRICES)
        before = asked(folder, spec, OLD)
        ledger = Ledger(folder)
        ledger.cap_usd = 1
        assert ledger.reserve("m", 0.1, file=f"{OLD}.jsonl", key="k")
        (folder / f"{OLD}.jsonl.replaced").write_bytes(b"")
        if how != "in place":
            shutil.copytree((folder / OLD).parent, (folder / NEW).parent)
            with pytest.raises(UserError, match="run `pieline recordings rename OLD NEW`"):
                asked(folder, spec, NEW)
        if how == "moved":
            shutil.rmtree((folder / OLD).parent)
        path = folder / f"{NEW}.jsonl"
        assert rename("old", "new", spec, settings_for(folder)) == {path: 4}
        assert asked(folder, spec, NEW) == before
        assert len(server.requests) == 4
        assert not (folder / OLD).parent.exists()
        assert path.with_name(f"{path.name}.replaced").exists()
    assert {line.run for line in read_lines(path)} == {NEW}
    assert verify(path, path) == []
    if how != "moved":
        assert [item.file for item in ledger.spending().reserved] == [f"{NEW}.jsonl"]
    with pytest.raises(UserError, match="no recordings of old"):
        rename("old", "new", spec, settings_for(folder))


@pytest.mark.parametrize(
    "run",
    [
        "ask/{}",
        "idiolink_construction/{}/write_pies",
        "jam_neutral/english/{}",
        "jam_neutral/english/{}/gpt-zero_shot-42",
        "jam_variants/english/{}",
    ],
)
def test_the_model_may_be_any_part_of_a_run(folder: Path, run: str) -> None:
    with FaultServer(own_ids) as server:
        spec = spec_for(server.api_base)
        before = asked(folder, spec, run.format("old"))
        path = folder / f"{run.format('new')}.jsonl"
        assert rename("old", "new", spec, settings_for(folder)) == {path: 4}
        assert asked(folder, spec, run.format("new")) == before
        assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"litellm_id": "openai/other"}, "would ask another question"),
        ({"body": {"effort": "low"}}, "would ask another question"),
        ({"accepts": ["max_tokens"]}, "would ask another question"),
        ({"defaults": {"temperature": 1}, "accepts": ["max_tokens", "seed"]}, "another question"),
        ({"api_base": "http://127.0.0.1:2/v1"}, "but http://127.0.0.1:[0-9]+ answered"),
    ],
)
def test_an_entry_that_asks_otherwise_is_not_a_renamed_one(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    with FaultServer(own_ids) as server:
        asked(folder, spec_for(server.api_base), OLD)
        content = (folder / f"{OLD}.jsonl").read_bytes()
        other = spec_for(**{"api_base": server.api_base, **changes})
    with pytest.raises(UserError, match=message):
        rename("old", "new", other, settings_for(folder))
    assert (folder / f"{OLD}.jsonl").read_bytes() == content
    assert not (folder / f"{NEW}.jsonl").exists()


def test_two_different_answers_are_not_renamed_into_one(folder: Path) -> None:
    with FaultServer(own_ids) as server:
        spec = spec_for(server.api_base)
        for run in (OLD, NEW):
            asked(folder, spec, run)
        with pytest.raises(UserError, match="has two different answers; keep one of them"):
            rename("old", "new", spec, settings_for(folder))
    assert len(read_answers(folder / f"{OLD}.jsonl")) == 4


def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
    Path("config.yaml").write_text("studies: [jam]\n")
    with FaultServer(own_ids) as server:
        entry = spec_for(server.api_base).model_dump(mode="json", exclude_none=True)
        for name in ("old", "new"):
            Path("models.yaml").write_text(json.dumps({name: entry}))
            if name == "new":
                command(["recordings", "rename", "old", "new"])
            command(["ask", "--model", name, "hi"])
        out = capsys.readouterr().out
        assert "recordings/ask/new.jsonl: 1 answer\n" in out
        assert out.endswith("already recorded in recordings/ask/new.jsonl\n")
        assert len(server.requests) == 1
        command(["recordings", "reask", "--outcome", "failed"])
        assert capsys.readouterr().out == "no such answers\n"
        command(["recordings", "reask", "--outcome", "any"])
        assert capsys.readouterr().out == "recordings/ask/new.jsonl: 1 question to ask again\n"
        command(["ask", "--model", "new", "hi"])
        assert len(server.requests) == 2
    with pytest.raises(SystemExit):
        command(["recordings", "rename", "new", "unknown"])
    assert "error: NEW: unknown chat model 'unknown'" in capsys.readouterr().err


def test_failures_are_asked_again_on_request(folder: Path) -> None:
    def behave(request: Request) -> Reply:
        is_failed = request.text == "q0" and request.attempt <= 2
        return answer("yes", finish_reason="error" if is_failed else "stop")

    with FaultServer(behave) as server:
        spec = spec_for(server.api_base, prices=PRICES)
        before = asked(folder, spec, OLD, max_attempts=2)
        path = folder / f"{OLD}.jsonl"
        failed = [key for key, item in before.items() if item.failure]
        output = folder / "predictions.jsonl"
        output.write_text("")
        digests = {key: item.digest for key, item in before.items()}
        write_sidecar(str(output), made_from={}, answers=digests, token="t")
        assert len(failed) == 1 and answers_token(output, path) == "t"
        assert reask([path], "truncated") == {}
        assert reask([path], "failed") == {path: 1}
        # The job that used the failure runs again.
        assert answers_token(output, path) != "t"
        aside = path.with_name(f"{path.name}.replaced")
        assert [line.key for line in read_lines(aside)] == failed * 2
        assert [x.failure for x in asked(folder, spec, OLD, max_attempts=2).values()] == [""] * 4
        assert len(server.requests) == 6
    assert Ledger(folder).spending().usd == pytest.approx(6 * 200e-6)


def test_fresh_answers_remove_no_paid_ones(folder: Path) -> None:
    with FaultServer(own_ids) as server:
        spec = spec_for(server.api_base)
        old = asked(folder, spec, OLD)
        new = asked(folder, spec, OLD, mode="fresh")
    path = folder / f"{OLD}.jsonl"
    assert old != new == read_answers(path)
    assert read_answers(f"{path}.replaced") == old


def test_a_run_with_two_answers_to_one_question_fails(folder: Path) -> None:
    with FaultServer(own_ids) as server:
        spec = spec_for(server.api_base)
        for run in ("one", "two"):
            asked(folder / run, spec, OLD)
        path = folder / "one" / f"{OLD}.jsonl"
        content = path.read_bytes() + (folder / "two" / f"{OLD}.jsonl").read_bytes()
        path.write_bytes(content)
        for mode in ("replay", "record"):
            with pytest.raises(UserError, match="an earlier line has a different answer"):
                asked(folder / "one", spec, OLD, mode=mode)
        record(path, [])
        assert sorted(path.read_bytes().splitlines()) == sorted(content.splitlines())
