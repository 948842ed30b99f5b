"""Test recordings files: incomplete lines, canonical order, large files, and repeated questions."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply, Request, echo
from fault_server import answer as said
from hypothesis import given
from hypothesis import strategies as st
from llm_cases import SOURCE, pair, questions_for, settings_for, spec_for, write

from pieline.core.errors import UserError
from pieline.core.files import canonical_json
from pieline.llm.answers import Answer, ToolCall
from pieline.llm.archive import recording_files, verify
from pieline.llm.client import ask
from pieline.llm.questions import make_question
from pieline.llm.recordings import (
    raw_lines,
    read_answers,
    read_lines,
    record,
    recording,
    to_line,
)
from pieline.llm.wire import shorten_request


def test_each_line_has_an_answer_and_its_complete_question(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record(path, [pair(i) for i in range(50)])
    lines = list(read_lines(path))
    assert {line.key: line.question().content() for line in lines} == {
        question.key: question.content() for question, _ in map(pair, range(50))
    }
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


def test_an_answer_is_synced_when_append_returns(
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


def test_a_last_line_truncated_at_any_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, pair(1), pair(2))
    content = path.read_bytes()
    last = content.rstrip(b"\n").rfind(b"\n") + 1
    assert len(content) - last > 300
    both = read_answers(path)
    first = dict(list(both.items())[:1])
    for cut in (*range(last, len(content) - 1, 7), len(content) - 1, len(content)):
        path.write_bytes(content[:cut])
        kept = both if cut >= len(content) - 1 else first
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
        with pytest.raises(UserError, match=rf"a\.jsonl:{number}: not a recording"):
            read_answers(path)


def test_a_second_writer_is_rejected(tmp_path: Path) -> None:
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


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["yes", "no", None])), max_size=4),
        max_size=4,
    )
)
def test_a_closed_file_is_in_order_and_has_every_answer(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[tuple[int, str | None]]]
) -> None:
    path = tmp_path_factory.mktemp("order") / "a.jsonl"
    expected: dict[str, set[Answer]] = {}
    for run in runs:
        pairs = [pair(number, text) for number, text in run]
        write(path, *pairs)
        for question, answer in pairs:
            expected.setdefault(question.key, set()).add(answer)
        lines = list(read_lines(path))
        assert {key: {x.answer() for x in lines if x.key == key} for key in expected} == expected
        assert [line.key for line in lines] == sorted(
            key for key, answers in expected.items() for _ in answers
        )
        if all(len(answers) == 1 for answers in expected.values()):
            assert read_answers(path) == {key: answer for key, (answer,) in expected.items()}
        else:
            with pytest.raises(UserError, match="an earlier line has a different answer"):
                read_answers(path)
    write(path)
    before = path.stat()
    write(path)
    assert path.stat().st_mtime_ns == before.st_mtime_ns, "an unchanged file is not rewritten"


def test_manually_written_lines_are_read(tmp_path: Path) -> None:
    path, key = tmp_path / "a.jsonl", pair(8)[0].key
    tricky = '"},"key":"' + key + '","question":{"messages":[{"role":"user","text":"' + key + '"}'
    pairs = [pair(1), pair(2, tricky), pair(3), pair(4)]
    answers = [json.loads(to_line(*each)) for each in pairs]
    lines = [
        " " + json.dumps(answers[0], sort_keys=True, separators=(",", ":")),
        json.dumps(answers[1], sort_keys=True, separators=(",", ":")),
        json.dumps(answers[2], sort_keys=True, separators=(",", ":")).replace("seed", "\\u0073eed"),
        "  " + json.dumps(dict(reversed(answers[3].items()))) + "\r",
    ]
    path.write_text("\n".join(lines))  # without a newline
    expected = {question.key: answer for question, answer in pairs}
    assert read_answers(path) == expected
    for question, answer in pairs:
        assert read_answers(path, {question.key, key}) == {question.key: answer}
    assert verify(path) == []
    write(path, pair(5))
    assert read_answers(path) == expected | {pair(5)[0].key: pair(5)[1]}
    assert list(raw_lines(path)) == sorted(read_answers(path))


REPOSITORY = {
    "idiolink_construction/gemini-2.5-pro/write_documents.jsonl": (
        10,
        "34cf0d6a748e9b3b0c5df72c5f43731048341385fa999d1d6dc03bd8bcdd3e8c",
    ),
    "idiolink_construction/gemini-3-flash-preview/write_queries.jsonl": (
        8,
        "2fca7672b4e5c82bc2c07f96135df21248268e634a6ce72766a6fbf543c2be98",
    ),
    "idiolink_construction/gpt-4o-mini/validate_documents.jsonl": (
        24,
        "9721017eb86b9d126a78f8c957f9144e502f62ef52ea5d2ab77c493c001a9210",
    ),
    "idiolink_construction/gpt-4o-mini/validate_queries.jsonl": (
        24,
        "97dc8ad8edbcda56fc8483049f88445ae09b85fad7757b5faa0526ee3d53919f",
    ),
    "idiots/smollm2-135m-instruct/base_rate_34-seed-0.jsonl": (
        82,
        "d0e8783a8ee0da2e9f0c3cf357e4cfd257513c2a0eef28d9657f5d7a94f1735e",
    ),
    "idiots/smollm2-135m-instruct/base_rate_66-seed-0.jsonl": (
        82,
        "e0551a2e1510bdd270e3d8194842dae9d1552a805ddbb7f57355f93b932996ac",
    ),
    "idiots/smollm2-135m-instruct/idiom_first-seed-0.jsonl": (
        82,
        "c436a60ee2cb1bde3e1465374dcd1f5890ff6a2a6fe407447c5c3ae6b3221675",
    ),
    "idiots/smollm2-135m-instruct/negated-seed-0.jsonl": (
        82,
        "007fd4fc417388de42284e68d3cb7b78be22e5a6c7b0f50d1292f7997055c4ed",
    ),
    "idiots/smollm2-135m-instruct/none_first-seed-0.jsonl": (
        82,
        "3f1e36a9c7176c0ad66a9b47db921bf1bd937314fb38519c214b830d3d01dd07",
    ),
    "idiots/smollm2-135m-instruct/one_distractor-seed-0.jsonl": (
        82,
        "2b70018e71b3e80c819572aa43a01d17eaf08560f7b22c88a370423be709dd5d",
    ),
    "idiots/smollm2-135m-instruct/plain-seed-0.jsonl": (
        82,
        "d3d30f21f3d3f841b01ed6ddd21b8a36c5c08cffd22f7fa3cc3135765fae2855",
    ),
    "idiots/smollm2-135m-instruct/zero_shot-seed-0.jsonl": (
        82,
        "8220b921a555ca65ccb99c64f6311ec749f66e0f6d8580139362a91883771f11",
    ),
    "idiots/smollm2-135m-instruct/zero_shot_schema-seed-0.jsonl": (
        82,
        "aef65b808e46effc334c502cebc9df19a0f79e5db9bdadc52348e8f99aded652",
    ),
    "jam/english/smollm2-135m-instruct/context_last-seed-42.jsonl": (
        164,
        "9c4adddd7a7a16396fd5ff0cf8e7ad11fd2e695033f843aa834f220a13e1d5c8",
    ),
    "jam/english/smollm2-135m-instruct/context_removed-seed-42.jsonl": (
        56,
        "1412172f5c532f00880932fc5359f395c2478b52f4e88e11b96a33212e1c454a",
    ),
    "jam/english/smollm2-135m-instruct/few_shot_sc_cotbest-seed-42.jsonl": (
        492,
        "e7ae7790fa742e9772288b7b8a31aa5ecc6535f788acbf001538ecc92aff66d8",
    ),
    "jam/english/smollm2-135m-instruct/neutral_context-seed-42.jsonl": (
        82,
        "38a4cbe2c11e8967b5f07059bdfb4a517764e4aaaa582094cc7ff89fb72a7038",
    ),
    "jam/english/smollm2-135m-instruct/other_context-seed-42.jsonl": (
        156,
        "3b57a06c44eeda84828a2d2434046e130d7bca8b2ac406dfa14d58d495c10814",
    ),
    "jam/english/smollm2-135m-instruct/paraphrase-seed-42.jsonl": (
        164,
        "7cf44409dce673ac002ca8301ac4e84c6cac01b1d01244ae19ce3ac5a16114d1",
    ),
    "jam/english/smollm2-135m-instruct/plain-seed-42.jsonl": (
        164,
        "a534db2b279645e0503ffe21181a328f04120de94433a2195b4a418eecb0e651",
    ),
    "jam/english/smollm2-135m-instruct/target_first-seed-42.jsonl": (
        164,
        "7724275ccda4b14150bb99fb69cb9597a8c0b27c3fb7840de9e1042d504570a0",
    ),
    "jam/english/smollm2-135m-instruct/warning-seed-42.jsonl": (
        164,
        "4ebaa01795636969ae159f69fee190b6950dc5c2da8bd1a92d8d8e0008cf1238",
    ),
    "jam/english/smollm2-135m-instruct/zero_shot-seed-42.jsonl": (
        164,
        "b5c7797f87a7fd75890e629d32f7c17e92700fcd4a430532cfb43fd9d9caed9e",
    ),
    "jam/english/smollm2-135m-instruct/zero_shot_schema-seed-42.jsonl": (
        164,
        "a17e1766b3545b5fcc89c16accab2547692652d09cf9f540cf4caad4038141b8",
    ),
    "jam/german/smollm2-135m-instruct/context_last-seed-42.jsonl": (
        116,
        "2e367ce57fe3a8c8360e1e45e2aee124ade4106061265967229f954ef75baa66",
    ),
    "jam/german/smollm2-135m-instruct/context_removed-seed-42.jsonl": (
        42,
        "e8eeaf8b2057d774a2fa8615a1efee943a9344010e68deb929daff634a7f9ec9",
    ),
    "jam/german/smollm2-135m-instruct/few_shot_sc_cotbest-seed-42.jsonl": (
        348,
        "a196d21f6f259722c8b1d87daa00e73f15d856010bc3d5d46067b062457f5aa7",
    ),
    "jam/german/smollm2-135m-instruct/other_context-seed-42.jsonl": (
        110,
        "8c386f2477e44114978b85fc7f9874a219a139c71a8d327479d7c0a7dfb7b14a",
    ),
    "jam/german/smollm2-135m-instruct/paraphrase-seed-42.jsonl": (
        116,
        "c1f9f64aedce58fe8d6275bd2dd18067a320ffe4b8f9f8cfdfad12b4eb2e391a",
    ),
    "jam/german/smollm2-135m-instruct/plain-seed-42.jsonl": (
        116,
        "2e4fcc939969d36461045a07989a53e9284710150019bf82cd85e41001615fbc",
    ),
    "jam/german/smollm2-135m-instruct/target_first-seed-42.jsonl": (
        116,
        "51c444ead502d3f946d465e858ba5aeea4b342b2fd695814de71a33d00fc10fb",
    ),
    "jam/german/smollm2-135m-instruct/warning-seed-42.jsonl": (
        116,
        "47fa1708ec3e5766e6ae501592547d622228386f50e016aacc45d578fcfdd545",
    ),
    "jam/german/smollm2-135m-instruct/zero_shot-seed-42.jsonl": (
        116,
        "a8f442d915c2c8547aac3b4277faaef5dd42c3d52c8e17c055a6218a7b004a80",
    ),
    "jam/german/smollm2-135m-instruct/zero_shot_schema-seed-42.jsonl": (
        116,
        "b47a4f6d2adeea32cab2a16eae5fbb5f9bc3229b190bf662aa1f90bb8ed5e5b8",
    ),
}
"""Number of answers in each recordings file of the repository, and a digest of them."""


def test_the_answers_in_the_repository_are_those_that_were_recorded() -> None:
    folder = SOURCE.parent / "recordings"
    counts = {}
    for path in recording_files(folder):
        values = {key: answer.record() for key, answer in sorted(read_answers(path).items())}
        digest = hashlib.sha256(canonical_json(values).encode()).hexdigest()
        counts[path.relative_to(folder).as_posix()] = (len(values), digest)
    assert counts == REPOSITORY


# Which questions are asked again.


def texts(server: FaultServer) -> list[str]:
    return [request.text for request in server.requests]


def test_only_changed_questions_are_asked_again(folder: Path) -> None:
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
        assert asked(top_k=5) == 0, "unsupported parameters, not sent"
        assert asked(seed=None) == 0
        assert asked(temperature=0.4) == 1
        assert asked(seed=42) == 1
        assert asked(sample=1) == 1
        assert asked(text="t ") == 1
        assert asked(system="s.") == 1
        assert asked() == 0
        # Label, prices and address are not part of a question.
        spec = spec_for(
            server.api_base, label="Other", ends="past", prices={"input": 1, "output": 1}
        )
        assert asked() == 0
        spec = spec_for(server.api_base, litellm_id="openai/test-model-2")
        assert asked() == 1


def test_exactly_the_question_is_sent(folder: Path) -> None:
    def behave(request: Request) -> Reply:
        message = {"role": "assistant", "content": request.text, "reasoning_content": "hm"}
        return said("", message=message)

    with FaultServer(behave) as server:
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
        text="  c  ",
        reasoning="hm",
        address=server.api_base.removesuffix("/v1"),
        finish_reason="stop",
        returned_model="test-model",
        fingerprint="fp_test",
        response_id="chatcmpl-1",
        input_tokens=10,
        output_tokens=5,
        sent=shorten_request(question, "/v1/chat/completions", server.requests[0].body),
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
    replies = {"text": "old"}

    def behave(request: Request) -> Reply:
        if replies["text"] == "down" and request.text > "q3":
            return Reply(401, b'{"error": {"message": "no"}}')
        return echo(Request(f"{replies['text']} {request.text}", 1, 0, {}, {}))

    with FaultServer(behave) as server:
        spec = spec_for(server.api_base)
        questions = questions_for(spec, 6)
        ask(questions, spec, settings_for(folder), path, progress=False)
        old = path.read_bytes()
        fresh = settings_for(folder, mode="fresh", concurrency=1)
        replies["text"] = "down"
        with pytest.raises(UserError):
            ask(questions[1:], spec, fresh, path, progress=False)
        assert path.read_bytes() == old, "until all are there, the recordings stay"
        del server.requests[:]
        replies["text"] = "new"
        answers = ask(questions[1:], spec, fresh, path, progress=False)
        assert texts(server) == ["q4", "q5"]
    replied = [str(read_answers(path)[question.key].text).split()[1] for question in questions]
    assert replied == ["old", "down", "down", "down", "new", "new"]
    assert [answer.text for answer in answers.values()] == [
        read_answers(path)[question.key].text for question in questions[1:]
    ]
    assert not path.with_name("a.jsonl.fresh").exists()
    assert verify(path) == []


def test_recordings_must_be_in_the_recordings_folder(folder: Path, tmp_path: Path) -> None:
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
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


HOSTILE = st.text(st.sampled_from('"\\{},:[]sent text'), max_size=30) | st.sampled_from(
    [',"sent":{', '},"text":', '"},"text":"', '\\"},"text":']
)


@given(HOSTILE, HOSTILE, HOSTILE | st.none(), st.booleans())
def test_answers_are_equal_without_the_sent_request(
    prompt: str, reasoning: str, text: str | None, calls: bool
) -> None:
    question = make_question(spec_for(), [("user", prompt)], {"max_tokens": 5})
    kept = shorten_request(
        question, "/v1/chat/completions", {"x": {"a": {"text": prompt}}, "text": [prompt]}
    )
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
