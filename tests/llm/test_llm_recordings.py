"""Files of recorded answers: torn ends, canonical order, merging, shipping, verifying."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply, Request, echo
from hypothesis import given
from hypothesis import strategies as st
from llm_cases import SOURCE, questions_for, settings_for, spec_for

from pieline.core.errors import UserError
from pieline.core.files import sha256
from pieline.llm.answers import Answer
from pieline.llm.archive import (
    export_folder,
    import_archive,
    merge,
    recording_files,
    summarise,
    verify,
)
from pieline.llm.client import ask
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import canonicalise, read_answers, read_lines, record, recording

SYSTEM = "You mark potentially idiomatic expressions. " * 5


def pair(number: int, text: str | None = "yes", **fields: object) -> tuple[Question, Answer]:
    question = make_question(
        spec_for(), [("system", SYSTEM), ("user", f"sentence {number}\u2028é")], {"seed": number}
    )
    return question, Answer.model_validate({"key": question.key, "text": text, **fields})


def write(path: Path, *pairs: tuple[Question, Answer]) -> None:
    with recording(path) as recorder:
        recorder.append(pairs)


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


def test_a_failure_is_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="only an answer"):
        record(tmp_path / "a.jsonl", [pair(1, None, error="timeout")])


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


def test_merge_keeps_its_own_and_tells_of_others(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"
    record(ours, [pair(1), pair(2)])
    record(theirs, [pair(2, "no"), pair(3), pair(1)])
    merged = merge(ours, [theirs])[str(theirs)]
    assert (merged.added, merged.conflicts) == (1, (pair(2)[0].key,))
    assert [read_answers(ours)[pair(i)[0].key].text for i in (1, 2, 3)] == ["yes", "yes", "yes"]
    assert merge(ours, [theirs])[str(theirs)].added == 0
    # What git's union merge leaves is put in order again, and verify tells of the conflict.
    union = tmp_path / "union.jsonl"
    union.write_bytes(ours.read_bytes() + theirs.read_bytes())
    assert ["another answer stands" in problem for problem in verify(union)] == [True]
    with recording(union):
        canonicalise(union)
    assert union.read_bytes() == ours.read_bytes()


def test_export_and_import(tmp_path: Path) -> None:
    folder, archive = tmp_path / "recordings", tmp_path / "all.jsonl.zst"
    record(folder / "jam" / "a.jsonl", [pair(i) for i in range(20)])
    record(folder / "b.jsonl", [pair(i, None, finish_reason="length") for i in range(3)])
    assert export_folder(folder, archive) == 23
    first = sha256(archive)
    export_folder(folder, archive)
    assert sha256(archive) == first

    other = tmp_path / "other"
    record(other / "b.jsonl", [pair(1, "mine"), pair(9)])
    merged = import_archive(archive, other)
    assert {name: (m.added, len(m.conflicts)) for name, m in merged.items()} == {
        "b.jsonl": (2, 1),
        "jam/a.jsonl": (20, 0),
    }
    assert (other / "jam/a.jsonl").read_bytes() == (folder / "jam/a.jsonl").read_bytes()
    assert read_answers(other / "b.jsonl")[pair(1)[0].key].text == "mine"
    assert recording_files(other) == [other / "b.jsonl", other / "jam" / "a.jsonl"]
    assert summarise(other / "b.jsonl").answers == 4


@pytest.mark.parametrize("name", ["../evil.jsonl", "/tmp/evil.jsonl", "a/../../b.jsonl", "x.py"])
def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path, name: str) -> None:
    import zstandard

    archive = tmp_path / "a.zst"
    archive.write_bytes(zstandard.compress(json.dumps({"file": name}).encode() + b"\n"))
    with pytest.raises(UserError, match=r"a\.zst:1: names the file"):
        import_archive(archive, tmp_path / "in")
    assert not (tmp_path / "in").exists()


def test_a_damaged_archive_changes_nothing(tmp_path: Path) -> None:
    import zstandard

    folder, archive = tmp_path / "recordings", tmp_path / "a.zst"
    record(folder / "a.jsonl", [pair(1), pair(2)])
    export_folder(folder, archive)
    whole = archive.read_bytes()
    plain = zstandard.decompress(whole, max_output_size=1 << 20)
    damaged = {
        "cut": whole[:-20],
        "no zstd": plain,
        "cut within": zstandard.compress(plain[:-20]),
        "tampered": zstandard.compress(
            plain.replace(b"yes", b"no!", 1).replace(b"sentence 1", b"s", 1)
        ),
    }
    for what, data in damaged.items():
        archive.write_bytes(data)
        with pytest.raises(UserError, match=r"a\.zst"):
            import_archive(archive, tmp_path / "in")
        assert not (tmp_path / "in" / "a.jsonl").exists(), what


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b'"seed":2', b'"seed":7', "the key is not the digest"),
        (b"sentence 2", b"sentence 9", "the key is not the digest"),
        (b'"sample":0', b'"sample":1', "the key is not the digest"),
        (b'"answer":{', b'"answer":{"score":1,', "not a question and its answer"),
        (b'"sample":0', b'"number":0', "lacks 'sample'"),
    ],
)
def test_verify_finds_a_tampered_line(tmp_path: Path, old: bytes, new: bytes, problem: str) -> None:
    path = tmp_path / "a.jsonl"
    write(path, pair(1), pair(2), pair(3))
    assert verify(path) == []
    lines = path.read_bytes().split(b"\n")
    assert old in lines[2]
    lines[2] = lines[2].replace(old, new)
    path.write_bytes(b"\n".join(lines))
    (found,) = verify(path)
    assert found.startswith(f"{path}:3: {problem}")


def test_verify_finds_a_tampered_shared_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, pair(1))
    path.write_bytes(path.read_bytes().replace(b"You mark", b"You skip", 1))
    problems = verify(path)
    assert problems[0] == f"{path}:1: the text is not the one of its digest"
    assert problems[1].startswith(f"{path}:2: the key is not the digest")


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
        returned_model="served-model-2026",
        fingerprint="fp_test",
        response_id="chatcmpl-1",
        input_tokens=10,
        output_tokens=5,
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
from pieline.llm.parsing import parse_list, parse_object
folder = Path(sys.argv[1])
questions = questions_for(spec_for(), 2500)
for mode in ("replay", "record"):
    answers = ask(questions, spec_for(), settings_for(folder, mode=mode), folder / "a.jsonl")
assert len(answers) == 2500
assert all(parse_list(answer, "idioms").value == ["a b"] for answer in answers.values())
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
