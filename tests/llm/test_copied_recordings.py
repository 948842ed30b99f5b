"""Test that copied recordings and repeated responses are rejected, and that moved files are not."""

import hashlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply, Request, answer
from llm_cases import pack_folder, settings_for, spec_for

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.archive import import_archive, merge, verify
from pieline.llm.client import ask
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import read_answers, read_lines, record, run_name
from pieline.models.llm import LLMEntry

RUN = "jam/english/one/zero_shot-seed-42"
SEED_43 = "jam/english/one/zero_shot-seed-43"
OTHER_MODEL = "jam/english/two/zero_shot-seed-42"


def questions(spec: LLMEntry, *, samples: int = 1) -> list[Question]:
    """Return questions to a model without a seed parameter."""
    return [
        make_question(spec, [("user", f"q{number}")], {"max_tokens": 20}, sample=sample)
        for number in range(5)
        for sample in range(samples)
    ]


def own_ids(request: Request) -> Reply:
    """Answer with a new id for each request."""
    return answer("yes", id=f"chatcmpl-{request.text}-{request.attempt:020}")


def cached(request: Request) -> Reply:
    """Answer like a gateway that returns the first response to each text again."""
    return answer("yes", id=f"chatcmpl-{hashlib.sha256(request.text.encode()).hexdigest()}")


def short_cached(request: Request) -> Reply:
    return answer("yes", id=f"r-{request.text}")


def no_ids(request: Request) -> Reply:
    return answer("yes", id=None)


def constant_ids(request: Request) -> Reply:
    return answer("yes", id="chatcmpl-0123456789abcdef")


def repeated_by_chance(request: Request) -> Reply:
    chance = request.text == "q3"
    return answer("yes", id="chatcmpl-7" if chance else f"{request.text}-{request.attempt}")


Asked = Callable[..., Mapping[str, Answer]]


def asking(folder: Path, spec: LLMEntry) -> Asked:
    def asked(run: str, *, samples: int = 1, **changes: object) -> Mapping[str, Answer]:
        settings = settings_for(folder, concurrency=1, **changes)
        path = settings.recordings_folder / f"{run}.jsonl"
        return ask(questions(spec, samples=samples), spec, settings, path, progress=False)

    return asked


def copied(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    return target


@pytest.mark.parametrize(
    ("behave", "other"),
    [
        (own_ids, SEED_43),
        (no_ids, OTHER_MODEL),
        (constant_ids, "jam/german/one/zero_shot-seed-42"),
    ],
)
def test_a_copy_under_another_run_is_rejected(
    folder: Path, behave: Callable[[Request], Reply], other: str
) -> None:
    with FaultServer(behave) as server:
        asked = asking(folder, spec_for(server.api_base))
        asked(RUN)
        copy = copied(folder / f"{RUN}.jsonl", folder / f"{other}.jsonl")
        for mode in ("record", "replay"):
            with pytest.raises(UserError) as error:
                asked(other, mode=mode)
            hint = (
                "if the entry was renamed, run `pieline recordings rename OLD NEW`; otherwise the"
                " file is a copy: restore or delete it, and ask again"
            )
            assert str(error.value) == (
                f"{copy}:1: an answer of openai/test-model recorded for the run {RUN}, not for"
                f" {other}; {hint}"
            )
        assert len(server.requests) == 5
        asked(RUN)
        copy.unlink()
        asked(other)
        assert len(server.requests) == 10


def test_a_linked_file_is_a_copy(folder: Path) -> None:
    with FaultServer(no_ids) as server:
        asked = asking(folder, spec_for(server.api_base))
        asked(RUN)
        (folder / f"{SEED_43}.jsonl").symlink_to(folder / f"{RUN}.jsonl")
        with pytest.raises(UserError, match=f"for the run {RUN}, not for {SEED_43}"):
            asked(SEED_43)


@pytest.mark.parametrize("other", [SEED_43, OTHER_MODEL])
def test_a_copy_of_an_older_recording_is_recognized_by_its_response_ids(
    folder: Path, other: str
) -> None:
    spec = spec_for()
    fields = {"text": "yes", "returned_model": "test-model"}
    pairs = [
        (item, Answer(key=item.key, response_id=f"{number:032}", **fields))
        for number, item in enumerate(questions(spec))
    ]
    record(folder / f"{RUN}.jsonl", pairs)
    asked = asking(folder, spec)
    assert len(asked(RUN, mode="replay")) == 5  # names no run, and is accepted
    copied(folder / f"{RUN}.jsonl", folder / f"{other}.jsonl")
    with pytest.raises(UserError, match=f"5 of 5 answers are the same responses as in .*{RUN}"):
        asked(other, mode="replay")


@pytest.mark.parametrize("behave", [cached, short_cached])
def test_a_cache_that_returns_responses_again_is_recognized(
    folder: Path, behave: Callable[[Request], Reply]
) -> None:
    with FaultServer(behave) as server:
        one, two = spec_for(server.api_base), spec_for(server.api_base, label="Other entry")
        asking(folder, one)(RUN)
        for other, entry in ((SEED_43, one), (OTHER_MODEL, two)):
            with pytest.raises(UserError, match="5 of 5 answers are the same responses as in"):
                asking(folder, entry)(other)
            (folder / f"{other}.jsonl").unlink()
        # Votes over samples need different responses, too.
        with pytest.raises(UserError, match="the same responses as for other samples"):
            asking(folder, one)("jam/german/one/few_shot-seed-42", samples=3)


@pytest.mark.parametrize("behave", [own_ids, constant_ids, repeated_by_chance])
def test_different_responses_are_accepted(folder: Path, behave: Callable[[Request], Reply]) -> None:
    with FaultServer(behave) as server:
        asked = asking(folder, spec_for(server.api_base))
        for run in (RUN, SEED_43):
            assert len(asked(run, samples=2)) == 10
        assert len(server.requests) == 20


def test_recordings_can_be_moved_merged_and_imported(folder: Path, tmp_path: Path) -> None:
    with FaultServer(own_ids) as server:
        asked = asking(folder, spec_for(server.api_base))
        asked(RUN)
        asked(SEED_43)
        spec = spec_for(server.api_base)
    # The whole folder, in another place.
    moved = tmp_path / "elsewhere" / "answers"
    shutil.copytree(folder, moved)
    assert len(asking(moved, spec)(RUN, mode="replay")) == 5
    # A packed folder and its import.
    pack_folder(folder, tmp_path / "answers.tar.zst")
    import_archive(tmp_path / "answers.tar.zst", tmp_path / "new")
    assert len(asking(tmp_path / "new", spec)(SEED_43, mode="replay")) == 5
    # A file of any name, merged into the file of its run.
    sent = copied(folder / f"{RUN}.jsonl", tmp_path / "from-a-colleague.jsonl")
    target = tmp_path / "third" / f"{RUN}.jsonl"
    target.parent.mkdir(parents=True)
    assert verify(sent) == []
    assert merge(target, [sent])[str(sent)].added == 5
    assert len(asking(tmp_path / "third", spec)(RUN, mode="replay")) == 5
    # Merging into the file of another run is rejected and changes nothing.
    other = tmp_path / "third" / f"{SEED_43}.jsonl"
    with pytest.raises(UserError, match=f"recorded for the run {RUN}, not for .*seed-43"):
        merge(other, [sent])
    assert not other.exists()


def test_an_archive_with_a_copy_is_not_imported(folder: Path, tmp_path: Path) -> None:
    with FaultServer(no_ids) as server:
        asking(folder, spec_for(server.api_base))(RUN)
    copied(folder / f"{RUN}.jsonl", tmp_path / "in" / f"{SEED_43}.jsonl")
    pack_folder(tmp_path / "in", tmp_path / "x.tar.zst")
    with pytest.raises(UserError, match=f"recorded for the run {RUN}"):
        import_archive(tmp_path / "x.tar.zst", tmp_path / "new")


def test_a_run_does_not_change_keys_or_digests(folder: Path) -> None:
    with FaultServer(own_ids) as server:
        spec = spec_for(server.api_base)
        answers = asking(folder, spec)(RUN)
    path = folder / f"{RUN}.jsonl"
    assert {line.run for line in read_lines(path)} == {RUN}
    again = [(item, answers[item.key]) for item in questions(spec)]
    record(folder / "older.jsonl", again)
    assert {line.run for line in read_lines(folder / "older.jsonl")} == {""}
    digests = [
        {key: item.digest for key, item in read_answers(name).items()}
        for name in (path, folder / "older.jsonl")
    ]
    assert digests[0] == digests[1]


def test_the_name_of_a_run_is_the_path_below_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "recordings").symlink_to("real")
    for path, folder in (
        ("recordings/jam/a.jsonl", "recordings"),
        (tmp_path / "recordings/jam/a.jsonl", "recordings"),
        ("x/../recordings/jam/a.jsonl", tmp_path / "recordings"),
        (tmp_path / "real/jam/a.jsonl", "recordings"),
    ):
        assert run_name(path, folder) == "jam/a"
    assert run_name("recordings/gpt-4.1.jsonl", "recordings") == "gpt-4.1"
