"""Test that no output or log contains the API key, however a run fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply, Request, answer, echo
from llm_cases import KEY, SOURCE

RUN = """
import logging, sys, traceback
from pathlib import Path
logging.basicConfig(level=logging.DEBUG)
from llm_cases import questions_for, settings_for, spec_for
from pieline.core.errors import UserError
from pieline.llm.client import ask
folder, api_base = Path(sys.argv[1]), sys.argv[2]
spec = spec_for(api_base, prices={"input": 1, "output": 1})
settings = settings_for(folder, timeout_s=5, max_attempts=2, max_wait_s=5, max_cost_usd=1)
for prefix in sys.argv[3:]:
    try:
        answers = ask(questions_for(spec, 2, prefix), spec, settings, folder / f"{prefix}.jsonl")
        print(prefix, [answer.model_dump() for answer in answers.values()])
    except UserError:
        traceback.print_exc()
print("key" in str(settings), repr(spec), "END")
"""

ECHOED = f'{{"error": {{"message": "wrong key {KEY} (Bearer {KEY})"}}}}'.encode()
MODES = {
    "ok": echo(Request("x", 1, 0, {}, {})),
    "answer-": answer(
        f"your key is {KEY}", message={"content": f"{KEY}", "reasoning_content": KEY}
    ),
    "400-": Reply(400, ECHOED),
    "401-": Reply(401, ECHOED),
    "403-": Reply(403, ECHOED),
    "404-": Reply(404, ECHOED),
    "429-": Reply(429, ECHOED, {"Retry-After": "100"}),
    "500-": Reply(500, ECHOED),
    "503-": Reply(503, KEY.encode()),
    "broken-": Reply(200, ECHOED[:30]),
    "html-": Reply(200, f"<html>{KEY}".encode(), {"Content-Type": "text/html"}),
    "hang-": Reply(fault="hang"),
    "reset-": Reply(fault="reset"),
}


@pytest.mark.full
def test_the_key_is_in_no_output(folder: Path) -> None:
    def behave(request: Request) -> Reply:
        return next(reply for mode, reply in MODES.items() if request.text.startswith(mode))

    with FaultServer(behave) as server:
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-c", RUN, str(folder), server.api_base, *MODES],
            env={
                **os.environ,
                "PYTHONPATH": f"{SOURCE}{os.pathsep}{Path(__file__).parent}",
                "TEST_LLM_KEY": KEY,
                "LITELLM_LOG": "DEBUG",
                "OPENAI_LOG": "debug",
                "AGNO_DEBUG": "true",
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert all(r.headers["authorization"] == f"Bearer {KEY}" for r in server.requests)
        asked = {request.text.rstrip("01") for request in server.requests}
    assert done.stdout.endswith("END\n"), done.stderr
    assert asked == set(MODES)
    outputs = {"stdout": done.stdout, "stderr": done.stderr}
    outputs |= {
        str(file): file.read_text(errors="replace")
        for file in folder.parent.rglob("*")
        if file.is_file()
    }
    pieces = [KEY, KEY[:12], KEY[-12:], "very%2Bsecret", "very+secret"]
    leaks = {name for name, text in outputs.items() for piece in pieces if piece in text}
    assert leaks == set()
    # The failures were reported, with the name of the variable in place of the key.
    assert "wrong key [TEST_LLM_KEY]" in done.stderr
    assert "[TEST_LLM_KEY]" in done.stdout
    assert "[TEST_LLM_KEY]" in outputs[str(folder / "answer-.jsonl")]
