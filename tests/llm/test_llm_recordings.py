"""Files of recorded answers: torn ends, canonical order, large files, and what is asked anew."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply, Request, echo
from hypothesis import given
from hypothesis import strategies as st
from llm_cases import SOURCE, pair, questions_for, settings_for, spec_for, write

from pieline.core.errors import UserError
from pieline.llm.answers import Answer, ToolCall
from pieline.llm.archive import verify
from pieline.llm.client import ask
from pieline.llm.questions import make_question
from pieline.llm.recordings import (
    canonicalise,
    mend_tail,
    read_answers,
    read_lines,
    record,
    recording,
)
from pieline.llm.wire import sent


def test_a_shared_prompt_is_stored_once_and_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record(path, [pair(i) for i in range(50)])
    data = path.read_bytes()
    assert data.count(b"You mark") == 5
    assert verify(path) == []
    assert read_answers(path) == {question.key: answer for question, answer in map(pair, range(50))}


def test_every_field_survives(tmp_path: Path) -> None:
    full = pair(
        1,
        None,
        reasoning="because \x00 \ud83d cut",
        refusal="no",
        finish_reason="content_filter",
        returned_model="m-1",
        fingerprint="fp",
        response_id="r1",
        input_tokens=3,
        output_tokens=0,
        reasoning_tokens=2,
        origin="hand-written",
    )
    record(tmp_path / "a.jsonl", [full])
    (back,) = read_answers(tmp_path / "a.jsonl").values()
    assert back == full[1]
    assert back.reasoning == "because \x00 \ufffd cut"


def test_an_answer_is_on_the_disk_when_append_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def watched(handle: int) -> None:
        fsync(handle)
        synced.append(os.fstat(handle).st_size)

    with recording(tmp_path / "a.jsonl") as recorder:
        monkeypatch.setattr(os, "fsync", watched)
        recorder.append([pair(1)])
        assert synced == [(tmp_path / "a.jsonl").stat().st_size]


def test_a_last_line_torn_at_any_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, pair(1), pair(2))
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    assert len(whole) - last > 300
    both, first = read_answers(path), {pair(1)[0].key: pair(1)[1]}
    for cut in range(last, len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = both if cut >= len(whole) - 1 else first
        assert read_answers(path) == kept
        write(path, pair(3))
        assert read_answers(path) == {**kept, pair(3)[0].key: pair(3)[1]}
        assert verify(path) == []


def test_damage_elsewhere_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, pair(1), pair(2), pair(3))
    lines = path.read_bytes().splitlines(keepends=True)
    for number, damaged in [(2, lines[1][:40] + b"\n"), (1, b"<<<<<<< ours\n"), (3, b"\n")]:
        path.write_bytes(b"".join([*lines[: number - 1], damaged, *lines[number:]]))
        with pytest.raises(UserError, match=rf"a\.jsonl:{number}: not a line of recordings"):
            read_answers(path)


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with recording(tmp_path / "a.jsonl"):
        with (
            pytest.raises(UserError, match="another run is writing"),
            recording(tmp_path / "a.jsonl"),
        ):
            pass
        with recording(tmp_path / "b.jsonl"):
            pass
    with recording(tmp_path / "a.jsonl"):
        pass


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["yes", "no", None])), max_size=12))
def test_canonical_order(
    tmp_path_factory: pytest.TempPathFactory, answered: list[tuple[int, str | None]]
) -> None:
    path = tmp_path_factory.mktemp("canonical") / "a.jsonl"
    write(path, *[pair(number, text) for number, text in answered])
    before = read_answers(path)
    canonicalise(path)
    assert read_answers(path) == before
    once, status = path.read_bytes(), path.stat()
    canonicalise(path)
    assert path.read_bytes() == once
    assert path.stat().st_mtime_ns == status.st_mtime_ns, "an unchanged file is not rewritten"
    lines = [line.value for line in read_lines(path)]
    keys = [line["key"] for line in lines if "key" in line]
    assert keys == sorted(set(keys))
    assert set(before) == set(keys)
    # The order in which answers came makes no difference, if no two are under one key.
    other = path.with_name("b.jsonl")
    record(other, [pair(number, text) for number, text in reversed(list(dict(answered).items()))])
    if len(dict(answered)) == len(answered):
        assert other.read_bytes() == once


def test_the_tail_of_a_file_of_more_than_one_read_is_mended(tmp_path: Path) -> None:
    path, larger = tmp_path / "a.jsonl", (1 << 31) + 12345
    for tail, kept in [
        (b"{}\n" * 5, 15),
        (b"{}\n" * 5 + b'{"answer":{"te', 15),
        (b"\n" + b"x" * 200_000, 1),
        (b"\n" + b"x" * 200_000 + b"\n", 200_002),
    ]:
        with path.open("wb") as stream:
            try:
                stream.truncate(larger)  # a hole, which takes no room
            except OSError as error:
                pytest.skip(f"no files of 2 GiB here: {error}")
            stream.seek(larger)
            stream.write(tail)
        with path.open("rb+") as stream:
            mend_tail(stream.fileno())
        assert path.stat().st_size == larger + kept
        with path.open("rb") as stream:
            stream.seek(larger)
            assert stream.read() == tail[:kept]


def test_a_file_is_opened_whole_where_reads_are_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    record(path, [pair(i) for i in range(30)])
    before, pread = path.read_bytes(), os.pread
    monkeypatch.setattr(os, "pread", lambda handle, size, at: pread(handle, min(size, 500), at))
    with recording(path) as recorder:
        assert path.read_bytes() == before
        recorder.append([pair(30)])
        canonicalise(path)
    assert read_answers(path) == {question.key: answer for question, answer in map(pair, range(31))}


def test_lines_that_people_wrote_are_read_as_well(tmp_path: Path) -> None:
    path, key = tmp_path / "a.jsonl", pair(8)[0].key
    tricky = '"},"key":"' + key + '","question":{"messages":[{"role":"user","text":"' + key + '"}'
    pairs = [pair(1), pair(2, tricky), pair(3), pair(4)]
    write(path, *pairs)
    text, *answers = map(json.loads, path.read_bytes().splitlines())
    lines = [
        " " + json.dumps(answers[0], sort_keys=True, separators=(",", ":")),
        json.dumps(answers[1], sort_keys=True, separators=(",", ":")),
        json.dumps(answers[2], sort_keys=True, separators=(",", ":")).replace("seed", "\\u0073eed"),
        "  " + json.dumps(dict(reversed(answers[3].items()))) + "\r",
        json.dumps({"text": text["text"], "content": text["content"]}),
    ]
    path.write_text("\n".join(lines))  # the shared text last, and without a newline
    expected = {question.key: answer for question, answer in pairs}
    assert read_answers(path) == expected
    for question, answer in pairs:
        assert read_answers(path, {question.key, key}) == {question.key: answer}
    assert verify(path) == []
    with recording(path) as recorder:
        recorder.append([pair(5)])
        canonicalise(path)
    assert path.read_bytes().count(b"You mark") == 5, "the shared text was known"
    assert read_answers(path) == expected | {pair(5)[0].key: pair(5)[1]}
    assert [line.place for line in read_lines(path)] == sorted(
        [b"0" + text["text"].encode(), *(b"1" + name.encode() for name in read_answers(path))]
    )


def test_a_missing_or_altered_shared_text_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, pair(1), pair(2))
    text, rest = path.read_bytes().split(b"\n", 1)
    wanted = {pair(2)[0].key}
    path.write_bytes(rest)
    with pytest.raises(UserError, match=r"a\.jsonl:2: lacks 'shared text [0-9a-f]{64}'; restore"):
        read_answers(path, wanted)
    path.write_bytes(text.replace(b"You mark", b"You skip") + b"\n" + rest)
    with pytest.raises(UserError, match=r"a\.jsonl:3: the key is not the digest of the question"):
        read_answers(path, wanted)
    assert read_answers(path, {pair(3)[0].key}) == {}


# Asking: what is asked anew, and what never is.


def texts(server: FaultServer) -> list[str]:
    return [request.text for request in server.requests]


def test_changed_questions_are_asked_anew_and_unchanged_never(folder: Path) -> None:
    path = folder / "a.jsonl"
    with FaultServer() as server:
        spec, settings = spec_for(server.api_base), settings_for(folder)

        def asked(text: str = "t", sample: int = 0, system: str = "s", **parameters: object) -> int:
            before = len(server.requests)
            wanted = {"temperature": 0.3, "max_tokens": 9, **parameters}
            question = make_question(
                spec, [("system", system), ("user", text)], wanted, sample=sample
            )
            ask([question, question], spec, settings, path, progress=False)
            return len(server.requests) - before

        assert asked() == 1
        assert asked() == 0
        assert asked(max_tokens=9.0) == 0
        assert asked(top_k=5) == 0, "not accepted, so not sent"
        assert asked(seed=None) == 0
        assert asked(temperature=0.4) == 1
        assert asked(seed=42) == 1
        assert asked(sample=1) == 1
        assert asked(text="t ") == 1
        assert asked(system="s.") == 1
        assert asked() == 0
        # Label, prices and address are not part of what is asked.
        spec = spec_for(
            server.api_base, label="Other", retired="soon", prices={"input": 1, "output": 1}
        )
        assert asked() == 0
        spec = spec_for(server.api_base, litellm_id="openai/test-model-2")
        assert asked() == 1


def test_exactly_the_question_is_sent(folder: Path) -> None:
    with FaultServer() as server:
        spec = spec_for(server.api_base)
        turns = [("system", " S\n"), ("user", "a"), ("assistant", "b"), ("user", "  c  ")]
        question = make_question(spec, turns, {"temperature": 0, "seed": 3, "top_p": 0.5})
        assert question.dropped == ("top_p",)
        (answer,) = ask(
            [question], spec, settings_for(folder), folder / "a.jsonl", progress=False
        ).values()
        assert server.requests[0].body == {
            "model": "test-model",
            "messages": [{"role": role, "content": text} for role, text in turns],
            "temperature": 0,
            "seed": 3,
        }
        bare = make_question(spec, [("user", "a")], {})
        ask([bare], spec, settings_for(folder), folder / "a.jsonl", progress=False)
        assert server.requests[1].body == {
            "model": "test-model",
            "messages": [{"role": "user", "content": "a"}],
        }
    assert answer == Answer(
        key=question.key,
        text="echo   c  ",
        finish_reason="stop",
        returned_model="test-model",
        fingerprint="fp_test",
        response_id="chatcmpl-1",
        input_tokens=10,
        output_tokens=5,
        sent=sent(question, "/v1/chat/completions", server.requests[0].body),
    )


def test_replay_never_asks_and_names_what_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "a.jsonl"
    with FaultServer() as server:
        spec = spec_for(server.api_base)
        questions = questions_for(spec, 8)
        ask(questions[:3], spec, settings_for(folder), path, progress=False)
        monkeypatch.delenv("TEST_LLM_KEY")
        replay = settings_for(folder, mode="replay")
        assert len(ask(questions[:3], spec, replay, path)) == 3
        with pytest.raises(
            UserError, match=r"5 answers of Test model are not recorded \(q3, q4, q5, \.\.\.\)"
        ):
            ask(questions, spec, replay, path)
        with pytest.raises(UserError, match=r"1 answer of Test model is not recorded \(q3\)"):
            ask(questions[:4], spec, replay, path)
        assert len(server.requests) == 3


def test_fresh_replaces_when_complete_and_pays_once(folder: Path) -> None:
    path = folder / "a.jsonl"
    replies = {"said": "old"}

    def behave(request: Request) -> Reply:
        if replies["said"] == "down" and request.text > "q3":
            return Reply(401, b'{"error": {"message": "no"}}')
        return echo(Request(f"{replies['said']} {request.text}", 1, 0, {}, {}))

    with FaultServer(behave) as server:
        spec = spec_for(server.api_base)
        questions = questions_for(spec, 6)
        ask(questions, spec, settings_for(folder), path, progress=False)
        old = path.read_bytes()
        fresh = settings_for(folder, mode="fresh", concurrency=1)
        replies["said"] = "down"
        with pytest.raises(UserError):
            ask(questions[1:], spec, fresh, path, progress=False)
        assert path.read_bytes() == old, "until all are there, the recordings stay"
        del server.requests[:]
        replies["said"] = "new"
        answers = ask(questions[1:], spec, fresh, path, progress=False)
        assert texts(server) == ["q4", "q5"]
    said = [str(read_answers(path)[question.key].text).split()[1] for question in questions]
    assert said == ["old", "down", "down", "down", "new", "new"]
    assert [answer.text for answer in answers.values()] == [
        read_answers(path)[question.key].text for question in questions[1:]
    ]
    assert not path.with_name("a.jsonl.fresh").exists()
    assert verify(path) == []


def test_recordings_lie_in_the_recordings_folder(folder: Path, tmp_path: Path) -> None:
    spec = spec_for()
    with pytest.raises(UserError, match="not in the recordings folder"):
        ask(questions_for(spec, 1), spec, settings_for(folder), tmp_path / "elsewhere.jsonl")


HYGIENE = """
import sys
from pathlib import Path
import pieline.llm, pieline.llm.settings, pieline.llm.prompts, pieline.llm.archive, pieline.llm.keys
import pieline.llm.recordings, pieline.llm.parsing, pieline.llm.costs, pieline.llm.questions
from llm_cases import questions_for, settings_for, spec_for
from pieline.llm.client import ask
from pieline.llm.idioms import parse_idioms
from pieline.llm.parsing import parse_object
folder = Path(sys.argv[1])
questions = questions_for(spec_for(), 2500)
for mode in ("replay", "record"):
    answers = ask(questions, spec_for(), settings_for(folder, mode=mode), folder / "a.jsonl")
assert len(answers) == 2500
assert all(parse_idioms(answer).value == ["a b"] for answer in answers.values())
heavy = {"litellm", "agno", "torch", "openai", "transformers", "xllamacpp", "pandas", "numpy"}
print(sorted(heavy & sys.modules.keys()))
"""


def test_replay_loads_no_provider_library(folder: Path) -> None:
    questions = questions_for(spec_for(), 2500)
    record(folder / "a.jsonl", [(q, Answer(key=q.key, text="idioms: [a b]")) for q in questions])
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{Path(__file__).parent}"}
    environment.pop("TEST_LLM_KEY")
    done = subprocess.run(
        [sys.executable, "-c", HYGIENE, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


HOSTILE = st.text(st.sampled_from('"\\{},:[]sent text'), max_size=30) | st.sampled_from(
    [',"sent":{', '},"text":', '"},"text":"', '\\"},"text":']
)


@given(HOSTILE, HOSTILE, HOSTILE | st.none(), st.booleans())
def test_answers_are_the_same_without_what_was_sent(
    prompt: str, reasoning: str, text: str | None, calls: bool
) -> None:
    question = make_question(spec_for(), [("user", prompt)], {"max_tokens": 5})
    kept = sent(question, "/v1/chat/completions", {"x": {"a": {"text": prompt}}, "text": [prompt]})
    answer = Answer(
        key=question.key,
        text=text,
        reasoning=reasoning,
        sent=kept,
        tool_calls=(ToolCall(name=prompt, arguments=reasoning),) if calls else None,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.jsonl")
        record(path, [(question, answer)])
        assert read_answers(path) == {question.key: answer}
        short = read_answers(path, with_sent=False)
        assert short == {question.key: answer.model_copy(update={"sent": None})}
