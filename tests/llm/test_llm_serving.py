"""Test server processes: how they are started, asked and terminated."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from llm_cases import settings_for, start
from provider_server import ProviderServer
from run_script import run_script
from serving_cases import STANDIN, notes, served, weights
from support import ROOT

from pieline.config import load_config
from pieline.configured_tasks import planned_tasks
from pieline.core.errors import UserError
from pieline.core.sidecars import write_sidecar
from pieline.core.yamls import read_yaml
from pieline.llm import guard
from pieline.llm import server as serving
from pieline.llm.client import ask
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import read_answers
from pieline.llm.server import Server
from pieline.models.llm import LLMEntry, api_model_name
from pieline.studies.idiots.datasets import save_dataset
from pieline.studies.idiots.records import IdiotsSentence

pytestmark = pytest.mark.full


def asked(spec: LLMEntry, *texts: str) -> list[Question]:
    return [make_question(spec, [("user", text)], {"seed": 1}, name=text) for text in texts]


def ask_texts(folder: Path, spec: LLMEntry, *texts: str, **settings: Any) -> list[str | None]:
    """Return the texts of the answers, which are recorded in `a.jsonl`."""
    path = folder / "a.jsonl"
    answers = ask(asked(spec, *texts), spec, settings_for(folder, **settings), path, progress=False)
    return [answer.text for answer in answers.values()]


def is_gone(pids: list[int], within_s: float = 120) -> bool:
    """Return whether the processes end within the time."""
    end = time.monotonic() + within_s
    while any(map(_is_running, pids)):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def port_of(note: dict[str, Any]) -> int:
    return int(note["words"][note["words"].index("--port") + 1])


def test_one_start_serves_several_tasks_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    spec, settings = served(tmp_path, gpus=2), settings_for(tmp_path)
    with Server(spec, tmp_path / "logs/server.log") as server:
        for name in ("first", "second"):
            questions = asked(spec, name, "both")
            path = tmp_path / f"{name}.jsonl"
            answers = ask(questions, spec, settings, path, progress=False, server=server)
            assert [answer.text for answer in answers.values()] == [f"echo {name}", "echo both"]
        (note,) = notes(tmp_path)
        assert not is_gone(note["pids"], within_s=0)
    assert is_gone(note["pids"])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port_of(note)), timeout=5)
    checkpoint = str(weights(tmp_path))
    assert note["words"][2:5] == ["--weights", checkpoint, "--gpus=2"]
    # No server is started for recorded answers.
    with Server(spec) as server:
        ask(asked(spec, "both"), spec, settings, tmp_path / "first.jsonl", server=server)
    assert len(notes(tmp_path)) == 1


def test_a_server_is_asked_one_question_per_slot(tmp_path: Path) -> None:
    spec = served(tmp_path, "meet", slots=3)
    assert ask_texts(tmp_path, spec, *"abcdef") == [f"echo {text}" for text in "abcdef"]
    assert is_gone(notes(tmp_path)[0]["pids"])


def _ask_for_ever(folder: Path) -> None:
    ask_texts(folder, served(folder), "soon", "never", timeout_s=600)


def test_a_killed_run_leaves_neither_the_server_nor_its_children(tmp_path: Path) -> None:
    process = start(_ask_for_ever, tmp_path)
    end = time.monotonic() + 180
    while not read_answers(tmp_path / "a.jsonl"):
        assert time.monotonic() < end
        time.sleep(0.05)
    guards = psutil.Process(process.pid).children()
    process.kill()
    process.join(180)
    (note,) = notes(tmp_path)
    assert is_gone([*note["pids"], *(guard.pid for guard in guards)])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port_of(note)), timeout=5)
    # The recorded answer is kept, and the next run asks only the other question.
    assert [answer.text for answer in read_answers(tmp_path / "a.jsonl").values()] == ["echo soon"]
    assert ask_texts(tmp_path, served(tmp_path), "soon", "later") == ["echo soon", "echo later"]


STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("lives_s", ["600", "0"])
def test_the_guard_kills_remaining_processes(lives_s: str) -> None:
    """Test both the end of the parent process and a server that ends before its child."""
    reading, writing = os.pipe()
    hasty = (
        "import runpy, sys; main = runpy.run_path(sys.argv.pop(1))['main'];"
        "main.__globals__.update(GRACE_S=0.5); sys.exit(main())"
    )
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            hasty,
            guard.__file__,
            str(reading),
            sys.executable,
            "-c",
            STUBBORN,
            lives_s,
        ],
        pass_fds=[reading],
        stdout=subprocess.PIPE,
        text=True,
    )
    os.close(reading)
    assert process.stdout
    child = int(process.stdout.readline())
    if lives_s == "600":
        process.terminate()  # as a cluster does with all processes of a job
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        os.close(writing)
    process.wait(120)
    assert is_gone([child])
    if lives_s == "0":
        assert process.returncode == 0
        os.close(writing)


def refusal(spec: LLMEntry, folder: Path, **fields: Any) -> str:
    """Return the error of a server that does not start."""
    settings = settings_for(folder, **fields)
    with Server(spec, folder / "server.log") as server, pytest.raises(UserError) as error:
        ask(asked(spec, "x"), spec, settings, folder / "a.jsonl", progress=False, server=server)
    return str(error.value)


def test_a_server_that_exits_is_reported_with_its_output(tmp_path: Path) -> None:
    message = refusal(served(tmp_path, "dies"), tmp_path)
    assert message.startswith("Served: its server exited with status 3 after")
    assert "its last output: loading the weights | no tensor of this name" in message
    assert message.endswith(f"see {tmp_path / 'server.log'}")
    missing = served(tmp_path, server="no-such-program {checkpoint} {port}")
    assert "no-such-program: No such file or directory" in refusal(missing, tmp_path)


def test_waiting_for_a_silent_server_times_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "FIRST_S", 0.2)
    spec, settings = served(tmp_path, "silent"), settings_for(tmp_path, start_timeout_s=1)
    with pytest.raises(
        UserError, match=r"its server does not answer after 1 s; its last output: n"
    ):
        ask(asked(spec, "x"), spec, settings, tmp_path / "a.jsonl")
    assert "Served: its server has been starting for 0 s" in capfd.readouterr().err
    assert not [
        child for child in psutil.Process().children(recursive=True) if "silent" in child.cmdline()
    ]


def test_another_port_is_tried_if_one_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, free = served(tmp_path), serving._free_port
    with ProviderServer() as other:
        occupied = other.port
        ports = iter([occupied, free()])
        monkeypatch.setattr(serving, "_free_port", lambda: next(ports))
        assert ask_texts(tmp_path, spec, "x") == ["echo x"]
        assert other.requests == []
        monkeypatch.setattr(serving, "_free_port", lambda: occupied)
        assert "other processes took 3 free ports" in refusal(served(tmp_path), tmp_path / "b")


def test_answers_of_another_server_on_the_port_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other server already listens while the model's server is still loading."""
    spec = served(tmp_path, "silent")
    with ProviderServer() as other:
        monkeypatch.setattr(serving, "_free_port", lambda: other.port)
        monkeypatch.setattr(serving, "_is_healthy", lambda port: True)
        with pytest.raises(UserError, match="other processes took 3 free ports"):
            ask_texts(tmp_path, spec, "x")
        assert other.requests == []


def test_a_server_that_exits_during_a_run_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        ask_texts(tmp_path, served(tmp_path, "dies later"), *"abcdef", max_attempts=1)
    message = str(error.value)
    assert "its server exited with status" in message
    assert "its last output: out of memory" in message
    assert "run again to ask what is missing" in message


def vllm(folder: Path, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> LLMEntry:
    """Return the entry of a model that the stand-in serves in place of vLLM."""
    program = folder / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {STANDIN} {folder / "notes"} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.delenv(serving.VLLM, raising=False)
    return served(folder, server="vllm", dtype="bfloat16", **fields)


def test_vllm_is_started_with_explicit_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = vllm(
        tmp_path, monkeypatch, gpus=2, slots=4, context_length=2048, chat_template="{{ x }}"
    )
    assert ask_texts(tmp_path, spec, "x") == ["echo x"]
    (note,) = notes(tmp_path)
    words = note["words"]
    assert words[:4] == ["serve", str(weights(tmp_path)), "--host", "127.0.0.1"]
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert Path(options.pop("--chat-template")).name == "template.jinja"
    del options["--port"]
    assert options == {
        "--host": "127.0.0.1",
        "--served-model-name": "served",
        "--generation-config": "vllm",
        "--dtype": "bfloat16",
        "--max-model-len": "2048",
        "--max-num-seqs": "4",
        "--tensor-parallel-size": "2",
    }
    assert note["quiet"] == "1"
    assert is_gone(note["pids"])
    monkeypatch.setenv(serving.VLLM, "apptainer exec --nv 'my vllm.sif' vllm serve")
    assert serving.command_line(spec, tmp_path, 1, tmp_path)[:6] == [
        *("apptainer", "exec", "--nv", "my vllm.sif", "vllm", "serve"),
    ]


def test_the_users_environment_does_not_change_the_answers_of_vllm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VLLM_BATCH_INVARIANT", "1")
    assert serving.server_environment()["VLLM_BATCH_INVARIANT"] == "0"


def documented() -> dict[str, LLMEntry]:
    """Return the entries in examples/served_models.yaml, and of a server in docs/chat_models.md."""
    entries = read_yaml(ROOT / "examples/served_models.yaml")
    text = (ROOT / "docs/chat_models.md").read_text("utf-8").partition("\n## A server")[2]
    for block in re.findall(r"```yaml entry\n(.*?)```", text, flags=re.DOTALL):
        entries |= yaml.safe_load(block)
    assert len(entries) == 7
    return {name: LLMEntry.model_validate(entry) for name, entry in entries.items()}


def test_documented_entries_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "key-of-azure")
    monkeypatch.setenv("OPENROUTER_API_KEY", "key-of-openrouter")
    wanted = {"temperature": 0, "top_p": 0.5, "top_k": 4, "max_tokens": 9, "seed": 1}
    settings = settings_for(tmp_path, max_cost_usd=1)
    for name, entry in documented().items():
        assert not entry.cost_is_unknown, name
        question = make_question(entry, [("system", "s"), ("user", "u")], wanted)
        model = api_model_name(entry.checkpoint)
        if entry.is_local:
            continue
        with ProviderServer(model=(entry.answers_as or [None])[0]) as server:
            played = server.play(entry)
            ask([question], played, settings, tmp_path / f"{name}.jsonl", progress=False)
        (request,) = server.requests
        assert request.body.keys() == {"model", "messages", *question.parameters}, name
        assert request.body["model"] == model
        if entry.api_key_env:
            assert request.headers["authorization"] == f"Bearer key-of-{entry.provider}"
    assert command_line_of(documented()["llama-2-7b-chat-llama-server"])[:4] == [
        *("llama-server", "--model", "/w", "--port")
    ]


def command_line_of(entry: LLMEntry) -> list[str]:
    return serving.command_line(entry, Path("/w"), 1, Path("/nowhere"))


def test_the_serving_job_records_all_runs_of_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    models = tmp_path / "models.yaml"

    def write_model(how: str) -> None:
        entry = served(tmp_path, how).model_dump(mode="json", exclude_none=True)
        models.write_text(json.dumps({"served": entry}))

    write_model("")
    suite = [
        IdiotsSentence(
            id=f"s{n}", pie_id="p", pie="x", sentence=f"S {n}.", translation="", is_idiomatic=True
        )
        for n in range(3)
    ]
    save_dataset(tmp_path / "results/datasets/idiots", suite, origin="sample")
    for path in [*Path("results/datasets/idiots").iterdir()]:
        write_sidecar(str(path), made_from={})
    config = load_config(
        {
            "studies": ["idiots"],
            "idiots": {"models": ["served"], "settings": ["zero_shot"], "seeds": [1, 2]},
            "llm": {"recordings_folder": str(tmp_path / "recordings")},
        }
    )
    tasks = planned_tasks(config.model_dump_json(), models, ROOT).tasks
    planned = [task.recordings for task in tasks if task.model == "served"]
    mark = tmp_path / "mark.txt"

    def serve(recordings: list[str] = planned) -> None:
        run_script(
            "serve",
            input={"models": models},
            output=[mark],
            params={"recordings": recordings, "config": config.model_dump_json(), "root": ROOT},
            wildcards={"asking": "idiots_detect", "model": "served"},
        )

    serve()
    assert len(notes(tmp_path)) == 1
    recordings = [Path(line) for line in mark.read_text().splitlines()]
    assert [path.name for path in recordings] == [
        "zero_shot-seed-1.jsonl",
        "zero_shot-seed-2.jsonl",
    ]
    for path in recordings:
        assert sorted(str(answer.text) for answer in read_answers(path).values()) == [
            f"echo S {n}." for n in range(3)
        ]
    assert not (tmp_path / "results/predictions").exists()
    # The script asks only the questions of the listed run.
    for path in recordings:
        path.unlink()
    serve(planned[1:])
    assert [path.exists() for path in recordings] == [False, True]
    # If the server fails, the job fails even if some runs are complete, so that a cluster retries.
    write_model("dies later")
    mark.unlink()
    for complete in (0, 1):
        with pytest.raises(UserError, match="its server exited with status"):
            serve()
        assert not mark.exists()
        assert [len(read_answers(path)) for path in recordings][:complete] == [3] * complete
    (tmp_path / "notes").unlink()
    serve()
    serve()
    assert len(notes(tmp_path)) == 1
